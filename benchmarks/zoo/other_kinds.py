"""Attentions of kinds that add numbers of their own or take no softmax, with slips.

Each builder takes the places where people slip as arguments; the files right_ and
wrong_other_kinds.py say which. Tables by head hold three heads, as the questions do.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def softmax(x, axis=-1):
    top = x.max(axis=axis, keepdims=True)
    e = np.exp(x - np.where(np.isneginf(top), 0, top))
    total = e.sum(axis=axis, keepdims=True)
    return e / np.where(total == 0, 1, total)


def hide(scores, mask, *, fill=-np.inf, turned=False):
    if mask is None:
        return scores
    return np.where(mask != turned, scores, fill)


def half_scores(q, k, scale="d_k"):
    sizes = {"d_k": q.shape[-1], "d_model": q.shape[-1] * q.shape[-3], "": 1}
    return q @ np.swapaxes(k, -1, -2) / math.sqrt(sizes[scale])


def buckets(apart, count=16, farthest=128, both=True):
    """T5's: half of them exact, the others ever wider."""
    first = 0
    if both:
        count //= 2
        first = count * (apart > 0)
        apart = np.abs(apart)
    else:
        apart = np.maximum(-apart, 0)
    exact = count // 2
    far = np.log(np.maximum(apart, 1) / exact) / math.log(farthest / exact)
    far = np.minimum(exact + (far * (count - exact)).astype(int), count - 1)
    return first + np.where(apart < exact, apart, far)


def by_distance(rng, heads=3, *, scale="d_k", finish=softmax, **slips):
    """T5's bias in NumPy."""
    table = rng.normal(size=(heads, 16))

    def attention(q, k, v, mask=None):
        n_q, n_k = q.shape[-2], k.shape[-2]
        apart = np.arange(n_k) - np.arange(n_k - n_q, n_k)[:, None]
        scores = half_scores(q, k, scale) + table[:, buckets(apart)]
        return finish(hide(scores, mask, **slips)) @ v

    return attention


def by_place(rng, *, scale="d_k", **slips):
    """A table for 200 places, added."""
    table = rng.normal(size=(200, 200))

    def attention(q, k, v, mask=None):
        scores = half_scores(q, k, scale)
        scores = scores + table[: q.shape[-2], : k.shape[-2]]
        return softmax(hide(scores, mask, **slips)) @ v

    return attention


def with_sinks(rng, heads=3, *, scale="d_k", stable=True, zeroed=False, **slips):
    """gpt-oss: a column of logits that is dropped after the softmax."""
    sinks = rng.normal(size=(heads, 1, 1))

    def attention(q, k, v, mask=None):
        scores = half_scores(q, k, scale)
        if not zeroed:
            scores = hide(scores, mask, **slips)
        column = np.broadcast_to(sinks, (*scores.shape[:-1], 1)).astype(scores.dtype)
        both = np.concatenate([scores, column], axis=-1)
        top = both.max(axis=-1, keepdims=True) if stable else 0
        e = np.exp(both - top)
        weights = (e / e.sum(axis=-1, keepdims=True))[..., :-1]
        if zeroed and mask is not None:
            weights = np.where(mask, weights, 0)
        return weights @ v

    return attention


def off_by_one(*, scale="d_k", **slips):
    """exp(s) / (1 + sum of exp(s))."""

    def attention(q, k, v, mask=None):
        scores = hide(half_scores(q, k, scale), mask, **slips)
        top = np.maximum(scores.max(axis=-1, keepdims=True), 0)
        e = np.exp(scores - top)
        return e / (np.exp(-top) + e.sum(axis=-1, keepdims=True)) @ v

    return attention


def elu_plus_one(x):
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def linear_by_table(phi=elu_plus_one, *, turned=False, eps=1e-6):
    """The whole table of products, so that any mask fits."""

    def attention(q, k, v, mask=None):
        products = np.einsum("...qd,...kd->...qk", phi(q), phi(k))
        if mask is not None:
            products = products * (mask != turned)
        return products @ v / (products.sum(axis=-1, keepdims=True) + eps)

    return attention


def sigmoid(*, scale="d_k", bias=None, turned=False):
    def attention(q, k, v, mask=None):
        b = -math.log(k.shape[-2]) if bias is None else bias
        weights = 1 / (1 + np.exp(-half_scores(q, k, scale) - b))
        return (weights if mask is None else weights * (mask != turned)) @ v

    return attention


class Tokens(nn.Module):
    """Projections and heads; what is between them is for others to say."""

    def __init__(self, width, n_heads, *, root=True, viewed=False, turned=False):
        super().__init__()
        self.n_heads, self.d_k = n_heads, width // n_heads
        self.root, self.viewed, self.turned = root, viewed, turned
        self.q_proj = nn.Linear(width, width)
        self.k_proj = nn.Linear(width, width)
        self.v_proj = nn.Linear(width, width)
        self.o_proj = nn.Linear(width, width)
        self.more(n_heads)

    def more(self, n_heads):
        """Numbers of its own."""

    def heads(self, x):
        b, n, _ = x.shape
        if self.viewed:
            return x.reshape(b, self.n_heads, n, self.d_k)
        return x.view(b, n, self.n_heads, self.d_k).transpose(1, 2)

    def added(self, scores):
        return scores

    def weigh(self, scores, mask):
        if mask is not None:
            scores = scores.masked_fill(mask if self.turned else ~mask, -math.inf)
        dead = torch.isneginf(scores).all(-1, keepdim=True)
        return scores.masked_fill(dead, 0.0).softmax(-1).masked_fill(dead, 0.0)

    def forward(self, x, mask=None):
        q, k, v = (self.heads(p(x)) for p in (self.q_proj, self.k_proj, self.v_proj))
        scores = q @ k.mT
        if self.root:
            scores = scores / math.sqrt(self.d_k)
        mixed = self.weigh(self.added(scores), mask) @ v
        return self.o_proj(mixed.transpose(1, 2).flatten(2))


class T5(Tokens):
    """Both sides; scale 1 with root=False."""

    def more(self, n_heads):
        self.relative_attention_bias = nn.Embedding(16, n_heads)

    def added(self, scores):
        at = np.arange(scores.shape[-1])
        chosen = torch.from_numpy(buckets(at - at[:, None]))
        return scores + self.relative_attention_bias(chosen).permute(2, 0, 1)


class Decoder(Tokens):
    """Causal by itself, with a bias by distance; `first` is 2 where people slip."""

    first = 1

    def more(self, n_heads):
        self.table = nn.Parameter(torch.randn(n_heads, 64))

    def forward(self, x):
        n = x.shape[1]
        past = torch.ones(n, n, dtype=torch.bool).triu(self.first)
        return super().forward(x, ~past)

    def added(self, scores):
        at = torch.arange(scores.shape[-1])
        return scores + self.table[:, (at[:, None] - at).clamp(0, 63)]


class LateDecoder(Decoder):
    first = 2


class Sinks(Tokens):
    """A logit for each head beside the scores."""

    def more(self, n_heads):
        self.sinks = nn.Parameter(torch.randn(n_heads))

    def weigh(self, scores, mask):
        if mask is not None:
            scores = scores.masked_fill(mask if self.turned else ~mask, -math.inf)
        sinks = self.sinks[:, None, None].expand(*scores.shape[:-1], 1)
        return torch.cat([scores, sinks], dim=-1).softmax(-1)[..., :-1]


class CausalSinks(Sinks):
    def forward(self, x):
        return super().forward(x, torch.ones(x.shape[1], x.shape[1]).tril().bool())


class Linear(Tokens):
    """elu + 1, keys and values first: no table is ever made."""

    def forward(self, x):
        q, k, v = (self.heads(p(x)) for p in (self.q_proj, self.k_proj, self.v_proj))
        q, k = F.elu(q) + 1, F.elu(k) + 1
        total = torch.einsum("bhqd,bhd->bhq", q, k.sum(dim=2))
        mixed = q @ (k.mT @ v) / (total[..., None] + 1e-6)
        return self.o_proj(mixed.transpose(1, 2).flatten(2))


class Sigmoid(Tokens):
    def weigh(self, scores, mask):
        weights = torch.sigmoid(scores - math.log(scores.shape[-1]))
        if mask is None:
            return weights
        return weights.masked_fill(mask if self.turned else ~mask, 0.0)
