"""Slips of lessons 00 to 02 as people write them: each gets its name, not another's."""

from __future__ import annotations

import numpy as np
import pytest

from attnlib.exercises import judge


def turned(a):
    return np.swapaxes(a, -1, -2)


def soft(x, axis=-1, largest=None, total=None):
    """A right softmax, or one with another shift or another sum."""
    top = np.max(x, axis=axis, keepdims=True) if largest is None else largest(x)
    with np.errstate(all="ignore"):
        e = np.exp(x - top)
        return np.nan_to_num(
            e / (e.sum(axis, keepdims=True) if total is None else total(e))
        )


def default_zero(x, axis=0):
    return soft(x, axis)


def clipped(x, axis=-1):
    e = np.exp(np.clip(x, -700, 700))
    return e / e.sum(axis=axis, keepdims=True)


def one_infinity(x, axis=-1):
    hidden = np.isinf(x).any(axis=axis, keepdims=True)
    return np.where(hidden, 0.0, soft(x, axis))


def unshifted(x, axis=-1):
    return soft(x, axis, lambda x: 0.0)


SOFTMAX = (
    (default_zero, {"axis_default_zero"}),
    (clipped, {"scores_clipped"}),
    (one_infinity, {"infinity_empties_row"}),
    (unshifted, {"not_stable", "nan_replaced"}),
    (lambda x, axis=-1: soft(x, -1, lambda x: x.max(axis, keepdims=True)), None),
    (
        lambda x, axis=-1: soft(x, axis, total=lambda e: e.sum(-1, keepdims=True)),
        {"axis_in_max_only"},
    ),
    (
        lambda x, axis=-1: soft(x, axis, lambda x: x.max(-1, keepdims=True)),
        {"axis_in_sum_only"},
    ),
    (
        lambda x, axis=-1: soft(x, axis, lambda x: x.mean(axis, keepdims=True)),
        {"shift_mean", "nan_replaced"},
    ),
    (
        lambda x, axis=-1: soft(x, axis, lambda x: x.min(axis, keepdims=True)),
        {"shift_smallest", "nan_replaced"},
    ),
    (
        lambda x, axis=-1: soft(x, axis, lambda x: abs(x).max(axis, keepdims=True)),
        {"shift_absolute"},
    ),
    (
        lambda x, axis=-1: (x == x.max(axis, keepdims=True)) * 1.0,
        {"largest_only"},
    ),
    (
        lambda x, axis=-1: soft(x / x.max(axis, keepdims=True), axis),
        {"divides_by_largest", "nan_replaced"},
    ),
)


def reversed_shift(x, axis=-1):
    e = np.exp(x.max(axis, keepdims=True) - x)
    return np.nan_to_num(e / e.sum(axis, keepdims=True))


def logarithms(x, axis=-1):
    top = np.maximum(x.max(axis, keepdims=True), -1e300)
    return x - top - np.log(np.exp(x - top).sum(axis, keepdims=True))


SOFTMAX = (
    *SOFTMAX,
    (reversed_shift, {"shift_reversed", "nan_replaced"}),
    (logarithms, {"log_softmax", "empty_row_nan"}),
    (lambda x, axis=-1: np.log(soft(x, axis)), {"log_of_weights"}),
)
DOTS = (
    (lambda q, k: q @ turned(k) / np.sqrt(2), "scale_of_the_example"),
    (lambda q, k: q @ turned(k) / np.sqrt(4), "scale_of_the_example_d_model"),
    (
        lambda q, k: (
            q @ k.reshape(*k.shape[:-2], *k.shape[:-3:-1]) / q.shape[-1] ** 0.5
        ),
        "key_reshaped",
    ),
    (
        lambda q, k: (
            (q / np.linalg.norm(q, axis=-1, keepdims=True))
            @ turned(k / np.linalg.norm(k, axis=-1, keepdims=True))
            / q.shape[-1] ** 0.5
        ),
        "cosine",
    ),
    (
        lambda q, k: (
            q @ turned(k) / q.shape[-1] ** 0.5
            + np.triu(np.full((q.shape[-2], k.shape[-2]), -np.inf), 1)
        ),
        "causal_unasked",
    ),
)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("answer", "keys"), SOFTMAX)
def test_a_slip_in_softmax(answer, keys, seed):
    verdict = judge("softmax", answer, seed)
    assert not verdict.passed
    if keys is not None:
        assert {m.key for m in verdict.mistakes} == keys, verdict.text


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("scores", "key"), DOTS)
def test_a_slip_in_the_scores(scores, key, seed):
    def answer(q, k, v):
        weights = soft(scores(q, k))
        return weights, weights @ v

    verdict = judge("scaled_dot_product", answer, seed)
    assert [m.key for m in verdict.mistakes] == [key], verdict.text


@pytest.mark.parametrize(
    ("mixed", "key"),
    [
        (lambda s, w, k, v: s @ v, "scores_mixed"),
        (lambda s, w, k, v: w @ v / k.shape[-1] ** 0.5, "out_scaled"),
    ],
)
def test_a_slip_in_the_output(mixed, key):
    def answer(q, k, v):
        scores = q @ turned(k) / q.shape[-1] ** 0.5
        weights = soft(scores)
        return weights, mixed(scores, weights, k, v)

    verdict = judge("scaled_dot_product", answer)
    assert [m.key for m in verdict.mistakes] == [key], verdict.text


def onto(X):
    return X @ np.linalg.pinv(X)


def by_qr(S, X):
    Q = np.linalg.qr(X).Q
    return np.linalg.norm(S - Q @ Q.T @ S @ Q @ Q.T)


def rest(S, X):
    return S - onto(X) @ S @ onto(X)


def first_in_loop(w, v):
    total = 0.0
    for one, value in zip(w, v, strict=True):
        total += one * value
        return total


def last_in_loop(w, v):
    for one, value in zip(w, v, strict=True):
        total = one * value
    return total


norm = np.linalg.norm
OTHERS = (
    ("weighted_mean", first_in_loop, "first_product_only"),
    ("weighted_mean", last_in_loop, "last_product_only"),
    ("weighted_mean", lambda w, v: (w * v)[:-1].sum(), "last_left_out"),
    ("weighted_mean", lambda w, v: (w * v)[1:].sum(), "first_left_out"),
    ("weighted_mean", lambda w, v: w @ v / v.sum(), "divided_by_values"),
    ("weighted_mean", lambda w, v: soft(w) @ v, "weights_through_softmax"),
    (
        "distance_to_possible",
        lambda S, X: norm(S - onto(X) @ (onto(X) @ S).T),
        "turned_on_the_way",
    ),
    (
        "distance_to_possible",
        lambda S, X: norm(S - (onto(X) @ S + S @ onto(X)) / 2),
        "sides_averaged",
    ),
    (
        "distance_to_possible",
        lambda S, X: np.hypot(norm(S - onto(X) @ S), norm(S - S @ onto(X))),
        "sides_measured_apart",
    ),
    (
        "distance_to_possible",
        lambda S, X: norm((np.eye(len(X)) - onto(X)) @ S @ (np.eye(len(X)) - onto(X))),
        "both_outside",
    ),
    ("distance_to_possible", by_qr, "columns_taken_as_independent"),
    (
        "distance_to_possible",
        lambda S, X: norm(rest(S, X)) / norm(S),
        "distance_relative",
    ),
    (
        "distance_to_possible",
        lambda S, X: np.sqrt(np.sum(rest(S, X)) ** 2),
        "sum_before_squares",
    ),
    (
        "distance_to_possible",
        lambda S, X: np.mean(abs(rest(S, X))),
        "differences_averaged",
    ),
    ("predicted_std", lambda d, q, k: d**0.5 * k, "std_of_k_only"),
    ("predicted_std", lambda d, q, k: d**0.5 * (q + k) / 2, "stds_averaged"),
    ("predicted_std", lambda d, q, k: (d * q * k**2) ** 0.5, "std_q_not_squared"),
    ("predicted_std", lambda d, q, k: (d * q**2 * k) ** 0.5, "std_k_not_squared"),
    ("predicted_std", lambda d, q, k: d**0.5 * q * q, "std_q_twice"),
    ("predicted_std", lambda d, q, k: d**1 / 2 * q * k, "half_of_d_k"),
    ("predicted_std", lambda d, q, k: d**2 * q * k, "std_grows_as_square"),
    ("predicted_std", lambda d, q, k: 8 * q * k, "width_of_64"),
    (
        "entropy",
        lambda w: -np.where(w > 0, w * np.log(w), 1).sum(-1),
        "zero_counts_one",
    ),
    (
        "entropy",
        lambda w: np.nan_to_num(-(w * np.log(w)).sum(-1)),
        "row_with_zero_lost",
    ),
    ("entropy", lambda w: -(w * np.log1p(w)).sum(-1), "log_of_one_plus"),
    ("entropy", lambda w: -(soft(w) * np.log(soft(w))).sum(-1), "softmax_of_weights"),
    (
        "entropy",
        lambda w: np.log(w.shape[-1]) + np.sum(w * np.log(np.where(w > 0, w, 1)), -1),
        "distance_to_uniform",
    ),
    (
        "entropy",
        lambda w: -np.sum(w * np.log(1 / w.shape[-1]), -1),
        "entropy_of_uniform",
    ),
    ("entropy", lambda w: 1 - (w * w).sum(-1), "gini"),
)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "answer", "key"), OTHERS)
def test_a_slip_is_named(name, answer, key, seed):
    verdict = judge(name, answer, seed)
    assert [m.key for m in verdict.mistakes] == [key], verdict.text


def test_a_mean_of_sizes_is_not_a_mean():
    assert not judge("weighted_mean", lambda w, v: w @ abs(v)).passed


def test_a_product_in_float16_is_not_right():
    def answer(q, k, v):
        q, k = q.astype(np.float16), k.astype(np.float16)
        weights = soft(q @ turned(k) / np.sqrt(k.shape[-1]))
        return weights, weights @ v

    assert not judge("scaled_dot_product", answer).passed
