"""Lesson 06: slips that a first reader makes, and what each is told."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from torch_tools import one_thread

from attnlib import head_diagnostics, heads, masks, positions
from attnlib.attention import scaled_dot_product
from attnlib.exercises import judge
from attnlib.exercises.explain import why_not_finite

__all__ = ["one_thread"]


def turned(a):
    return np.swapaxes(a, -1, -2)


def soft(s):
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def by_hand(scale=None, fill=-np.inf, softmax=soft):
    """Attention written out, with one thing replaced."""

    def attend(q, k, v, mask):
        root = math.sqrt(q.shape[-1]) if scale is None else scale(q, k, v)
        return softmax(np.where(mask, q @ turned(k) / root, fill)) @ v

    return attend


def rope(q, k, v, at):
    return positions.rope(q, at), positions.rope(k, at), v


def layer(**changed):
    """The layer in single steps, one of them replaced; right if none is."""

    def layer_attention(normed, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
        n = normed.shape[-2]
        q = heads.split_heads(normed @ W_q, n_heads)
        k, v = normed @ W_k, normed @ W_v
        split = changed.get("split", lambda a, h, g: heads.split_heads(a, g))
        k, v = split(k, n_heads, n_kv_heads), split(v, n_heads, n_kv_heads)
        q, k, v = changed.get("turn", rope)(q, k, v, np.arange(n))
        share = changed.get("share", lambda a, h: heads.repeat_heads(a, h))
        k, v = share(k, n_heads), share(v, n_heads)
        mask = changed.get("mask", masks.causal)(n)
        mixed = changed.get(
            "attend", lambda q, k, v, m: scaled_dot_product(q, k, v, m).out
        )(q, k, v, mask)
        merge = changed.get("merge", heads.merge_heads)
        return changed.get("end", lambda out: out)(merge(mixed) @ W_o)

    return layer_attention


def through_torch(q, k, v, mask):
    q, k, v = (torch.as_tensor(a) for a in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).numpy()


def repeated_before_the_split(a, n_heads, n_kv_heads):
    return heads.split_heads(np.repeat(a, n_heads // n_kv_heads, axis=-1), n_heads)


def three_share(a, n_heads):
    return a[..., np.arange(n_heads) // 3, :, :]


def own_rope(sign):
    """RoPE written out; the sign says which way it turns."""

    def turn(x):
        n, d = x.shape[-2:]
        angle = sign * np.arange(n)[:, None] * 1e4 ** (-np.arange(0, d, 2) / d)
        pairs = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)
        return np.stack([pairs.real, pairs.imag], axis=-1).reshape(x.shape)

    return lambda q, k, v, at: (turn(q), turn(k), v)


def below(n):
    return np.tri(n, k=-1, dtype=bool)


def mass(rows=lambda n, o: np.arange(o, n), keys=lambda i, o: i - o):
    def offset_mass(weights, offset):
        i = rows(weights.shape[-1], offset)
        return weights[..., i, keys(i, offset)].mean(axis=-1)

    return offset_mass


def score(rows=lambda n, p: np.arange(p, n), keys=lambda i, p: i - p + 1):
    def induction_score(weights, period):
        i = rows(weights.shape[-1], period)
        return weights[..., i, keys(i, period)].mean(axis=-1)

    return induction_score


def diagonal(weights, offset):
    return np.diagonal(weights, -offset, -2, -1)


def back(weights, period):
    return diagonal(weights, period - 1)[..., 1:]


def one_table(function):
    """Of one head, told apart by the number of axes."""

    def answer(weights, back):
        if weights.ndim == 2:
            return function(weights, back)
        return np.array([answer(one, back) for one in weights])

    return answer


# --- right answers written another way ----------------------------------------------
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("layer_attention", layer(attend=by_hand())),
        ("layer_attention", layer(attend=by_hand(fill=-1e9))),
        ("layer_attention", layer(attend=through_torch)),
        ("layer_attention", layer(turn=own_rope(1))),
        ("layer_attention", layer(end=lambda out: out.astype(np.float32))),
        ("layer_attention", layer(end=np.ndarray.tolist)),
        ("offset_mass", one_table(lambda w, o: np.diag(w, -o).mean())),
        (
            "offset_mass",
            lambda w, o: (
                (w * np.eye(w.shape[-1], k=-o)).sum((-2, -1)) / (w.shape[-1] - o)
            ),
        ),
        ("offset_mass", lambda w, o: torch.tensor(w).diagonal(-o, -2, -1).mean(-1)),
        ("offset_mass", lambda w, o: diagonal(w, o).mean(-1).tolist()),
        ("induction_score", one_table(lambda w, p: np.diag(w, 1 - p)[1:].mean())),
        ("induction_score", lambda w, p: back(w, p).mean(-1).astype(np.float32)),
        (
            "induction_score",  # the last query stands beside the last key
            lambda w, p: head_diagnostics.offset_mass(w[..., p:, :], p - 1),
        ),
        (
            "induction_score",
            lambda w, p: np.diagonal(w[..., p:, :], 1, -2, -1).mean(-1),
        ),
    ],
)
def test_another_right_way_passes(name, answer, seed):
    verdict = judge(name, answer, seed)
    assert verdict.passed, verdict.text


# --- slips with a name ----------------------------------------------------------------
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("name", "answer", "key"),
    [
        ("layer_attention", layer(share=three_share), "kv_groups_of_three"),
        (
            "layer_attention",
            layer(split=repeated_before_the_split, share=lambda a, h: a),
            "kv_columns_repeated",
        ),
        ("layer_attention", layer(mask=lambda n: ~np.tri(n, dtype=bool)), "mask_inve"),
        ("layer_attention", layer(attend=by_hand(fill=0)), "mask_fill_zero"),
        ("layer_attention", layer(attend=by_hand(fill=1e-9)), "mask_fill_zero"),
        ("layer_attention", layer(attend=by_hand(fill=-100)), "mask_fill_10000"),
        ("layer_attention", layer(attend=by_hand(fill=-1e4)), "mask_fill_10000"),
        (
            "layer_attention",
            layer(mask=below, attend=by_hand()),
            "diagonal_missing_nan",
        ),
        ("layer_attention", layer(mask=below), "diagonal_missing"),
        (
            "layer_attention",
            layer(attend=by_hand(lambda q, k, v: math.sqrt(24))),
            "scale_of_24",
        ),
        (
            "layer_attention",
            layer(attend=by_hand(lambda q, k, v: math.sqrt(v.shape[-1]))),
            "scale_d_v",
        ),
        (
            "layer_attention",
            layer(attend=by_hand(lambda q, k, v: q.shape[-1] ** -0.5)),
            "scale_multiplied",
        ),
        (
            "layer_attention",
            layer(
                attend=by_hand(
                    softmax=lambda s: np.exp(s) / np.exp(s).sum(-1)[..., None]
                )
            ),
            "not_stable",
        ),
        ("layer_attention", layer(turn=own_rope(-1)), "rope_places_reversed"),
        (
            "offset_mass",
            mass(lambda n, o: np.arange(n), lambda i, o: np.maximum(i - o, 0)),
            "rows_clipped",
        ),
        ("offset_mass", mass(lambda n, o: np.arange(1, n)), "rows_from_one"),
        ("offset_mass", mass(lambda n, o: np.arange(o, n - 1)), "last_row_dropped"),
        ("offset_mass", lambda w, o: w[..., o].mean(-1), "column_of_offset"),
        ("offset_mass", lambda w, o: w[..., o, :].mean(-1), "whole_rows"),
        ("offset_mass", lambda w, o: w[..., o:, :].mean((-2, -1)), "whole_rows"),
        (
            "offset_mass",
            lambda w, o: np.tril(w, -o).sum((-2, -1)) / (w.shape[-1] - o),
            "farther_keys_too",
        ),
        (
            "offset_mass",
            lambda w, o: w[..., o:, : w.shape[-1] - o].mean((-2, -1)),
            "block_for_pairs",
        ),
        (
            "offset_mass",
            lambda w, o: (w * np.eye(w.shape[-1], k=-o)).mean((-2, -1)),
            "all_pairs_counted",
        ),
        (
            "offset_mass",
            lambda w, o: diagonal(w, o).sum(-1) / (w.shape[-1] - o + 1),
            "one_more_counted",
        ),
        ("induction_score", score(keys=lambda i, p: i - (p + 1)), "sign_turned"),
        ("induction_score", score(keys=lambda i, p: i % p + 1), "always_first_copy"),
        ("induction_score", score(keys=lambda i, p: (i + 1) % p), "next_in_first_copy"),
        (
            "induction_score",
            score(lambda n, p: np.arange(p, n - 1)),
            "last_row_dropped",
        ),
        (
            "induction_score",
            lambda w, p: np.diagonal(w[..., p:, :-p], 1, -2, -1).mean(-1),
            "last_row_dropped",
        ),
        (
            "induction_score",
            score(lambda n, p: np.arange(n), lambda i, p: np.maximum(i - p + 1, 0)),
            "rows_clipped",
        ),
        ("induction_score", lambda w, p: back(w, p).sum(-1) / p, "period_counted"),
        (
            "induction_score",
            lambda w, p: head_diagnostics.induction_score(w, p, start=1),
            "row_dropped",
        ),
    ],
)
def test_a_slip_is_named(name, answer, key, seed):
    verdict = judge(name, answer, seed)
    assert verdict.status == "mistake", verdict.text
    assert [m.key.startswith(key) for m in verdict.mistakes] == [True], verdict.text


@pytest.mark.parametrize(
    ("name", "answer", "found"),
    [
        (
            "induction_score",
            lambda w, p: diagonal(w, p - 1)[..., :-1].mean(-1),
            {"row_too_early", "last_row_dropped"},
        ),
        (
            "induction_score",
            lambda w, p: np.diagonal(w[..., p : 2 * p, :p], 1, -2, -1).mean(-1),
            {"first_copy_only", "last_row_dropped"},
        ),
    ],
)
def test_two_slips_at_once_are_both_named(name, answer, found):
    assert {m.key for m in judge(name, answer).mistakes} == found


# --- slips without a name hear where to look ------------------------------------------
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        (
            "layer_attention",
            layer(turn=lambda q, k, v, at: rope(q, k, v, at + at**2)),
            "Yours has token 0 right, which needs no score, and token",
        ),
        (
            "layer_attention",
            layer(merge=lambda a: heads.merge_heads(a[..., ::-1, :, :])),
            "its result is its own value for each head, joined, times W_o",
        ),
        (
            "layer_attention",
            layer(mask=lambda n: np.ones((n, n), bool) ^ np.eye(n, k=2, dtype=bool)),
            "With another last token, the result of token 0 changes by up to",
        ),
        (
            "layer_attention",
            layer(share=lambda a, h: a),
            "k is (..., n_kv_heads, n, d_k) until it is repeated",
        ),
        (
            "layer_attention",
            layer(split=lambda a, h, g: heads.split_heads(a, h)),
            "k is (..., n_kv_heads, n, d_k) until it is repeated",
        ),
        (
            "layer_attention",
            layer(attend=lambda q, k, v, m: scaled_dot_product(q, k, v, m)),
            "What scaled_dot_product gives is one object",
        ),
        (
            "layer_attention",
            layer(turn=lambda q, k, v, at: rope(q, k, positions.rope(v, at), at)),
            "The values are turned as well",
        ),
        (
            "layer_attention",
            layer(turn=lambda q, k, v, at: rope(q, v, k, at)),
            "What did you give it?",
        ),
        (
            "layer_attention",
            layer(turn=lambda q, k, v, at: rope(q[..., :1, :, :], k, v, at[:-1])),
            "Places are np.arange(n), n the number of tokens",
        ),
        (
            "offset_mass",  # passes wherever no weight there is 0
            lambda w, o: diagonal(w, o).sum(-1) / (diagonal(w, o) != 0).sum(-1),
            "a head that looks 2 places back in every row has 1, in every other row 0",
        ),
        (
            "offset_mass",
            lambda w, o: head_diagnostics.sink_mass(w),
            "a head that looks 2 places back in every row has 1",
        ),
        ("offset_mass", lambda w, o: np.diag(w, -o).mean(), "np.diag takes one table"),
        (
            "offset_mass",
            mass(rows=lambda n, o: np.arange(99, 48)),
            "Somewhere the mean is taken over nothing",
        ),
        (
            "induction_score",
            lambda w, p: head_diagnostics.offset_mass(w, 1),
            "a head that looks at the key after the last copy in every row has 1",
        ),
        (
            "induction_score",
            lambda w, p: (back(w, p) > 0.5).mean(-1),
            "a head with a quarter of each row on the key after the last copy has 0.2",
        ),
    ],
)
def test_a_slip_without_a_name_hears_where_to_look(name, answer, said, seed):
    verdict = judge(name, answer, seed)
    assert not verdict.passed
    assert said in verdict.text, verdict.text


def test_nan_throughout_is_not_given_a_name():
    verdict = judge("layer_attention", layer(end=lambda out: out * np.nan))
    assert verdict.status == "nan"
    assert not verdict.mistakes


def test_a_result_in_float16_is_not_told_to_look_at_its_scores():
    answer = layer(attend=by_hand(softmax=lambda s: soft(s).astype(np.float16)))
    assert "Nearly right" in judge("layer_attention", answer).text


def test_a_layer_must_fit_more_than_one_axis_of_a_batch():
    def one_batch_axis(normed, *rest):
        x = normed if normed.ndim == 3 else normed[None]
        _, _, _ = x.shape
        return layer()(normed, *rest)

    assert not judge("layer_attention", one_batch_axis).passed


def test_a_divisor_is_told_by_how_many_rows_count():
    said = judge("offset_mass", lambda w, o: diagonal(w, o).sum(-1) / w.shape[-1]).text
    assert "yours is 0.75 times the right mean, and 3 of the 4 rows count" in said


def test_a_mean_of_nothing_is_seen_only_where_it_is_taken():
    assert "mean is taken over nothing" in why_not_finite((np.ones(3),), None, True)
    assert why_not_finite((np.ones(3),)) == ""
    said = judge("offset_mass", lambda w, o: diagonal(w, o).mean(-1) * np.nan).text
    assert "NaN" in said
    assert "over nothing" not in said


def test_half_a_period_is_not_taken_for_another_slip():
    """With periods of 3 and 4 alone, half of one is the same as two less."""
    assert not judge("induction_score", score(keys=lambda i, p: i - p // 2)).mistakes
