"""What was simulated once serves the next examination, and nothing else does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from attnlib.clinic import examine
from attnlib.clinic.black_box import remembered
from attnlib.clinic.black_box.questions import Question
from attnlib.clinic.black_box.traits import PLAIN, Traits


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch):
    monkeypatch.setattr(remembered, "_tables", {})


def question(**changed):
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(2, 3, 4, 5)) for _ in "qkv")
    return replace(Question("one", q, k, v), **changed)


def test_equal_questions_have_one_digest():
    assert remembered.digest(question()) == remembered.digest(question())


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "another"},
        {"mask": np.ones((4, 4), bool)},
        {"causal": True},
        {"q": np.zeros((2, 3, 4, 5))},
        {"v": np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_other_questions_have_another(changed):
    assert remembered.digest(question(**changed)) != remembered.digest(question())


def test_tables_are_shared_by_equal_questions_of_one_kind():
    first = remembered.Known([question()], PLAIN, {})
    again = remembered.Known([question()], PLAIN, {})
    causal = remembered.Known([question()], Traits(causal=True), {})
    faults = frozenset({"scale_missing"})
    first(0, faults)[faults] = np.ones(3)
    assert faults in again(0, faults)
    assert faults not in causal(0, faults)


def test_numbers_of_one_subject_stay_with_it():
    """A scale that was read off one subject says nothing of the next."""
    other, usual = frozenset({"scale_other"}), frozenset({"scale_missing"})
    mine = remembered.Known([question()], PLAIN, {"scale": 0.3})
    mine(0, other)[other] = np.ones(3)
    mine(0, usual)[usual] = np.ones(3)
    yours = remembered.Known([question()], PLAIN, {"scale": 0.7})
    assert other not in yours(0, other)
    assert usual in yours(0, usual)
    unheard = remembered.Known([question()], PLAIN, {"something new": 0.7})
    assert usual not in unheard(0, usual)


def test_the_longest_unused_are_forgotten_first():
    faults = frozenset({"a"})
    for n in range(3):
        known = remembered.Known([question(name=str(n))], PLAIN, {})
        known(0, faults)[faults] = np.ones(1000)
    remembered.Known([question(name="0")], PLAIN, {})  # used again
    remembered.forget(2 * (8000 + 2 * remembered.ENTRY))
    left = [
        faults in remembered.Known([question(name=str(n))], PLAIN, {})(0, faults)
        for n in range(3)
    ]
    assert left == [True, False, True]


def test_a_second_examination_says_the_same_and_simulates_no_more():
    def scores(q, k):
        return q @ np.swapaxes(k, -1, -2)

    def attention(q, k, v):
        s = scores(q, k)
        e = np.exp(s - s.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True) @ k  # and the values are keys

    def entries():
        return sum(map(len, remembered._tables.values()))

    first = examine(attention)
    size = entries()
    assert size > 100
    assert str(examine(attention)) == str(first)
    assert entries() == size


def test_what_is_kept_has_a_bound(monkeypatch):
    monkeypatch.setattr(remembered, "MOST_BYTES", 10_000)
    monkeypatch.setattr(remembered.forget, "__defaults__", (10_000,))
    examine(lambda q, k, v: q @ np.swapaxes(k, -1, -2) @ v)
    kept = sum(remembered._bytes(table) for table in remembered._tables.values())
    assert kept <= 10_000
