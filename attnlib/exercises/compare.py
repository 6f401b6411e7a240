"""Say how one result differs from the right one: in what it is, or in its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from attnlib.clinic.case import Case, Result
from attnlib.exercises import stubs, text
from attnlib.exercises.exercise import Part

MOST_LINES = 12  # of numbers: what is given, yours and the right one together
MOST_ROWS = 3  # of a result; of a larger one, only the row that differs is shown


def wanted(good: Result) -> str:
    """What a result should be, in words."""
    kinds = {"b": "True or False", "i": "whole number", "u": "whole number"}
    one = kinds.get(good.dtype.kind, "number")
    if good.ndim == 0:
        return one if one.startswith("True") else f"one {one}"
    return f"an array of {'True and False' if good.dtype.kind == 'b' else 'numbers'}"


def wrong_form(
    part: Part, mine: Result, good: Result, case: Case
) -> tuple[Literal["shape", "type"], str] | None:
    """A wrong shape, or truth values where numbers are wanted, and the reverse."""
    truth = mine.dtype.kind == "b"
    if mine.shape != good.shape:
        axes = _axes(part, good.ndim)
        if good.ndim == 0:
            hint = text.ALL_MISSING if part.kind == "flag" else text.SUM_MISSING
            hint = text.ALONE if mine.size == 1 else hint
            sentence = text.array_for_one(
                part.name, wanted(good), mine.shape, hint, case.name
            )
        elif mine.ndim == 0:
            sentence = text.one_for_array(part.name, good.shape, axes, case.name)
        else:
            sentence = text.wrong_shape(
                part.name, mine.shape, good.shape, axes, case.name
            )
        return "shape", sentence
    if truth and part.kind == "number":
        one = mine.ndim == 0
        return "type", text.truth_for_numbers(part.name, wanted(good), one)
    if not truth and part.kind != "number":
        return "type", text.wrong_kind(part.name, str(mine.dtype))
    return None


def _axes(part: Part, ndim: int) -> list[str]:
    """The names of all axes; `...` for those in front that have none."""
    names = [axis for axis in part.axes.split() if axis != "..."]
    if not names or len(names) > ndim:
        return []
    return names if len(names) == ndim else ["...", *names]


def difference(
    part: Part,
    mine: Result,
    good: Result,
    wrong: Result,
    case: Case,
    names: Sequence[str],
) -> str:
    """The first case that differs, in at most a dozen lines of numbers."""
    lines = len(stubs.shown(good).splitlines())
    few = good.size <= stubs.MOST_NUMBERS  # of many, only the shape would be shown
    whole = (
        few and lines <= MOST_ROWS and 2 * (lines + 1) + len(case.args) <= MOST_LINES
    )
    row = () if whole else tuple(int(i) for i in np.argwhere(wrong)[0][:-1])
    digits = _digits(mine[row], good[row])
    yours = text.block(text.row_of("yours", row), stubs.shown(mine[row], digits))
    right = text.block(text.row_of("expected", row), stubs.shown(good[row], digits))
    left = MOST_LINES - len(f"{yours}\n{right}".splitlines())
    given = _given(names, case.args, left)
    return text.differs(f"{part.name}, {case.name}", given, yours, right)


def _digits(mine: Result, good: Result) -> int:
    """So many decimals that the two do not look the same."""
    enough = (d for d in (3, 5) if stubs.shown(mine, d) != stubs.shown(good, d))
    return next(enough, 8)


def _given(names: Sequence[str], args: Sequence[object], most: int) -> str:
    """The arguments; the longest only by their shape, until the rest fits."""
    full = [text.block(n, stubs.shown(a)) for n, a in zip(names, args, strict=False)]
    lines = [len(block.splitlines()) for block in full]
    while sum(lines) > most and max(lines) > 1:
        i = lines.index(max(lines))
        full[i] = text.block(names[i], text.only_shape(np.shape(np.asarray(args[i]))))
        lines[i] = 1
    return "\n".join(full)
