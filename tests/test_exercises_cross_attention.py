"""Lesson 07, cross_attention: right answers in other styles, and what errors say."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from crossings import by_steps, nan_in_empty_rows, turned, two

from attnlib import heads
from attnlib.attention import scaled_dot_product, softmax
from attnlib.exercises import judge


def scaled_first(x, memory, W_q, W_k, W_v, mask=None):
    q = x @ (W_q / np.sqrt(W_q.shape[-1]))
    scores = np.einsum("...qd,...kd->...qk", q, memory @ W_k)
    hidden = np.zeros(scores.shape, bool) if mask is None else ~(scores * 0 + mask > 0)
    scores = np.where(hidden, -np.inf, scores)
    top = scores.max(-1, keepdims=True)
    e = np.exp(scores - np.where(np.isinf(top), 0, top))
    total = e.sum(-1, keepdims=True)
    weights = e / np.where(total == 0, 1, total)
    return weights, (weights @ memory) @ W_v


def as_one_head(x, memory, W_q, W_k, W_v, mask=None):
    mask = None if mask is None else np.expand_dims(mask, -3) if mask.ndim > 1 else mask
    eye = np.eye(W_v.shape[1])
    if x.shape[-1] != W_v.shape[1]:  # multi_head wants an output as wide as x
        return by_steps(
            x,
            memory,
            W_q,
            W_k,
            W_v,
            mask if mask is None or mask.ndim < 3 else mask[..., 0, :, :],
        )
    found = heads.multi_head(x, W_q, W_k, W_v, eye, 1, memory=memory, mask=mask)
    return found.weights[..., 0, :, :], found.out


def in_float32(x, memory, W_q, W_k, W_v, mask=None):
    single = (a.astype(np.float32) for a in (x, memory, W_q, W_k, W_v))
    return by_steps(*single, mask)


def as_list(*args):
    return list(by_steps(*args))


def merged(x, memory, W_q, W_k, W_v, mask=None):
    scores = x @ (W_q @ W_k.T) @ turned(memory) * W_q.shape[-1] ** -0.5
    weights = softmax(scores if mask is None else np.where(mask, scores, -np.inf))
    return weights, weights @ memory @ W_v


@np.errstate(all="ignore")
def nan_mended(x, memory, W_q, W_k, W_v, mask=None):
    weights = np.nan_to_num(nan_in_empty_rows(x, memory, W_q, W_k, W_v, mask)[0])
    return weights, weights @ (memory @ W_v)


def by_loops(x, memory, W_q, W_k, W_v, mask=None):
    n_q, n_k = x.shape[-2], memory.shape[-2]
    weights = np.zeros((*x.shape[:-1], n_k))
    out = np.zeros((*x.shape[:-1], W_v.shape[1]))
    open_ = np.broadcast_to(True if mask is None else mask, weights.shape)
    for b in np.ndindex(*x.shape[:-2]):
        for i in range(n_q):
            seen = [j for j in range(n_k) if open_[b][i, j]]
            if not seen:
                continue
            q = x[b][i] @ W_q
            scores = [q @ (memory[b][j] @ W_k) / W_q.shape[1] ** 0.5 for j in seen]
            weights[b][i, seen] = softmax(scores)
            out[b][i] = sum(weights[b][i, j] * memory[b][j] @ W_v for j in seen)
    return weights, out


def by_torch(x, memory, W_q, W_k, W_v, mask=None):
    q, k, v = (torch.tensor(a) for a in (x @ W_q, memory @ W_k, memory @ W_v))
    scores = q @ k.mT / W_q.shape[1] ** 0.5
    seen = None if mask is None else torch.tensor(mask).expand(scores.shape)
    if seen is not None:
        scores = scores.masked_fill(~seen, -torch.inf)
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
    return scores.softmax(-1).nan_to_num(), out.nan_to_num()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "answer",
    [
        by_steps,
        merged,
        nan_mended,
        by_loops,
        by_torch,
        scaled_first,
        as_one_head,
        in_float32,
        as_list,
    ],
)
def test_another_right_way_passes(answer, seed):
    verdict = judge("cross_attention", answer, seed)
    assert verdict.passed, verdict.text


def test_the_result_of_attnlib_cannot_be_unpacked():
    def cross_attention(x, memory, W_q, W_k, W_v, mask=None):
        weights, out = scaled_dot_product(x @ W_q, memory @ W_k, memory @ W_v, mask)
        return weights, out

    assert "found.weights, found.out" in judge("cross_attention", cross_attention).text


def test_a_mask_in_square_brackets_is_explained():
    def cross_attention(x, memory, W_q, W_k, W_v, mask=None):
        scores = x @ W_q @ turned(memory @ W_k) / W_q.shape[1] ** 0.5
        if mask is not None:
            scores[~mask] = -np.inf
        return softmax(scores), softmax(scores) @ (memory @ W_v)

    assert "np.where(mask, a, b)" in judge("cross_attention", cross_attention).text


def test_a_table_turned_over_is_to_be_left_as_it_is():
    def cross_attention(x, memory, W_q, W_k, W_v, mask=None):
        q, k, v = x @ W_q.T, memory @ W_k.T, memory @ W_v.T
        return two(scaled_dot_product(q, k, v, mask))

    text = judge("cross_attention", cross_attention).text
    assert "`W_q` fits as it is, without `.T`" in text
