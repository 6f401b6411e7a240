"""Measures for a timed request, and for a way that was picked under a budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from attnlib.clinic.families.choosing import PICK_WAY
from attnlib.clinic.families.latency import MEDIAN_MS
from attnlib.clinic.sight import Float, Sight, number, numbers


def timed(sight: Sight) -> str | None:
    """What the calls that count took, and what the answer says of them."""
    mine, right = _one(sight), float(sight.right.arrays[0])
    if mine is None or np.isclose(mine, right, rtol=1e-4):
        return None
    durations, n_warm, n_timed = cast("tuple[Float, int, int]", sight.case.args)
    took = 1000 * np.asarray(durations)[n_warm : n_warm + n_timed]
    return (
        f"yours gives {short(mine)}. On one thread the {n_timed} timed calls took "
        f"{numbers(took, most=9)} ms, and {short(right)} is in the middle "
        f"({sight.case.name})."
    )


def picked(sight: Sight) -> str | None:
    """The way that was picked, and the one that should have been."""
    mine, good = _one(sight), int(sight.right.arrays[0])
    ms, right, budget = cast("tuple[Float, Float, float]", sight.case.args)
    if mine is None or mine != int(mine) or mine == good or mine < -1:
        return None
    way, means = int(mine), right.mean(axis=1)

    def told(i: int) -> str:
        return f"way {i} ({number(ms[i])} ms, mean {number(means[i])})"

    if way >= len(ms):
        yours = f"yours says way {way}, and the last is way {len(ms) - 1}"
    else:
        yours = f"yours says {told(way)}" if way >= 0 else "yours says -1"
    if good < 0:
        return f"{yours}. None is in the budget of {number(budget)} ms."
    best = int(np.where(ms <= budget, means, -np.inf).argmax())
    spread = number(float(right[best].std()))
    near = f"the fastest near it is {told(good)}" if best != good else (
        "none that is faster lies near it"
    )  # fmt: skip
    return (
        f"{yours}. Within {number(budget)} ms the best is {told(best)}, its spread is "
        f"{spread}, and {near} ({sight.case.name})."
    )


def short(value: float) -> str:
    """So many decimals that a small number is not 0."""
    return number(value) if abs(value) >= 0.1 or not value else f"{value:.3g}"


def _one(sight: Sight) -> float | None:
    """The answer as a finite number, if it is one."""
    mine = sight.result()
    if mine is None or mine.ndim or mine.dtype.kind not in "iuf":
        return None
    return float(mine) if np.isfinite(float(mine)) else None


MEASURES: dict[str, Callable[[Sight], str | None]] = {
    **dict.fromkeys(MEDIAN_MS.faults, timed),
    **dict.fromkeys(PICK_WAY.faults, picked),
}
