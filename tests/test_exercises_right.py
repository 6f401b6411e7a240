"""Right answers written another way are never accused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attnlib.exercises import judge
from attnlib.exercises.lesson_01 import ARTICLE_SCORES, ARTICLE_X

SEEDS = (0, 1, 2)


def turned(a):
    return np.swapaxes(a, -1, -2)


def plain_softmax(x, axis=-1):
    """Right but for empty rows: enough inside attention without a mask."""
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


# --- softmax, right ------------------------------------------------------------------
def softmax_by_rows(x, axis=-1):
    def one(row):
        top = max(row)
        if top == -math.inf:
            return [0.0] * len(row)
        e = [math.exp(s - top) for s in row]
        return [number / sum(e) for number in e]

    return np.apply_along_axis(one, axis, np.asarray(x, float))


def softmax_by_logsumexp(x, axis=-1):
    top = np.max(x, axis=axis, keepdims=True)
    top[np.isneginf(top)] = 0
    lse = top + np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True))
    return np.nan_to_num(np.exp(x - lse))


def softmax_float32(x, axis=-1):
    x = x.astype(np.float32)
    return softmax_by_logsumexp(x, axis).astype(np.float32)


def softmax_nan_to_num(x, axis=-1):
    return np.nan_to_num(plain_softmax(x, axis))


def softmax_moved(x, axis=-1):
    x = np.moveaxis(x, axis, -1)
    return np.moveaxis(softmax_nan_to_num(x), -1, axis)


def softmax_epsilon(x, axis=-1):
    top = np.maximum(x.max(axis=axis, keepdims=True), -1e30)
    e = np.exp(x - top)
    return e / (e.sum(axis=axis, keepdims=True) + 1e-12)


def softmax_lists(x, axis=-1):
    return softmax_nan_to_num(x, axis).tolist()


def softmax_torch(x, axis=-1):
    torch = pytest.importorskip("torch")
    return torch.softmax(torch.tensor(x), axis).nan_to_num()


def softmax_printing(x, axis=-1):
    print("shape", x.shape)
    return softmax_nan_to_num(x, axis)


SOFTMAX = (
    softmax_by_rows,
    softmax_by_logsumexp,
    softmax_float32,
    softmax_nan_to_num,
    softmax_moved,
    softmax_epsilon,
    softmax_lists,
    softmax_torch,
    softmax_printing,
    lambda scores, dim=-1: softmax_nan_to_num(scores, dim),
)


@pytest.mark.parametrize("answer", SOFTMAX)
@pytest.mark.parametrize("seed", SEEDS)
def test_another_right_softmax_passes(answer, seed):
    verdict = judge("softmax", answer, seed)
    assert verdict.passed, verdict.text


# --- attention, right ----------------------------------------------------------------
def attend_loops(q, k, v):
    if q.ndim > 2:
        pairs = [attend_loops(*item) for item in zip(q, k, v, strict=True)]
        return tuple(np.stack(parts) for parts in zip(*pairs, strict=True))
    weights = np.zeros((len(q), len(k)))
    out = np.zeros((len(q), v.shape[1]))
    for i in range(len(q)):
        scores = [sum(q[i] * k[j]) / math.sqrt(len(q[i])) for j in range(len(k))]
        e = [math.exp(s - max(scores)) for s in scores]
        for j in range(len(k)):
            weights[i, j] = e[j] / sum(e)
            out[i] += weights[i, j] * v[j]
    return weights, out


def attend_einsum(q, k, v):
    scores = np.einsum("...id,...jd->...ij", q, k) * q.shape[-1] ** -0.5
    weights = plain_softmax(scores)
    return weights, np.einsum("...ij,...jd->...id", weights, v)


def attend_prescaled(q, k, v):
    weights = plain_softmax((q / np.sqrt(q.shape[-1])) @ turned(k))
    return weights, weights @ v


def attend_both_scaled(q, k, v):
    root = q.shape[-1] ** -0.25
    weights = plain_softmax((q * root) @ turned(k * root))
    return weights, weights @ v


def attend_float32(q, k, v):
    q, k, v = (a.astype("float32") for a in (q, k, v))
    return attend_prescaled(q, k, v)


def attend_keys_first(q, k, v):
    scores = turned(k @ turned(q)) / np.sqrt(k.shape[-1])
    weights = plain_softmax(scores)
    return weights, weights @ v


def attend_out_first(q, k, v):
    """Mixes before it divides, as flash attention does."""
    scores = q @ turned(k) / np.sqrt(q.shape[-1])
    e = np.exp(scores - scores.max(-1, keepdims=True))
    total = e.sum(-1, keepdims=True)
    return e / total, (e @ v) / total


def attend_log(q, k, v):
    scores = q @ turned(k) / np.sqrt(q.shape[-1])
    weights = np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))
    return weights, weights @ v


def attend_as_list(q, k, v):
    return list(attend_einsum(q, k, v))


def attend_nested_lists(q, k, v):
    weights, out = attend_einsum(q, k, v)
    return weights.tolist(), out.tolist()


def attend_sdpa(q, k, v):
    torch = pytest.importorskip("torch")
    q, k, v = (torch.tensor(a) for a in (q, k, v))
    sdpa = torch.nn.functional.scaled_dot_product_attention
    eye = torch.eye(k.shape[-2], dtype=q.dtype).expand(*k.shape[:-1], -1)
    return sdpa(q, k, eye), sdpa(q, k, v)


def attend_torch_gradients(q, k, v):
    torch = pytest.importorskip("torch")
    q, k, v = (torch.tensor(a, requires_grad=True) for a in (q, k, v))
    weights = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1)
    return weights, weights @ v


def attend_library(q, k, v):
    from attnlib.attention import scaled_dot_product

    stages = scaled_dot_product(q, k, v)
    return stages.weights, stages.out


ATTENTION = (
    attend_loops,
    attend_einsum,
    attend_prescaled,
    attend_both_scaled,
    attend_float32,
    attend_keys_first,
    attend_out_first,
    attend_log,
    attend_as_list,
    attend_nested_lists,
    attend_sdpa,
    attend_torch_gradients,
    attend_library,
)


@pytest.mark.parametrize("answer", ATTENTION)
@pytest.mark.parametrize("seed", SEEDS)
def test_another_right_attention_passes(answer, seed):
    verdict = judge("scaled_dot_product", answer, seed)
    assert verdict.passed, verdict.text


# --- distance_to_possible and weighted_mean, right ------------------------------------
def distance_by_solving(scores, X):
    M = np.linalg.pinv(X) @ scores @ np.linalg.pinv(X).T
    return np.linalg.norm(scores - X @ M @ X.T)


def distance_by_least_squares(scores, X):
    made = np.kron(X, X)  # row-major vec(X M X.T) = (X kron X) vec(M)
    m = np.linalg.lstsq(made, scores.ravel(), rcond=None)[0]
    return float(np.sqrt(((scores.ravel() - made @ m) ** 2).sum()))


def distance_by_svd(scores, X):
    u, s, _ = np.linalg.svd(X)
    u = u[:, : int((s > 1e-9).sum())]
    inside = np.linalg.norm(u.T @ scores @ u)
    return max(np.linalg.norm(scores) ** 2 - inside**2, 0.0) ** 0.5


@pytest.mark.parametrize(
    "answer", [distance_by_solving, distance_by_least_squares, distance_by_svd]
)
@pytest.mark.parametrize("seed", SEEDS)
def test_another_right_distance_passes(answer, seed):
    verdict = judge("distance_to_possible", answer, seed)
    assert verdict.passed, verdict.text


def test_the_article_s_table_is_further_away_than_rounding():
    """Lesson 01 and the text after a pass quote 0.730 and 0.15."""
    distance = distance_by_least_squares(ARTICLE_SCORES, ARTICLE_X)
    assert round(distance, 3) == 0.730
    assert round(np.linalg.norm(ARTICLE_SCORES), 3) == 3.094
    most = np.sqrt(ARTICLE_SCORES.size) * 0.05  # each number off by half a unit
    assert round(most, 3) == 0.15
    rng = np.random.default_rng(0)
    for _ in range(200):  # genuine tables, printed with one decimal
        q, k = rng.normal(size=(2, 4, 3))
        genuine = np.round((ARTICLE_X @ q) @ (ARTICLE_X @ k).T, 1)
        assert distance_by_solving(genuine, ARTICLE_X) <= most + 1e-9


@pytest.mark.parametrize(
    "answer",
    [
        lambda weights, values: weights @ values,
        lambda weights, values: np.average(values, weights=weights),
        lambda weights, values: sum(
            w * v for w, v in zip(weights, values, strict=True)
        ),
        lambda weights, values: np.einsum("i,i->", weights, values),
        lambda weights, values: float((weights * values).sum()) / weights.sum(),
    ],
)
def test_another_right_weighted_mean_passes(answer):
    assert judge("weighted_mean", answer).passed
