"""Attention as it is usually written, on the same chip: the matrices go through HBM.

Three kernels, one after the other: the scores, the softmax, the product with v. Each
reads from HBM what the one before has written there. The softmax needs a whole row of
scores on the chip; where a row does not fit, this way is closed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from attnlib.shapes import Array, ShapeError, numbers
from attnlib.tiles.arrays import InHBM
from attnlib.tiles.backward import FlashGradients, as_arguments
from attnlib.tiles.chip import Chip
from attnlib.tiles.forward import hidden_keys
from attnlib.tiles.inputs import Inputs, read_inputs
from attnlib.tiles.online import ranges


@dataclass(frozen=True)
class Untiled:
    """What the usual attention leaves in HBM; gradients need the weights again."""

    scores: Array  #   (..., n_q, n_k)
    weights: Array  #  (..., n_q, n_k)
    out: Array  #      (..., n_q, d_v)


def untiled_forward(
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    mask: npt.ArrayLike | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
    block_q: int,
    block_k: int,
    chip: Chip | None = None,
) -> Untiled:
    """Compute attention in three kernels, with all scores and weights in HBM between.

    scores = scale q k^T; weights = softmax(scores); out = weights v

    The two products are cut into blocks, the softmax goes row by row. A causal mask
    saves nothing here: a hidden score is written and read like any other.

    Args:
        q: queries, (..., n_q, d_k).
        k: keys, (..., n_k, d_k).
        v: values, (..., n_k, d_v).
        mask: boolean, broadcastable to (..., n_q, n_k). True = may look.
        causal: hide what comes after a query.
        scale: factor on the raw scores; 1 / sqrt(d_k) if left out.
        block_q: rows of a block of the two products.
        block_k: columns of a block of the two products.
        chip: where it runs; one with SRAM without end, if left out.

    Returns:
        scores, weights (..., n_q, n_k) and out (..., n_q, d_v).

    Raises:
        ShapeError: as `flash_forward`.
        TypeError: as `flash_forward`.
        ChipFull: a block, or one row of n_k scores, does not fit into the SRAM.

    Cost: the FLOPs of `flash_forward`; beside its traffic, 4 n_q n_k numbers are moved:
        scores written, scores read, weights written, weights read.
    Source: Dao et al. 2022, algorithm 0.
    Lesson: 12.

    >>> chip, x = Chip(sram_bytes=800), np.eye(6)
    >>> untiled_forward(x, x, x, block_q=2, block_k=2, chip=chip).out[0].round(2)
    array([0.23, 0.15, 0.15, 0.15, 0.15, 0.15])
    >>> chip.read, chip.written
    (2592, 864)
    """
    x = read_inputs(q, k, v, mask, scale)
    ranges(0, block_q), ranges(0, block_k)
    chip = chip or Chip()
    scores, weights = (x.result(x.n_q, x.k.shape[-2]) for _ in range(2))
    out = x.result(x.n_q, x.v.shape[-1])
    for head in x.heads():
        placed = [chip.hbm(a[head]) for a in (x.q, x.k, x.v, scores, weights, out)]
        look = None if x.mask is None else chip.hbm(x.mask[head], "mask")
        _scores(chip, x, placed, look, causal, block_q, block_k)
        for row in ranges(x.n_q, 1):
            _softmax(chip, placed[3], placed[4], row)
        for rows in ranges(x.n_q, block_q):
            mixed: Any = chip.new((len(rows), x.v.shape[-1]), 0.0, x.dtype)
            for cols in ranges(x.k.shape[-2], block_k):
                tile = chip.load(placed[4], (rows, cols))
                mixed += tile @ chip.load(placed[2], cols, x.dtype)
                del tile
            chip.store(placed[5], rows, mixed)
            del mixed
    return Untiled(scores, weights, out)


def untiled_backward(
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    weights: npt.ArrayLike,
    grad_out: npt.ArrayLike,
    *,
    scale: float | None = None,
    block_q: int,
    block_k: int,
    chip: Chip | None = None,
) -> FlashGradients:
    """Carry a gradient back to q, k and v with the weights that the forward pass kept.

    grad_v = w^T g; grad_w = g v^T; grad_s = w (grad_w - sum_j w_j grad_w_j);
    grad_q = scale grad_s k; grad_k = scale grad_s^T q

    Args:
        q: queries, (..., n_q, d_k).
        k: keys, (..., n_k, d_k).
        v: values, (..., n_k, d_v).
        weights: w, as `untiled_forward` gave them, (..., n_q, n_k).
        grad_out: g = d loss / d out, (..., n_q, d_v).
        scale: factor on the raw scores; 1 / sqrt(d_k) if left out.
        block_q: rows of a block of the products.
        block_k: columns of a block of the products.
        chip: where it runs; one with SRAM without end, if left out.

    Returns:
        The gradients of q, k and v, each the shape of its argument.

    Raises:
        ShapeError: as `flash_backward`.
        TypeError: as `flash_backward`.
        ChipFull: a block, or two rows of n_k numbers, do not fit into the SRAM.

    Cost: 4 n_q n_k (d_k + d_v) FLOPs, twice the forward pass; 7 n_q n_k numbers are
        moved: w read twice, grad_w written and read, grad_s written and read twice.
    Source: Dao et al. 2022, algorithm 3.
    Lesson: 12.

    >>> x = np.eye(2)
    >>> untiled_backward(x, x, x, x, x, block_q=1, block_k=2).v.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    x = read_inputs(q, k, v, None, scale)
    ranges(0, block_q), ranges(0, block_k)
    n_q, n_k = x.n_q, x.k.shape[-2]
    kept, grad = numbers("weights", weights), numbers("grad_out", grad_out)
    for name, array, last in (("weights", kept, n_k), ("grad_out", grad, -1)):
        wanted = (*x.batch, n_q, x.v.shape[-1] if last < 0 else last)
        if array.shape != wanted:
            raise ShapeError(
                f"{name} has shape {array.shape}, but for these q, k and v it must be "
                f"{wanted}."
            )
    chip = chip or Chip()
    of_weights, of_scores = x.result(n_q, n_k), x.result(n_q, n_k)
    grads = [x.result(*array.shape[-2:]) for array in (x.q, x.k, x.v)]
    for head in x.heads():
        w, g, dw, ds, q_, k_, v_, dq, dk, dv = (
            chip.hbm(a[head])
            for a in (kept, grad, of_weights, of_scores, x.q, x.k, x.v, *grads)
        )
        _product(chip, w, g, dv, (block_k, block_q), x, turned=True)
        for rows in ranges(n_q, block_q):
            g_tile = chip.load(g, rows, x.dtype)
            for cols in ranges(n_k, block_k):
                chip.store(dw, (rows, cols), g_tile @ chip.load(v_, cols, x.dtype).T)
            del g_tile
        for row in ranges(n_q, 1):
            w_row, dw_row = chip.load(w, row), chip.load(dw, row)
            dw_row -= (w_row * dw_row).sum()
            dw_row *= w_row
            chip.store(ds, row, dw_row)
            del w_row, dw_row
        _product(chip, ds, k_, dq, (block_q, block_k), x, scale=x.scale)
        _product(chip, ds, q_, dk, (block_k, block_q), x, scale=x.scale, turned=True)
    return FlashGradients(*as_arguments(x, *grads))


def _scores(
    chip: Chip,
    x: Inputs,
    placed: list[InHBM],
    mask: InHBM | None,
    causal: bool,
    block_q: int,
    block_k: int,
) -> None:
    q, k, _, scores, *_ = placed
    for rows in ranges(len(q), block_q):
        q_tile = chip.load(q, rows, x.dtype) * x.scale
        for cols in ranges(len(k), block_k):
            tile: Any = q_tile @ chip.load(k, cols, x.dtype).T
            hidden = hidden_keys(chip, mask, causal, rows, cols, len(k) - len(q))
            if hidden is not None:
                np.copyto(tile, -np.inf, where=hidden)
            chip.store(scores, (rows, cols), tile)
            del tile
        del q_tile


def _softmax(chip: Chip, scores: InHBM, weights: InHBM, row: range) -> None:
    tile: Any = chip.load(scores, row)
    m = tile.max()
    tile -= np.where(np.isneginf(m), 0, m)
    np.exp(tile, out=tile)
    total = tile.sum()
    tile /= np.where(total == 0, 1, total)
    chip.store(weights, row, tile)


def _product(
    chip: Chip,
    a: InHBM,
    b: InHBM,
    out: InHBM,
    blocks: tuple[int, int],
    x: Inputs,
    *,
    scale: float = 1.0,
    turned: bool = False,
) -> None:
    """out = scale a b, or a^T b: a tile of out stays while blocks of a pass by once."""
    for rows in ranges(len(out), blocks[0]):
        tile = chip.new((len(rows), out.shape[1]), 0.0, x.dtype)
        for cols in ranges(len(b), blocks[1]):
            block = chip.load(a, (cols, rows) if turned else (rows, cols))
            tile += (block.T if turned else block) @ chip.load(b, cols, x.dtype)
            del block
        tile *= scale
        chip.store(out, rows, tile)
        del tile
