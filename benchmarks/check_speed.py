"""How long `check` takes to answer: untouched stubs, right answers, wrong answers.

The first check of an exercise also builds the table of its mistakes, as it does for a
learner. Wall time on the machine as it is; the aim is under 0.5 s for each.
"""

import contextlib
import io
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from attnlib.exercises import check, get, names
from attnlib.exercises.exercise import (
    AnyExercise,
    Exercise,
    HuntExercise,
    ValueExercise,
    WitnessExercise,
)

AIM = 0.5


def seconds(name: str, answer: object) -> float:
    """One check, with its text thrown away."""
    with contextlib.redirect_stdout(io.StringIO()):
        start = time.perf_counter()
        check(name, answer)
        return time.perf_counter() - start


def stub(exercise: AnyExercise) -> object:
    """The answer of a learner who has not begun."""
    if isinstance(exercise, ValueExercise | WitnessExercise):
        return ...
    scope: dict[str, Any] = dict(exercise.solution.__globals__)
    exec(exercise.stub_source, scope)
    return scope[exercise.name]


def wrong(exercise: Exercise, key: str) -> Callable[..., object]:
    """The answer of a learner who made one mistake."""

    def answer(*args: object) -> object:
        return exercise.family.implementation(*args, faults=frozenset({key}))

    return answer


def main() -> int:
    print(
        f"{'exercise':<26}{'first':>8}{'stub':>8}{'right':>8}{'wrong':>8}{'worst':>8}"
    )
    worst = 0.0
    for name in names():
        exercise = get(name)
        if isinstance(exercise, ValueExercise):
            right, bad = exercise.right, [m.value for m in exercise.wrong] or ["?"]
        elif isinstance(exercise, HuntExercise):
            right, bad = exercise.solution, [lambda attention: False]
        elif isinstance(exercise, WitnessExercise):
            scope: dict[str, Any] = {"np": np}
            exec(exercise.solution_source, scope)
            right, bad = scope[name], ["?"]
        else:
            right = exercise.solution
            bad = [wrong(exercise, key) for key in exercise.family.faults]
        first = seconds(name, right)  # the table of mistakes is built here
        untouched = seconds(name, stub(exercise))
        again = seconds(name, right)
        wrongs = [seconds(name, answer) for answer in bad]
        row = [first, untouched, again, statistics.median(wrongs), max(wrongs)]
        worst = max(worst, *row)
        print(f"{name:<26}" + "".join(f"{value:8.3f}" for value in row))
    print(f"{len(names())} exercises; the slowest answer took {worst:.3f} s", end="; ")
    print(f"the aim is under {AIM} s: {'met' if worst < AIM else 'MISSED'}.")
    return int(worst >= AIM)


if __name__ == "__main__":
    raise SystemExit(main())
