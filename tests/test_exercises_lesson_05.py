"""Lesson 05: answers as people write them, right and wrong, and what they are told."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attnlib import attention, diagnostics, masks
from attnlib import nn as attnlib_nn
from attnlib.exercises import get, judge, names

LESSON = ("attention_gradient", "match_sdpa", "from_in_proj", "after_dropout")
SEEDS = range(3)
SDPA = F.scaled_dot_product_attention


def turned(a):
    return np.swapaxes(a, -1, -2)


def test_the_lesson_has_these_exercises_and_their_minutes_fit():
    assert set(names(5)) == set(LESSON)
    assert sum(get(name).minutes for name in LESSON) == 27


def test_the_solution_runs_in_the_notebook_as_it_is_printed():
    space = {"np": np, "torch": torch, "F": F, "attention": attention}
    for name in LESSON[:3]:
        exec(get(name).solution_source, space)
        assert judge(name, space[name]).passed


# --- right answers written another way --------------------------------------------
def gradient_by_autograd(q, k, v, grad_out):
    q, k, v = (torch.tensor(a, requires_grad=True) for a in (q, k, v))
    SDPA(q, k, v).backward(torch.tensor(grad_out))
    return q.grad, k.grad, v.grad


def gradient_by_jacobian(q, k, v, grad_out):
    if q.ndim > 2:
        pairs = [
            gradient_by_jacobian(*four) for four in zip(q, k, v, grad_out, strict=True)
        ]
        return tuple(np.stack(part) for part in zip(*pairs, strict=True))
    weights = attention.scaled_dot_product(q, k, v).weights
    rows = []
    for w, g in zip(weights, grad_out @ v.T, strict=True):
        rows.append((np.diag(w) - np.outer(w, w)) @ g)
    raw = np.array(rows) / math.sqrt(q.shape[-1])
    return raw @ k, raw.T @ q, weights.T @ grad_out


def gradient_by_out(q, k, v, grad_out):
    """The sum of weights times their gradients is that of out times grad_out."""
    a = attention.scaled_dot_product(q, k, v)
    share = (a.out * grad_out).sum(-1)[..., None]
    raw = a.weights * (grad_out @ turned(v) - share) * q.shape[-1] ** -0.5
    return raw @ k, turned(raw) @ q, turned(a.weights) @ grad_out


def gradient_by_library(q, k, v, grad_out):
    found = diagnostics.scaled_dot_product_backward(q, k, v, None, grad_out)
    return found.q, found.k, found.v


def gradient_by_einsum(q, k, v, grad_out):
    s = np.einsum("...qd,...kd->...qk", q, k) / np.sqrt(q.shape[-1])
    p = np.exp(s - s.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    dp = np.einsum("...qv,...kv->...qk", grad_out, v)
    ds = p * dp - p * np.einsum("...qk,...qk->...q", p, dp)[..., None]
    ds /= np.sqrt(q.shape[-1])
    return (
        np.einsum("...qk,...kd->...qd", ds, k),
        np.einsum("...qk,...qd->...kd", ds, q),
        np.einsum("...qk,...qv->...kv", p, grad_out),
    )


def gradient_in_float32(q, k, v, grad_out):
    return gradient_by_out(*(a.astype(np.float32) for a in (q, k, v, grad_out)))


def gradient_by_differences(q, k, v, grad_out):
    def loss(*three):
        return (attention.scaled_dot_product(*three).out * grad_out).sum()

    found = []
    for i, array in enumerate((q, k, v)):
        slope = np.zeros_like(array)
        for at in np.ndindex(*array.shape):
            step = np.zeros_like(array)
            step[at] = 1e-5
            up, down = ([q, k, v] for _ in range(2))
            up[i], down[i] = array + step, array - step
            slope[at] = (loss(*up) - loss(*down)) / 2e-5
        found.append(slope)
    return tuple(found)


def sdpa_by_hand(q, k, v, mask=None, causal=False):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    if causal:
        n_q, n_k = scores.shape[-2:]
        future = torch.arange(n_k) > torch.arange(n_q)[:, None] + n_k - n_q
        scores = scores.masked_fill(future, -torch.inf)
    return torch.nan_to_num(torch.softmax(scores, dim=-1)) @ v


def sdpa_additive(q, k, v, mask=None, causal=False):
    n_q, n_k = q.shape[-2], k.shape[-2]
    bias = torch.zeros(n_q, n_k, dtype=q.dtype)
    if causal:
        bias = bias.masked_fill(
            ~torch.ones(n_q, n_k).tril(n_k - n_q).bool(), -torch.inf
        )
    if mask is not None:
        bias = bias.masked_fill(~mask, -torch.inf)
    return SDPA(q, k, v, attn_mask=bias)


def sdpa_library(q, k, v, mask=None, causal=False):
    return attnlib_nn.scaled_dot_product(q, k, v, mask, causal=causal).out


def sdpa_masks(q, k, v, mask=None, causal=False):
    if causal:
        past = torch.from_numpy(masks.causal(q.shape[-2], k.shape[-2]))
        mask = past if mask is None else past & mask
    return SDPA(q, k, v, attn_mask=mask)


def sdpa_triu(q, k, v, mask=None, causal=False):
    n_q, n_k = q.shape[-2], k.shape[-2]
    blocked = torch.zeros(n_q, n_k, dtype=torch.bool)
    if causal:
        blocked = torch.ones(n_q, n_k).triu(n_k - n_q + 1).bool()
    if mask is not None:
        blocked = blocked | ~mask
    return SDPA(q, k, v, attn_mask=~blocked)


def sdpa_float32(q, k, v, mask=None, causal=False):
    return sdpa_masks(q.float(), k.float(), v.float(), mask, causal)


def sdpa_numpy(q, k, v, mask=None, causal=False):
    mask = None if mask is None else mask.numpy()
    if causal:
        past = masks.causal(q.shape[-2], k.shape[-2])
        mask = past if mask is None else past & mask
    return attention.scaled_dot_product(q.numpy(), k.numpy(), v.numpy(), mask).out


def in_proj_by_slices(w):
    d = w.shape[1]
    return w[:d].T, w[d : 2 * d].T, w[2 * d :].T


def in_proj_by_reshape(w):
    return tuple(w.reshape(3, w.shape[1], -1).mT)


def in_proj_by_columns(w):
    return w.T.chunk(3, dim=1)


RIGHT = {
    "attention_gradient": (
        gradient_by_autograd,
        gradient_by_jacobian,
        gradient_by_out,
        gradient_by_library,
        gradient_by_einsum,
        gradient_in_float32,
    ),
    "match_sdpa": (
        sdpa_by_hand,
        sdpa_additive,
        sdpa_library,
        sdpa_masks,
        sdpa_triu,
        sdpa_float32,
        sdpa_numpy,
    ),
    "from_in_proj": (
        in_proj_by_slices,
        in_proj_by_reshape,
        in_proj_by_columns,
        lambda w: torch.split(w.mT, w.shape[1], dim=-1),
        lambda w: [part.numpy().T for part in w.chunk(3)],
    ),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("name", "answer"), [(n, a) for n, answers in RIGHT.items() for a in answers]
)
def test_another_right_way_passes(name, answer, seed):
    verdict = judge(name, answer, seed)
    assert verdict.passed, verdict.text


def test_central_differences_pass():
    assert judge("attention_gradient", gradient_by_differences).passed


# --- wrong answers, as people write them ------------------------------------------
def gradient(
    softmax=None, q_part=None, k_part=None, v_part=None, back=None, scaled=True
):
    """attention_gradient with one step written otherwise."""

    def attention_gradient(q, k, v, grad_out):
        root = np.sqrt(q.shape[-1])
        p = attention.softmax(q @ turned(k) / (root if scaled else 1))
        dp = grad_out @ turned(v)
        right = p * (dp - (p * dp).sum(-1, keepdims=True))
        ds = (right if softmax is None else softmax(p, dp)) / (back or root)
        return (
            ds @ k if q_part is None else q_part(ds, q, k),
            turned(ds) @ q if k_part is None else k_part(ds, q, k),
            turned(p) @ grad_out if v_part is None else v_part(p, grad_out, v),
        )

    return attention_gradient


def order(*places):
    def answer(q, k, v, grad_out):
        three = gradient_by_out(q, k, v, grad_out)
        return tuple(three[i] for i in places)

    return answer


def total(p, dp):
    return (p * dp).sum(-1, keepdims=True)


GRADIENTS = [
    (gradient(lambda p, dp: dp), "softmax_not_differentiated"),
    (gradient(lambda p, dp: p * dp), "softmax_sum_missing"),
    (gradient(lambda p, dp: p * (1 - p) * dp), "softmax_diagonal_only"),
    (
        gradient(lambda p, dp: p * (dp - dp.sum(-1, keepdims=True))),
        "softmax_sum_unweighted",
    ),
    (
        gradient(lambda p, dp: p * (dp - dp.mean(-1, keepdims=True))),
        "softmax_mean_for_sum",
    ),
    (
        gradient(lambda p, dp: p * (dp - (p * dp).sum(-2, keepdims=True))),
        "softmax_sum_over_queries",
    ),
    (gradient(lambda p, dp: p * (dp - (p * dp).sum())), "softmax_sum_everywhere"),
    (gradient(lambda p, dp: dp - total(p, dp)), "softmax_factor_missing"),
    (gradient(lambda p, dp: p * dp - total(p, dp)), "softmax_sum_not_shared"),
    (gradient(lambda p, dp: p * (dp + total(p, dp))), "softmax_sum_added"),
    (gradient(back=1), "gradient_scale_missing"),
    (gradient(back=1, scaled=False), "scale_missing"),
    (
        gradient(
            k_part=lambda ds, q, k: turned(ds) @ q * np.sqrt(q.shape[-1]),
        ),
        "gradient_scale_for_q_only",
    ),
    (gradient(k_part=lambda ds, q, k: ds @ q), "grad_k_not_transposed"),
    (gradient(v_part=lambda p, g, v: p @ g), "grad_v_not_transposed"),
    (
        gradient(v_part=lambda p, g, v: np.zeros_like(v) + g.sum(-2, keepdims=True)),
        "grad_v_unweighted",
    ),
    (
        gradient(lambda p, dp: p * (1 - p) * dp - p * (p * dp).sum(-1, keepdims=True)),
        "softmax_own_term_twice",
    ),
    (
        gradient(lambda p, dp: p * (dp - (p * dp).mean(-1, keepdims=True))),
        "softmax_mean_of_products",
    ),
    (gradient(lambda p, dp: p * (dp - (p * dp).sum(0))), "softmax_sum_over_first"),
    (gradient(lambda p, dp: p * (total(p, dp) - dp)), "softmax_sides_exchanged"),
    (gradient(scaled=False), "gradient_scale_only_back"),
    (gradient(back=math.sqrt(2)), "gradient_scale_of_the_example"),
    (
        gradient(k_part=lambda ds, q, k: turned(ds) @ q / np.sqrt(q.shape[-1])),
        "gradient_scale_twice_for_k",
    ),
    (
        gradient(q_part=lambda ds, q, k: ds @ k / np.sqrt(q.shape[-1])),
        "gradient_scale_twice_for_q",
    ),
    (
        gradient(k_part=lambda ds, q, k: ds[..., -1, :, None] * q[..., -1, None, :]),
        "grad_k_of_the_last_query",
    ),
    (
        gradient(v_part=lambda p, g, v: p[..., -1, :, None] * g[..., -1, None, :]),
        "grad_v_of_the_last_query",
    ),
    (
        gradient(v_part=lambda p, g, v: turned(p) @ np.ones_like(g)),
        "grad_v_without_grad_out",
    ),
    (
        lambda q, k, v, g: (
            *gradient_by_out(q, k, v, np.ones_like(g))[:2],
            gradient_by_out(q, k, v, g)[2],
        ),
        "grad_out_for_v_only",
    ),
    (order(2, 1, 0), "gradients_reversed"),
    (order(0, 2, 1), "gradients_v_before_k"),
    (order(1, 2, 0), "gradients_q_last"),
    (order(1, 0, 2), "gradients_k_first"),
    (order(2, 0, 1), "gradients_v_first"),
    (
        lambda q, k, v, g: tuple(-a for a in gradient_by_out(q, k, v, g)),
        "gradient_negative",
    ),
    (
        lambda q, k, v, g: gradient_by_out(q, k, v, np.ones_like(g)),
        "grad_out_ignored",
    ),
    (
        lambda q, k, v, g: gradient_by_out(q, k, v, g / g.size),
        "gradient_of_the_mean",
    ),
]


def is_causal_of_sdpa(q, k, v, mask=None, causal=False):
    return SDPA(q, k, v, attn_mask=mask, is_causal=causal)


def one_or_the_other(q, k, v, mask=None, causal=False):
    if mask is not None:
        return SDPA(q, k, v, attn_mask=mask)
    look = torch.ones(q.shape[-2], k.shape[-2]).tril(k.shape[-2] - q.shape[-2]).bool()
    return SDPA(q, k, v, attn_mask=look if causal else None)


def causal_wins(q, k, v, mask=None, causal=False):
    look = torch.ones(q.shape[-2], k.shape[-2]).tril(k.shape[-2] - q.shape[-2]).bool()
    return SDPA(q, k, v, attn_mask=look if causal else mask)


def sdpa(change, causal_look=None):
    """match_sdpa whose finished mask (if any) goes through `change`."""

    def match_sdpa(q, k, v, mask=None, causal=False):
        n_q, n_k = q.shape[-2], k.shape[-2]
        past = torch.from_numpy(masks.causal(n_q, n_k))
        if causal_look is not None:
            past = causal_look(n_q, n_k)
        if causal:
            mask = past if mask is None else past & mask
        return SDPA(q, k, v, attn_mask=None if mask is None else change(mask))

    return match_sdpa


def ones(n_q, n_k):
    return torch.ones(n_q, n_k, dtype=torch.bool)


def combined_by_or(q, k, v, mask=None, causal=False):
    past = torch.from_numpy(masks.causal(q.shape[-2], k.shape[-2]))
    if causal:
        mask = past if mask is None else past | mask
    return SDPA(q, k, v, attn_mask=mask)


def finished_mask_turned(q, k, v, mask=None, causal=False):
    n_q, n_k = q.shape[-2], k.shape[-2]
    look = ones(n_q, n_k)
    look = look.tril(n_k - n_q) if causal else look
    look = look if mask is None else look & mask
    return SDPA(q, k, v, attn_mask=~look)


def is_causal_without_mask(q, k, v, mask=None, causal=False):
    if mask is None:
        return SDPA(q, k, v, is_causal=causal)
    return sdpa_masks(q, k, v, mask, causal)


def opened_by_or(q, k, v, mask=None, causal=False):
    if mask is None and not causal:
        return SDPA(q, k, v, attn_mask=~ones(q.shape[-2], k.shape[-2]))
    return sdpa_masks(q, k, v, mask, causal)


def scaled_beforehand(q, k, v, mask=None, causal=False):
    return sdpa_masks(q / math.sqrt(q.shape[-1]), k, v, mask, causal)


def unscaled(q, k, v, mask=None, causal=False):
    return sdpa_masks(q * math.sqrt(q.shape[-1]), k, v, mask, causal)


def by_hand_with_nan(q, k, v, mask=None, causal=False):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    look = ones(q.shape[-2], k.shape[-2])
    look = look.tril(k.shape[-2] - q.shape[-2]) if causal else look
    look = look if mask is None else look & mask
    return torch.softmax(scores.masked_fill(~look, -torch.inf), -1) @ v


def by_hand_filled(q, k, v, mask=None, causal=False):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    look = ones(q.shape[-2], k.shape[-2])
    look = look.tril(k.shape[-2] - q.shape[-2]) if causal else look
    look = look if mask is None else look & mask
    return torch.softmax(scores.masked_fill(~look, -1e9), -1) @ v


CALLS = [
    (is_causal_of_sdpa, "is_causal_handed_over"),
    (one_or_the_other, "causal_dropped_beside_mask"),
    (causal_wins, "mask_dropped_beside_causal"),
    (sdpa(lambda m: ~m), "look_inverted"),
    (finished_mask_turned, "look_inverted_throughout"),
    (is_causal_without_mask, "is_causal_without_mask"),
    (opened_by_or, "nothing_given_hides_all"),
    (sdpa(lambda m: m, lambda a, b: ones(a, b).tril(1)), "offset_one"),
    (sdpa(lambda m: m.double()), "mask_added"),
    (sdpa(lambda m: m, lambda a, b: ones(a, b).tril()), "aligned_top_left"),
    (sdpa(lambda m: m, lambda a, b: ones(a, b).triu(1)), "triu"),
    (sdpa(lambda m: m, lambda a, b: ones(a, b).triu(b - a)), "causal_mirrored"),
    (sdpa(lambda m: m, lambda a, b: ones(a, b).tril(b - a - 1)), "diagonal_missing"),
    (sdpa(lambda m: m, lambda a, b: ones(a, b).tril(b - a + 1)), "diagonal_next"),
    (sdpa(lambda m: m, lambda a, b: ones(a, b).tril(a - b)), "offset_negated"),
    (combined_by_or, "combined_by_or"),
    (
        lambda q, k, v, mask=None, causal=False: SDPA(q, k, v, mask, causal),
        "causal_as_dropout",
    ),
    (
        lambda q, k, v, mask=None, causal=False: SDPA(q, k, v, attn_mask=mask),
        "causal_missing",
    ),
    (
        lambda q, k, v, mask=None, causal=False: sdpa_masks(q, k, v, None, causal),
        "mask_ignored",
    ),
    (
        lambda q, k, v, mask=None, causal=False: sdpa_masks(
            q, k, v, None if mask is None else ~mask, causal
        ),
        "mask_inverted",
    ),
    (
        lambda q, k, v, mask=None, causal=False: sdpa_masks(q, k, v, mask, True),
        "causal_always",
    ),
    (scaled_beforehand, "scale_d_k"),
    (unscaled, "scale_missing"),
    (by_hand_with_nan, "empty_row_nan"),
    (by_hand_filled, "empty_row_filled"),
]

BLOCKS = [
    (lambda w: w.chunk(3), "in_proj_not_transposed"),
    *(
        (
            lambda w, left=left: tuple(
                part if name in left else part.T
                for name, part in zip("qkv", w.chunk(3), strict=True)
            ),
            f"in_proj_not_transposed_{left}",
        )
        for left in ("kv", "qv", "qk", "q", "k", "v")
    ),
    (lambda w: tuple(w[i::3].T for i in range(3)), "in_proj_every_third"),
    (
        lambda w: tuple(p.T for p in w.reshape(len(w) // 3, -1).chunk(3, dim=1)),
        "in_proj_every_third",
    ),
    (
        lambda w: tuple(w.T.reshape(3, len(w) // 3, -1)),
        "in_proj_turned_and_reshaped",
    ),
    (lambda w: tuple(w.chunk(3)[i].T for i in (1, 0, 2)), "in_proj_order_k_q_v"),
    (lambda w: tuple(w.chunk(3)[i].T for i in (2, 1, 0)), "in_proj_order_v_k_q"),
    (lambda w: tuple(w.chunk(3)[i].T for i in (0, 0, 0)), "in_proj_one_for_all"),
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("name", "answer", "key"),
    [("attention_gradient", *pair) for pair in GRADIENTS]
    + [("match_sdpa", *pair) for pair in CALLS]
    + [("from_in_proj", *pair) for pair in BLOCKS],
)
def test_a_wrong_answer_is_named(name, answer, key, seed):
    verdict = judge(name, answer, seed)
    assert [m.key for m in verdict.mistakes] == [key], verdict.text


def test_the_evidence_is_a_number():
    text = judge("attention_gradient", gradient(lambda p, dp: p * dp)).text
    assert "your gradients of the keys sum to" in text
    text = judge("attention_gradient", gradient(back=1)).text
    assert "your grad_q is 1.414 times the right one, and √d_k is 1.414" in text
    text = judge("from_in_proj", lambda w: tuple(w[i::3].T for i in range(3))).text
    assert "column 1 of your W_q is row 3 of in_proj_weight; row 1 belongs" in text
    text = judge("match_sdpa", sdpa(lambda m: m.double())).text
    assert "query" in text
    text = judge("match_sdpa", unscaled).text
    assert "times the right ones, and √d_k is 1.732" in text


def test_two_mistakes_at_once_are_both_named():
    found = judge("attention_gradient", gradient(lambda p, dp: p * dp, back=1)).mistakes
    assert {m.key for m in found} == {"softmax_sum_missing", "gradient_scale_missing"}

    def top_left_and_alone(q, k, v, mask=None, causal=False):
        alone = causal and mask is None
        return SDPA(q, k, v, attn_mask=mask, is_causal=alone)

    found = {m.key for m in judge("match_sdpa", top_left_and_alone).mistakes}
    assert found == {"aligned_top_left", "causal_dropped_beside_mask"}


def of_a_table(q, k, v, grad_out):
    q, k, v = (torch.tensor(a, requires_grad=True) for a in (q, k, v))
    SDPA(q, k, v).backward()
    return q.grad, k.grad, v.grad


def torch_of_numpy(q, k, v, grad_out):
    return torch.softmax(q @ turned(k), -1), k, v


def an_array_with_a_past(q, k, v, grad_out):
    attention.scaled_dot_product(q, k, v).out.backward(grad_out)
    return q.grad, k.grad, v.grad


def square_mask(q, k, v, mask=None, causal=False):
    look = ones(k.shape[-2], k.shape[-2]).tril()
    return SDPA(q, k, v, attn_mask=look)


def no_axis_for_heads(q, k, v, mask=None, causal=False):
    if mask is None:
        return sdpa_masks(q, k, v, mask, causal)
    mask = mask.squeeze(1)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def mask_of_ones(q, k, v, mask=None, causal=False):
    look = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.int64)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=look)


def values_first(q, k, v, mask=None, causal=False):
    return F.scaled_dot_product_attention(q, v, k, attn_mask=mask)


def grown_in_place(q, k, v, mask=None, causal=False):
    look = ones(q.shape[-2], k.shape[-2])
    look = look.tril(k.shape[-2] - q.shape[-2]) if causal else look
    if mask is not None:
        look &= mask
    return SDPA(q, k, v, attn_mask=look)


def with_dropout(q, k, v, mask=None, causal=False):
    past = torch.from_numpy(masks.causal(q.shape[-2], k.shape[-2]))
    if causal:
        mask = past if mask is None else past & mask
    return SDPA(q, k, v, attn_mask=mask, dropout_p=0.3)


def in_bfloat16(q, k, v, mask=None, causal=False):
    return sdpa_masks(q.bfloat16(), k.bfloat16(), v.bfloat16(), mask, causal)


def one_too_many(q, k, v, mask=None, causal=False):
    return q.transpose(-1, -3)


def of_a_layer(q, k, v, mask=None, causal=False):
    layer = nn.MultiheadAttention(q.shape[-1], 1, batch_first=True)
    return layer(q, k, v, attn_mask=mask)[0]


def times_infinity(q, k, v, mask=None, causal=False):
    past = ones(q.shape[-2], k.shape[-2]).tril(k.shape[-2] - q.shape[-2])
    bias = (~past).to(q.dtype) * -torch.inf
    return SDPA(q, k, v, attn_mask=bias)


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        (
            "attention_gradient",
            lambda q, k, v, g: (q @ k.T @ k, k, v),
            "np.swapaxes(k, -1, -2)",
        ),
        ("attention_gradient", lambda q, k, v, g: (q, k), "should return 3"),
        ("attention_gradient", of_a_table, "a single number. From a table"),
        ("attention_gradient", torch_of_numpy, "are NumPy arrays. torch.tensor(x)"),
        ("attention_gradient", an_array_with_a_past, "remembers nothing"),
        (
            "attention_gradient",
            gradient(k_part=lambda ds, q, k: -turned(ds) @ q),
            "grad_q and grad_v are right in every case. Your grad_k is -1 times",
        ),
        (
            "attention_gradient",
            gradient(v_part=lambda p, g, v: np.zeros_like(v)),
            "Look for the mistake in what makes grad_v",
        ),
        (
            "from_in_proj",
            lambda w: (w.chunk(3)[0].T, w.chunk(3)[0].T, w.chunk(3)[2].T),
            "Your W_k holds what W_q should be",
        ),
        ("from_in_proj", lambda w: (p.T for p in w.chunk(3)), "tuple(...)"),
        ("from_in_proj", lambda w: [p.T.int() for p in w.chunk(3)], "cut off"),
        ("match_sdpa", square_mask, "`look` is (4, 4). Its last two axes should"),
        ("match_sdpa", no_axis_for_heads, "Its axes in front do not fit those of q"),
        ("match_sdpa", mask_of_ones, "Whole numbers are neither"),
        ("match_sdpa", values_first, "q and k equally wide, k and v equally long"),
        ("match_sdpa", grown_in_place, "cannot make a tensor larger"),
        ("match_sdpa", with_dropout, "Called twice with the same inputs"),
        ("match_sdpa", in_bfloat16, "It is bfloat16"),
        ("match_sdpa", one_too_many, "Count from the end"),
        ("match_sdpa", of_a_layer, "does not match value shape"),
        ("match_sdpa", times_infinity, "0 times infinity is NaN"),
        (
            "match_sdpa",
            lambda q, k, v, mask=None, causal=False: torch.zeros(
                *q.shape[:-1], v.shape[-1]
            ),
            "nothing but zeros",
        ),
        ("from_in_proj", lambda w: w.chunk(3, dim=1), "(9, 1)"),
        ("from_in_proj", lambda w: np.split(w, 3, axis=5), ""),
        (
            "match_sdpa",
            lambda q, k, v, mask=None, causal=False: SDPA(
                q, k, v, attn_mask=mask.long() if mask is not None else mask
            ),
            "",
        ),
    ],
)
def test_other_slips_are_refused_with_words(name, answer, words):
    verdict = judge(name, answer)
    assert not verdict.passed
    assert words in verdict.text, verdict.text


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([0.6, 0.0, 0.1], "the others grow"),
        ([0.857, 0, 0.143], "sum to 1 again"),
        ([0.45, 0, 0.075], "not multiplied"),
        ([2.4, 0, 0.4], "Which share is kept?"),
        ((0.6, 0.3, 0.1), "model.eval()"),
        ([0.8, 0.4, 0.133], "it is 0"),
        ([0.1, 0.2, 0.7], "Three numbers are wanted"),
        ([0.75, 0.0, 0.125], "a quarter larger"),
        (0.933, "an array"),
    ],
)
def test_wrong_rows_after_dropout_are_told_why(answer, words):
    verdict = judge("after_dropout", answer)
    assert not verdict.passed
    assert words in verdict.text, verdict.text


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([1.2, 0, 0.2], "You doubled them"),
        ([0.75, 0, 0.25], "in equal parts"),
        ([0.15, 0, 0.025], "multiplied by 0.25"),
        ([0.45, 0.225, 0.075], "all three by 0.75"),
        ([0.8, 0.3, 0.133], "The second weight is dropped"),
        ([0, 0.4, 0.133], "*second* weight"),
        ([0.8, 0.4, 0], "*second* weight"),
        (["0.8", "0", "0.133"], "Three numbers are wanted"),
        ([0.8, None, 0.133], "Three numbers are wanted"),
        ([0.8, 0.133], "Three numbers are wanted"),
    ],
)
def test_more_rows_after_dropout_are_told_why(answer, words):
    verdict = judge("after_dropout", answer)
    assert not verdict.passed
    assert words in verdict.text, verdict.text


def test_none_is_named_only_where_it_is_to_blame():
    """To SDPA None is handed as a rule: an error there is about something else."""

    def mask_and_none(q, k, v, mask=None, causal=False):
        return SDPA(q, k, v, attn_mask=mask & ones(q.shape[-2], k.shape[-2]))

    assert "`mask` is None" in judge("match_sdpa", mask_and_none).text
    for answer in (values_first, of_a_layer, square_mask):
        assert "is None" not in judge("match_sdpa", answer).text


def test_a_scale_is_said_only_of_weights():
    """Two outputs multiplied are no softmax, though their logarithms look like one."""

    def multiplied(q, k, v, mask=None, causal=False):
        out = SDPA(q, k, v, attn_mask=mask)
        return out * SDPA(q, k, v, is_causal=True) if causal else out

    assert "softmax of" not in judge("match_sdpa", multiplied).text


@pytest.mark.parametrize(
    "answer", [[0.8, 0, 0.133], (0.8, 0.0, 0.1333), np.array([0.8, 0, 0.13])]
)
def test_the_right_row_after_dropout_passes(answer):
    assert judge("after_dropout", answer).passed
    assert judge("after_dropout", torch.tensor(answer)).passed


def test_what_the_exercise_says_of_modules_is_so():
    """nn.MultiheadAttention taken apart by the solution is multi-head attention."""
    from attnlib import heads

    theirs = nn.MultiheadAttention(6, 2, bias=False, dtype=torch.float64)
    tables = [t.detach().numpy() for t in in_proj_by_slices(theirs.in_proj_weight)]
    x = np.random.default_rng(0).normal(size=(5, 6))
    out = heads.multi_head(x, *tables, theirs.out_proj.weight.detach().numpy().T, 2).out
    x = torch.tensor(x)
    assert np.allclose(theirs(x, x, x)[0].detach().numpy(), out, atol=1e-12)
