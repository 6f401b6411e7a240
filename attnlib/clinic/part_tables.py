"""The right and the wrong results of a part, and what an answer is among them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from attnlib.clinic import part_reports as reports
from attnlib.clinic.case import RIGHT, Case, Family, Faults, Outcome
from attnlib.clinic.match import EXACT, SINGLE_PRECISION, Table
from attnlib.clinic.part import Meant, Takes
from attnlib.clinic.part_calls import CallFailed, Calls
from attnlib.clinic.parts import PARTS

Said = tuple[tuple[str, object], ...]


@lru_cache(maxsize=64)
def tables(
    part: str, said: Said, signature: Takes, index: int, seed: int
) -> tuple[Table, ...]:
    """A table for each meaning of one form; a test suite asks for the same again."""
    form = PARTS[part].forms(dict(said), signature)[index]
    cases = form.cases(np.random.default_rng(seed))
    return tuple(_table(meant, cases) for meant in form.meant)


def _table(meant: Meant, cases: Sequence[Case]) -> Table:
    family = meant.family
    guarded = replace(family, implementation=_guarded(family))
    return Table(guarded, [meant.complete(case) for case in cases])


def _guarded(family: Family) -> Callable[..., object]:
    """The family with one class of error: what NumPy and torch raise differs."""

    def implementation(*args: Any, faults: Faults = RIGHT) -> object:
        try:
            return family.implementation(*args, faults=faults)
        except Exception as error:
            raise CallFailed from error

    return implementation


def tidied(meant: Meant, calls: Calls) -> tuple[Outcome, ...]:
    """The answer as this meaning sees it."""
    found: list[Outcome] = []
    for case, outcome in zip(calls.cases, calls.outcomes, strict=True):
        arrays = outcome.arrays
        # What is not at all as it should be is left as it came.
        with contextlib.suppress(ValueError, IndexError, TypeError):
            arrays = tuple(meant.tidy(case, array) for array in arrays)
        found.append(Outcome(arrays, outcome.error))
    return tuple(found)


def agrees(answer: Sequence[Outcome], right: Sequence[Outcome]) -> bool:
    """Whether an answer is right, in float64 or as far as float32 can be."""
    return any(
        all(
            reports.close(mine, good, tolerance)
            for mine, good in zip(answer, right, strict=True)
        )
        for tolerance in (EXACT, SINGLE_PRECISION)
    )


def name_it(
    known: Sequence[Table], answers: Sequence[Sequence[Outcome]]
) -> tuple[list[int], Faults] | None:
    """The simplest reading, and the meanings that have it.

    Single mistakes of every meaning come first, then pairs: those take their time.
    """
    for pairs in (False, True):
        found: dict[Faults, list[int]] = {}
        for i, (table, answer) in enumerate(zip(known, answers, strict=True)):
            table.family = replace(table.family, pairs=pairs)
            readings = table.match(answer).readings
            if readings:
                found.setdefault(readings[0], []).append(i)
        if found:
            reading = next(iter(found))
            return found[reading], reading
    return None
