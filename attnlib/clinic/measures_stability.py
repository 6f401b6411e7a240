"""Measures for first weights, scores in float16 and capped scores."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from attnlib.clinic.measures_scores import overflow
from attnlib.clinic.measures_spread import times_right
from attnlib.clinic.sight import Sight, number

Of = Callable[[float, float], float]  # d_model and d_k -> a factor


def width_factor(name: str, of: Of) -> Callable[[Sight], str | None]:
    """The std is off by a factor that is made of the two widths."""

    def measure(sight: Sight) -> str | None:
        d_model, d_k = (float(np.asarray(a)) for a in sight.case.args[:2])
        factor, value = times_right(sight), of(d_model, d_k)
        if factor is None or not math.isclose(factor, value, rel_tol=1e-3):
            return None
        return (
            f"yours is {number(factor)} times the right one, and {name} is "
            f"{number(value)} ({sight.case.name})."
        )

    return measure


def seen_anyway(place: int) -> Callable[[Sight], str | None]:
    """What hidden keys get after softmax; `place` is that of the mask."""

    def measure(sight: Sight) -> str | None:
        mine, mask = sight.result(), np.asarray(sight.case.args[place], bool)
        if mine is None or mine.shape != mask.shape or not np.isfinite(mine).all():
            return None
        e = np.exp(mine.astype(float) - mine.max(axis=-1, keepdims=True))
        share = (e / e.sum(axis=-1, keepdims=True) * ~mask).sum(axis=-1)
        row = int(share.argmax())
        if share[row] < 5e-4:
            return None
        what = "" if mask[row].any() else ", which may look at nothing,"
        return (
            f"after softmax, row {row}{what} gives hidden keys "
            f"{number(float(share[row]))} of its attention ({sight.case.name})."
        )

    return measure


MEASURES: dict[str, Callable[[Sight], str | None]] = {
    "raw_overflow": overflow,
    "fill_lowest": seen_anyway(2),
    "empty_row_zeroed": seen_anyway(2),
    "cap_after_mask": seen_anyway(1),
    "width_of_head": width_factor("√(d_model / d_k)", lambda m, k: math.sqrt(m / k)),
    "root_of_d_k_kept": width_factor("1/√√d_k", lambda m, k: k**-0.25),
    "root_of_d_k_twice": width_factor("√√d_k", lambda m, k: k**0.25),
    "width_missing": width_factor("√d_model", lambda m, k: math.sqrt(m)),
    "width_and_head": width_factor("1/√d_k", lambda m, k: k**-0.5),
    "width_outside_root": width_factor("1/√d_model", lambda m, k: m**-0.5),
    "bound_for_std": width_factor("√3", lambda m, k: math.sqrt(3)),
    "spread_without_two": width_factor("1/√√2", lambda m, k: 2**-0.25),
}
