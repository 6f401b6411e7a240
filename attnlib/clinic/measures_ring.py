"""Measures for a ring: what is counted, and which pairs are open."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attnlib.clinic.families.ring import MAY_SEE, RING_STEP
from attnlib.clinic.families.ring_bytes import RING_BYTES
from attnlib.clinic.measures_cost import of
from attnlib.clinic.sight import Sight, number


def bytes_sent(sight: Sight) -> str | None:
    """The count of the answer and the right one, forward or backward."""
    for part, way in enumerate(("forward", "backward")):
        mine = sight.result(part)
        if mine is None or mine.size != 1:
            return None
        yours, good = float(mine.item()), float(sight.right.arrays[part].item())
        if not np.isclose(yours, good):
            return (
                f"{way} you count {of(yours)} bytes, and there are {of(good)} "
                f"({sight.case.name})."
            )
    return None


def pairs_open(sight: Sight) -> str | None:
    """How many pairs the answer opens, where that is not what it should."""
    mine, right = sight.result(), sight.right.arrays[0]
    if mine is None or mine.shape != right.shape or mine.dtype != bool:
        return None
    if mine.sum() == right.sum():
        return None
    return (
        f"of {right.size} pairs yours opens {int(mine.sum())}, and "
        f"{int(right.sum())} may be seen ({sight.case.name})."
    )


def shares_seen(sight: Sight) -> str | None:
    """The shares of a query, read off values that only name their side."""
    mine, right = sight.result(), sight.right.arrays[0]
    if mine is None or mine.shape != right.shape or not np.isfinite(mine).all():
        return None
    if "name their side" not in sight.case.name or np.allclose(mine, right):
        return None
    apart = np.abs(np.asarray(mine, float) - np.asarray(right, float))
    row = int(apart.max(axis=-1).argmax())
    yours, good = (
        " and ".join(number(float(x)) for x in a[row]) for a in (mine, right)
    )
    return (
        f"when the values only name their side, the two sides of query {row} count "
        f"{yours}, and should count {good}."
    )


MEASURES: dict[str, Callable[[Sight], str | None]] = {
    **dict.fromkeys(RING_BYTES.faults, bytes_sent),
    **dict.fromkeys((key for key in MAY_SEE.faults if key[:4] == "see_"), pairs_open),
    **dict.fromkeys((*RING_STEP.slots["shares"], *RING_STEP.slots["log"]), shares_seen),
}
