"""Flash attention, backward: the weights are recomputed, tile by tile, not kept.

With the log-sum-exp of every query, the weights of a tile come from its scores alone:
exp(score - log_sum_exp). That is one matrix product more than the untiled backward
pass, and n_q n_k numbers fewer to keep.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from attnlib.shapes import Array, ShapeError, numbers
from attnlib.tiles.arrays import InHBM
from attnlib.tiles.chip import Chip
from attnlib.tiles.forward import Flash, all_later, hidden_keys
from attnlib.tiles.inputs import Inputs, read_inputs
from attnlib.tiles.online import ranges


@dataclass(frozen=True)
class FlashGradients:
    """d loss / d q, k and v, each the shape of its argument."""

    q: Array  # (..., n_q, d_k)
    k: Array  # (..., n_k, d_k)
    v: Array  # (..., n_k, d_v)


def flash_backward(
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    flash: Flash,
    grad_out: npt.ArrayLike,
    mask: npt.ArrayLike | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
    block_q: int,
    block_k: int,
    chip: Chip | None = None,
) -> FlashGradients:
    """Carry a gradient from out back to q, k and v, recomputing the weights in tiles.

    w = exp(s - log_sum_exp); grad_v = w^T g; delta = sum_j(g_j out_j);
    grad_s = w (g v^T - delta); grad_q = scale grad_s k; grad_k = scale grad_s^T q

    Args:
        q: queries, (..., n_q, d_k).
        k: keys, (..., n_k, d_k).
        v: values, (..., n_k, d_v).
        flash: what `flash_forward` gave for the same arguments.
        grad_out: g = d loss / d out, (..., n_q, d_v).
        mask: boolean, broadcastable to (..., n_q, n_k). True = may look.
        causal: hide what comes after a query.
        scale: factor on the raw scores; 1 / sqrt(d_k) if left out.
        block_q: how many queries a tile has; other than in the forward pass, if you
            like.
        block_k: how many keys a tile has, likewise.
        chip: where it runs; one with SRAM without end, if left out.

    Returns:
        The gradients of q, k and v, each the shape of its argument: where one was
        broadcast over batch axes, its gradient is summed over them.

    Raises:
        ShapeError: as `flash_forward`, or flash or grad_out is of another shape.
        TypeError: as `flash_forward`.
        ChipFull: the tiles do not fit into the SRAM.

    Cost: 2 n_q n_k (3 d_k + 2 d_v) FLOPs, 2.5 times the forward pass if d_k = d_v.
        From HBM: k and v once; q, grad_out and grad_q once for each tile of keys.
    Source: Dao et al. 2022, appendix B.2 and algorithm 4.
    Lesson: 12.

    >>> from attnlib.tiles.forward import flash_forward
    >>> q, k, v = [[1.0, 0.0]], [[1.0, 2.0], [0.0, 1.0]], [[3.0], [5.0]]
    >>> flash = flash_forward(q, k, v, scale=0.0, block_q=1, block_k=1)
    >>> sizes = {"scale": 0.0, "block_q": 1, "block_k": 1}
    >>> flash_backward(q, k, v, flash, [[1.0]], **sizes).v.tolist()
    [[0.5], [0.5]]
    """
    x = read_inputs(q, k, v, mask, scale)
    ranges(0, block_q), ranges(0, block_k)
    grad = numbers("grad_out", grad_out)
    for name, array, wanted in (
        ("flash.out", flash.out, (*x.batch, x.n_q, x.v.shape[-1])),
        ("flash.log_sum_exp", flash.log_sum_exp, (*x.batch, x.n_q)),
        ("grad_out", grad, (*x.batch, x.n_q, x.v.shape[-1])),
    ):
        if array.shape != wanted:
            raise ShapeError(
                f"{name} has shape {array.shape}, but for these q, k and v it must be "
                f"{wanted}."
            )
    chip = chip or Chip()
    sizes = (x.q.shape[-2:], x.k.shape[-2:], x.v.shape[-2:])
    grad_q, grad_k, grad_v = (x.result(*shape) for shape in sizes)
    delta = x.result(x.n_q)
    for head in x.heads():
        backward_kernel(
            chip,
            chip.hbm(x.q[head], "q"),
            chip.hbm(x.k[head], "k"),
            chip.hbm(x.v[head], "v"),
            None if x.mask is None else chip.hbm(x.mask[head], "mask"),
            chip.hbm(flash.out[head], "out"),
            chip.hbm(flash.log_sum_exp[head], "log_sum_exp"),
            chip.hbm(grad[head], "grad_out"),
            chip.hbm(delta[head], "delta"),
            chip.hbm(grad_q[head], "grad_q"),
            chip.hbm(grad_k[head], "grad_k"),
            chip.hbm(grad_v[head], "grad_v"),
            causal=causal,
            scale=x.scale,
            block_q=block_q,
            block_k=block_k,
            dtype=x.dtype,
        )
    return FlashGradients(*as_arguments(x, grad_q, grad_k, grad_v))


def backward_kernel(
    chip: Chip,
    q: InHBM,
    k: InHBM,
    v: InHBM,
    mask: InHBM | None,
    out: InHBM,
    log_sum_exp: InHBM,
    grad_out: InHBM,
    delta: InHBM,
    grad_q: InHBM,
    grad_k: InHBM,
    grad_v: InHBM,
    *,
    causal: bool,
    scale: float,
    block_q: int,
    block_k: int,
    dtype: npt.DTypeLike,
) -> None:
    """One head: first delta, one number a query, then tiles; the keys stay longer."""
    for rows in ranges(len(q), block_q):
        g = chip.load(grad_out, rows, dtype)
        chip.store(delta, rows, (g * chip.load(out, rows, dtype)).sum(axis=-1))
        del g
    begun = set[int]()  # the tiles of queries whose gradient stands in HBM already
    for cols in ranges(len(k), block_k):
        k_tile = chip.load(k, cols, dtype)
        v_tile = chip.load(v, cols, dtype)
        k_grad = chip.new(k_tile.shape, 0.0, dtype)
        v_grad = chip.new(v_tile.shape, 0.0, dtype)
        for rows in ranges(len(q), block_q):
            if causal and all_later(rows, cols, len(q), len(k)):
                continue
            hidden = hidden_keys(chip, mask, causal, rows, cols, len(k) - len(q))
            if hidden is not None and hidden.all():
                continue
            q_tile = chip.load(q, rows, dtype) * scale
            g = chip.load(grad_out, rows, dtype)
            scores: Any = q_tile @ k_tile.T
            if hidden is not None:
                np.copyto(scores, -np.inf, where=hidden)
            del hidden
            shift: Any = chip.load(log_sum_exp, rows)
            shift = np.where(np.isneginf(shift), 0, shift)  # an empty row: exp(-inf)
            scores -= shift[:, None]
            np.exp(scores, out=scores)  # the weights, as in the forward pass
            v_grad += scores.T @ g
            of_weights = g @ v_tile.T
            del g  # its room is for the next products
            of_weights -= chip.load(delta, rows)[:, None]
            scores *= of_weights  # the gradient of the scores
            del of_weights
            k_grad += scores.T @ q_tile
            del q_tile
            q_grad = scores @ k_tile
            del scores
            q_grad *= scale
            if rows.start in begun:
                q_grad += chip.load(grad_q, rows)
            begun.add(rows.start)
            chip.store(grad_q, rows, q_grad)
            del q_grad
        chip.store(grad_k, cols, k_grad)
        chip.store(grad_v, cols, v_grad)
        del k_tile, v_tile, k_grad, v_grad


def as_arguments(x: Inputs, *gradients: Array) -> list[Array]:
    """Sum each gradient over the batch axes that its argument did not have."""
    found = []
    for array, shape, like in zip(gradients, x.shapes, (x.q, x.k, x.v), strict=True):
        array = array.sum(axis=tuple(range(array.ndim - len(shape))))
        stretched = tuple(
            axis for axis, n in enumerate(shape) if n == 1 != array.shape[axis]
        )
        array = array.sum(axis=stretched, keepdims=True)
        found.append(np.asarray(array, dtype=like.dtype))
    return found
