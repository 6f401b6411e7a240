"""Lesson 07, cross_attention: wrong answers as people write them, each named."""

from __future__ import annotations

import numpy as np
import pytest
from crossings import by_steps, nan_in_empty_rows, turned, two

from attnlib.attention import scaled_dot_product, softmax
from attnlib.exercises import judge


def crossing(
    sources=lambda x, m: (x, m, m),
    tables=lambda q, k, v: (q, k, v),
    root=lambda W_q, x, m, W_v: W_q.shape[1],
    axis=-1,
    hide=lambda scores, mask: np.where(mask, scores, -np.inf),
    mix=lambda weights, v: weights @ v,
    hand=lambda weights, out: (weights, out),
):
    def cross_attention(x, memory, W_q, W_k, W_v, mask=None):
        made = zip(sources(x, memory), tables(W_q, W_k, W_v), strict=True)
        q, k, v = (a @ W for a, W in made)
        scores = q @ turned(k) / np.sqrt(root(W_q, x, memory, W_v))
        if mask is not None:
            scores = hide(scores, mask)
        weights = softmax(scores, axis=axis)
        return hand(weights, mix(weights, v))

    return cross_attention


def on_queries(scores, mask):
    return np.where(turned(np.atleast_2d(mask)), scores, -np.inf)


def masked_after(x, memory, W_q, W_k, W_v, mask=None):
    weights, _ = by_steps(x, memory, W_q, W_k, W_v)
    weights = weights if mask is None else weights * mask
    return weights, weights @ (memory @ W_v)


def not_projected(x, memory, W_q, W_k, W_v, mask=None):
    a = scaled_dot_product(x @ W_q, memory @ W_k, memory, mask)
    return a.weights, a.out


def keys_as_they_are(x, memory, W_q, W_k, W_v, mask=None):
    scores = (x @ W_q) @ turned(memory) / np.sqrt(W_q.shape[1])
    weights = softmax(scores if mask is None else np.where(mask, scores, -np.inf))
    return weights, weights @ (memory @ W_v)


def once_asked(hand):
    """An answer that calls attnlib with what it made of q, k, v and the mask."""

    def cross_attention(x, memory, W_q, W_k, W_v, mask=None):
        return hand(x @ W_q, memory @ W_k, memory @ W_v, mask)

    return cross_attention


def zeroed(x, memory, W_q, W_k, W_v, mask=None):
    if mask is not None:
        memory = memory * turned(np.atleast_2d(mask))
    return by_steps(x, memory, W_q, W_k, W_v)


def scores_kept(q, k, v, mask):
    found = scaled_dot_product(q, k, v, mask)
    return found.scores, found.out


def raw_scores_kept(q, k, v, mask):
    found = scaled_dot_product(q, k, v, mask)
    return found.raw_scores, found.out


def never_a_softmax(q, k, v, mask):
    scores = scaled_dot_product(q, k, v, mask).scores
    with np.errstate(all="ignore"):
        return scores, scores @ v


def times_infinity(scores, mask):
    with np.errstate(all="ignore"):
        return scores + (1 - mask) * -np.inf


def by_attnlib(sources):
    def cross_attention(x, memory, W_q, W_k, W_v, mask=None):
        a, b, c = sources(x, memory)
        found = scaled_dot_product(a @ W_q, b @ W_k, c @ W_v, mask)
        return found.weights, found.out

    return cross_attention


WRONG = [
    (crossing(lambda x, m: (x, x, x)), "self_attention", "M46"),
    (crossing(lambda x, m: (m, m, m)), "self_attention_of_memory", "M46"),
    (crossing(lambda x, m: (x, x, m)), "keys_from_x", "M46"),
    (by_attnlib(lambda x, m: (x, x, m)), "keys_from_x", "M46"),
    (by_attnlib(lambda x, m: (x, m, x)), "values_from_x", "M46"),
    (by_attnlib(lambda x, m: (m, x, x)), "memory_asks", "M46"),
    (by_attnlib(lambda x, m: (x, x, x)), "self_attention", "M46"),
    (crossing(lambda x, m: (x, m, x)), "values_from_x", "M46"),
    (crossing(lambda x, m: (m, x, x)), "memory_asks", "M46"),
    (crossing(tables=lambda q, k, v: (q, v, k)), "tables_k_v_swapped", "M46"),
    (crossing(tables=lambda q, k, v: (k, q, v)), "tables_q_k_swapped", "M46"),
    (not_projected, "values_not_projected", "M47"),
    (keys_as_they_are, "keys_not_projected", "M47"),
    (crossing(root=lambda W_q, x, m, W_v: 1), "scale_missing", "M01"),
    (crossing(root=lambda W_q, x, m, W_v: x.shape[-1]), "scale_d_model", "M02"),
    (crossing(root=lambda W_q, x, m, W_v: m.shape[-1]), "scale_d_memory", "M02"),
    (crossing(root=lambda W_q, x, m, W_v: W_v.shape[-1]), "scale_d_v", "M02"),
    (crossing(root=lambda W_q, x, m, W_v: W_q.shape[-1] ** 2), "scale_d_k", "M03"),
    (crossing(root=lambda W_q, x, m, W_v: m.shape[-2]), "scale_n_k", "M02"),
    (crossing(axis=-2), "axis_second_last", "M04"),
    (crossing(hide=lambda s, mask: s), "mask_ignored", "M16"),
    (crossing(hide=lambda s, mask: np.where(mask, -np.inf, s)), "mask_inverted", "M07"),
    (crossing(hide=lambda s, mask: s + mask), "mask_added", "M08"),
    (crossing(hide=lambda s, mask: s * mask), "mask_fill_zero", "M09"),
    (
        crossing(hide=lambda s, mask: np.where(mask, s, -1e4)),
        "mask_fill_10000",
        "M11",
    ),
    (crossing(hide=on_queries), "mask_on_queries", "M15"),
    (masked_after, "mask_after", "M10"),
    (nan_in_empty_rows, "empty_row_nan", "M14"),
    (crossing(hand=lambda w, out: (out, w)), "returned_swapped", ""),
    (
        once_asked(lambda q, k, v, mask: two(scaled_dot_product(k, q, q, mask))),
        "memory_asks_with_its_table",
        "M46",
    ),
    (
        once_asked(lambda q, k, v, mask: two(scaled_dot_product(q, q, q, mask))),
        "queries_for_all",
        "M46",
    ),
    (once_asked(scores_kept), "returned_masked_scores", ""),
    (once_asked(raw_scores_kept), "returned_raw_scores", ""),
    (once_asked(never_a_softmax), "softmax_missing", "M47"),
    (zeroed, "memory_zeroed", "M09"),
    (crossing(hide=times_infinity), "mask_times_infinity", ""),
    (crossing(axis=1), "axis_one", "M04"),
]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("answer", "key", "code"), WRONG)
def test_a_wrong_crossing_is_named(answer, key, code, seed):
    verdict = judge("cross_attention", answer, seed)
    assert verdict.status == "mistake", verdict.text
    assert [(m.key, m.code) for m in verdict.mistakes] == [(key, code)]


def test_x_added_to_the_mix_is_named():
    def answer(x, memory, W_q, W_k, W_v, mask=None):
        weights, out = by_steps(x, memory, W_q, W_k, W_v, mask)
        return weights, x + out

    verdict = judge("cross_attention", answer)
    assert [m.key for m in verdict.mistakes] == ["out_added_to_x"]


def first_row(mask):
    return np.atleast_2d(mask)[..., :1, :]


def some_row(mask):
    return np.atleast_2d(mask).any(axis=-2, keepdims=True)


def picture_by_picture(x, memory, W_q, W_k, W_v, mask=None):
    if x.ndim != 3:
        return by_steps(x, memory, W_q, W_k, W_v, mask)
    masks = [None if mask is None else mask[i] for i in range(len(x))]
    parts = [
        by_steps(a, m, W_q, W_k, W_v, seen)
        for a, m, seen in zip(x, memory, masks, strict=True)
    ]
    return [np.stack(part) for part in zip(*parts, strict=True)]


def one_batch_axis(x, memory, W_q, W_k, W_v, mask=None):
    if x.ndim == 2:
        return by_steps(x, memory, W_q, W_k, W_v, mask)
    scores = np.einsum("bqd,bkd->bqk", x @ W_q, memory @ W_k) / W_q.shape[1] ** 0.5
    weights = softmax(scores if mask is None else np.where(mask, scores, -np.inf))
    return weights, weights @ (memory @ W_v)


@pytest.mark.parametrize(
    "answer",
    [
        lambda x, memory, W_q, W_k, W_v, mask=None: by_steps(
            x, memory, W_q, W_k, W_v, mask
        )[1],
        lambda x, memory, W_q, W_k, W_v, mask=None: None,
        lambda x, memory, W_q, W_k, W_v, mask=None: by_steps(
            x, memory, W_q, W_k, W_v, None
        ),
        lambda x, memory, W_q, W_k, W_v, mask=None: by_steps(
            x, memory[..., ::-1, :], W_q, W_k, W_v, mask
        ),
        lambda x, memory, W_q, W_k, W_v, mask=None: by_steps(
            x, memory, -W_q, W_k, W_v, mask
        ),
        lambda x, memory, W_q, W_k, W_v, mask=None: by_steps(
            x, memory, W_q, W_k, W_v, mask if mask is None else mask.T
        ),
        lambda x, memory, W_q, W_k, W_v, mask=None: by_steps(
            x, np.concatenate([x @ W_q @ W_k.T, memory], -2), W_q, W_k, W_v, mask
        ),
        lambda x, memory, W_q, W_k, W_v: by_steps(x, memory, W_q, W_k, W_v),
        # Works for one picture, for one batch axis, for masks of one row.
        lambda x, memory, W_q, W_k, W_v, mask=None: by_steps(
            x, memory, W_q, W_k, W_v, mask if mask is not None and mask.any() else None
        ),
        lambda x, memory, W_q, W_k, W_v, mask=None: by_steps(
            x, memory, W_q, W_k, W_v, mask if mask is None else first_row(mask)
        ),
        lambda x, memory, W_q, W_k, W_v, mask=None: by_steps(
            x, memory, W_q, W_k, W_v, mask if mask is None else some_row(mask)
        ),
        lambda x, memory, W_q, W_k, W_v, mask=None: picture_by_picture(
            x, memory, W_q, W_k, W_v, mask
        ),
        lambda x, memory, W_q, W_k, W_v, mask=None: one_batch_axis(
            x, memory, W_q, W_k, W_v, mask
        ),
    ],
)
def test_other_wrong_crossings_are_refused(answer):
    assert not judge("cross_attention", answer).passed


def test_the_evidence_is_a_number():
    text = judge("cross_attention", crossing(lambda x, m: (x, x, x))).text
    assert "your result has the shape (3, 3); (3, 5) is right" in text
    text = judge("cross_attention", crossing(hide=on_queries)).text
    assert "of its weight to parts that are not there" in text
    root = crossing(root=lambda W_q, x, m, W_v: m.shape[-1])
    assert "and √d_k/√d_memory is" in judge("cross_attention", root).text
