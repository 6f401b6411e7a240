"""Running a kernel that somebody wrote for the chip, and saying where it stands.

A kernel is a function of a chip, of what lies in its HBM, and of two block sizes:

    def kernel(chip, q, k, v, out, block_q, block_k): ...

It returns nothing: the result is what it stores into `out`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from attnlib.shapes import Array, ShapeError
from attnlib.tiles.chip import Chip
from attnlib.tiles.inputs import read_inputs

Kernel = Callable[..., object]


@dataclass(frozen=True)
class Run:
    """What a kernel stored, and what the meters said when it had ended."""

    out: Array  #     (n_q, d_v); NaN where nothing was stored
    read: int  #      bytes
    written: int  #   bytes
    peak: int  #      bytes of SRAM
    flops: int  #     of matrix products
    log_sum_exp: Array | None = None  # (n_q,), if room for it was handed over

    @property
    def traffic(self) -> int:
        """Bytes moved in both directions."""
        return self.read + self.written


def run_kernel(
    kernel: Kernel,
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    mask: npt.ArrayLike | None = None,
    *,
    block_q: int,
    block_k: int,
    sram_bytes: int | None = None,
    log_sum_exp: bool = False,
) -> Run:
    """Run a kernel for one head on a new chip.

    kernel(chip, q, k, v, [mask,] out, [log_sum_exp,] block_q, block_k)

    Args:
        kernel: the function to run.
        q: queries, (n_q, d_k).
        k: keys, (n_k, d_k).
        v: values, (n_k, d_v).
        mask: boolean, broadcastable to (n_q, n_k); handed over only if it is there.
        block_q: how many queries a tile should have.
        block_k: how many keys a tile should have.
        sram_bytes: of the chip; without end, if left out.
        log_sum_exp: hand over room for it, too, (n_q,).

    Returns:
        What was stored, and the meters.

    Raises:
        ShapeError: arrays that do not fit, or have batch axes.
        TypeError: an argument is not an array of numbers.
        ChipFull: the kernel asked for more SRAM than there is.
        ChipError: the kernel used a number where it does not lie.

    Cost: that of the kernel.
    Source: the names of the course.
    Lesson: 12.

    >>> def sums(chip, q, k, v, out, block_q, block_k):
    ...     chip.store(out, None, 0 * chip.load(q) + chip.load(v).sum(axis=0))
    >>> run = run_kernel(sums, [[1.0]], [[1.0]], [[3.0]], block_q=1, block_k=1)
    >>> run.out.tolist(), run.read, run.written
    ([[3.0]], 16, 8)
    """
    x = read_inputs(q, k, v, mask, None)
    if x.batch:
        raise ShapeError(
            f"a kernel is run for one head: q (n_q, d_k), k (n_k, d_k), v (n_k, d_v), "
            f"but the shapes are {x.shapes[0]}, {x.shapes[1]} and {x.shapes[2]}."
        )
    chip = Chip(sram_bytes)
    out = np.full((x.n_q, x.v.shape[-1]), np.nan, x.dtype)
    sums = np.full(x.n_q, np.nan, x.dtype)
    # Copies: what a kernel stores into q by mistake must not be the caller's.
    placed = [chip.hbm(np.array(a), n) for a, n in ((x.q, "q"), (x.k, "k"), (x.v, "v"))]
    if x.mask is not None:
        placed.append(chip.hbm(np.array(x.mask), "mask"))
    placed.append(chip.hbm(out, "out"))
    if log_sum_exp:
        placed.append(chip.hbm(sums, "log_sum_exp"))
    kernel(chip, *placed, block_q, block_k)
    meters = (chip.read, chip.written, chip.peak, chip.flops)
    return Run(out, *meters, sums if log_sum_exp else None)


def over_the_cap(run: Run, cap: int, n_q: int, n_k: int) -> str | None:
    """Say why a run moved too many bytes, in one sentence; None if it did not.

    traffic <= cap

    Args:
        run: what `run_kernel` gave.
        cap: how many bytes may be moved, reads and writes together.
        n_q: how many queries there were.
        n_k: how many keys there were.

    Returns:
        The sentence, or None.

    Raises:
        Nothing.

    Cost: none worth counting.
    Source: Dao et al. 2022, theorem 2, for what a cap may ask.
    Lesson: 12.

    >>> over_the_cap(Run(np.zeros((2, 1)), 300, 16, 64, 0), 400, 2, 9) is None
    True
    >>> print(over_the_cap(Run(np.zeros((2, 1)), 450, 16, 64, 0), 400, 2, 9))
    466 bytes went between HBM and the chip, and 400 are enough: something is loaded \
more often than once a tile.
    """
    if run.traffic <= cap:
        return None
    text = f"{run.traffic} bytes went between HBM and the chip, and {cap} are enough: "
    whole = n_q * n_k * run.out.itemsize
    if run.written >= whole:
        return text + (
            f"{run.written} were written, room for all {n_q} x {n_k} scores, which "
            "need never leave the chip."
        )
    return text + "something is loaded more often than once a tile."
