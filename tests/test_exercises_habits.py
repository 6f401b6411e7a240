"""Habits of other libraries, and numbers that are all off in one simple way."""

from __future__ import annotations

import numpy as np
import pytest

from attnlib import diagnostics
from attnlib.clinic.case import Outcome
from attnlib.exercises import get, judge, pattern

weights = np.array([0.5, 0.3, 0.2])  # as the lesson's own cells leave them
values = np.array([10.0, 20.0, 40.0])
d_k = 2


def right(name, *args):
    return get(name).solution(*args)


def soft(x, axis=-1):
    return right("softmax", x, axis)


# --- errors -------------------------------------------------------------------------
def dim(x, axis=-1):
    return x / x.sum(dim=axis)


def keepdim(x, axis=-1):
    return x / np.sum(x, axis=axis, keepdim=True)


def method(x, axis=-1):
    return x.exp()


def numpy_softmax(x, axis=-1):
    return np.softmax(x, axis=axis)


def own_max(x, axis=-1):
    return x - max(x)


def own_if(x, axis=-1):
    if x > 0:
        return x
    return -x


def torch_name(x, axis=-1):
    return torch.softmax(x, dim=axis)  # noqa: F821


def one_exp(x, axis=-1):
    import math

    return math.exp(x)


def sizes(q, k, v):
    return soft(q / q.size(-1)), v


def shape_called(q, k, v):
    return soft(q / q.shape(-1)), v


def two_sizes(x, axis=-1):
    return x / x.shape[1]


def turned(q, k, v):
    scores = q @ k.transpose(-2, -1)
    return scores, scores @ v


def turned_in_three(q, k, v):
    scores = q @ k.transpose(0, 2, 1)
    return scores, scores @ v


def turned_all(q, k, v):
    scores = soft(q @ np.transpose(k))
    return scores, scores @ v


def bare_pinv(scores, X):
    return np.linalg.norm(scores - X @ np.pinv(X))


def power(d_k, std_q, std_k):
    return d_k ^ 0.5 * std_q * std_k


def no_import(d_k, std_q, std_k):
    return math.sqrt(d_k)  # noqa: F821


def loops(weights):
    return np.array([-sum(w * np.log(w) for w in row if w > 0) for row in weights])


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("softmax", dim, "NumPy says `axis` and `keepdims`"),
        ("softmax", keepdim, "NumPy says `axis` and `keepdims`"),
        ("softmax", method, "NumPy writes np.exp(x)"),
        ("softmax", numpy_softmax, "NumPy has no softmax"),
        ("softmax", own_max, "Use np.max, with `axis`"),
        ("softmax", own_if, "one True or False"),
        ("softmax", torch_name, "That is PyTorch"),
        ("softmax", one_exp, "For arrays: np.exp"),
        ("softmax", two_sizes, "Count sizes from the end"),
        ("scaled_dot_product", sizes, "`.size` is a number in NumPy"),
        ("scaled_dot_product", shape_called, "`.shape` is no function"),
        ("scaled_dot_product", turned, "np.swapaxes(k, -1, -2)"),
        ("scaled_dot_product", turned_in_three, "np.swapaxes(k, -1, -2)"),
        ("scaled_dot_product", turned_all, "np.swapaxes(k, -1, -2)"),
        ("distance_to_possible", bare_pinv, "It is np.linalg.pinv"),
        ("predicted_std", power, "Write `**`"),
        ("predicted_std", no_import, "`import math`"),
        ("entropy", loops, "Work along the last axis"),
    ],
)
def test_a_habit_is_explained(name, answer, words):
    verdict = judge(name, answer)
    assert verdict.status == "raised", verdict.text
    assert words in verdict.text, verdict.text
    assert len(verdict.text.splitlines()) <= 3


# --- all numbers off in one way -------------------------------------------------------
def with_d_k_of_the_notebook(q, k, v):
    w = soft(q @ np.swapaxes(k, -1, -2) / np.sqrt(d_k + 0.5))
    return w, w @ v


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("weighted_mean", lambda w, v: 19.0, "Yours gives 19 in every case."),
        ("weighted_mean", lambda w, v: w @ v / 3, "yours is 0.333 times the right"),
        ("weighted_mean", lambda w, v: w @ v + 1, "In every case yours is 1 more"),
        ("weighted_mean", lambda w, v: w @ v - 1, "In every case yours is 1 less"),
        ("weighted_mean", lambda w, v: int(w @ v), "cut off to whole ones"),
        ("weighted_mean", lambda w, v: round(w @ v, 1), "rounded to 1 decimal."),
        ("softmax", lambda x, axis=-1: soft(x, axis).round(3), "to 3 decimals."),
        ("entropy", lambda w: right("entropy", w).round(2), "rounded to 2 decimals."),
        (
            "entropy",
            lambda w: diagnostics.entropy(w.astype(np.float16)).astype(np.float16),
            "It is float16",
        ),
        (
            "entropy",
            lambda w: right("entropy", w) + 5e-4 * w.max(-1),
            "Nearly right: nowhere off by more than 0.0005.",
        ),
    ],
)
def test_what_all_cases_have_in_common_is_said(name, answer, words):
    verdict = judge(name, answer)
    assert not verdict.passed
    assert words in verdict.text, verdict.text
    assert "I know no such mistake" not in verdict.text


@pytest.mark.parametrize(
    ("divisor", "factor"),
    [(lambda d: d**1 / 2, 1), (lambda d: (2 * d) ** 0.5, 0.5), (np.log, 1.443)],
)
def test_another_scale_is_measured(divisor, factor):
    def answer(q, k, v):
        w = soft(q @ np.swapaxes(k, -1, -2) / divisor(q.shape[-1]))
        return w, w @ v

    said = judge("scaled_dot_product", answer).text
    assert f"softmax of {factor} * q @ kᵀ, where 1/√d_k is 0.707 (a small one" in said


def test_no_scale_is_measured_where_something_else_is_wrong():
    def answer(q, k, v):
        w = soft(-abs(q @ np.swapaxes(k, -1, -2)))
        return w, w @ v

    assert "softmax of" not in judge("scaled_dot_product", answer).text


def test_numbers_that_differ_late_are_shown_so_that_they_differ():
    def answer(w):
        return right("entropy", w) + 2e-4 * w.max(-1) * (w.ndim > 1)

    yours, expected = judge("entropy", answer).text.splitlines()[-2:]
    assert yours.split("= ")[1] != expected.split("= ")[1]


def test_a_row_that_sums_to_nearly_one_is_shown_with_its_digits():
    def answer(x, axis=-1):
        return soft(x, axis) * 1.0004 + 0 * x.clip(-1, 1)

    assert (
        "One of your rows sums to 1.00040. Is someth" in judge("softmax", answer).text
    )


def test_no_pattern_is_seen_in_shapes_that_differ_or_in_nan():
    good = [Outcome((np.arange(3.0),))]
    for mine in (np.arange(4.0), np.array([0.0, np.nan, 2.0]), np.array([True] * 3)):
        assert pattern.plain([Outcome((mine,))], good) == ""
        assert pattern.everywhere([Outcome((mine,))], good) == ""


def test_numbers_of_any_size_make_no_warning():
    for size in (1e308, -1e308, 1e-308):
        verdict = judge("softmax", lambda x, axis=-1, s=size: np.sign(x.clip(-1)) * s)
        assert not verdict.passed


@pytest.mark.parametrize(
    ("name", "answer", "names"),
    [
        ("weighted_mean", lambda w, v: np.sum(weights * values), "`weights` and `valu"),
        ("scaled_dot_product", with_d_k_of_the_notebook, "(`d_k`: from the notebook"),
    ],
)
def test_what_comes_from_the_notebook_is_pointed_at(name, answer, names):
    said = judge(name, answer).text
    assert names in said, said
    assert said.endswith("the same in every case. Use the arguments.)")


def test_a_right_answer_may_use_a_constant_of_its_own():
    space = {"np": np, "ZERO": 0}
    exec("def weighted_mean(w, v):\n    return ZERO + w @ v", space)
    verdict = judge("weighted_mean", space["weighted_mean"])
    assert verdict.passed
    assert "notebook" not in verdict.text
