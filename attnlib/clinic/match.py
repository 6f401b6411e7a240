"""Recognise a mistake: compare an answer with every wrong version of its function.

The outputs of one answer on all cases are strung into one long row of numbers, and
compared with the rows of all variants at once: the right one, single mistakes, pairs.
Two things keep it from accusing the innocent: an answer must agree with a variant on
every case, NaN and errors included; and a variant that agrees with the right answer
on every case is not in the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Case, Family, Faults, Outcome, Result, call

Row = npt.NDArray[np.float64]
Form = tuple[object, ...]

# (relative, absolute for numbers up to 1; where an array holds larger ones, in units of
# its largest). A float64 answer meets the first, a float32 answer the second.
EXACT = (1e-9, 1e-9)
SINGLE_PRECISION = (1e-4, 1e-5)
HALF_PRECISION = (1e-2, 1e-2)
HEAD = 64  # numbers of a row that are compared first


@dataclass(frozen=True)
class Match:
    """What an answer was recognised as.

    `readings` holds sets of mistakes, the simplest first. More than one reading means
    that these pairs of mistakes have the same effect. No reading and not `right`: the
    answer is wrong in a way the table does not know.
    """

    right: bool
    readings: tuple[Faults, ...] = ()


@dataclass(frozen=True)
class _Rows:
    """Variants whose outputs have the same form: a matrix, one row a variant."""

    faults: tuple[Faults, ...]
    matrix: npt.NDArray[np.float64]


class Table:
    """All variants of one family on one set of cases. Rows are made when needed."""

    def __init__(self, family: Family, cases: Sequence[Case]) -> None:
        self.family = family
        self.cases = tuple(cases)
        self._ran: dict[tuple[Faults, int], Outcome] = {}

    @cached_property
    def right(self) -> tuple[Outcome, ...]:
        """The right outcomes, case by case."""
        return self._run(RIGHT)

    def match(self, answer: Sequence[Outcome]) -> Match:
        """Name the mistakes whose outputs this answer has."""
        (form, row), size = _string(answer), _sizes(answer)
        tolerances = [EXACT, SINGLE_PRECISION]
        if any(a.dtype == np.float16 for o in answer for a in o.arrays):
            tolerances.append(HALF_PRECISION)
        right_form, right_row = _string(self.right)
        if form == right_form and any(
            _close(right_row[None], row, size, tolerance)[0]
            for tolerance in (EXACT, SINGLE_PRECISION)
        ):
            return Match(right=True)
        for tolerance in tolerances:
            found = tuple(_look_up(self._singles, form, row, size, tolerance))
            if found:
                return Match(False, found)
        pairs = self.family.pairs and not _nan_throughout(answer)
        for tolerance in tolerances if pairs else ():
            table = self._pairs_like(answer, tolerance)
            found = tuple(_look_up(table, form, row, size, tolerance))
            if found:
                return Match(False, found)
        return Match(right=False)

    def agrees(self, answer: Sequence[Outcome]) -> tuple[bool, ...]:
        """Which cases an answer has right; those that it was not asked, it has not."""
        found = [
            _alike(good, mine, SINGLE_PRECISION)
            for mine, good in zip(answer, self.right, strict=False)
        ]
        return (*found, *[False] * (len(self.right) - len(found)))

    def shows(self, key: str, reading: Faults) -> tuple[bool, ...]:
        """In which cases one mistake of a pair matters, beside the other."""
        both, other = self._run(reading), self._run(reading - {key})
        return tuple(not _alike(a, b, EXACT) for a, b in zip(both, other, strict=True))

    @cached_property
    def _singles(self) -> dict[Form, _Rows]:
        singles = (frozenset([key]) for key in self.family.faults)
        right = [_string(self.right)]
        return _table(((f, self._run(f)) for f in singles), known=right, once=True)

    def _pairs_like(
        self, answer: Sequence[Outcome], tolerance: tuple[float, float]
    ) -> dict[Form, _Rows]:
        """The pairs that give what the answer gave, but for those that look simpler.

        Most pairs are out after the first case or two, so only few run on all.
        """
        ran, pairs = self._first_of_pairs, tuple[Faults, ...]()
        for i, mine in enumerate(answer):
            if i:
                ran = _grouped((f, *_string([self._run_one(f, i)])) for f in pairs)
            found = _look_up(ran, *_string([mine]), _sizes([mine]), tolerance)
            pairs = tuple(found)
        known = [_string(self.right)]
        for form, rows in self._singles.items():
            known += [(form, row) for row in rows.matrix]
        return _table(((f, self._run(f)) for f in pairs), known=known, once=False)

    @cached_property
    def _first_of_pairs(self) -> dict[Form, _Rows]:
        slots = self.family.slots.values()
        pairs = (
            frozenset([a, b]) for s, t in combinations(slots, 2) for a in s for b in t
        )
        return _grouped((p, *_string([self._run_one(p, 0)])) for p in pairs)

    def _run(self, faults: Faults) -> tuple[Outcome, ...]:
        return tuple(self._run_one(faults, i) for i in range(len(self.cases)))

    def _run_one(self, faults: Faults, i: int) -> Outcome:
        if (faults, i) not in self._ran:  # graders meet the same pairs again and again
            self._ran[faults, i] = call(self.family, self.cases[i], faults)
        return self._ran[faults, i]


def _form(outcomes: Iterable[Outcome]) -> Form:
    """Shapes, errors, and whether truth values or numbers: what must agree first."""
    return tuple(
        (o.error, *((a.shape, a.dtype.kind == "b") for a in o.arrays)) for o in outcomes
    )


def _row(outcomes: Iterable[Outcome]) -> Row:
    """All numbers, one after another."""
    rows = [a.astype(np.float64).ravel() for o in outcomes for a in o.arrays]
    return np.concatenate([np.zeros(0), *rows])


def _sizes(outcomes: Iterable[Outcome]) -> Row:
    """Beside each number of the row, the largest of its array."""
    sizes = [np.zeros(0)]
    for array in (a for o in outcomes for a in o.arrays):
        row = array.astype(np.float64).ravel()
        size = np.abs(row[np.isfinite(row)]).max(initial=1.0)
        sizes.append(np.full_like(row, size))
    return np.concatenate(sizes)


def _nan_throughout(answer: Sequence[Outcome]) -> bool:
    """Whether there is nothing but NaN: one reason is enough, and any two will do."""
    arrays = [a for outcome in answer for a in outcome.arrays]
    return bool(arrays) and all(
        a.dtype.kind == "f" and bool(np.isnan(a).all()) for a in arrays
    )


def _string(outcomes: Sequence[Outcome]) -> tuple[Form, Row]:
    return _form(outcomes), _row(outcomes)


def _close(
    matrix: npt.NDArray[np.float64], row: Row, size: Row, tolerance: tuple[float, float]
) -> npt.NDArray[np.bool_]:
    rtol, atol = tolerance

    def near(rows: npt.NDArray[np.float64], end: int) -> npt.NDArray[np.bool_]:
        mine, least = row[:end], atol * size[:end]
        found = np.isclose(mine, rows[:, :end], rtol=rtol, atol=least, equal_nan=True)
        return np.asarray(found.all(axis=1))

    # Most rows differ at once: only what is left is compared to its end.
    close = near(matrix, HEAD)
    if row.size > HEAD and close.any():
        close[close] = near(matrix[close], row.size)
    return close


def _alike(good: Outcome, mine: Outcome, tolerance: tuple[float, float]) -> bool:
    """Whether two outcomes of one case agree; the tolerance goes by the second."""
    if _form([mine]) != _form([good]):
        return False
    return bool(_close(_row([good])[None], _row([mine]), _sizes([mine]), tolerance)[0])


def close(mine: Result, good: Result) -> npt.NDArray[np.bool_]:
    """Where two arrays of one shape agree, as far as single precision shows."""
    rtol, atol = SINGLE_PRECISION
    a, b = mine.astype(np.float64), good.astype(np.float64)
    return np.asarray(np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True))


def _look_up(
    table: dict[Form, _Rows],
    form: Form,
    row: Row,
    size: Row,
    tolerance: tuple[float, float],
) -> Iterator[Faults]:
    rows = table.get(form)
    if rows is not None:
        for index in np.flatnonzero(_close(rows.matrix, row, size, tolerance)):
            yield rows.faults[index]


def _table(
    variants: Iterable[tuple[Faults, tuple[Outcome, ...]]],
    known: list[tuple[Form, Row]],
    once: bool,
) -> dict[Form, _Rows]:
    """Group variants by form; drop what is known already, or equal to an earlier one.

    What differs only within single precision counts as equal: a float32 answer could
    not be told apart.
    """
    seen: dict[Form, list[Row]] = {}
    for form, row in known:
        seen.setdefault(form, []).append(row)
    kept: list[tuple[Faults, Form, Row]] = []
    for faults, outcomes in variants:
        if not any(outcome.arrays for outcome in outcomes):
            continue  # it only raises, and so does any answer with a slip in it
        (form, row), size = _string(outcomes), _sizes(outcomes)
        rows = seen.setdefault(form, [])
        if rows and _close(np.stack(rows), row, size, SINGLE_PRECISION).any():
            continue
        if once:
            rows.append(row)
        kept.append((faults, form, row))
    return _grouped(kept)


def _grouped(variants: Iterable[tuple[Faults, Form, Row]]) -> dict[Form, _Rows]:
    kept: dict[Form, list[tuple[Faults, Row]]] = {}
    for faults, form, row in variants:
        kept.setdefault(form, []).append((faults, row))
    return {
        form: _Rows(tuple(f for f, _ in group), np.stack([row for _, row in group]))
        for form, group in kept.items()
    }
