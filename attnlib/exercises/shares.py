"""How much of an answer is right, for those who give points.

A case counts that no answer without thought gets right: one of nothing but zeros or
ones, or of an argument as it came. Laws count once all cases are right, for an answer
of zeros keeps many of them. Then they are half of it: who makes the whole matrix where
tiles are asked for has done half of the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnlib.clinic.case import Case, Outcome, Result
from attnlib.clinic.match import Table, close
from attnlib.exercises.asking import Answer
from attnlib.exercises.read import plain


@dataclass(frozen=True)
class Shares:
    """So many of so many things that count are right."""

    right: int
    of: int


NOTHING = Shares(0, 1)
ALL = Shares(1, 1)


def of_cases(seen: Answer, table: Table, kept: Sequence[bool] = ()) -> Shares:
    """The cases that count and are right, with the laws if all cases are.

    Args:
        seen: what the answer gave.
        table: the cases, and what is right.
        kept: which laws are kept; of one that was not looked at, False.
    """
    right = list(table.agrees(seen.outcomes))
    for i, ran in enumerate(seen.runs):
        right[i] = right[i] and not ran.changed
    counts = [
        not thoughtless(case, good)
        for case, good in zip(table.cases, table.right, strict=True)
    ]
    if not any(counts) or _constant(seen.outcomes, table):
        return NOTHING
    if all(right) and kept:
        return Shares(len(kept) + sum(kept), 2 * len(kept))
    # What does not count to its good counts if it is wrong: else 1 would not mean all.
    of = sum(c or not r for c, r in zip(counts, right, strict=True))
    return Shares(sum(c and r for c, r in zip(counts, right, strict=True)), of)


def thoughtless(case: Case, right: Outcome) -> bool:
    """Whether each part is nothing but zeros or ones, or an argument as it came."""
    given = [plain(argument) for argument in case.args]
    arrays = [a for a in given if not isinstance(a, str)]
    return all(_is_one_of(part, arrays) for part in right.arrays)


def _is_one_of(part: Result, given: Sequence[Result]) -> bool:
    known = [np.zeros_like(part), np.ones_like(part)]
    known += [array for array in given if array.shape == part.shape]
    with np.errstate(all="ignore"):
        return any(bool(close(array, part).all()) for array in known)


def _constant(outcomes: Sequence[Outcome], table: Table) -> bool:
    """Whether it gives one and the same, whatever it is asked."""
    mine = [o.arrays for o in outcomes]
    right = [o.arrays for o in table.right[: len(mine)]]
    return len(mine) > 1 and _all_same(mine) and bool(mine[0]) and not _all_same(right)


def _all_same(many: Sequence[tuple[Result, ...]]) -> bool:
    first, *others = [[(a.shape, a.astype(float).tobytes()) for a in m] for m in many]
    return all(other == first for other in others)
