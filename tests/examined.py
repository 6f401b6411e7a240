"""Attentions to examine: right ones, and ones with a known mistake."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn


def softmax(s, axis=-1):
    top = s.max(axis=axis, keepdims=True)
    e = np.exp(s - np.where(np.isneginf(top), 0, top))
    total = e.sum(axis=axis, keepdims=True)
    return e / np.where(total == 0, 1, total)


def attend(
    q,
    k,
    v,
    mask=None,
    *,
    scale=None,
    axis=-1,
    fill=-np.inf,
    before=lambda s: s,
    after=lambda w, mask: w,
):
    """Right if nothing else is said: empty rows get zeros."""
    s = q @ np.swapaxes(k, -1, -2)
    s = before(s * (q.shape[-1] ** -0.5 if scale is None else scale))
    if mask is not None:
        s = np.where(mask, s, fill)
    return after(softmax(s, axis), mask) @ v


# Right ones, in styles of their own.


def plain(q, k, v):
    return attend(q, k, v)


def with_mask(q, k, v, mask=None):
    return attend(q, k, v, mask)


def in_loops(q, k, v, mask=None):
    n_q, n_k = q.shape[-2], k.shape[-2]
    out = np.zeros((*q.shape[:-1], v.shape[-1]))
    for at in np.ndindex(q.shape[:-2]):
        hidden = np.ones((n_q, n_k), bool) if mask is None else mask
        look = np.broadcast_to(hidden, (*q.shape[:-2], n_q, n_k))[at]
        for i in range(n_q):
            seen = np.flatnonzero(look[i])
            if not len(seen):
                continue
            s = [q[at][i] @ k[at][j] / math.sqrt(q.shape[-1]) for j in seen]
            e = [math.exp(one - max(s)) for one in s]
            for weight, j in zip(e, seen, strict=True):
                out[at][i] += weight / sum(e) * v[at][j]
    return out


def by_einsum(queries, keys, values, attn_mask=None):
    s = np.einsum("...id,...jd->...ij", queries, keys) / np.sqrt(keys.shape[-1])
    if attn_mask is not None:
        s = np.where(attn_mask, s, -np.inf)
    return np.einsum("...ij,...jd->...id", softmax(s), values)


def both_sides_scaled(q, k, v, mask=None):
    root = q.shape[-1] ** 0.25
    return attend(q / root, k / root, v, mask, scale=1.0)


def in_blocks(q, k, v, size=4, rescale=True):
    q = q / np.sqrt(q.shape[-1])
    top = np.full((*q.shape[:-1], 1), -np.inf)
    total, out = np.zeros_like(top), np.zeros((*q.shape[:-1], v.shape[-1]))
    for start in range(0, k.shape[-2], size):
        part = slice(start, start + size)
        s = q @ np.swapaxes(k[..., part, :], -1, -2)
        higher = np.maximum(top, s.max(-1, keepdims=True))
        shrink = np.exp(top - higher)
        e = np.exp(s - higher)
        total = total * shrink + e.sum(-1, keepdims=True)
        out = out * (shrink if rescale else 1.0) + e @ v[..., part, :]
        top = higher
    return out / total


def causal(q, k, v):
    n_q, n_k = q.shape[-2], k.shape[-2]
    return attend(q, k, v, np.tri(n_q, n_k, n_k - n_q, dtype=bool))


def windowed(q, k, v):
    i = np.arange(q.shape[-2])[:, None] + k.shape[-2] - q.shape[-2]
    j = np.arange(k.shape[-2])
    return attend(q, k, v, (j <= i) & (i - j < 3))


def capped(q, k, v, mask=None):
    return attend(q, k, v, mask, before=lambda s: 5.0 * np.tanh(s / 5.0))


def normed(q, k, v, mask=None):
    q, k = (a / np.linalg.norm(a, axis=-1, keepdims=True) for a in (q, k))
    return attend(q, k, v, mask, scale=10.0)


def with_alibi(q, k, v):
    h, n_q, n_k = q.shape[-3], q.shape[-2], k.shape[-2]
    first = 2.0 ** (-8.0 * np.arange(1, 3) / 2)
    slopes = np.array([*first, 2.0 ** (-8.0 / 4)])[:h]
    apart = np.abs(np.arange(n_k) - np.arange(n_q)[:, None] - n_k + n_q)
    return attend(q, k, v, before=lambda s: s - slopes[:, None, None] * apart)


def sdpa(q, k, v, attn_mask=None, is_causal=False):
    if is_causal:
        n_q, n_k = q.size(-2), k.size(-2)
        past = torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q)
        attn_mask = past if attn_mask is None else attn_mask & past
    f = nn.functional.scaled_dot_product_attention
    out = f(q, k, v, attn_mask=attn_mask)
    return out if attn_mask is None else out.masked_fill(empty(attn_mask), 0.0)


def empty(mask):
    return ~mask.any(-1, keepdim=True)


class Heads(nn.Module):
    """Self-attention with fused qkv; what a subclass overrides is what is wrong."""

    def __init__(self, d_model=24, n_heads=4, out=True):
        super().__init__()
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model) if out else nn.Identity()

    def scale(self, d_k):
        return d_k**-0.5

    def split(self, t):
        b, n, d = t.shape
        return t.view(b, n, self.n_heads, d // self.n_heads).transpose(1, 2)

    def hide(self, s, mask):
        return s.masked_fill(~mask, -torch.inf)

    def merge(self, t):
        b, h, n, d = t.shape
        return t.transpose(1, 2).reshape(b, n, h * d)

    def forward(self, x, mask=None):
        q, k, v = (self.split(t) for t in self.qkv(x).chunk(3, dim=-1))
        s = q @ k.mT * self.scale(q.size(-1))
        if mask is not None:
            s = self.hide(s, mask)
            return self.out(self.merge(torch.softmax(s, -1).nan_to_num() @ v))
        return self.out(self.merge(torch.softmax(s, -1) @ v))


class Causal(Heads):
    def forward(self, x):
        return super().forward(x, torch.ones(x.size(1), x.size(1)).tril().bool())


class WithoutScale(Heads):
    def scale(self, d_k):
        return 1.0


class SplitWithoutTranspose(Heads):
    def split(self, t):
        b, n, d = t.shape
        return t.reshape(b, self.n_heads, n, d // self.n_heads)


class MergeWithoutTranspose(Heads):
    def merge(self, t):
        b, h, n, d = t.shape
        return t.reshape(b, n, h * d)


class MaskInverted(Heads):
    def hide(self, s, mask):
        return s.masked_fill(mask, -torch.inf)


class NoOutput(Heads):
    def __init__(self):
        super().__init__(out=False)


class Dropping(Heads):
    def merge(self, t):
        return super().merge(nn.functional.dropout(t, 0.3))


RIGHT = {
    "plain": (plain, {}),
    "with a mask": (with_mask, {}),
    "in loops": (in_loops, {}),
    "by einsum": (by_einsum, {}),
    "both sides scaled": (both_sides_scaled, {}),
    "in blocks": (in_blocks, {}),
    "causal": (causal, {}),
    "causal, as is meant": (causal, {"causal": True}),
    "windowed": (windowed, {}),
    "windowed, as is meant": (windowed, {"window": 3, "causal": True}),
    "capped": (capped, {}),
    "capped, as is meant": (capped, {"softcap": 5.0}),
    "normed": (normed, {}),
    "ALiBi": (with_alibi, {"alibi": True}),
    "SDPA": (sdpa, {}),
    "mask says blocked": (
        lambda q, k, v, mask=None: attend(q, k, v, None if mask is None else ~mask),
        {"mask": "blocked"},
    ),
    "mask is added": (
        lambda q, k, v, mask=None: attend(
            q, k, v, before=lambda s: s if mask is None else s + mask
        ),
        {"mask": "added"},
    ),
    "scaled by 2, as is meant": (
        lambda q, k, v: attend(q, k, v, scale=2.0),
        {"scale": 2.0},
    ),
}


def times(factor):
    return lambda q, k, v, mask=None: attend(q, k, v, mask, scale=factor(q, k, v))


def f(**what):
    return lambda q, k, v, mask=None: attend(q, k, v, mask, **what)


def unstable(q, k, v):
    e = np.exp(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]))
    return e / e.sum(-1, keepdims=True) @ v


def nan_rows(q, k, v, mask=None):
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        s = np.where(mask, s, -np.inf)
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


# What is wrong: the attention, how it is meant, the keys that the report names.
WRONG = {
    "no scale": (times(lambda q, k, v: 1.0), {}, ["scale_missing"]),
    "divided by d_k": (times(lambda q, k, v: 1 / q.shape[-1]), {}, ["scale_d_k"]),
    "divided by a fixed number": (times(lambda q, k, v: 1 / 3), {}, ["scale_other"]),
    "softmax over queries": (f(axis=-2), {}, ["axis_second_last"]),
    "softmax twice": (
        f(after=lambda w, mask: softmax(w)),
        {"empty_rows": False},
        ["softmax_twice"],
    ),
    "keys ask": (
        lambda q, k, v: attend(k, q, v) if q.shape == k.shape else with_mask(k, q, v),
        {},
        ["roles_swapped"],
    ),
    "mask inverted": (
        lambda q, k, v, mask=None: attend(q, k, v, None if mask is None else ~mask),
        {},
        ["mask_inverted"],
    ),
    "mask ignored": (lambda q, k, v, mask=None: attend(q, k, v), {}, ["mask_ignored"]),
    "a weak fill": (f(fill=-1e4), {}, ["mask_fill_other"]),
    "a fill of nothing": (f(fill=0.0), {}, ["mask_fill_zero"]),
    "hidden after the softmax": (
        lambda q, k, v, mask=None: attend(
            q, k, v, after=lambda w, _: w if mask is None else w * mask
        ),
        {},
        ["mask_after"],
    ),
    "an empty row is NaN": (nan_rows, {}, ["empty_row_nan"]),
    "not stable": (unstable, {}, ["not_stable"]),
    "blocks without rescaling": (
        lambda q, k, v: in_blocks(q, k, v, 4, False),
        {},
        ["online_out_4"],
    ),
    "long blocks without rescaling": (
        lambda q, k, v: in_blocks(q, k, v, 64, False),
        {},
        ["online_out_64"],
    ),
    "causal is missing": (plain, {"causal": True}, ["causal_missing"]),
    "causal from the start": (
        lambda q, k, v: attend(q, k, v, np.tri(q.shape[-2], k.shape[-2], dtype=bool)),
        {"causal": True},
        ["aligned_top_left"],
    ),
    "the window has one key more": (
        windowed,
        {"window": 2, "causal": True},
        ["window_one_more"],
    ),
    "another cap": (capped, {"softcap": 8.0}, ["cap_other"]),
    "the cap is missing": (plain, {"softcap": 8.0}, ["cap_missing"]),
    "no scale and a mask inverted": (
        lambda q, k, v, mask=None: attend(
            q, k, v, None if mask is None else ~mask, scale=1.0
        ),
        {},
        ["scale_missing", "mask_inverted"],
    ),
}
MODULES = {
    "right": (Heads, []),
    "causal": (Causal, []),
    "no scale": (WithoutScale, ["scale_missing"]),
    "split": (SplitWithoutTranspose, ["split_no_transpose"]),
    "merge": (MergeWithoutTranspose, ["merge_no_transpose"]),
    "mask": (MaskInverted, ["mask_inverted"]),
    "no output": (NoOutput, ["W_o_none"]),
}
