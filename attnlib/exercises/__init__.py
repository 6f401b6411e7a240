"""Exercises: `check` an answer, ask for a `hint`, see the `solution`.

>>> from attnlib.exercises import check
>>> def weighted_mean(weights, values):
...     return values.mean()
>>> check("weighted_mean", weighted_mean)  # doctest: +ELLIPSIS
weighted_mean: not yet. ...
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from attnlib.exercises import text, usage
from attnlib.exercises.wrap import wrapped

if TYPE_CHECKING:
    from attnlib.exercises.exercise import AnyExercise
    from attnlib.exercises.judging import Verdict

_MISSING = object()
_hints_taken: dict[str, int] = {}  # in this session; a restart forgets them
_own: dict[str, AnyExercise] = {}  # a teacher's, by `use`


def check(name: object = _MISSING, answer: object = _MISSING) -> None:
    """Say what is wrong with an answer, by name, or that it passed. Prints text.

    Args:
        name: the name of the exercise, in quotes.
        answer: the function itself, or the value.

    Returns:
        Nothing. Never raises: whatever is wrong is said in a sentence.

    Lesson: 00.
    """
    try:
        verdict = judge(name, answer).text
    except Exception as error:  # a fault of ours must not stop a lesson
        verdict = usage.check_failed(type(error).__name__)
    _print(verdict)


def judge(
    name: object = _MISSING,
    answer: object = _MISSING,
    seed: int = 0,
    counted: bool = False,
) -> Verdict:
    """What `check` says, as a value: status, text, mistakes.

    Args:
        name: the name of the exercise.
        answer: the function itself, or the value.
        seed: chooses the numbers of the cases; a grader takes one of its own.
        counted: count how much of it is right, too: `Verdict.shares`.

    Returns:
        The verdict. The same answer and seed always give the same.

    Lesson: 00.
    """
    from attnlib.exercises.judging import Verdict

    wrong = _wrong_usage(name, answer)
    if wrong:
        return Verdict("usage", wrong)
    return judge_as(get(str(name)), answer, seed, counted)


def judge_as(
    exercise: AnyExercise, answer: object, seed: int = 0, counted: bool = False
) -> Verdict:
    """Judge an answer to an exercise that need not be one of the course.

    Args:
        exercise: what was asked.
        answer: the function itself, or the value; for a grader, an `afar.Afar`.
        seed: chooses the numbers of the cases.
        counted: count how much of it is right, too.

    Returns:
        The verdict. The same answer and seed always give the same.

    Lesson: 00.
    """
    from attnlib.exercises.exercise import Exercise, HuntExercise, WitnessExercise
    from attnlib.exercises.hunt import judge_hunt, judge_witness
    from attnlib.exercises.judging import judge_function
    from attnlib.exercises.values import judge_value

    if isinstance(exercise, Exercise):
        return judge_function(exercise, answer, seed, counted=counted)
    if isinstance(exercise, HuntExercise):
        return judge_hunt(exercise, answer, seed)
    if isinstance(exercise, WitnessExercise):
        return judge_witness(exercise, answer)
    return judge_value(exercise, answer)


def hint(name: object = _MISSING) -> None:
    """Print the next hint of an exercise. There are three.

    Args:
        name: the name of the exercise, in quotes.

    Returns:
        Nothing.

    Lesson: 00.
    """
    wrong = _wrong_name("hint", name)
    if wrong:
        _print(wrong)
        return
    exercise = get(str(name))
    taken = _hints_taken.get(exercise.name, 0)
    if taken >= len(exercise.hints):
        _print(usage.no_more_hints(exercise.name))
        return
    _hints_taken[exercise.name] = taken + 1
    _print(usage.hint(taken + 1, len(exercise.hints), exercise.hints[taken]))


def solution(name: object = _MISSING, now: bool = False) -> None:
    """Print the solution of an exercise, once its hints are used up.

    Args:
        name: the name of the exercise, in quotes.
        now: show it even while hints are left.

    Returns:
        Nothing.

    Lesson: 00.
    """
    wrong = _wrong_name("solution", name)
    if wrong:
        _print(wrong)
        return
    exercise = get(str(name))
    left = len(exercise.hints) - _hints_taken.get(exercise.name, 0)
    if left > 0 and not now:
        _print(usage.hints_left(exercise.name, left))
        return
    print(exercise.solution_source.rstrip())


def use(folder: str | Path) -> None:
    """Let `check`, `hint` and `solution` know a teacher's own exercises, too.

    Args:
        folder: holds files of the form of `attnlib/exercises/lesson_NN.py`.

    Returns:
        Nothing.

    Raises:
        PrivateError: one of the files cannot be used; the message says why.

    Lesson: 00.
    """
    from attnlib.exercises import private

    _own.update({exercise.name: exercise for exercise in private.load(Path(folder))})


def names(lesson: int | None = None) -> tuple[str, ...]:
    """The names of all exercises, or of those of one lesson, in their order."""
    return tuple(e.name for e in _all().values() if lesson in (None, e.lesson))


def get(name: str) -> AnyExercise:
    """The exercise of this name.

    Raises:
        KeyError: there is none; the message names one that is spelt alike.
    """
    if name not in _all():
        raise KeyError(_unknown(name))
    return _all()[name]


def _print(sentences: str) -> None:
    """Print in short lines."""
    print(wrapped(sentences))


def _all() -> dict[str, AnyExercise]:
    return of_the_course() | _own


@cache
def of_the_course() -> dict[str, AnyExercise]:
    """The exercises of the course by name, without a teacher's own."""
    found: dict[str, AnyExercise] = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        if not module.startswith("lesson_"):
            continue
        for exercise in importlib.import_module(f"{__name__}.{module}").EXERCISES:
            if exercise.name in found:
                raise ValueError(f"Two exercises are named {exercise.name}.")
            found[exercise.name] = exercise
    return found


def _unknown(name: str) -> str:
    close = difflib.get_close_matches(name, list(_all()), n=1, cutoff=0.5)
    return usage.unknown_exercise(name, close, list(_all()))


def _wrong_usage(name: object, answer: object) -> str:
    from attnlib.exercises.stubs import name_of

    if name is _MISSING:
        return usage.no_arguments()
    if not isinstance(name, str) and type(answer) is str:
        return usage.swapped(answer)
    if not isinstance(name, str) and answer is _MISSING and callable(name):
        return usage.answer_missing(name_of(name) or "softmax")
    wrong = _wrong_name("check", name)
    if wrong:
        return wrong
    if answer is _MISSING:
        return usage.answer_missing(str(name))
    given = name_of(answer)
    if given != name and given in _all():
        return text.other_function(str(name), given)
    return ""


def _wrong_name(command: str, name: object) -> str:
    from attnlib.exercises.stubs import name_of

    if name is _MISSING:
        return usage.not_a_name(command, "nothing")
    if not isinstance(name, str):
        given = name_of(name) or text.a(type(name).__name__)
        return usage.not_a_name(command, given)
    return "" if name in _all() else _unknown(name)
