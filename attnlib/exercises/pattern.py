"""In what simple way all numbers of an answer are off: one sentence, if there is one.

No mistake of the catalogue is asked for here. A constant, a rounding, one factor or one
difference in *every* case can be seen without knowing where it comes from.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import Outcome
from attnlib.clinic.match import Table
from attnlib.clinic.measures_scores import slope
from attnlib.clinic.sight import Sight, number
from attnlib.exercises.text import listed

Row = npt.NDArray[np.float64]

EXACT = 1e-9
NEARLY = 3e-3  # a float16 number is off by less, relative to its size
COARSE = 4e-2  # a bfloat16 number, after some steps
MOST_DECIMALS = 6


BFLOAT = "It is bfloat16, which keeps 2 to 3 digits. Compute in float64."
TWICE = "Called twice"
RANDOM = (
    f"{TWICE} with the same inputs, it gives two results. Is something drawn at "
    "random in it, such as dropout?"
)
ZEROS = "Yours gives nothing but zeros, in every case."
CUT_OFF = "The numbers are cut off to whole ones. Return them as they are."


def rounded(decimals: int) -> str:
    to = f"{decimals} decimals" if decimals != 1 else "1 decimal"
    to = to if decimals else "whole numbers"
    return f"The result is rounded to {to}. Return it as it is; rounding is for print."


def scaled_by(factor: str, right: str, case: str) -> str:
    return (
        f"Your weights are a softmax of {factor} * q @ kᵀ, where 1/√d_k is {right} "
        f"({case})."
    )


def always_the_same(value: str) -> str:
    return f"Yours gives {value} in every case. Does it work from its arguments?"


def nearly(apart: str, half: bool) -> str:
    if half:
        return f"It is float16, and off by up to {apart}. Compute in float64."
    return (
        f"Nearly right: nowhere off by more than {apart}. Is something rounded, in "
        "float16, measured, or moved by a small number?"
    )


def one_factor(factor: str) -> str:
    return f"In every case yours is {factor} times the right result."


def some_right(right: Sequence[str], others: Sequence[str]) -> str:
    are = "is" if len(right) == 1 else "are"
    return f"{listed(right)} {are} right in every case. {' '.join(others)}".rstrip()


def times_the_right(name: str, factor: str) -> str:
    return f"Your {name} is {factor} times the right one."


def takes_the_place(name: str, other: str) -> str:
    return f"Your {name} holds what {other} should be."


def look_at(names: Sequence[str]) -> str:
    return f"Look for the mistake in what makes {listed(names)}."


def one_difference(difference: str, more: bool) -> str:
    side = "more" if more else "less"
    return f"In every case yours is {difference} {side} than the right result."


@np.errstate(all="ignore")  # an answer may hold numbers of any size
def plain(yours: Sequence[Outcome], right: Sequence[Outcome]) -> str:
    """The same number in every case, or numbers that are rounded."""
    mine, good = _strings(yours, right)
    if mine is None or good is None:
        return ""
    single = all(array.ndim == 0 for o in right for array in o.arrays)
    if single and np.ptp(mine) == 0 and np.ptp(good) > 0 and len(mine) > 2:
        return always_the_same(number(float(mine[0])))
    if not mine.any():
        return ZEROS
    if np.allclose(mine, np.trunc(good), atol=EXACT, rtol=0):
        return CUT_OFF
    for decimals in range(MOST_DECIMALS):
        if np.allclose(mine, np.round(good, decimals), atol=EXACT, rtol=0):
            return rounded(decimals)
    return ""


@np.errstate(all="ignore")
def everywhere(yours: Sequence[Outcome], right: Sequence[Outcome]) -> str:
    """One factor, one difference, or a small error, the same in all cases."""
    mine, good = _strings(yours, right)
    if mine is None or good is None:
        return ""
    apart = np.abs(mine - good)
    if (apart <= NEARLY * np.maximum(np.abs(good), 1)).all():
        half = any(a.dtype == np.float16 for o in yours for a in o.arrays)
        half &= not any(a.dtype == np.float16 for o in right for a in o.arrays)
        return nearly(f"{apart.max():.2g}", half)
    coarse = (mine.astype(np.float32).view(np.uint32) & 0xFFFF == 0).all()
    if coarse and (apart <= COARSE * np.maximum(np.abs(good), 1)).all():
        return BFLOAT
    factor = _factor(mine, good)
    if factor is not None:
        return one_factor(number(factor))
    difference = mine - good
    if len(mine) > 2 and np.ptp(difference) <= 1e-6:
        return one_difference(number(abs(float(difference[0]))), difference[0] > 0)
    return ""


@np.errstate(all="ignore")
def by_part(
    names: Sequence[str], yours: Sequence[Outcome], right: Sequence[Outcome]
) -> str:
    """Of several results: which are right, and in what simple way others are off."""
    if len(names) < 2:
        return ""
    mine = [_part(yours, i, len(names)) for i in range(len(names))]
    good = [_part(right, i, len(names)) for i in range(len(names))]
    strings = [_strings(m, g) for m, g in zip(mine, good, strict=True)]
    kept, others, unknown = [], [], []
    for i, (a, b) in enumerate(strings):
        if a is None or b is None:
            return ""
        factor = _factor(a, b)
        place = next((j for j, (_, c) in enumerate(strings) if _same(a, c)), None)
        if _same(a, b):
            kept.append(names[i])
        elif factor is not None:
            others.append(times_the_right(names[i], number(factor)))
        elif place is not None:
            others.append(takes_the_place(names[i], names[place]))
        else:
            unknown.append(names[i])
    if unknown and kept:
        others.append(look_at(unknown))
    return some_right(kept, others) if kept else " ".join(others)


def _part(outcomes: Sequence[Outcome], i: int, n: int) -> list[Outcome]:
    """One of the results, case by case."""
    return [Outcome(o.arrays[i : i + 1]) for o in outcomes if len(o.arrays) == n]


def _same(mine: Row, good: Row | None) -> bool:
    return (
        good is not None
        and mine.shape == good.shape
        and bool(np.allclose(mine, good, rtol=1e-4, atol=1e-5))
    )


def _factor(mine: Row, good: Row) -> float | None:
    """What all numbers are multiplied with, if it is one factor."""
    some = np.abs(good) > 1e-6
    if some.sum() <= 2 or mine[~some].any():
        return None
    factors = mine[some] / good[some]
    one = np.ptp(factors) <= 1e-6 * abs(factors[0])
    return float(factors[0]) if one and factors[0] else None


@np.errstate(all="ignore")
def scale(table: Table, yours: Sequence[Outcome]) -> str:
    """The factor of the scores, if the weights show one and nothing else is wrong."""
    said = ""
    for case, mine, good in zip(table.cases, yours, table.right, strict=True):
        seen, meant = (
            table.family.see(case, mine.arrays),
            table.family.see(case, good.arrays),
        )
        factor = slope(Sight(case, mine, good, seen, meant))
        d_k = seen.sizes.get("d_k")
        if factor is None or d_k is None or not np.isfinite(mine.arrays[0]).all():
            return said
        sums = [np.asarray(w, float).sum(-1) for w in (seen.weights, meant.weights)]
        if not np.allclose(sums[0], sums[1], atol=1e-3):  # then it is no softmax
            return ""
        if not said and abs(factor * d_k**0.5 - 1) > 1e-3:
            said = scaled_by(number(factor), number(d_k**-0.5), case.name)
    return said


def _strings(
    yours: Sequence[Outcome], right: Sequence[Outcome]
) -> tuple[Row | None, Row | None]:
    """All numbers, one after another; None if not all of them can be compared."""
    mine = [array for outcome in yours for array in outcome.arrays]
    good = [array for outcome in right for array in outcome.arrays]
    if [a.shape for a in mine] != [a.shape for a in good] or not good:
        return None, None
    if any(a.dtype.kind not in "iuf" for a in (*mine, *good)):
        return None, None
    rows = [
        np.concatenate([a.astype(float).ravel() for a in one]) for one in (mine, good)
    ]
    finite = np.isfinite(rows[0]) & np.isfinite(rows[1])
    # Where a mask has written -inf, yours must have it as well; it says no more.
    if not (finite | (rows[0] == rows[1])).all() or not finite.any():
        return None, None
    return rows[0][finite], rows[1][finite]
