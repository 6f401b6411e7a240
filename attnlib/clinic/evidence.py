"""The number that gave a mistake away, measured on the learner's own answer.

Each measure looks at one call (a `Sight`) and returns a sentence, or None if this call
does not show it. The first call that shows it is used, and the smallest comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from attnlib.clinic import (
    measures_cost,
    measures_desk,
    measures_heads,
    measures_layers,
    measures_masks,
    measures_parts,
    measures_pictures,
    measures_positions,
    measures_ring,
    measures_scores,
    measures_shaping,
    measures_spread,
    measures_stability,
    measures_torch,
    measures_windows,
)
from attnlib.clinic.case import RIGHT, Faults, Outcome
from attnlib.clinic.match import Table
from attnlib.clinic.sight import Sight, number, place

Measure = Callable[[Sight], str | None]

MEASURES: dict[str, Measure] = {
    **measures_scores.MEASURES,
    **measures_masks.MEASURES,
    **measures_heads.MEASURES,
    **measures_layers.MEASURES,
    **measures_pictures.MEASURES,
    **measures_parts.MEASURES,
    **measures_positions.MEASURES,
    **measures_spread.MEASURES,
    **measures_stability.MEASURES,
    **measures_torch.MEASURES,
    **measures_cost.MEASURES,
    **measures_windows.MEASURES,
    **measures_shaping.MEASURES,
    **measures_ring.MEASURES,
    **measures_desk.MEASURES,
}


def evidence(
    key: str, table: Table, answer: Sequence[Outcome], reading: Faults = RIGHT
) -> str:
    """The sentence with the number that shows this mistake in this answer.

    Of a pair (`reading`), only the cases count in which this one of the two matters.
    Falls back to the place where the answer first differs. Empty if all calls of the
    answer raised.
    """
    sights = [
        Sight(
            case,
            yours,
            right,
            table.family.see(case, yours.arrays),
            table.family.see(case, right.arrays),
        )
        for case, yours, right in zip(table.cases, answer, table.right, strict=True)
    ]
    if len(reading) > 1:
        shown = table.shows(key, reading)
        sights = [s for s, here in zip(sights, shown, strict=True) if here] or sights
    for measure in (MEASURES.get(key), first_difference, first_error):
        if measure is None:
            continue
        for sight in sights:
            with np.errstate(all="ignore"):
                sentence = measure(sight)
            if sentence:
                return sentence
    return ""


def first_error(sight: Sight) -> str | None:
    """That a call raised, if no call shows a number."""
    if sight.yours.error in ("", "unread"):
        return None
    return f"given {sight.case.name}, it raises {sight.yours.error}."


def first_difference(sight: Sight) -> str | None:
    """Where the answer first differs, if nothing better is known."""
    for mine, good in zip(sight.yours.arrays, sight.right.arrays, strict=False):
        if mine.shape != good.shape:
            return f"your result has the shape {mine.shape}; {good.shape} is right."
        a, b = mine.astype(float), good.astype(float)
        wrong = ~np.isclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)
        if wrong.any():
            where = tuple(np.argwhere(wrong)[0])
            if good.dtype.kind == mine.dtype.kind == "b":
                return (
                    f"yours says {bool(a[where])}, where {bool(b[where])} is right "
                    f"({sight.case.name})."
                )
            at = f" at {place(where)}" if where else ""
            return (
                f"yours gives {number(float(a[where]))}{at}, where "
                f"{number(float(b[where]))} is right ({sight.case.name})."
            )
    return None
