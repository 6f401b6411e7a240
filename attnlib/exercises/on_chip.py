"""Run a kernel as a function of arrays, on a chip that notes what is done.

This is the part of `kernels` that runs beside the kernel: what is measured, and what is
said of it, is elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from attnlib.exercises.program import Noting, Program
from attnlib.tiles.arrays import ChipError, InHBM
from attnlib.tiles.chip import Chip

Array = npt.NDArray[np.float64]


class NothingStored(ValueError):
    """A kernel ended, and its result was never written to HBM."""


class Handed:
    """The chip as a kernel under judgement gets it: the meters are for reading.

    Scratch in HBM is a copy. Else what is stored there could be read, uncounted, in
    the array that was handed in.
    """

    def __init__(self, chip: Chip) -> None:
        object.__setattr__(self, "_chip", chip)

    def hbm(self, array: npt.ArrayLike, name: str = "an array") -> InHBM:
        place: InHBM = self._chip.hbm(np.array(array), name)
        return place

    def __repr__(self) -> str:
        return repr(self._chip)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{name} is inside of the chip, and not for kernels.")
        return getattr(self._chip, name)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise ChipError(f"chip.{name} can be read, but not set by a kernel.")


def on_a_chip(kernel: Callable[..., object]) -> Callable[..., object]:
    """Make of a kernel a function of arrays, run on a new chip each time.

    The chip has SRAM without end: it notes what is done, and the law judges. It hands
    over a program, and finds it filled.
    """

    def run(
        q: Any,
        k: Any,
        v: Any,
        block_q: int,
        block_k: int,
        program: Program | None = None,
    ) -> Array:
        chip = Noting(program or Program())
        placed = [chip.place(a.copy(), n) for a, n in ((q, "q"), (k, "k"), (v, "v"))]
        out = np.full((len(q), v.shape[-1]), np.nan)
        kernel(Handed(chip), *placed, chip.place(out, "out"), block_q, block_k)
        if not chip.written:
            raise NothingStored(
                "nothing was written into out. chip.store(out, rows, tile) does it; "
                "what a kernel returns is not looked at."
            )
        return out

    return run
