"""Lesson 04: answers as people write them, right and wrong, and what they are told."""

from __future__ import annotations

import numpy as np
import pytest

from attnlib import heads
from attnlib.attention import scaled_dot_product, softmax
from attnlib.exercises import get, judge, names

LESSON = ("split_heads", "merge_heads", "multi_head", "strays")


def keys(name, answer):
    return {mistake.key for mistake in judge(name, answer).mistakes}


def test_the_lesson_has_these_exercises_and_their_minutes_fit_into_its_hour():
    assert set(names(4)) == set(LESSON)
    assert sum(get(name).minutes for name in LESSON) == 26


# --- right answers written another way --------------------------------------------
def split_by_transpose(x, n_heads):
    batch = x.shape[:-2]
    n, d_model = x.shape[-2:]
    return np.moveaxis(x.reshape(*batch, n, n_heads, d_model // n_heads), -2, -3)


def split_by_loop(x, n_heads):
    return np.stack(np.split(x, n_heads, axis=-1), axis=-3)


def merge_by_loop(x):
    return np.concatenate([x[..., h, :, :] for h in range(x.shape[-3])], axis=-1)


def merge_by_einsum(x):
    moved = np.einsum("...hnd->...nhd", x)
    return moved.reshape(*moved.shape[:-2], -1)


def multi_by_sum_over_heads(x, W_q, W_k, W_v, W_o, n_heads):
    out = 0
    tables = zip(*(np.split(W, n_heads, axis=-1) for W in (W_q, W_k, W_v)), strict=True)
    for (a, b, c), rows in zip(tables, np.split(W_o, n_heads), strict=True):
        out = out + scaled_dot_product(x @ a, x @ b, x @ c).out @ rows
    return out


def multi_by_einsum(x, W_q, W_k, W_v, W_o, n_heads):
    q, k, v = (
        np.einsum("...nd,dhk->...hnk", x, W.reshape(len(W), n_heads, -1))
        for W in (W_q, W_k, W_v)
    )
    weights = softmax(np.einsum("...qd,...kd->...qk", q / np.sqrt(q.shape[-1]), k))
    mixed = weights @ v
    return np.einsum("...hnd,hdm->...nm", mixed, W_o.reshape(n_heads, -1, len(x.T)))


def multi_in_float32(x, W_q, W_k, W_v, W_o, n_heads):
    single = (a.astype(np.float32) for a in (x, W_q, W_k, W_v, W_o))
    return heads.multi_head(*single, n_heads).out


def strays_by_comparison(x, split):
    return int((split[..., None] != x[:, None, :]).all(axis=-1).sum())


def strays_by_sets(x, split):
    return sum(
        value not in set(x[i])
        for head in split
        for i, row in enumerate(head)
        for value in row
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("split_heads", heads.split_heads),
        ("split_heads", split_by_transpose),
        ("split_heads", split_by_loop),
        ("merge_heads", heads.merge_heads),
        ("merge_heads", merge_by_loop),
        ("merge_heads", merge_by_einsum),
        ("multi_head", lambda *args: heads.multi_head(*args).out),
        ("multi_head", multi_by_sum_over_heads),
        ("multi_head", multi_in_float32),
        ("strays", strays_by_comparison),
        ("strays", strays_by_sets),
    ],
)
def test_another_right_way_passes(name, answer, seed):
    verdict = judge(name, answer, seed)
    assert verdict.passed, verdict.text


# --- wrong answers, as people write them ------------------------------------------
def split_at_once(x, n_heads):
    *batch, n, d_model = x.shape
    return x.reshape(*batch, n_heads, n, d_model // n_heads)


def split_every_second(x, n_heads):
    return np.stack([x[..., h::n_heads] for h in range(n_heads)], axis=-3)


def split_transposed_in_full(x, n_heads):
    *batch, n, d_model = x.shape
    return np.swapaxes(x.reshape(*batch, n, n_heads, d_model // n_heads), -1, -2)


def split_without_a_batch(x, n_heads):
    return x.reshape(len(x), n_heads, -1).transpose(1, 0, 2)


def split_with_the_first_axes(x, n_heads):
    return np.swapaxes(x.reshape(*x.shape[:-1], n_heads, -1), 0, 1)


def cut_but_not_moved(x, n_heads):
    return x.reshape(*x.shape[:-1], n_heads, -1)


def joined_unmoved(x):
    return x.reshape(*x.shape[:-2], -1)


def merge_with_the_first_axes(x):
    return np.swapaxes(x, 0, 1).reshape(x.shape[1], -1)


def merge_with_the_first_axes_counted(x):
    n_heads, n, d = x.shape[-3:]
    return np.swapaxes(x, 0, 1).reshape(*x.shape[:-3], n, n_heads * d)


def merge_without_a_batch(x):
    return x.transpose(1, 0, 2).reshape(x.shape[1], -1)


def merge_at_once(x):
    *batch, n_heads, n, d = x.shape
    return x.reshape(*batch, n, n_heads * d)


def merge_by_mean(x):
    return x.mean(axis=-3)


def mean_repeated(x):
    return np.concatenate([x.mean(axis=-3)] * x.shape[-3], axis=-1)


def attends_as_one_head(x, W_q, W_k, W_v, W_o, n_heads):
    return scaled_dot_product(x @ W_q, x @ W_k, x @ W_v).out @ W_o


def tables_reshaped(x, W_q, W_k, W_v, W_o, n_heads):
    tables = [W.reshape(n_heads, len(W), -1) for W in (W_q, W_k, W_v)]
    found = [scaled_dot_product(*(x @ t[h] for t in tables)) for h in range(n_heads)]
    return np.concatenate([f.out for f in found], axis=-1) @ W_o


def scaled_by_all_heads(x, W_q, W_k, W_v, W_o, n_heads):
    q, k, v = (heads.split_heads(x @ W, n_heads) for W in (W_q, W_k, W_v))
    weights = softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(W_q.shape[1]))
    return heads.merge_heads(weights @ v) @ W_o


def with_the_tokens_added(x, *tables_and_n_heads):
    return x + heads.multi_head(x, *tables_and_n_heads).out


def mean_of_contributions(x, W_q, W_k, W_v, W_o, n_heads):
    return multi_by_sum_over_heads(x, W_q, W_k, W_v, W_o, n_heads) / n_heads


def multi(split=heads.split_heads, merge=heads.merge_heads, scale=None, output=None):
    def multi_head(x, W_q, W_k, W_v, W_o, n_heads):
        q, k, v = (split(x @ W, n_heads) for W in (W_q, W_k, W_v))
        root = np.sqrt(q.shape[-1] if scale is None else scale(x, n_heads))
        mixed = merge(softmax(q @ np.swapaxes(k, -1, -2) / root) @ v)
        return mixed @ W_o if output is None else output(mixed, W_o)

    return multi_head


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("name", "answer", "key", "code"),
    [
        ("split_heads", split_at_once, "split_no_transpose", "M20"),
        ("split_heads", split_every_second, "split_interleaved", "M22"),
        ("split_heads", split_transposed_in_full, "split_wrong_axes", "M20"),
        ("split_heads", split_without_a_batch, "split_no_batch", "M20"),
        ("merge_heads", merge_at_once, "merge_no_transpose", "M21"),
        ("merge_heads", merge_without_a_batch, "merge_no_batch", "M21"),
        ("merge_heads", merge_by_mean, "merge_mean", "M21"),
        ("multi_head", multi(split_at_once), "split_no_transpose", "M20"),
        ("multi_head", multi(split_without_a_batch), "split_no_batch", "M20"),
        ("multi_head", multi(merge=mean_repeated), "merge_mean_repeated", "M21"),
        ("multi_head", attends_as_one_head, "one_head", ""),
        ("split_heads", split_with_the_first_axes, "split_first_axes", "M20"),
        ("merge_heads", merge_with_the_first_axes, "merge_first_axes", "M21"),
        (
            "merge_heads",
            merge_with_the_first_axes_counted,
            "merge_first_axes_counted",
            "M21",
        ),
        ("multi_head", multi(cut_but_not_moved), "split_only_reshaped", "M20"),
        (
            "multi_head",
            multi(cut_but_not_moved, joined_unmoved),
            "heads_never_moved",
            "M20",
        ),
        ("multi_head", tables_reshaped, "weights_W_reshaped", "M20"),
        ("multi_head", scaled_by_all_heads, "scale_all_heads", "M02"),
        ("multi_head", with_the_tokens_added, "residual_added", ""),
        ("multi_head", mean_of_contributions, "out_mean", "M21"),
        ("multi_head", multi(merge=merge_at_once), "merge_no_transpose", "M21"),
        (
            "multi_head",
            multi(scale=lambda x, n_heads: x.shape[-1]),
            "scale_d_model",
            "M02",
        ),
        ("multi_head", multi(output=lambda mixed, W_o: mixed), "W_o_missing", "M47"),
    ],
)
def test_a_wrong_answer_is_named(name, answer, key, code, seed):
    verdict = judge(name, answer, seed)
    assert verdict.status == "mistake", verdict.text
    assert [(m.key, m.code) for m in verdict.mistakes] == [(key, code)]


def test_the_evidence_is_a_number():
    text = judge("split_heads", split_at_once).text
    assert "at [0, 1, 0] stands the number that was at [0, 2] of x" in text
    text = judge("merge_heads", merge_at_once).text
    assert "at [0, 2] stands the number that was at [0, 1, 0] of x" in text
    text = judge("multi_head", multi(scale=lambda x, n_heads: x.shape[-1])).text
    assert "your scores are 0.408 times the right ones" in text
    text = judge("split_heads", split_with_the_first_axes).text
    assert "x of shape (2, 5, 12) becomes (5, 2, 4, 3); (2, 4, 5, 3) is right" in text
    text = judge("multi_head", scaled_by_all_heads).text
    assert "0.577 times the right ones, and 1/√n_heads is 0.577" in text
    text = judge("multi_head", with_the_tokens_added).text
    assert "at [0, 0] yours gives -1.542, where 0.333 is right; x has -1.875" in text
    text = judge("multi_head", mean_of_contributions).text
    assert "your result is 0.5 times the right one, and 1/n_heads is 0.5" in text


def test_cells_of_the_lesson_copied_without_their_batch_are_two_mistakes():
    found = keys("split_heads", lambda x, n_heads: x.reshape(n_heads, len(x), -1))
    assert found == {"split_no_transpose", "split_no_batch"}
    found = keys("merge_heads", lambda x: x.reshape(x.shape[1], -1))
    assert found == {"merge_no_transpose", "merge_no_batch"}


def test_a_wrong_shape_names_the_axes_in_front():
    text = judge("split_heads", lambda x, n_heads: x[..., :2]).text
    assert "(3, 2); it should be (2, 3, 2): (n_heads, n, d)" in text


def test_two_mistakes_at_once_are_both_named():
    found = keys("multi_head", multi(split_at_once, merge_at_once))
    assert found == {"split_no_transpose", "merge_no_transpose"}


def rows_with_strays(x, split):
    return sum(
        not set(row) <= set(x[i]) for head in split for i, row in enumerate(head)
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("answer", "key"),
    [
        (lambda x, s: np.sum(s != split_by_loop(x, len(s))), "strays_by_place"),
        (
            lambda x, s: np.sum(s // x.shape[1] != np.arange(len(x))[:, None]),
            "strays_by_division",
        ),
        (lambda x, s: 0, "strays_anywhere"),
        (lambda x, s: s.size - strays_by_sets(x, s), "strays_at_home"),
        (lambda x, s: strays_by_sets(x, s[:1]), "strays_first_head"),
        (lambda x, s: strays_by_sets(x, s) / s.size, "strays_share"),
        (lambda x, s: int(strays_by_sets(x, s) > 0), "strays_whether"),
        (
            lambda x, s: sum(
                not set(r) <= set(x[i]) for h in s for i, r in enumerate(h)
            ),
            "strays_rows",
        ),
    ],
)
def test_a_wrong_count_of_strays_is_named(answer, key, seed):
    verdict = judge("strays", answer, seed)
    assert [m.key for m in verdict.mistakes] == [key], verdict.text


def test_the_numbers_of_the_text_on_reach_hold_for_other_sizes():
    """Both mistakes together: each wrong head is deaf to the other half."""
    rng = np.random.default_rng(8)
    n, n_heads, d = 6, 3, 4
    x = rng.normal(size=(n, n_heads * d))
    q, k, v = (x.reshape(n_heads, n, d) for _ in range(3))
    out = scaled_dot_product(q, k, v).out.reshape(n, n_heads * d)
    other = x.copy()
    other[0] = -x[0]
    q, k, v = (other.reshape(n_heads, n, d) for _ in range(3))
    moved = np.abs(scaled_dot_product(q, k, v).out.reshape(n, -1) - out).max(axis=1) > 0
    assert moved.tolist() == [True, True, False, False, False, False]
