"""Lesson 07: its exercises as a whole, and the head that follows the speech."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnlib.exercises import get, judge, names
from attnlib.results import stored

LESSON = ("cross_attention", "patches", "best_aligned_head")


def test_the_lesson_has_these_exercises_and_their_minutes_fit_into_its_hour():
    assert set(names(7)) == set(LESSON)
    assert sum(get(name).minutes for name in LESSON) == 22


@pytest.mark.parametrize(
    "answer",
    [
        (2, 1),
        [2, 1],
        np.array([2, 1]),
        np.array([[2, 1]]),
        (np.int64(2), np.int64(1)),
        (np.array([2]), np.array([1])),  # np.nonzero
        ((2, 1),),
        torch.tensor([[2, 1]]),
        (torch.tensor(2), torch.tensor(1)),
        divmod(13, 6),
    ],
)
def test_the_head_may_be_written_in_any_way(answer):
    assert judge("best_aligned_head", answer).passed


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((3, 3), "count words"),
        ((1, 5), "The pause costs it a word"),
        ((3, 5), "The pause costs it a word"),
        ((1, 2), "First the layer"),
        ((0, 4), "Order is not alignment"),
        (13, "np.unravel_index(13, (4, 6))"),
        (20, "which head it is"),
        ((3, 2), "count from 0"),
        (2.1, "as a tuple"),
        ("2.1", "a tuple of 2"),
        (11, "Add the words with the pause"),
        (10, "which head it is"),
        (np.array([[1, 5], [2, 1], [3, 5]]), "Three heads have 10"),
        ((np.array([1, 2, 3]), np.array([5, 1, 5])), "Three heads have 10"),
        ([[2, 1], [3, 3]], "Two heads have 10"),
        ((1, 2, 3), "a tuple of 2"),
        ((2, True), "number 2"),
        ((0, 0), "not"),
    ],
)
def test_a_wrong_head_is_told_why(answer, said):
    verdict = judge("best_aligned_head", answer)
    assert not verdict.passed
    assert said in verdict.text


def hits():
    """How many words each head has inside: without the pause, and with it."""
    voice = stored("whisper_words")
    begins = np.array(voice["settings"]["begins_ms"]) / 1000
    ends = np.append(begins[1:], voice["settings"]["ends_ms"] / 1000)
    later = np.arange(10) >= voice["settings"]["pause_before"]
    tables = []
    for name, shift in (("best_frame", 0), ("best_frame_paused", later)):
        seconds = (np.array(voice[name]) + 0.5) * 0.02
        hit = (seconds >= begins + shift) & (seconds < ends + shift)
        tables.append(hit.sum(-1))
    return tables


def test_the_right_head_is_the_one_in_the_stored_numbers():
    total = sum(hits())
    best = np.argwhere(total == total.max())
    assert best.tolist() == [list(get("best_aligned_head").right)]
    assert total.max() == 20


def test_the_shown_heads_are_those_of_the_stored_numbers():
    first, paused = hits()
    shown = [m.value.tolist() for m in get("best_aligned_head").wrong if is_array(m)]
    for table, sides in ((first, shown[:2]), (paused, shown[2:])):
        best = np.argwhere(table == 10)
        assert sides == [best.tolist(), best.T.tolist()]
    assert np.argmax(first) == 11
    assert max(first.max(), paused.max()) == 10


def is_array(misconception):
    return isinstance(misconception.value, np.ndarray)
