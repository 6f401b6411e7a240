"""Exercises whose answer is a kernel: it runs on a chip that counts bytes.

`on_a_chip` makes of a kernel a function of arrays, which is what the judge compares.
The two laws are about what numbers do not show: how much lay on the chip, and how much
was moved. So an answer with right numbers that makes all scores at once is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from attnlib import tiles
from attnlib.attention import scaled_dot_product
from attnlib.cost import flash_traffic
from attnlib.exercises.exercise import Call, Law

Array = npt.NDArray[np.float64]
OPENING = "The numbers are right, but this is asked as well"


class NothingStored(ValueError):
    """A kernel ended, and its result was never written to HBM."""


def on_a_chip(kernel: Callable[..., object]) -> Callable[..., object]:
    """Make of a kernel a function of arrays, run on a new chip each time.

    The chip has SRAM without end: it measures, and the laws judge. With `meters`, the
    result is (bytes moved, bytes written, the most bytes of SRAM in use).
    """

    def run(
        q: Any, k: Any, v: Any, block_q: int, block_k: int, meters: bool = False
    ) -> Array:
        found = tiles.run_kernel(kernel, q, k, v, block_q=block_q, block_k=block_k)
        if not found.written:
            raise NothingStored(
                "nothing was written into out. chip.store(out, rows, tile) does it; "
                "what a kernel returns is not looked at."
            )
        if meters:
            return np.array([found.traffic, found.written, found.peak], float)
        return np.asarray(found.out, dtype=np.float64)

    return run


@dataclass(frozen=True)
class Sizes:
    """The sizes of one measured run; float64, no mask."""

    n_q: int
    n_k: int
    d_k: int
    d_v: int
    block_q: int
    block_k: int

    def __str__(self) -> str:
        return (
            f"{self.n_q} queries, {self.n_k} keys, tiles of {self.block_q} x "
            f"{self.block_k}"
        )

    @property
    def cap(self) -> int:
        """Bytes that have to be moved: each tile for each time that it is needed."""
        return flash_traffic(
            self.n_q,
            self.n_k,
            self.d_k,
            self.d_v,
            block_q=self.block_q,
            block_k=self.block_k,
            itemsize=8,
        ).forward

    def measured(self, call: Call) -> Array | None:
        """Bytes moved, bytes written, SRAM; None if the numbers are not right."""
        rng = np.random.default_rng(0)
        shapes = (self.n_q, self.d_k), (self.n_k, self.d_k), (self.n_k, self.d_v)
        q, k, v = (rng.normal(size=shape) for shape in shapes)
        found = call(q, k, v, self.block_q, self.block_k)
        if found is None or not _close(found[0], scaled_dot_product(q, k, v).out):
            return None
        meters = call(q, k, v, self.block_q, self.block_k, True)
        return None if meters is None else np.asarray(meters[0], dtype=np.float64)


def fits_the_chip(sizes: Sizes, sram_bytes: int) -> Law:
    """No more than so many bytes lie on the chip at any moment."""

    def broken(call: Call) -> str | None:
        measured = sizes.measured(call)
        if measured is None or measured[2] <= sram_bytes:
            return None
        peak = measured[2]
        said = f"{peak:.0f} bytes of yours lie on the chip at once."
        more_queries = replace(sizes, n_q=2 * sizes.n_q).measured(call)
        more_keys = replace(sizes, n_k=2 * sizes.n_k).measured(call)
        if more_queries is not None and more_queries[2] > 1.4 * peak:
            return (
                f"{said} All {sizes.n_q} x {sizes.n_k} scores take "
                f"{8 * sizes.n_q * sizes.n_k}, and twice as many queries would need "
                f"{more_queries[2]:.0f}. Make the scores of one tile, use them, and go "
                "on."
            )
        if more_keys is not None and more_keys[2] > 1.4 * peak:
            return (
                f"{said} Twice as many keys would need {more_keys[2]:.0f}: your tiles "
                f"have few queries, but all keys. Load {sizes.block_k} keys at a time, "
                "too."
            )
        return (
            f"{said} Which tile is still held by a name, or in a list, after its last "
            "use? `del` gives its room back."
        )

    return Law(f"{sram_bytes} bytes of SRAM are enough ({sizes})", broken, OPENING)


def moves_no_more(sizes: Sizes) -> Law:
    """Each tile is loaded once for each time that it is needed, and out stored once."""

    def broken(call: Call) -> str | None:
        measured = sizes.measured(call)
        if measured is None or measured[0] <= sizes.cap:
            return None
        traffic, written, _ = measured
        said = f"{traffic:.0f} bytes of yours went to and fro."
        out = 8 * sizes.n_q * sizes.d_v
        if written >= 8 * sizes.n_q * sizes.n_k:
            return (
                f"{said} {written:.0f} were written, room for all {sizes.n_q} x "
                f"{sizes.n_k} scores, which need never leave the chip."
            )
        if written >= 2 * out:
            return (
                f"{said} {written:.0f} were written, and out takes {out}. The state of "
                "a tile of queries stays on the chip until its last key: queries "
                "outside, keys inside."
            )
        return (
            f"{said} Something is loaded too often. Each tile of q is needed once, k "
            f"and v once for each tile of {sizes.block_q} queries."
        )

    name = f"{sizes.cap} bytes between HBM and the chip are enough ({sizes})"
    return Law(name, broken, OPENING)


def _close(mine: Any, right: Any) -> bool:
    return mine.shape == right.shape and np.allclose(mine, right, rtol=1e-3, atol=1e-4)
