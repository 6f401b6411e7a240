"""Answers that are values: numbers, words, tuples, dicts, arrays."""

from __future__ import annotations

import numpy as np
import pytest

from attnlib.exercises.exercise import Misconception, ValueExercise
from attnlib.exercises.values import equal, judge_value


def exercise(right, wrong=(), tolerance=0.005):
    return ValueExercise(
        "quiz",
        0,
        1,
        right,
        ("A?", "B?", "C."),
        "So it is.",
        "quiz = ?",
        wrong,
        tolerance,
    )


@pytest.mark.parametrize(
    ("right", "answer"),
    [
        (1.414, 1.414),
        (1.414, np.float32(1.41421)),
        (1.414, 2**0.5),
        (3, 3.0),
        (3, np.int64(3)),
        (3, np.array(3)),
        ("d_k", " D_K "),
        (True, np.True_),
        ((1.0, 2.0), [1, 2]),
        ((1.0, "rows"), (1.0, "Rows")),
        ({"a": 1.0}, {"a": 1}),
        (np.eye(2), [[1, 0], [0, 1]]),
    ],
)
def test_the_right_value_passes_however_it_is_written(right, answer):
    verdict = judge_value(exercise(right), answer)
    assert verdict.passed, verdict.text
    assert verdict.text == "quiz: passed. So it is."


@pytest.mark.parametrize(
    ("right", "answer", "status", "words"),
    [
        (3.0, ..., "not started", "quiz: not started yet."),
        (3.0, None, "type", "should be a number, but it is None"),
        (3.0, "3.0", "type", "should be a number, but it is text in quotes"),
        (3.0, True, "type", "should be a number, but it is True or False"),
        (3.0, (3.0,), "type", "should be a number, but it is a tuple of 1"),
        (3.0, len, "type", "should be a number, but it is a "),
        (3.0, np.nan, "wrong", "That is not it."),
        (3.0, 3.1, "wrong", "That is not it."),
        (3.0, 3j, "type", "complex"),
        ("rows", "columns", "wrong", "That is not it."),
        ("rows", 3, "type", "should be text in quotes, but it is a number"),
        ((1.0, 2.0), (1.0, 3.0), "wrong", "Look again at: number 2."),
        ((1.0, 2.0), (3.0, 3.0), "wrong", "That is not it."),
        ((1.0, 2.0), (1.0,), "type", "should be a tuple of 2, but it is a tuple of 1"),
        ((1.0, 2.0), [], "type", "it is a list of 0"),
        ({"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 0.0}, "wrong", "Look again at: b."),
        ({"a": 1.0}, {"c": 1.0}, "type", "it is a dict with the keys c"),
        (np.eye(2), np.eye(3), "type", "it is an array of shape (3, 3)"),
        (np.eye(2), np.zeros((2, 2)), "wrong", "That is not it."),
    ],
)
def test_a_wrong_value_gets_one_sentence(right, answer, status, words):
    verdict = judge_value(exercise(right), answer)
    assert verdict.status == status, verdict
    assert words in verdict.text
    assert verdict.text.count("\n") == 0


def test_a_known_misconception_has_its_own_sentence():
    wrong = (Misconception(2.0, "That is the variance."), Misconception("x", "A word."))
    quiz = exercise(1.414, wrong)
    assert judge_value(quiz, 2.001).text == "quiz: not yet. That is the variance."
    assert judge_value(quiz, "X").text == "quiz: not yet. A word."


class Liar:
    __hash__ = None

    def __eq__(self, other):
        return True


class Shouter:
    def __getattribute__(self, name):
        raise RuntimeError("hands off")


@pytest.mark.parametrize(
    "right", [3.0, "rows", (1.0, 2.0), {"a": 1.0}, True, np.eye(2)]
)
@pytest.mark.parametrize("answer", [Liar(), (Liar(), Liar()), {"a": Liar()}])
def test_an_object_equal_to_everything_is_not_right(right, answer):
    assert not judge_value(exercise(right), answer).passed


@pytest.mark.parametrize(
    "right", [3.0, "rows", (1.0, 2.0), {"a": 1.0}, True, np.eye(2)]
)
def test_an_object_that_raises_is_refused_in_a_sentence(right):
    verdict = judge_value(exercise(right), Shouter())
    assert verdict.status == "type"
    assert "a Shouter" in verdict.text


def test_a_value_of_another_exercise_is_compared_part_by_part():
    assert equal((1.0, ("a", 2.0)), (1.0, ("A", 2.001)), 0.005)
    assert not equal((1.0, ("a", 2.1)), (1.0, ("a", 2.0)), 0.005)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((1.0, 1.0), "passed"),
        ((1, 1), "passed"),
        ((1.0, 2.0), "has a sum of its own"),
        ((2.0, 1.0), "What do those of sick_softmax sum to?"),
        ((0.458, 0.542), "what its two rows sum to, each alone"),
        ((0.54, 0.46), "what its two rows sum to, each alone"),
        ((1, 0.46), "The first number is right."),
        (1.0, "a tuple of 2"),
        ("M04", "a tuple of 2"),
    ],
)
def test_read_the_diagnosis(answer, words):
    from attnlib.exercises import judge

    assert words in judge("read_the_diagnosis", answer).text
