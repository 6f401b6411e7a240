"""Lesson 02: answers as people write them, right and wrong, and what they are told."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest

from attnlib import diagnostics
from attnlib.exercises import get, judge, names
from attnlib.exercises.lesson_02 import SIZES, score_with
from attnlib.shapes import ShapeError

LESSON = ("predicted_std", "five_divisors", "entropy")


def test_the_lesson_has_these_exercises_and_their_minutes_fit_into_its_text():
    assert set(names(2)) == set(LESSON)
    assert sum(get(name).minutes for name in LESSON) == 18


# --- right answers written another way --------------------------------------------
def std_by_variance(d_k, std_q, std_k):
    return (d_k * std_q**2 * std_k**2) ** 0.5


def std_in_float32(d_k, std_q, std_k):
    return np.float32(std_q) * np.float32(std_k) * np.sqrt(np.float32(d_k))


def entropy_by_sum_of_kept(weights):
    """A loop over rows that leaves the zeros out."""
    rows = weights.reshape(-1, weights.shape[-1])
    found = [-sum(w * math.log(w) for w in row if w > 0) for row in rows]
    return np.array(found).reshape(weights.shape[:-1])


def entropy_by_nansum(weights):
    with np.errstate(divide="ignore", invalid="ignore"):
        return -np.nansum(weights * np.log(weights), axis=-1)


def entropy_with_epsilon(weights):
    return -(weights * np.log(weights + 1e-12)).sum(-1)


def entropy_by_where(weights):
    logs = np.zeros_like(weights)
    np.log(weights, out=logs, where=weights > 0)
    return np.einsum("...k,...k->...", weights, -logs)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("predicted_std", std_by_variance),
        ("predicted_std", std_in_float32),
        ("predicted_std", lambda d, a, b: np.sqrt(d * (a * b) ** 2)),
        ("entropy", diagnostics.entropy),
        ("entropy", entropy_by_sum_of_kept),
        ("entropy", entropy_by_nansum),
        ("entropy", entropy_with_epsilon),
        ("entropy", entropy_by_where),
        ("entropy", lambda w: diagnostics.entropy(w.astype(np.float32))),
    ],
)
def test_another_right_way_passes(name, answer, seed):
    verdict = judge(name, answer, seed)
    assert verdict.passed, verdict.text


# --- wrong answers, as people write them ------------------------------------------
def safe_log(w):
    return np.log(np.where(w > 0, w, 1))


def filtered(w):
    """The filter flattens: no rows are left."""
    kept = w[w > 0]
    return -(kept * np.log(kept)).sum(axis=-1)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("name", "answer", "key"),
    [
        ("predicted_std", lambda d, a, b: d * a**2 * b**2, "variance_for_std"),
        ("predicted_std", lambda d, a, b: d * a * b, "std_grows_as_d_k"),
        ("predicted_std", lambda d, a, b: a * b, "std_does_not_grow"),
        ("predicted_std", lambda d, a, b: a * b / d**0.5, "std_shrinks"),
        ("predicted_std", lambda d, a, b: d**0.5, "stds_taken_as_one"),
        ("predicted_std", lambda d, a, b: d**0.5 * a, "std_of_q_only"),
        ("predicted_std", lambda d, a, b: d**0.5 * (a + b), "stds_added"),
        (
            "predicted_std",
            lambda d, a, b: (d * (a * a + b * b)) ** 0.5,
            "variances_added",
        ),
        ("predicted_std", lambda d, a, b: (d * a * b) ** 0.5, "stds_under_the_root"),
        (
            "predicted_std",
            lambda d, a, b: d**0.5 * a**2 * b**2,
            "variances_outside_the_root",
        ),
        ("entropy", lambda w: -(w * np.log(w)).sum(-1), "log_of_zero"),
        ("entropy", lambda w: (w * safe_log(w)).sum(-1), "minus_missing"),
        (
            "entropy",
            lambda w: -(w * np.log2(np.where(w > 0, w, 1))).sum(-1),
            "log_base_two",
        ),
        (
            "entropy",
            lambda w: -(w * np.log10(np.where(w > 0, w, 1))).sum(-1),
            "log_base_ten",
        ),
        ("entropy", lambda w: -(w * safe_log(w)).sum(), "sum_over_everything"),
        ("entropy", filtered, "sum_over_everything"),
        (
            "entropy",
            lambda w: -(w * safe_log(w)).sum(-1, keepdims=True),
            "entropy_axis_kept",
        ),
        ("entropy", lambda w: -(w * safe_log(w)).sum(0), "sum_over_first_axis"),
        ("entropy", lambda w: -(w * safe_log(w)).mean(-1), "mean_for_sum"),
        ("entropy", lambda w: -(w * safe_log(w)), "sum_missing"),
        ("entropy", lambda w: -safe_log(w).sum(-1), "weight_factor_missing"),
        ("entropy", diagnostics.effective_keys, "effective_keys_for_entropy"),
        (
            "entropy",
            lambda w: diagnostics.entropy(w) / np.log(w.shape[-1]),
            "entropy_normalised",
        ),
    ],
)
def test_a_wrong_answer_is_named(name, answer, key, seed):
    verdict = judge(name, answer, seed)
    assert verdict.status == "mistake", verdict.text
    assert [m.key for m in verdict.mistakes] == [key]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("name", "answer", "found"),
    [
        (
            "predicted_std",
            lambda d, a, b: d * (a + b),
            {"std_grows_as_d_k", "stds_added"},
        ),
        (
            "entropy",
            lambda w: (w * np.log(w)).sum(-1),
            {"log_of_zero", "minus_missing"},
        ),
        (
            "entropy",
            lambda w: -(w * np.log2(w)).sum(-1),
            {"log_of_zero", "log_base_two"},
        ),
    ],
)
def test_two_mistakes_at_once_are_both_named(name, answer, found, seed):
    assert {m.key for m in judge(name, answer, seed).mistakes} == found


@pytest.mark.parametrize(
    ("name", "answer", "number"),
    [
        (
            "predicted_std",
            lambda d, a, b: d * a * b,
            "4 times the right one, and √d_k is",
        ),
        (
            "predicted_std",
            lambda d, a, b: a * b,
            "0.25 times the right one, and 1/√d_k",
        ),
        (
            "predicted_std",
            lambda d, a, b: d * (a * b) ** 2,
            "36, and its root is right",
        ),
        ("entropy", lambda w: -(w * np.log(w)).sum(-1), "nan at [0], for a row with 3"),
        (
            "entropy",
            lambda w: -(w * safe_log(w)).mean(-1),
            "right one: 1/3, with 3 keys",
        ),
        (
            "entropy",
            lambda w: diagnostics.entropy(w) / np.log(2),
            "1.443 times the right one, and 1 / ln 2 is",
        ),
    ],
)
def test_a_number_gives_the_mistake_away(name, answer, number):
    assert number in judge(name, answer).text


def test_those_who_filtered_learn_what_a_filter_does():
    assert "one flat list" in judge("entropy", filtered).text


# --- answers that are nearly right ------------------------------------------------
def simulated(rng):
    def answer(d_k, std_q, std_k):
        q = rng.normal(scale=std_q, size=(2000, d_k))
        k = rng.normal(scale=std_k, size=(2000, d_k))
        return (q * k).sum(axis=1).std()

    return answer


def test_a_simulation_is_told_that_it_is_one():
    verdict = judge("predicted_std", simulated(np.random.default_rng(0)))
    assert verdict.status == "law"
    assert "Called twice" in verdict.text
    assert "a formula is meant" in verdict.text


def test_a_simulation_with_a_seed_is_told_so_as_well():
    def answer(*args):
        return simulated(np.random.default_rng(0))(*args)

    verdict = judge("predicted_std", answer)
    assert verdict.status == "law"
    assert "If you measured it: a formula is meant" in verdict.text


def test_a_wrong_formula_is_not_called_a_measurement():
    verdict = judge("predicted_std", lambda d, a, b: 2 * a * b * d**0.5)
    assert verdict.status == "differs"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("least", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("both", [True, False])
def test_a_clip_is_not_right_where_weights_are_small(least, both, seed):
    def clipped(w):
        safe = np.clip(w, least, 1)
        return -((safe if both else w) * np.log(safe)).sum(axis=-1)

    verdict = judge("entropy", clipped, seed)
    assert not verdict.passed
    if not both:
        assert "Only 0 needs help with its logarithm" in verdict.text


def test_an_unknown_mistake_is_not_given_a_name():
    verdict = judge("entropy", lambda w: np.ptp(w, axis=-1))
    assert verdict.status == "differs"
    assert not verdict.mistakes


# --- the five heads ------------------------------------------------------------------
def measured(letter, d_model, d_k, n_k):
    rng = np.random.default_rng(11)
    x, y = rng.normal(size=(60, d_model)), rng.normal(size=(n_k, d_model))
    W_q, W_k = rng.normal(size=(2, d_model, d_k)) / np.sqrt(d_model)
    return float(score_with(letter, x, y, W_q, W_k).std())


def test_the_answer_can_be_found_by_measuring():
    d_model, d_k, n_k = SIZES["d_model"], SIZES["d_k"], SIZES["n_k"]
    wanted = [1, d_k**0.5, d_model**0.5, d_k, n_k**0.5]
    stds = {letter: measured(letter, d_model, d_k, n_k) for letter in "ABCDE"}
    order = "".join(
        min(stds, key=lambda letter: abs(stds[letter] - d_k**0.5 / divisor))
        for divisor in wanted
    )
    assert judge("five_divisors", order).passed
    assert judge("five_divisors", order.lower()).passed
    for same in (" ".join(order), ", ".join(order), list(order), tuple(order)):
        assert judge("five_divisors", same).passed


def test_the_sizes_of_the_lesson_hide_three_of_them():
    shown = [f"{measured(letter, 64, 64, 64):.2f}" for letter in "ABCDE"]
    assert sorted(shown.count(text) for text in set(shown)) == [1, 1, 3]


def test_every_wrong_order_gets_a_number_and_none_gets_the_answer():
    right = get("five_divisors").right
    for letters in permutations("ABCDE"):
        order = "".join(letters)
        verdict = judge("five_divisors", order)
        assert verdict.passed == (order == right)
        assert right not in verdict.text
        assert verdict.passed or "scores of std" in verdict.text


@pytest.mark.parametrize("answer", ["", "BE", "AABBC", "BEACDB", "?", "BBBBB", []])
def test_letters_that_are_no_order_of_five_learn_what_is_wanted(answer):
    verdict = judge("five_divisors", answer)
    assert verdict.status == "wrong"
    assert "Five letters are wanted, each of A to E once" in verdict.text


@pytest.mark.parametrize("answer", [3, None, {"A": 1}, [1, 2]])
def test_an_answer_that_is_no_text_is_told_so(answer):
    assert judge("five_divisors", answer).status == "type"


def test_a_head_that_does_not_exist_is_refused():
    x, W = np.ones((2, 3)), np.ones((3, 4))
    with pytest.raises(ValueError, match=r"five heads, A to E, but you asked for 'F'"):
        score_with("F", x, x, W, W)


def test_a_head_refuses_sizes_that_do_not_fit():
    x, W = np.ones((2, 3)), np.ones((3, 4))
    with pytest.raises(ShapeError, match="d_model"):
        score_with("A", np.ones((2, 5)), x, W, W)
