"""Exercises of lesson 17: checks graded by what they catch, and a smallest input."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch

from attnlib.attention import scaled_dot_product
from attnlib.clinic import arena
from attnlib.exercises import get, judge

HUNTS = ("mask_check", "bug_bash")


def friendly(seed=0, **sizes):
    s = {"n_q": 4, "n_k": 7, "d_k": 3, "d_v": 5} | sizes
    rng = np.random.default_rng(seed)
    shapes = (s["n_q"], s["d_k"]), (s["n_k"], s["d_k"]), (s["n_k"], s["d_v"])
    return [rng.normal(size=shape) for shape in shapes]


Q, K, V = friendly()
TRIANGLE = np.tri(4, 7, 3, dtype=bool)
RIGHT = scaled_dot_product(Q, K, V, TRIANGLE).out
CALLS: list[int] = []


# Answers as learners give them: (answer, status, words that must stand in the text).
def prints_only(attention):
    print(np.allclose(attention(Q, K, V), RIGHT))


def asserts(attention):
    assert np.allclose(attention(Q, K, V, TRIANGLE), RIGHT, atol=1e-4)


def turned_over(attention):
    return np.allclose(attention(Q, K, V, TRIANGLE), RIGHT, atol=1e-4)


def exact(attention):
    return not np.array_equal(attention(Q, K, V, TRIANGLE), RIGHT)


def narrow(attention):
    return not np.allclose(attention(Q, K, V, TRIANGLE), RIGHT, rtol=0, atol=1e-9)


def array(attention):
    return np.abs(attention(Q, K, V, TRIANGLE) - RIGHT) > 1e-4


def number(attention):
    return float(np.abs(attention(Q, K, V, TRIANGLE) - RIGHT).max())


def stages(attention):
    return not np.allclose(attention(Q, K, V).out, RIGHT)


def unpacked(attention):
    weights, _ = attention(Q, K, V, TRIANGLE)
    return not np.allclose(weights.sum(-1), 1)


def whole_attention_returned(attention):
    return attention


def never(attention):
    return False


def always(attention):
    return True


def endless(attention):
    while True:
        pass


def calls_for_ever(attention):
    while True:
        attention(Q, K, V)


def swallows(attention):
    while True:
        with contextlib.suppress(Exception):
            attention(Q, K, V)


def mask_of_numbers(attention):
    return not np.allclose(attention(Q, K, V, TRIANGLE * 1.0), RIGHT, atol=1e-4)


def mask_of_the_wrong_shape(attention):
    return not np.allclose(attention(Q, K, V, TRIANGLE.T), RIGHT, atol=1e-4)


def no_values(attention):
    return not np.allclose(attention(Q, K), RIGHT, atol=1e-4)


def keys_too_few(attention):
    try:
        return not np.allclose(attention(Q, K[:3], V), RIGHT, atol=1e-4)
    except Exception:
        return True


def nan_in_a_hidden_value(attention):
    return bool(np.isnan(attention(Q, K, V * np.nan, TRIANGLE)).any())


def remembers(attention):
    CALLS.append(1)
    return len(CALLS) % 2 == 0


def unseeded(attention):
    q, k, v = np.random.default_rng().normal(size=(3, 4, 4))
    return bool(np.abs(attention(q, k, v)).max() > 1.5)


def triangle(attention):
    return not np.allclose(attention(Q, K, V, TRIANGLE), RIGHT, rtol=0, atol=1e-4)


def no_mask(attention):
    right = scaled_dot_product(Q, K, V).out
    return not np.allclose(attention(Q, K, V), right, rtol=0, atol=1e-4)


def nan_for_empty_rows(attention):
    mask = TRIANGLE.copy()
    mask[1] = False
    return not np.isnan(attention(Q, K, V, mask)[1]).all()


def only_names(attention):
    return "M" in attention.__name__


def reads_the_caller(attention):
    """Cheats: looks at who calls instead of calling."""
    frame = sys._getframe(1)
    while "bug" not in frame.f_locals:
        frame = frame.f_back
    return bool(frame.f_locals["bug"].law)


def mask_of_two_axes_for_items(attention):
    q, k, v = np.stack([Q, Q]), np.stack([K, K]), np.stack([V, V])
    mask = np.arange(7) < np.array([7, 4])[:, None]
    return not np.allclose(attention(q, k, v, mask), 0, atol=1e-4)


def whole_number(attention):
    return int(np.abs(attention(Q, K, V, TRIANGLE) - RIGHT).max() > 1e-4)


def in_words(attention):
    return str(np.abs(attention(Q, K, V, TRIANGLE) - RIGHT).max() > 1e-4)


def listed(attention):
    return [shape_is_wrong(attention) for _ in range(3)]


def shape_is_wrong(attention):
    return attention(Q, K, V).shape != (4, 5)


def exits(attention):
    raise SystemExit


def not_written(attention):
    raise NotImplementedError


def two_arguments(attention, mask):
    return False


SLIPS = (
    (prints_only, "type", "returned None"),
    (asserts, "type", "returned None"),
    (turned_over, "wrong", "turned over"),
    (exact, "wrong", "It blames"),
    (narrow, "wrong", "float32 is off by rounding"),
    (array, "type", "True or False, but gave an ndarray"),
    (number, "type", "but gave a float"),
    (stages, "raised", "An error counts as an alarm"),
    (unpacked, "raised", "An error counts as an alarm"),
    (whole_attention_returned, "type", "but gave a function"),
    (never, "wrong", "says False to everyone"),
    (always, "wrong", "always cries wolf"),
    (calls_for_ever, "type", "more than 1000 times"),
    (mask_of_numbers, "type", "mask must be boolean"),
    (mask_of_the_wrong_shape, "type", "cannot take"),
    (no_values, "raised", "An error counts as an alarm"),
    (keys_too_few, "type", "cannot take: n_k is 3 in k"),
    (nan_in_a_hidden_value, "type", "v has NaN"),
    (remembers, "type", "saw the same attention a second time"),
    (unseeded, "type", "Seed its numbers"),
    (no_mask, "wrong", "Got away:"),
    (triangle, "wrong", "Got away"),
    (nan_for_empty_rows, "wrong", "It blames all 15"),
    (only_names, "wrong", "says False to everyone"),
    (reads_the_caller, "wrong", "never calls a right attention"),
    (mask_of_two_axes_for_items, "type", "mask (2, 7) does not fit scores (2, 4, 7)"),
    (whole_number, "type", "Compare it with a tolerance, or wrap it in bool()"),
    (in_words, "type", "but gave a str."),
    (listed, "type", "Is .any() or .all() missing?"),
    (shape_is_wrong, "wrong", "Got away"),
    (exits, "raised", "ends the program"),
    (not_written, "not started", "not started yet"),
    (two_arguments, "type", "It should be called as"),
    (None, "type", "The answer is None"),
    (0.93, "type", "The answer is a float"),
    ([triangle], "type", "The answer is a list"),
    (arena.score(triangle), "type", "The answer is a Score"),
)


@pytest.mark.parametrize("row", SLIPS, ids=lambda row: getattr(row[0], "__name__", ""))
@pytest.mark.parametrize("name", HUNTS)
def test_each_wrong_answer_is_told_what_is_wrong(name, row):
    answer, status, words = row
    CALLS.clear()
    verdict = judge(name, answer)
    assert (verdict.status, words in verdict.text) == (status, True), verdict.text
    assert len(verdict.text.splitlines()) <= 14


@pytest.mark.parametrize("answer", [endless, swallows])
def test_what_does_not_end_is_stopped(answer, monkeypatch):
    monkeypatch.setattr(arena, "LIMIT", 0.3)
    start = time.monotonic()
    assert judge("bug_bash", answer).status in ("timeout", "type")
    assert time.monotonic() - start < 10


def test_what_is_only_slow_is_told_how_far_it_got(monkeypatch):
    def slow(attention):
        until = time.process_time() + 0.03  # who only sleeps, may be held up by others
        while time.process_time() < until:
            pass
        return shape_is_wrong(attention)

    monkeypatch.setattr(arena, "LIMIT", 1.0)
    verdict = judge("bug_bash", slow)
    assert verdict.status == "timeout"
    assert "times of 118" in verdict.text
    assert "fewer calls" in verdict.text


@pytest.mark.parametrize("name", HUNTS)
@pytest.mark.parametrize("seed", range(8))
def test_the_solution_passes_on_every_seed(name, seed):
    assert judge(name, get(name).solution, seed).passed


def test_every_hidden_bug_is_caught_by_the_solution():
    verdict = judge("bug_bash", get("bug_bash").solution)
    assert "44 of 44" in verdict.text
    assert "at large" not in verdict.text


def by_laws(attention):
    """Another way to mask_check: what is hidden may change, an empty row is zeros."""
    q, k, v = (np.stack([a, a + 0.25]) for a in friendly(3))
    mask = np.random.default_rng(5).random((2, 4, 7)) < 0.6
    mask[1, 2] = False
    out = attention(q, k, v, mask)
    for item in range(2):
        for i in range(4):
            seen = mask[item, i]
            alone = np.zeros(5)
            if seen.any():
                alone = attention(q[item, i : i + 1], k[item][seen], v[item][seen])[0]
            if not np.allclose(out[item, i], alone, rtol=0, atol=1e-4):
                return True
    return False


def test_laws_alone_are_an_answer_too():
    verdict = judge("mask_check", by_laws)
    assert verdict.passed, verdict.text


def test_one_truth_value_in_an_array_or_a_tensor_is_an_answer():
    def of_numpy(attention):
        return np.array(by_laws(attention))

    def of_torch(attention):
        return torch.tensor(by_laws(attention))

    assert judge("mask_check", of_numpy).passed
    assert judge("mask_check", of_torch).passed


def test_a_judgement_is_the_same_each_time():
    def drawn(attention):  # from the global state, as learners do
        return np.random.rand() < 0.5  # noqa: NPY002

    first = judge("bug_bash", drawn).text
    np.random.seed(77)  # noqa: NPY002
    assert judge("bug_bash", drawn).text == first
    assert "a second time" not in first


def test_the_start_that_the_lesson_gives_catches_as_many_as_it_says():
    lesson = Path(__file__).parents[1] / "notebooks" / "17_bug_bash.ipynb"
    space: dict[str, object] = {}
    with np.printoptions():  # the setup cell changes them
        for cell in nbformat.read(lesson, 4).cells:
            if cell.source.startswith("## Who sees what"):
                break
            if cell.cell_type == "code":
                exec(cell.source, space)
    laws = space["laws"]

    def start(attention):
        return any(law(attention) for law in laws.values())

    verdict = judge("bug_bash", start)
    assert verdict.status == "wrong"
    assert "38 of 44" in verdict.text


def test_what_got_away_is_named_and_explained():
    text = judge("bug_bash", triangle).text
    assert "M11 fill -10 000" in text
    assert "Law: " in text
    assert "; 90% is wanted" in text


# --- the smallest input -----------------------------------------------------------
ROWS, ONE = np.array([[0.0], [-800.0]]), np.ones((1, 1))
BATCH = ROWS[:, :, None]


@pytest.mark.parametrize(
    "answer",
    [
        (ROWS, ONE, ONE),
        [ROWS, ONE, ONE],
        ([[0], [-900]], [[1]], [[3]]),
        (-ROWS, -ONE, ONE),
        (ROWS / 10, 10 * ONE, ONE),
        (ROWS, ONE, ONE, None),
        (BATCH, ONE, ONE),
        (ROWS.astype(np.float32), ONE, ONE),
    ],
)
def test_four_numbers_in_any_form_pass(answer):
    verdict = judge("smallest_input", answer)
    assert verdict.passed, verdict.text


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (..., "not started", "not started yet"),
        (None, "type", "as a tuple"),
        (ROWS, "type", "as a tuple"),
        ((ROWS, ONE), "type", "as a tuple"),
        ({"q": ROWS, "k": ONE, "v": ONE}, "type", "as a tuple"),
        (4, "type", "as a tuple"),
        ((ROWS, np.ones((1, 2)), ONE), "type", "takes this: d_k is 1 in q"),
        ((ROWS[:, 0], ONE, ONE), "type", "No attention takes this"),
        ((ROWS + np.inf, ONE, ONE), "type", "has NaN"),
        ((ROWS * 1e6, ONE, ONE), "type", "larger than 1,000,000"),
        (("a", "b", "c"), "type", "array of numbers"),
        ((ROWS[:0], ONE, ONE), "type", "one at least"),
        ((ROWS / 10, ONE, ONE), "wrong", "Wrong and right agree on it"),
        ((ROWS[1:], ONE, ONE), "wrong", "cannot be seen"),
        ((0 * ROWS - 800, ONE, ONE), "wrong", "cannot be seen"),
        ((ROWS, np.ones((2, 1)), np.ones((2, 1))), "wrong", "are 6 numbers in it"),
        ((np.repeat(ROWS, 2, 1), np.ones((1, 2)), ONE), "wrong", "7 numbers"),
        ((ROWS, ONE, ONE, np.ones((2, 1), bool)), "wrong", "are 6 numbers"),
    ],
)
def test_other_inputs_are_told_why(answer, status, words):
    verdict = judge("smallest_input", answer)
    assert (verdict.status, words in verdict.text) == (status, True), verdict.text


def test_no_input_with_three_numbers_exists():
    # Fewer than two queries, or two items: then there is one row, and one maximum.
    bug = get("smallest_input").bug.attention
    rng = np.random.default_rng(0)
    for scale in (1.0, 1e3, 1e6):
        q, k, v = (scale * rng.normal(size=(3, 50, 1, 1))).astype(float)
        for one in zip(q, k, v, strict=True):
            right = scaled_dot_product(*one).out
            np.testing.assert_allclose(bug(*one), right, rtol=1e-12)
