"""Flash attention, forward: tiles of queries and keys, and nothing of size n_q n_k.

A tile of queries stays on the chip while the keys and values pass by, block by block.
Its state is that of the online softmax. Only the result goes back to HBM, and one more
number a query, the log-sum-exp, from which the backward pass recomputes the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from attnlib.shapes import Array, ShapeError
from attnlib.tiles.arrays import InHBM
from attnlib.tiles.chip import Chip
from attnlib.tiles.inputs import read_inputs
from attnlib.tiles.online import Online, online_step, ranges

Watch = Callable[[range, range, Online], None]


@dataclass(frozen=True)
class Flash:
    """What flash attention leaves in HBM."""

    out: Array  #          (..., n_q, d_v)
    log_sum_exp: Array  #  (..., n_q)  of the scores; -inf where nothing may be seen


@dataclass(frozen=True)
class Step:
    """What lies on the chip after one tile, and what was moved so far."""

    rows: range  #   queries of the tile
    cols: range  #   keys of the tile
    m: Array  #      (rows,)       the largest score so far
    total: Array  #  (rows,)       the sum of the exponentials so far
    mixed: Array  #  (rows, d_v)   not yet divided
    out: Array  #    (rows, d_v)   divided: the attention over the keys so far
    read: int  #     bytes
    written: int  #  bytes
    in_use: int  #   bytes of SRAM, between two tiles
    peak: int  #     bytes of SRAM, the most so far


def flash_forward(
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
) -> Flash:
    """Compute exact attention in tiles, without ever having all scores at once.

    out = softmax(q k^T / sqrt(d_k)) v, from blocks of keys by `online_step`

    A mask is read in tiles; one that is the same for all queries, such as padding,
    takes n_k bytes and not n_q n_k. Where it hides a whole tile, the keys and values of
    that tile are never loaded. A causal mask is not even read.

    Args:
        q: queries, (..., n_q, d_k).
        k: keys, (..., n_k, d_k).
        v: values, (..., n_k, d_v).
        mask: boolean, broadcastable to (..., n_q, n_k). True = may look.
        causal: hide what comes after a query, which stands at n_k - n_q + i; combined
            with the mask by &.
        scale: factor on the raw scores; 1 / sqrt(d_k) if left out.
        block_q: how many queries a tile has; the last one may have fewer.
        block_k: how many keys a tile has, likewise.
        chip: where it runs, with its meters; one with SRAM without end, if left out.

    Returns:
        out (..., n_q, d_v), zeros where nothing may be seen, and log_sum_exp
        (..., n_q).

    Raises:
        ShapeError: arrays that do not fit, as in `scaled_dot_product`, or a block size
            of less than 1.
        TypeError: an argument is not an array of numbers, or the mask not boolean.
        ChipFull: the tiles do not fit into the SRAM.

    Cost: 2 n_q n_k (d_k + d_v) FLOPs; n_q (d_v + 1) numbers beside q, k and v. From
        HBM: q once, k and v once for each tile of queries (`cost.flash_traffic`).
    Source: Dao et al. 2022, algorithm 1; Dao 2023, algorithm 1, for the order.
    Lesson: 12.

    >>> chip = Chip(sram_bytes=800)
    >>> x = np.eye(6)
    >>> flash = flash_forward(x, x, x, causal=True, block_q=2, block_k=2, chip=chip)
    >>> flash.out[:2].round(2).tolist()
    [[1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.4, 0.6, 0.0, 0.0, 0.0, 0.0]]
    >>> chip.read, chip.written
    (1440, 336)
    """
    return _forward(q, k, v, mask, causal, scale, block_q, block_k, chip or Chip())


def flash_trace(
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
) -> tuple[Step, ...]:
    """Run `flash_forward` for one head, and keep what lies on the chip after each tile.

    out of the last tile of a row of tiles = softmax(q k^T / sqrt(d_k)) v of its rows

    Args:
        q: queries, (n_q, d_k).
        k: keys, (n_k, d_k).
        v: values, (n_k, d_v).
        mask: boolean, broadcastable to (n_q, n_k). True = may look.
        causal: hide what comes after a query. Tiles that are hidden give no step.
        scale: factor on the raw scores; 1 / sqrt(d_k) if left out.
        block_q: how many queries a tile has.
        block_k: how many keys a tile has.
        chip: where it runs; one with SRAM without end, if left out.

    Returns:
        One step a tile, in the order in which they are computed.

    Raises:
        ShapeError: as `flash_forward`, or there are batch axes.
        TypeError: as `flash_forward`.
        ChipFull: the tiles do not fit into the SRAM.

    Cost: that of `flash_forward`; the copies are not counted on the chip.
    Source: Dao et al. 2022, figure 1.
    Lesson: 12.

    >>> x = np.eye(4)
    >>> steps = flash_trace(x, x, x, block_q=2, block_k=3)
    >>> [(s.rows.start, s.cols.start, s.read) for s in steps]
    [(0, 0, 256), (0, 3, 320), (2, 0, 576), (2, 3, 640)]
    """
    if max(np.ndim(x) for x in (q, k, v)) > 2:
        raise ShapeError(
            f"a trace follows one head: q (n_q, d_k), k (n_k, d_k), v (n_k, d_v), but "
            f"the shapes are {np.shape(q)}, {np.shape(k)} and {np.shape(v)}."
        )
    chip, steps = chip or Chip(), list[Step]()

    def watch(rows: range, cols: range, state: Online) -> None:
        m, total, mixed = (
            tile._array.copy() for tile in (state.m, state.total, state.mixed)
        )
        out = Online(m, total, mixed).out
        meters = (chip.read, chip.written, chip.in_use, chip.peak)
        steps.append(Step(rows, cols, m, total, mixed, out, *meters))

    _forward(q, k, v, mask, causal, scale, block_q, block_k, chip, watch)
    return tuple(steps)


def forward_kernel(
    chip: Chip,
    q: InHBM,
    k: InHBM,
    v: InHBM,
    mask: InHBM | None,
    out: InHBM,
    log_sum_exp: InHBM,
    *,
    causal: bool,
    scale: float,
    block_q: int,
    block_k: int,
    dtype: npt.DTypeLike,
    watch: Watch | None = None,
) -> None:
    """One head. This is the page to read: all else in this file hands things over."""
    d_v = v.shape[1]
    for rows in ranges(len(q), block_q):
        q_tile = chip.load(q, rows, dtype) * scale
        state = Online(
            chip.new(len(rows), -np.inf, dtype),
            chip.new(len(rows), 0.0, dtype),
            chip.new((len(rows), d_v), 0.0, dtype),
        )
        for cols in ranges(len(k), block_k):
            if causal and all_later(rows, cols, len(q), len(k)):
                break  # and so are the tiles after it
            hidden = hidden_keys(chip, mask, causal, rows, cols, len(k) - len(q))
            if hidden is not None and hidden.all():
                continue  # the mask leaves nothing of this tile
            scores = q_tile @ chip.load(k, cols, dtype).T
            if hidden is not None:
                np.copyto(scores, -np.inf, where=hidden)
            del hidden  # its room is needed now
            state = online_step(state, scores, chip.load(v, cols, dtype))
            if watch is not None:
                watch(rows, cols, state)
        chip.store(out, rows, state.out)
        chip.store(log_sum_exp, rows, state.log_sum_exp)
        del state, q_tile


def all_later(rows: range, cols: range, n_q: int, n_k: int) -> bool:
    """Whether every key of a tile stands after every query of it."""
    return cols[0] > n_k - n_q + rows[-1]


def hidden_keys(
    chip: Chip,
    mask: InHBM | None,
    causal: bool,
    rows: range,
    cols: range,
    offset: int,
) -> Any:
    """Where a query of the tile may not look: a tile of truth values, or None."""
    hidden: Any = None
    if mask is not None:
        wide_rows = rows if mask.shape[0] > 1 else range(1)
        wide_cols = cols if mask.shape[1] > 1 else range(1)
        hidden = chip.load(mask, (wide_rows, wide_cols))
        np.logical_not(hidden, out=hidden)
    if causal and cols[-1] > rows[0] + offset:  # only where the diagonal crosses it
        later = chip.arange(cols) > chip.arange(rows)[:, None] + offset
        hidden = later if hidden is None else hidden | later
    return hidden


def _forward(
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    mask: npt.ArrayLike | None,
    causal: bool,
    scale: float | None,
    block_q: int,
    block_k: int,
    chip: Chip,
    watch: Watch | None = None,
) -> Flash:
    x = read_inputs(q, k, v, mask, scale)
    store = np.result_type(x.q.dtype, x.k.dtype, x.v.dtype)
    out = x.result(x.n_q, x.v.shape[-1], dtype=store)
    log_sum_exp = x.result(x.n_q)
    sizes: dict[str, Any] = {"block_q": block_q, "block_k": block_k}
    ranges(0, block_q), ranges(0, block_k)  # a wrong size is wrong without heads, too
    for head in x.heads():
        forward_kernel(
            chip,
            chip.hbm(x.q[head], "q"),
            chip.hbm(x.k[head], "k"),
            chip.hbm(x.v[head], "v"),
            None if x.mask is None else chip.hbm(x.mask[head], "mask"),
            chip.hbm(out[head], "out"),
            chip.hbm(log_sum_exp[head], "log_sum_exp"),
            causal=causal,
            scale=x.scale,
            dtype=x.dtype,
            watch=watch,
            **sizes,
        )
    return Flash(out, log_sum_exp)
