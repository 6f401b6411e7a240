"""Points: a share for what is right, nothing for what needs no thought."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from attnlib import exercises
from attnlib.clinic.case import Case, Family, Outcome
from attnlib.exercises import judge, judge_as, shares
from attnlib.exercises.exercise import Exercise, Law, Part, ValueExercise
from attnlib.exercises.judging import Verdict
from attnlib.exercises.shares import Shares
from attnlib.exercises.values import entries
from attnlib.grading import grades, points

NAMES = exercises.names()
FUNCTIONS = [n for n in NAMES if isinstance(exercises.get(n), Exercise)]


def got(name, answer, worth=600, seed=0):
    return points.earned(judge(name, answer, seed, counted=True), worth)


# --- a small exercise, to count by hand ---------------------------------------------
def double(x, faults=frozenset()):
    """Twice."""
    return 2 * np.asarray(x)


def cases(rng):
    return tuple(
        Case(f"case {i}", (np.array(a, float),))
        for i, a in enumerate(([1.0, 2.0], [0.0, 0.0], [3.0], [4.0, 5.0], [6.0]))
    )


def never(call):
    return None


TWICE = Exercise(
    "twice",
    0,
    4,
    lambda x: None,
    cases,
    (Part("twice", "n"),),
    Family("twice", double, {}),
    ("a", "b", "c"),
    "why",
)
object.__setattr__(TWICE, "solution", lambda x: 2 * x)


def judged(answer, exercise=TWICE):
    return judge_as(exercise, answer, counted=True)


def wrong_where(*sizes):
    return lambda x: 2 * x + (x[0] in sizes)


@pytest.mark.parametrize(
    ("answer", "right", "of"),
    [
        (wrong_where(1.0), 3, 4),  # zeros are right in case 1, and count for nothing
        (wrong_where(1.0, 3.0), 2, 4),
        (wrong_where(0.0), 4, 5),  # but to get them wrong counts
        (wrong_where(0.0, 1.0, 3.0, 4.0, 6.0), 0, 5),
        (lambda x: x, 0, 4),
        (lambda x: np.zeros_like(x), 0, 4),
        (lambda x: x[0], 0, 5),
        (lambda x: None if len(x) == 1 else 2 * x, 2, 4),
        (lambda x: 2 * x if x[0] < 3 else 1 / 0, 1, 4),
    ],
)
def test_cases_are_counted(answer, right, of):
    verdict = judged(answer)
    assert not verdict.passed
    assert verdict.shares == Shares(right, of)


def test_the_same_whatever_is_asked_is_nothing():
    answer = lambda x: np.array([12.0])  # noqa: E731 - right in the last case
    assert judged(answer).shares == shares.NOTHING


def test_an_input_that_is_changed_costs_its_cases():
    def answer(x):
        y = 2 * x
        if len(x) == 1:
            x += 1
        return y

    verdict = judged(answer)
    assert verdict.status == "mutates"
    assert verdict.shares == Shares(2, 4)


def test_laws_are_half_of_it_once_all_cases_are_right():
    laws = (
        Law("kept", lambda call: None),
        Law("broken", lambda call: "It is broken."),
        Law("kept, too", lambda call: None),
    )
    strict = replace(TWICE, laws=laws)
    object.__setattr__(strict, "solution", TWICE.solution)
    verdict = judged(lambda x: x + x, strict)
    assert verdict.status == "law"
    assert verdict.shares == Shares(3 + 2, 3 + 3)
    assert judged(wrong_where(1.0), strict).shares == Shares(3, 4)


def test_each_law_is_asked_once():
    asked = []
    laws = tuple(
        Law(str(i), lambda call, i=i: asked.append(i) or "It is broken." * (i == 1))
        for i in range(3)
    )
    strict = replace(TWICE, laws=laws)
    object.__setattr__(strict, "solution", TWICE.solution)
    assert judged(lambda x: x + x, strict).shares == Shares(3 + 2, 3 + 3)
    assert asked == [0, 1, 2]


def test_a_loop_in_one_case_keeps_the_cases_before_it():
    def answer(x):
        while x[0] == 4.0:
            pass
        return 2 * x

    from attnlib.exercises.judging import judge_function

    verdict = judge_function(TWICE, answer, limit=0.1, counted=True)
    assert verdict.status == "timeout"
    assert verdict.shares == Shares(2, 4)


def test_who_does_not_ask_gets_no_shares():
    assert judge_as(TWICE, lambda x: x).shares is None
    assert judge("softmax", lambda x, axis=-1: x).shares is None


def test_where_every_case_can_be_had_without_thought_only_a_passed_answer_counts():
    flags = tuple(Case(str(i), (np.arange(2.0) + i,)) for i in range(4))
    yes = lambda x, faults=frozenset(): bool(x[0] % 2)  # noqa: E731
    flag = replace(
        TWICE,
        cases=lambda rng: flags,
        returns=(Part("odd", "", "flag"),),
        family=Family("flag", yes, {}),
    )
    object.__setattr__(flag, "solution", lambda x: bool(x[0] % 2))
    assert judged(lambda x: bool(x[0] % 2), flag).passed
    assert judged(lambda x: bool(x[0] % 2) or x[0] == 2, flag).shares == shares.NOTHING


# --- the course ---------------------------------------------------------------------
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_thought_no_points(name):
    exercise = exercises.get(name)
    table = exercise.table()
    first = table.right[0].arrays
    n = len(exercise.returns)
    if exercise.around is None and not exercise.tensors:
        back = lambda *args: args[0] if n == 1 else args[:1] * n  # noqa: E731
        always = lambda *args: first[0] if n == 1 else tuple(first)  # noqa: E731
        one = lambda *args: 1.0 if n == 1 else (1.0,) * n  # noqa: E731
        for answer in (back, always, one):
            assert got(name, answer) == 0
    assert got(name, ...) == 0
    assert got(name, lambda *args: ...) == 0
    zeros = [
        Outcome(tuple(np.zeros_like(a) for a in right.arrays)) for right in table.right
    ]
    counting = [
        not shares.thoughtless(c, r)
        for c, r in zip(table.cases, table.right, strict=True)
    ]
    assert any(counting)
    agrees = table.agrees(zeros)
    assert not any(a and c for a, c in zip(agrees, counting, strict=True))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_solution_has_all_and_a_wrong_version_less(name):
    exercise = exercises.get(name)
    assert got(name, exercise.solution, 777) == 777
    if exercise.around is not None or exercise.tensors:
        return
    for key in exercise.family.faults[::7]:
        wrong = functools.partial(
            exercise.family.implementation, faults=frozenset([key])
        )
        answer = lambda *args, wrong=wrong: wrong(*args)  # noqa: E731
        verdict = judge(name, answer, counted=True)
        if not verdict.passed:
            assert 0 <= points.earned(verdict, 600) < 600


@pytest.mark.parametrize(
    ("given", "right", "share"),
    [
        ((1.0, 3.0), (1.0, 2.0), Shares(1, 2)),
        ((1.0,), (1.0, 2.0), NOTHING := shares.NOTHING),
        ((1.0, 1.0), (1.0, 2.0), NOTHING),
        ((2.0, 1.0), (1.0, 1.0), Shares(1, 2)),
        ((1.0, 2.0, 3.0, 4.0), (1.0, 5.0), NOTHING),
        ([1.0, 3.0], (1.0, 2.0), Shares(1, 2)),
        ({"a": "x", "b": "y"}, {"a": "x", "b": "z"}, Shares(1, 2)),
        ({"a": "x", "b": "x"}, {"a": "x", "b": "z"}, NOTHING),
        ({"a": "x"}, {"a": "x", "b": "z"}, NOTHING),
        ({"a": "x", 3: "z"}, {"a": "x", "b": "z"}, Shares(1, 2)),
        ({}, {"a": "x"}, NOTHING),
        (3.0, 4.0, NOTHING),
        (3.0, (3.0, 4.0), NOTHING),
    ],
)
def test_entries_of_a_value_are_counted(given, right, share):
    found = entries(given, right, 0.01)
    assert found.right * share.of == share.right * found.of


def test_values_of_the_course_are_all_or_a_part():
    for name in NAMES:
        exercise = exercises.get(name)
        if isinstance(exercise, ValueExercise):
            assert got(name, exercise.right, 555) == 555
            for wrong in exercise.wrong:
                assert got(name, wrong.value) < 600
    one_wrong = {**exercises.get("diagnoses").right, "P": "leak"}
    assert got("diagnoses", one_wrong) == 500


def test_checks_have_the_share_of_bugs_that_they_caught():
    def masks_only(attention):
        return exercises.get("mask_check").solution(attention)

    verdict = judge("bug_bash", masks_only)
    assert verdict.status == "wrong"
    assert 0 < verdict.shares.right < verdict.shares.of
    assert got("bug_bash", lambda attention: True) == 0
    assert got("bug_bash", lambda attention: False) == 0
    assert got("mask_check", exercises.get("mask_check").solution, 99) == 99
    assert got("smallest_input", (np.ones((1, 1)),) * 3) == 0


# --- whole hundredths ---------------------------------------------------------------
@given(st.integers(-5, 50), st.integers(-5, 50), st.integers(1, 10**6))
@hypothesis_settings(derandomize=True, deadline=None)
def test_points_are_whole_and_never_more_than_there_are(right, of, worth):
    verdict = Verdict("differs", "", (), Shares(right, of))
    found = points.earned(verdict, worth)
    assert type(found) is int
    assert 0 <= found <= worth
    assert points.earned(replace(verdict, status="passed"), worth) == worth
    assert points.earned(replace(verdict, status="not started"), worth) == 0
    assert points.earned(replace(verdict, shares=None), worth) == 0


def test_an_exercise_is_worth_its_minutes_or_a_point():
    exercise = exercises.get("bug_bash")
    assert points.of(exercise) == 2500
    assert points.of(exercise, equal=True) == 100


def test_points_are_written_without_noughts():
    assert [grades.shown(n) for n in (0, 5, 50, 100, 250, 1234)] == [
        "0",
        "0.05",
        "0.5",
        "1",
        "2.5",
        "12.34",
    ]


def test_what_the_grader_failed_at_counts_on_neither_side():
    good = grades.Grade("a", 50, 100, "differs", "")
    ours = grades.Grade("b", 0, 300, "ungraded", "")
    graded = grades.Graded("s", "f", "graded", "", (good, ours))
    assert (graded.points, graded.of) == (50, 100)


def test_a_seed_is_of_the_class_and_of_the_exercise():
    one = points.seed_of("secret", "softmax")
    assert one == points.seed_of("secret\n", "softmax")
    others = {points.seed_of(s, n) for s in "ab" for n in ("softmax", "entropy")}
    assert len(others | {one}) == 5
    assert 0 <= one < 2**32


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_solution_passes_with_seeds_of_any_size(name):
    for secret in "abc":
        seed = points.seed_of(secret, name)
        assert judge(name, exercises.get(name).solution, seed).passed
