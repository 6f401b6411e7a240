"""One entry of the catalogue M01 to M47, as a learner reads it, and as it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from attnlib.clinic.catalogue import Mistake, catalogue
from attnlib.clinic.diseases.seen import SEEN

Where = Literal["function", "module", "part", "training", "file", "library"]
BEHAVIOURS = ("function", "module", "part")


@dataclass(frozen=True)
class Shown:
    """What a right and a wrong version gave: each row is (what, right, wrong)."""

    setting: str
    rows: tuple[tuple[str, object, object], ...]


@dataclass(frozen=True)
class Disease:
    """One number of the catalogue.

    `where` says what has it: a function or a module of attention, a part of one (a
    mask, RoPE), training, a file of weights, or the library that is called. `show`
    runs a right and a wrong version when asked, so that no number stands in a text.
    """

    code: str  # "M02"
    name: str  # without its full stop
    where: Where
    symptom: str  # what a user notices
    probe: str  # what is asked, and what number shows it
    explanation: str
    hints: tuple[str, str, str]  # each says more than the one before
    show: Callable[[], Shown]

    @property
    def reports(self) -> tuple[str, ...]:
        """Where it was seen in public: "owner/repo#number"."""
        return SEEN.get(self.code, ())

    @property
    def variants(self) -> tuple[Mistake, ...]:
        """All wrong versions with this number."""
        return tuple(m for m in catalogue().values() if m.code == self.code)

    @property
    def is_behaviour(self) -> bool:
        """Whether it shows in what an attention, or a part of it, returns."""
        return self.where in BEHAVIOURS

    def run(self) -> Shown:
        """Run the right and the wrong version; NaN on the way is meant, and silent."""
        with np.errstate(all="ignore"):
            return self.show()
