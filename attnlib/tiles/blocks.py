"""How large the tiles may be, for the SRAM that there is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.shapes import size
from attnlib.tiles.backward import flash_backward
from attnlib.tiles.chip import Chip, ChipFull
from attnlib.tiles.forward import flash_forward


def sram_needed(
    block_q: int,
    block_k: int,
    d_k: int,
    d_v: int | None = None,
    *,
    dtype: npt.DTypeLike = np.float32,
    masked: bool = False,
    causal: bool = False,
    backward: bool = False,
) -> int:
    """Measure how many bytes of SRAM `flash_forward` needs for tiles of a size.

    about itemsize (2 block_q block_k + block_q (d_k + 4 d_v) + block_k d_v)

    Args:
        block_q: how many queries a tile has.
        block_k: how many keys a tile has.
        d_k: how many numbers a query or a key has.
        d_v: how many numbers a value has; d_k if left out.
        dtype: of q, k and v.
        masked: whether a mask is handed over.
        causal: whether it is causal.
        backward: for `flash_backward` instead.

    Returns:
        The bytes in use at the worst moment.

    Raises:
        ShapeError: a block size is less than 1, or another size negative.
        TypeError: a size is not a whole number.

    Cost: a few tiles are computed on a chip with SRAM without end.
    Source: measured, not derived.
    Lesson: 12.

    >>> sram_needed(16, 16, 8)
    5504
    """
    block_q, block_k = size("block_q", block_q, 1), size("block_k", block_k, 1)
    d_k = size("d_k", d_k)
    d_v = d_k if d_v is None else size("d_v", d_v)
    n_q, n_k = block_q, 2 * block_k  # the second block may find more on the chip
    q, k, v = (np.zeros(shape, dtype) for shape in ((n_q, d_k), (n_k, d_k), (n_k, d_v)))
    mask = np.ones((n_q, n_k), bool) if masked else None
    sizes = {"block_q": block_q, "block_k": block_k}
    chip, last = Chip(), Chip()
    flash = flash_forward(q, k, v, mask, causal=causal, chip=chip, **sizes)
    if not backward:
        return chip.peak
    flash_backward(q, k, v, flash, flash.out, mask, causal=causal, chip=last, **sizes)
    return last.peak


def block_sizes(
    sram_bytes: int,
    d_k: int,
    d_v: int | None = None,
    *,
    dtype: npt.DTypeLike = np.float32,
    masked: bool = False,
    causal: bool = False,
    backward: bool = False,
) -> tuple[int, int]:
    """Pick the largest tiles that fit: as many queries as possible, up to d_k keys.

    block_k = min(block_q, d_k), and block_q as large as the SRAM allows

    The bytes that `flash_forward` moves depend on block_q alone: k and v pass by once
    for each tile of queries. So the SRAM belongs to the queries. In the backward pass
    it is the other way round, and the two sizes change places.

    Args:
        sram_bytes: how many bytes of SRAM there are.
        d_k: how many numbers a query or a key has.
        d_v: how many numbers a value has; d_k if left out.
        dtype: of q, k and v.
        masked: whether a mask is handed over.
        causal: whether it is causal.
        backward: for `flash_backward` instead.

    Returns:
        block_q and block_k.

    Raises:
        ChipFull: not even one query and one key fit.
        ShapeError: a size is negative.
        TypeError: a size is not a whole number.

    Cost: a dozen runs of `sram_needed`.
    Source: Dao et al. 2022, algorithm 1, line 1, for the other order of the loops.
    Lesson: 12.

    >>> block_sizes(4096, 8)
    (15, 8)
    """
    sram_bytes = size("sram_bytes", sram_bytes, least=1)

    def pair(larger: int) -> tuple[int, int]:
        smaller = min(larger, max(1, d_k))
        return (smaller, larger) if backward else (larger, smaller)

    def needed(larger: int) -> int:
        return sram_needed(
            *pair(larger),
            d_k,
            d_v,
            dtype=dtype,
            masked=masked,
            causal=causal,
            backward=backward,
        )

    if needed(1) > sram_bytes:
        raise ChipFull(
            f"one query and one key of d_k={d_k} need {needed(1)} bytes of SRAM, but "
            f"the chip has {sram_bytes}."
        )
    fits = 1
    while needed(2 * fits) <= sram_bytes:
        fits *= 2
    step = fits // 2
    while step:
        if needed(fits + step) <= sram_bytes:
            fits += step
        step //= 2
    return pair(fits)
