"""Judge an answer that is a value: a number, a choice, a tuple, a dict, an array."""

from __future__ import annotations

import contextlib

import numpy as np

from attnlib.exercises import text
from attnlib.exercises.exercise import ValueExercise
from attnlib.exercises.judging import Status, Verdict
from attnlib.exercises.read import is_a, plain
from attnlib.exercises.shares import ALL, NOTHING, Shares


def judge_value(exercise: ValueExercise, answer: object) -> Verdict:
    """Judge a value. The right one is never printed.

    Of a tuple or a dict it counts the entries that are right.
    """
    name = exercise.name
    if answer is Ellipsis:
        return Verdict("not started", text.not_started(name))

    def no(status: Status, sentence: str) -> Verdict:
        share = entries(answer, exercise.right, exercise.tolerance)
        return Verdict(status, text.not_yet(name, sentence), (), share)

    wanted = kind(exercise.right)
    if exercise.tidy is not None:
        with contextlib.suppress(Exception):  # of an answer that it was not written for
            answer = exercise.tidy(answer)
    if equal(answer, exercise.right, exercise.tolerance):
        return Verdict("passed", text.passed(name, exercise.why), (), ALL)
    for misconception in exercise.wrong:
        if equal(answer, misconception.value, exercise.tolerance):
            return no("wrong", misconception.sentence)
    if kind(answer) != wanted:
        said = text.value_wanted(wanted, kind(answer))
        return no("type", f"{said} {exercise.form}".rstrip())
    stray = stray_names(answer, exercise.names)
    if stray:
        said = text.value_no_name(stray)
        return no("type", f"{said} {exercise.form}".rstrip())
    wrong = wrong_parts(answer, exercise.right, exercise.tolerance)
    told = first_told(exercise, answer)
    if wrong:
        return no("wrong", " ".join([text.value_part_wrong(wrong), told]).rstrip())
    return no("wrong", " ".join([text.value_wrong(), told or exercise.form]).rstrip())


def equal(answer: object, right: object, tolerance: float) -> bool:
    """Whether two values are the same. The learner's object is never asked."""
    if isinstance(right, str):
        return type(answer) is str and _folded(answer) == _folded(right)
    if isinstance(right, bool):
        return is_a(answer, bool, np.bool_) and bool(answer) is right
    if isinstance(right, dict):
        return (
            type(answer) is dict
            and _keys(answer) == _keys(right)
            and all(_at(answer, key, right[key], tolerance) for key in right)
        )
    if isinstance(right, tuple):
        return (
            is_a(answer, tuple, list)
            and len(answer) == len(right)
            and all(equal(a, b, tolerance) for a, b in zip(answer, right, strict=True))
        )
    mine, good = plain(answer), plain(right)
    if isinstance(mine, str) or isinstance(good, str) or is_a(answer, bool):
        return False
    return mine.shape == good.shape and np.allclose(
        mine.astype(float), good.astype(float), rtol=0, atol=tolerance
    )


def kind(value: object) -> str:
    """What a value is, in words that do not give away what it should hold."""
    if value is None:
        return "None"
    if is_a(value, str):
        return "text in quotes"
    if is_a(value, bool, np.bool_):
        return "True or False"
    if type(value) is dict:
        keys = text.listed(sorted(_keys(value)))
        return f"a dict with the keys {keys}" if keys else "a dict without such keys"
    if is_a(value, tuple, list):
        return f"a {'list' if is_a(value, list) else 'tuple'} of {len(value)}"
    array = plain(value)
    if isinstance(array, str):
        return array
    if array.ndim == 0:
        return "a number"
    return f"an array of shape {array.shape}"


def wrong_parts(answer: object, right: object, tolerance: float) -> list[str]:
    """Which entries of a tuple or dict are wrong, if some are right."""
    _, parts = _given_and_right(answer, right, tolerance)
    wrong = [name for name, good in parts if not good]
    return wrong if len(wrong) < len(parts) else []


def first_told(exercise: ValueExercise, answer: object) -> str:
    """What is known of the first wrong entry of a dict, as if all others were right."""
    right, tolerance = exercise.right, exercise.tolerance
    if type(answer) is not dict or not isinstance(right, dict):
        return ""
    for key in right:
        if key in answer and not _at(answer, key, right[key], tolerance):
            alone = {**right, key: answer[key]}
            for misconception in exercise.wrong:
                if equal(alone, misconception.value, tolerance):
                    return misconception.sentence
    return ""


def entries(answer: object, right: object, tolerance: float) -> Shares:
    """How many entries of a tuple or dict are right; none, if all are the same."""
    given, parts = _given_and_right(answer, right, tolerance)
    if not parts or not isinstance(right, dict | tuple):
        return NOTHING
    wanted = list(right.values()) if isinstance(right, dict) else list(right)
    if _all_same(given, tolerance) and not _all_same(wanted, tolerance):
        return NOTHING
    too_many = max(0, len(given) - len(wanted))  # who writes all down has found nothing
    n_right = sum(good for _, good in parts)
    return Shares(max(0, n_right - too_many), max(1, len(wanted)))


def _given_and_right(
    answer: object, right: object, tolerance: float
) -> tuple[list[object], list[tuple[str, bool]]]:
    """The entries of a tuple or dict, and of each wanted one whether it is right."""
    if type(answer) is dict and isinstance(right, dict):
        named = [(str(k), _at(answer, k, right[k], tolerance)) for k in right]
        return list(answer.values()), named
    if is_a(answer, tuple, list) and isinstance(right, tuple):
        each = [equal(a, b, tolerance) for a, b in zip(answer, right, strict=False)]
        return list(answer), [(f"number {i}", good) for i, good in enumerate(each, 1)]
    return [], []


def _all_same(values: list[object], tolerance: float) -> bool:
    return all(equal(values[0], other, tolerance) for other in values[1:])


def _at(answer: dict[object, object], key: object, right: object, atol: float) -> bool:
    return key in answer and equal(answer[key], right, atol)


def stray_names(answer: object, names: tuple[object, ...]) -> list[str]:
    """The keys of a dict under which there is none of the names that there are."""
    if not names or type(answer) is not dict:
        return []
    return [
        str(key)
        for key, value in answer.items()
        if not any(equal(value, name, 0) for name in names)
    ]


def _keys(value: dict[object, object]) -> set[str]:
    return {str(key) for key in value if isinstance(key, (str, int))}


def _folded(value: str) -> str:
    return " ".join(value.casefold().split())
