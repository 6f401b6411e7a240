"""Exercises whose answer is a kernel: it runs on a chip that counts bytes.

`on_a_chip` makes of a kernel a function of arrays, which is what the judge compares.
The law is about what numbers do not show: how much lay on the chip, and how much was
moved. So an answer with right numbers that makes all scores at once is refused. What
is measured is not the run of the kernel, but its program, run again: see `program`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from attnlib import tiles
from attnlib.attention import scaled_dot_product
from attnlib.cost import flash_traffic
from attnlib.exercises.exercise import UNSEEN, Call, Law
from attnlib.exercises.on_chip import Handed, NothingStored, on_a_chip
from attnlib.exercises.program import Program

Array = npt.NDArray[np.float64]
OPENING = "The numbers are right, but this is asked as well"
ROUND = (
    "Your kernel's steps were done again, with other numbers in HBM, and out was "
    "wrong: something got to the chip in another way than chip.load, or from it than "
    "chip.store."
)


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

    def measured(self, call: Call) -> Meters | None:
        """What the meters say; None if the numbers are not right."""
        q, k, v = self._arrays(np.random.default_rng(0))
        program = Program()
        found = call(q, k, v, self.block_q, self.block_k, program)
        right = scaled_dot_product(q, k, v).out
        if found is None or not np.allclose(found[0], right, rtol=1e-3, atol=1e-4):
            return None
        # All is other, but the order of the scores of a query is as it was: what a
        # kernel may have asked has the same answer. And no largest score is near.
        rng = np.random.default_rng()  # without a seed, so that none can know it
        q, k = 2 * q, k + 400 * rng.normal(size=self.d_k)
        v, out = rng.normal(size=v.shape), np.full(right.shape, np.nan)
        try:
            chip = program.again({"q": q, "k": k, "v": v, "out": out})
        except tiles.ChipError:
            return Meters(0, 0, 0, again=False)
        right = scaled_dot_product(q, k, v).out
        same = np.allclose(out, right, rtol=0.02, atol=0.02)
        return Meters(chip.traffic, chip.written, chip.peak, same)

    def _arrays(self, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        q, k = (rng.normal(size=(n, self.d_k)) for n in (self.n_q, self.n_k))
        return q, k, rng.normal(size=(self.n_k, self.d_v))


@dataclass(frozen=True)
class Meters:
    """What a run with right numbers took, in bytes."""

    traffic: int
    written: int
    peak: int
    again: bool  # whether the program is right for other numbers, too


def within_caps(sizes: Sizes, sram_bytes: int) -> Law:
    """No more bytes on the chip than it has, and none moved that need not be."""

    def broken(call: Call) -> str | None:
        found = sizes.measured(call)
        if found is None:
            return UNSEEN
        if not found.again:
            return ROUND
        if found.peak > sram_bytes:
            return _too_much_room(sizes, found, call)
        return _too_much_moved(sizes, found)

    name = (
        f"{sram_bytes} bytes of SRAM are enough, and {sizes.cap} bytes moved ({sizes})"
    )
    return Law(name, broken, OPENING, slower=4)


def _too_much_room(sizes: Sizes, found: Meters, call: Call) -> str:
    """What it is that does not fit: it grows with the queries, the keys, or neither."""
    said = f"{found.peak} bytes of yours lie on the chip at once."
    grown = {}
    for name in ("n_q", "n_k"):
        twice = replace(sizes, **{name: 2 * getattr(sizes, name)}).measured(call)
        grown[name] = twice.peak if twice else 0
    scores = 8 * sizes.n_q * sizes.n_k
    if found.peak >= scores and min(grown.values()) > 1.5 * found.peak:
        return (
            f"{said} All {sizes.n_q} x {sizes.n_k} scores take {scores}, and they grow "
            "with both. Make the scores of one tile, use them, and go on."
        )
    for name, what in (("n_q", "queries"), ("n_k", "keys")):
        if grown[name] > 1.2 * found.peak:
            block = sizes.block_q if name == "n_q" else sizes.block_k
            return (
                f"{said} With twice as many {what} they would be {grown[name]}: "
                f"something has room for all {what}. Only {block} of them should lie "
                "on the chip at a time."
            )
    return (
        f"{said} Is a tile larger than {sizes.block_q} x {sizes.block_k}, or still "
        "held by a name, or in a list, after its last use? `del` gives its room back."
    )


def _too_much_moved(sizes: Sizes, found: Meters) -> str | None:
    said = f"{found.traffic} bytes of yours went to and fro."
    out = 8 * sizes.n_q * sizes.d_v
    least = out + 8 * (sizes.n_q * sizes.d_k + sizes.n_k * (sizes.d_k + sizes.d_v))
    if found.traffic < least:
        return (
            f"{said} q, k, v and out alone are {least}: something got to the chip in "
            "another way than chip.load, or from it than chip.store."
        )
    if found.traffic <= sizes.cap:
        return None
    if found.written >= 8 * sizes.n_q * sizes.n_k:
        return (
            f"{said} {found.written} were written, room for all {sizes.n_q} x "
            f"{sizes.n_k} scores, which need never leave the chip."
        )
    if found.written >= 2 * out:
        return (
            f"{said} {found.written} were written, and out takes {out}. The state of a "
            "tile of queries stays on the chip, and out is stored once, after the last "
            "key: queries outside, keys inside."
        )
    return (
        f"{said} Something is loaded too often. Each tile of q is needed once, k and v "
        f"once for each tile of {sizes.block_q} queries."
    )


__all__ = [
    "ROUND",
    "Handed",
    "Meters",
    "NothingStored",
    "Sizes",
    "on_a_chip",
    "within_caps",
]
