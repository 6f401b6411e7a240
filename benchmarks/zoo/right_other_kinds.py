"""Right attentions of other kinds: biases, sinks, linear ones, sigmoid ones."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from . import other_kinds as kinds
from .draw import built, function, sizes
from .specimen import Specimen


def clipped(rng):
    """A number for each distance up to 12, for all heads the same; einsum."""
    numbers = rng.normal(size=25)

    def attention(q, k, v, mask=None):
        n_q, n_k = q.shape[-2], k.shape[-2]
        apart = np.arange(n_k)[None] - np.arange(n_q)[:, None] - (n_k - n_q)
        scores = np.einsum("...qd,...kd->...qk", q, k) * q.shape[-1] ** -0.5
        scores += numbers[np.clip(apart, -12, 12) + 12].astype(scores.dtype)
        weights = kinds.softmax(kinds.hide(scores, mask))
        return np.einsum("...qk,...kd->...qd", weights, v)

    return attention


def looped(rng):
    """One head, one pair after another."""
    near = rng.normal(size=3)

    def attention(q, k, v):
        rows = []
        for i, query in enumerate(q):
            place = i + len(k) - len(q)
            scores = [
                query @ key / math.sqrt(len(query)) + near[min(abs(place - j), 2)]
                for j, key in enumerate(k)
            ]
            e = [math.exp(s - max(scores)) for s in scores]
            said = sum(w * value for w, value in zip(e, v, strict=True))
            rows.append(said / sum(e))
        return np.array(rows)

    return attention


def as_sdpa_mask(rng):
    """The bias handed to PyTorch as a mask to add."""
    numbers = torch.from_numpy(rng.normal(size=(3, 41)))

    def attention(q, k, v, mask=None):
        at = torch.arange(k.shape[-2])
        apart = (at - at[k.shape[-2] - q.shape[-2] :, None]).clamp(-20, 20)
        added = numbers.to(q.dtype)[:, apart + 20]
        if mask is not None:
            added = added.masked_fill(~mask, -math.inf)
            dead = torch.isneginf(added).all(-1, keepdim=True)
            out = F.scaled_dot_product_attention(q, k, v, added.masked_fill(dead, 0))
            return out.masked_fill(dead, 0.0)
        return F.scaled_dot_product_attention(
            q, k, v, added.expand(*q.shape[:2], -1, -1)
        )

    return attention


def key_of_zeros(rng):
    """softmax off by one, as one key and one value of zeros more."""

    def attention(q, k, v, mask=None):
        more = np.zeros_like(k[..., :1, :]), np.zeros_like(v[..., :1, :])
        k, v = (np.concatenate(p, axis=-2) for p in zip((k, v), more, strict=True))
        if mask is not None:
            mask = np.concatenate([mask, np.ones_like(mask[..., :1])], axis=-1)
        scores = kinds.half_scores(q, k)
        return kinds.softmax(kinds.hide(scores, mask)) @ v

    return attention


def sinks_by_logaddexp(rng):
    """One sink for all heads; the logarithm of the sum takes it in."""
    sink = float(rng.normal())

    def attention(q, k, v, mask=None):
        scores = torch.einsum("...qd,...kd->...qk", q, k) / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        total = torch.logsumexp(scores, dim=-1, keepdim=True)
        total = torch.logaddexp(total, torch.full_like(total, sink))
        return torch.exp(scores - total) @ v

    return attention


def linear_causal(rng):
    """Running sums over keys."""

    def attention(q, k, v):
        q, k = kinds.elu_plus_one(q), kinds.elu_plus_one(k)
        said = np.cumsum(k[..., :, None] * v[..., None, :], axis=-3)
        total = (q * np.cumsum(k, axis=-2)).sum(axis=-1, keepdims=True)
        return np.einsum("...nd,...nde->...ne", q, said) / total

    return attention


def linear_of_exp(rng):
    """The mask is left out: keys meet values before any query comes."""

    def attention(q, k, v):
        root = q.shape[-1] ** 0.25
        q, k = np.exp(q / root), np.exp(k / root)
        return q @ (np.swapaxes(k, -1, -2) @ v) / (q @ k.sum(axis=-2)[..., None])

    return attention


def _function(name, made, style, **intent):
    return function(f"other kind, {name}", made, style, **intent)


def _module(name, make, style="torch", **intent):
    def whole(rng, dtype):
        d_model, n_heads = sizes(rng)
        return built(rng, dtype, lambda: make(d_model, n_heads))

    return Specimen(f"right: other kind, {name}", frozenset(), whole, intent, style)


def _mha(**options):
    return lambda d, h: nn.MultiheadAttention(d, h, batch_first=True, **options)


SPECIMENS = (
    _function("T5's bias", kinds.by_distance, "numpy"),
    _function("a bias of clipped distance", clipped, "einsum"),
    _function("a bias in loops", looped, "loops"),
    _function("a bias as SDPA's mask", as_sdpa_mask, "sdpa"),
    _function(
        "T5's bias, scale 1",
        lambda rng: kinds.by_distance(rng, scale=""),
        "numpy",
        scale=1.0,
    ),
    _function("a bias by place", kinds.by_place, "numpy"),
    _function("sinks", kinds.with_sinks, "gpt-oss"),
    _function("a sink by logaddexp", sinks_by_logaddexp, "torch"),
    _function("softmax off by one", lambda rng: kinds.off_by_one(), "numpy"),
    _function("a key of zeros", key_of_zeros, "concatenate"),
    _function("linear, elu", lambda rng: kinds.linear_by_table(), "einsum"),
    _function(
        "linear, relu",
        lambda rng: kinds.linear_by_table(lambda x: np.maximum(x, 0)),
        "einsum",
    ),
    _function("linear, exp", linear_of_exp, "kernel trick"),
    _function("linear, running sums", linear_causal, "cumsum"),
    _function("sigmoid, -log n", lambda rng: kinds.sigmoid(), "numpy"),
    _function("sigmoid, -2.5", lambda rng: kinds.sigmoid(bias=-2.5), "numpy"),
    _module("T5, scaled", kinds.T5),
    _module("T5, scale 1", lambda d, h: kinds.T5(d, h, root=False), scale=1.0),
    _module("a decoder with a bias", kinds.Decoder),
    _module("a sink for each head", kinds.Sinks, "gpt-oss"),
    _module("causal, with sinks", kinds.CausalSinks, "gpt-oss"),
    _module(
        "nn.MultiheadAttention, add_zero_attn", _mha(add_zero_attn=True), "library"
    ),
    _module("nn.MultiheadAttention, add_bias_kv", _mha(add_bias_kv=True), "library"),
    _module("linear by keys first", kinds.Linear),
    _module("sigmoid", kinds.Sigmoid),
)
