"""The mutation score of the checks: what share of wrong answers they refuse.

The wrong answers are mutants, which nobody thought of: see `mutants`. One that passes
is either equivalent, no different from the solution on any input that the exercise
allows, and then it stands with the reason in `attnlib/data/equivalent_mutants.json`;
or it is a hole in the check. Checks of lesson 17 have a score of their own, and are not
asked again.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from attnlib import exercises
from attnlib.clinic.case import Case
from attnlib.clinic.match import close
from attnlib.clinic.run import run
from attnlib.clinic.tensors import as_tensors
from attnlib.exercises import text
from attnlib.exercises.exercise import Exercise, ValueExercise
from attnlib.exercises.judging import Verdict, judge_function
from attnlib.exercises.mutants import mutants
from attnlib.exercises.read import read
from attnlib.exercises.value_mutants import value_mutants

LISTED = Path(exercises.__file__).parent.parent / "data" / "equivalent_mutants.json"
SEEDS = range(100, 110)  # of the cases on which an equivalent mutant is held against
VAGUE = (text.UNKNOWN, text.value_wrong())  # it is wrong, and no more
Judge = Callable[[object], Verdict]


@dataclass(frozen=True)
class Wrong:
    """A mutant that can be judged: what is changed in it, and the answer it is."""

    changed: str
    answer: object


@dataclass(frozen=True)
class Score:
    """What became of the mutants of one exercise, or of several."""

    mutants: int = 0
    killed: int = 0  # refused, whatever was said
    named: int = 0  # of those: told the name of a mistake
    specific: int = 0  # of those: told that, or how it goes wrong
    raised: int = 0  # of those: raised an error, which any check would see
    equivalent: int = 0
    survivors: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """The mutation score: of the mutants that are wrong, the share refused."""
        wrong = self.mutants - self.equivalent
        return self.killed / wrong if wrong else 1.0

    def __add__(self, other: Score) -> Score:
        return Score(
            self.mutants + other.mutants,
            self.killed + other.killed,
            self.named + other.named,
            self.specific + other.specific,
            self.raised + other.raised,
            self.equivalent + other.equivalent,
            self.survivors + other.survivors,
        )


def measured() -> tuple[str, ...]:
    """The exercises that have a mutation score, in their order."""
    kinds = Exercise | ValueExercise
    return tuple(n for n in exercises.names() if isinstance(exercises.get(n), kinds))


def wrong_answers(name: str) -> tuple[Wrong, ...]:
    """All mutants of one exercise, the equivalent ones among them."""
    exercise = exercises.get(name)
    if isinstance(exercise, Exercise):
        solution, source = exercise.solution, exercise.solution_source
        first = exercise.cases(np.random.default_rng(0))[0]
        called = exercise.called(solution)
        call = inspect.signature(called).bind(*first.args).arguments
        return tuple(
            Wrong(mutant.changed, mutant.make(solution))
            for mutant in mutants(name, source, call)
        )
    if isinstance(exercise, ValueExercise):
        return tuple(Wrong(*pair) for pair in value_mutants(exercise))
    raise ValueError(f"{name} is graded by mutants itself: it has no mutation score.")


def score(
    name: str, *, every: int = 1, seed: int = 0, judge: Judge | None = None
) -> Score:
    """Judge the mutants of one exercise.

    Args:
        name: of the exercise.
        every: takes only the first of each so many mutants.
        seed: chooses the numbers of the check's cases.
        judge: what judges; the exercise's own check if left out.
    """
    judged = judge or (lambda answer: exercises.judge(name, answer, seed))
    listed = equivalent(name)
    wrong = wrong_answers(name)[::every]
    named = specific = raised = known = 0
    survivors = []
    for one in wrong:
        verdict = judged(one.answer)
        if not verdict.passed:
            named += verdict.status == "mistake"
            raised += verdict.status == "raised"
            specific += not any(vague in verdict.text for vague in VAGUE)
            # An equivalent one that is refused would be a false accusation.
            if one.changed in listed:
                survivors.append(f"refused, though equivalent: {one.changed}")
        elif one.changed in listed:
            known += 1
        else:
            survivors.append(one.changed)
    killed = len(wrong) - known - len(survivors)
    counts = killed, named, specific, raised, known
    return Score(len(wrong), *counts, tuple(survivors))


def judge_with(exercise: Exercise) -> Judge:
    """Judge by another exercise than the course's own, such as one with fewer cases."""
    return lambda answer: judge_function(exercise, answer)


@cache
def _listed() -> Mapping[str, Mapping[str, str]]:
    found: dict[str, Any] = json.loads(LISTED.read_text(encoding="utf-8"))
    return found


def equivalent(name: str) -> Mapping[str, str]:
    """The mutants of an exercise that are no mistakes, each with the reason."""
    return _listed().get(name, {})


def differs(
    exercise: Exercise, answer: object, cases: Iterable[Case] | None = None
) -> str:
    """On which case an answer differs from the solution, or "" if on none.

    The cases are those of the exercise with many other numbers, or what is given.
    """
    if cases is None:
        rngs = map(np.random.default_rng, SEEDS)
        cases = (case for rng in rngs for case in exercise.cases(rng))
    for case in cases:
        mine = _result(exercise, answer, case.args)
        good = _result(exercise, exercise.solution, case.args)
        if mine is None or good is None or len(mine) != len(good):
            return case.name
        for a, b in zip(mine, good, strict=True):
            truth = [x.dtype.kind == "b" for x in (a, b)]  # 2 and 2.0 are the same
            if a.shape != b.shape or truth[0] != truth[1]:
                return case.name
            if not close(a, b).all():
                return case.name
    return ""


def _result(
    exercise: Exercise, function: Any, args: tuple[object, ...]
) -> Sequence[Any] | None:
    def called(*given: object) -> Any:
        given = as_tensors(given) if exercise.tensors else given
        return read(exercise.called(function)(*given), exercise.returns, ()).arrays

    ran = run(called, args)
    return None if ran.error is not None else ran.value  # type: ignore[return-value]
