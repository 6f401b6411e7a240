"""Lesson 04: slips of a learner in cutting, joining and attending have a name."""

from __future__ import annotations

import numpy as np
import pytest

from attnlib import heads
from attnlib.attention import scaled_dot_product, softmax
from attnlib.exercises import judge

SEEDS = range(3)


def cut(W, n_heads):
    return np.split(W, n_heads, axis=-1)


def joined(outs, W_o):
    return np.concatenate(outs, axis=-1) @ W_o


def with_weights(change, root=None):
    """Multi-head attention whose weights are `change(scores)`."""

    def multi_head(x, W_q, W_k, W_v, W_o, n_heads):
        q, k, v = (heads.split_heads(x @ W, n_heads) for W in (W_q, W_k, W_v))
        below = q.shape[-1] if root is None else root(x.shape[-1], n_heads)
        weights = change(q @ np.swapaxes(k, -1, -2) / np.sqrt(below))
        return heads.merge_heads(weights @ v) @ W_o

    return multi_head


def always_head_0(x, W_q, W_k, W_v, W_o, n_heads):
    first = [x @ cut(W, n_heads)[0] for W in (W_q, W_k, W_v)]
    return joined([scaled_dot_product(*first).out] * n_heads, W_o)


def heads_added(x, W_q, W_k, W_v, W_o, n_heads):
    q, k, v = (heads.split_heads(x @ W, n_heads) for W in (W_q, W_k, W_v))
    return scaled_dot_product(q, k, v).out.sum(axis=-3) @ W_o[: v.shape[-1]]


def with_triangle(scores):
    return softmax(np.where(np.tri(scores.shape[-1], dtype=bool), scores, -np.inf))


def averaged(scores):
    return softmax(scores).mean(axis=-3, keepdims=True)


def at_once(x, split):
    rows = split.reshape(len(x), -1)
    return sum(np.sum(~np.isin(a, b)) for a, b in zip(rows, x, strict=True))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("name", "answer", "key", "code"),
    [
        (
            "split_heads",
            lambda x, h: np.stack(
                [x[..., i : i + x.shape[-1] // h] for i in range(h)], axis=-3
            ),
            "split_overlapping",
            "M20",
        ),
        (
            "split_heads",
            lambda x, h: np.swapaxes(x, -1, -2).reshape(
                *x.shape[:-2], h, x.shape[-2], -1
            ),
            "split_turned_first",
            "M20",
        ),
        (
            "merge_heads",
            lambda x: np.concatenate(np.moveaxis(x, -3, 0), axis=-2),
            "merge_along_tokens",
            "M21",
        ),
        ("merge_heads", lambda x: np.concatenate(x, axis=-1), "merge_items", "M17"),
        ("merge_heads", lambda x: np.hstack(list(x)), "merge_items_stacked", "M17"),
        (
            "merge_heads",
            lambda x: np.swapaxes(x, -3, -2).reshape(-1, x.shape[-3] * x.shape[-1]),
            "merge_batch_flattened",
            "M17",
        ),
        ("multi_head", always_head_0, "heads_all_first", "M20"),
        ("multi_head", heads_added, "W_o_first_rows", "M21"),
        ("multi_head", with_weights(averaged), "weights_averaged", "M42"),
        ("multi_head", with_weights(with_triangle), "causal_unasked", ""),
        ("multi_head", with_weights(lambda s: softmax(s, -3)), "axis_heads", "M04"),
        (
            "multi_head",
            with_weights(softmax, lambda d_model, h: d_model // h),
            "scale_d_model_part",
            "M02",
        ),
        (
            "multi_head",
            with_weights(softmax, lambda d_model, h: d_model / h),
            "scale_d_model_share",
            "M02",
        ),
        (
            "strays",
            lambda x, s: np.sum(s // 8 != np.arange(len(x))[:, None]),
            "strays_by_eight",
            "",
        ),
        (
            "strays",
            lambda x, s: np.sum(s != x.reshape(s.shape)),
            "strays_by_wrong_place",
            "M20",
        ),
        ("strays", at_once, "strays_merged_at_once", "M21"),
        (
            "strays",
            lambda x, s: sum(np.sum(~np.isin(s[i], x[i])) for i in range(len(s))),
            "strays_head_as_token",
            "",
        ),
    ],
)
def test_a_wrong_answer_is_named(name, answer, key, code, seed):
    verdict = judge(name, answer, seed)
    assert [(m.key, m.code) for m in verdict.mistakes] == [(key, code)], verdict.text


def test_every_second_column_copied_without_its_batch_is_two_mistakes():
    def copied(x, n_heads):
        return np.moveaxis(x.reshape(len(x), -1, n_heads), -1, 0)

    found = {m.key for m in judge("split_heads", copied).mistakes}
    assert found == {"split_interleaved", "split_no_batch"}


@pytest.mark.parametrize("seed", SEEDS)
def test_one_softmax_over_all_that_also_overflows_is_two_mistakes(seed):
    def over_all(scores):
        with np.errstate(all="ignore"):
            e = np.exp(scores)
            return e / e.sum(axis=(-3, -2, -1), keepdims=True)

    verdict = judge("multi_head", with_weights(over_all), seed)
    assert verdict.status in ("mistake", "nan"), verdict.text


def test_the_evidence_is_a_number():
    answer = with_weights(softmax, lambda d_model, h: d_model / h)
    assert "0.707 times the right ones, and √d_k/√(d_model/n_heads) is 0.707" in (
        judge("multi_head", answer).text
    )
    text = judge("multi_head", with_weights(lambda s: softmax(s, -3))).text
    assert "sums to 1 over the heads" in text


def test_a_product_with_W_o_that_fails_is_told_about_its_rows():
    def last_head_only(x, W_q, W_k, W_v, W_o, n_heads):
        last = [x @ cut(W, n_heads)[-1] for W in (W_q, W_k, W_v)]
        return scaled_dot_product(*last).out @ W_o

    text = judge("multi_head", last_head_only).text
    assert "W_o meets all heads, joined: n_heads * d_v numbers a token." in text


def test_a_record_in_place_of_its_array_is_told_which_field_to_return():
    text = judge("multi_head", lambda *args: heads.multi_head(*args)).text
    assert "It has what is wanted: return its `.out`" in text
