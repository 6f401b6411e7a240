"""Measures for the spread of scores, and for the entropy of weights."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from attnlib.clinic.sight import Sight, number, place

CLOSE = 1e-3


def times_right(sight: Sight) -> float | None:
    """By what factor all numbers of this call are off, if it is one factor."""
    mine = sight.result()
    good = sight.right.arrays[0].astype(float)
    if mine is None or mine.shape != good.shape or not (good != 0).any():
        return None
    factor = float(mine.astype(float)[good != 0].mean() / good[good != 0].mean())
    same = np.allclose(mine.astype(float), factor * good, rtol=CLOSE, atol=1e-6)
    return factor if same and abs(factor) > 1e-9 else None


def root_of_width(sight: Sight) -> str | None:
    """The factor is the root of d_k, or one divided by it."""
    factor = times_right(sight)
    root = math.sqrt(float(np.asarray(sight.case.args[0])))
    for name, value in (("√d_k", root), ("1/√d_k", 1 / root)):
        if factor is not None and math.isclose(factor, value, rel_tol=CLOSE):
            return (
                f"yours is {number(factor)} times the right one, and {name} is "
                f"{number(value)} ({sight.case.name})."
            )
    return None


def squared(sight: Sight) -> str | None:
    """Yours is the square of the right number."""
    mine = sight.result()
    good = float(sight.right.arrays[0])
    if mine is None or not math.isclose(float(mine), good**2, rel_tol=CLOSE):
        return None
    return (
        f"yours gives {number(float(mine))}, and its root is right ({sight.case.name})."
    )


def factor_is(name: str, value: float) -> Callable[[Sight], str | None]:
    """All numbers are off by one known factor."""

    def measure(sight: Sight) -> str | None:
        factor = times_right(sight)
        if factor is None or not math.isclose(factor, value, rel_tol=CLOSE):
            return None
        return f"yours is {number(factor)} times the right one, and {name} is that."

    return measure


def one_over_n_k(sight: Sight) -> str | None:
    """The factor is one divided by the number of keys."""
    n_k = np.asarray(sight.case.args[0]).shape[-1]
    factor = times_right(sight)
    if factor is None or not math.isclose(factor, 1 / n_k, rel_tol=CLOSE):
        return None
    return f"yours is {number(factor)} times the right one: 1/{n_k}, with {n_k} keys."


def not_a_number(sight: Sight) -> str | None:
    """The first row that is NaN."""
    mine = sight.result()
    weights = np.asarray(sight.case.args[0])
    if mine is None or mine.shape != weights.shape[:-1]:
        return None
    where = np.argwhere(np.isnan(mine.astype(float)))
    if not len(where):
        return None
    row = weights[tuple(where[0])]
    at = f" at {place(where[0])}" if len(where[0]) else ""
    return f"yours is nan{at}, for a row with {int((row == 0).sum())} weights of 0."


MEASURES: dict[str, Callable[[Sight], str | None]] = {
    "std_grows_as_d_k": root_of_width,
    "std_does_not_grow": root_of_width,
    "variance_for_std": squared,
    "log_of_zero": not_a_number,
    "log_base_two": factor_is("1 / ln 2", 1 / math.log(2)),
    "log_base_ten": factor_is("1 / ln 10", 1 / math.log(10)),
    "mean_for_sum": one_over_n_k,
}
