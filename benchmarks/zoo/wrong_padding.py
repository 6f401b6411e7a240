"""Padding on the wrong axis, combined wrongly, or in the wrong order of heads.

Some functions take padding beside a mask. Their adapter hands over as padding the keys
that nobody sees, and as the mask what is left; the right function would put the two
together again.
"""

# ruff: noqa: RUF059 - people unpack a whole shape and use half of it

import math

import numpy as np
import torch
import torch.nn.functional as F

from .made import fixed


def softmax(s):
    top = s.max(-1, keepdims=True)
    e = np.exp(s - np.where(np.isneginf(top), 0, top))
    total = e.sum(-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


def masked_attention(q, k, v, allowed):
    s = np.einsum("...id,...jd->...ij", q, k) / math.sqrt(q.shape[-1])
    return softmax(np.where(allowed, s, -np.inf)) @ v


def with_padding(function):
    """(q, k, v, mask) for a function of (q, k, v, mask, real_keys)."""

    def adapter(q, k, v, mask=None):
        if mask is None:
            return function(q, k, v, None, None)
        real = mask.any(-2)  # (..., n_k)
        return function(q, k, v, mask | ~real[..., None, :], real)

    adapter.__name__ = function.__name__
    return adapter


# M15: padding hides queries, and not keys


@with_padding
def pad_rows(q, k, v, mask, real):
    if real is None:
        return masked_attention(q, k, v, True)
    return masked_attention(q, k, v, mask & real[..., :, None])


@with_padding
def pad_rows_torch(q, k, v, mask, real):
    scores = q @ k.mT / math.sqrt(q.size(-1))
    if real is None:
        return scores.softmax(-1) @ v
    mask = (mask & real.unsqueeze(-1)).expand_as(scores)
    some = mask.any(-1, keepdim=True)
    return (scores.masked_fill(~mask & some, -torch.inf).softmax(-1) * some) @ v


def pad_rows_loops(q, k, v, mask=None):
    """Padding in a mask: its rows are skipped, its keys are not."""
    n_q, d = q.shape
    if mask is None:
        return masked_attention(q, k, v, True)
    out = np.zeros((n_q, v.shape[1]), dtype=q.dtype)
    real = mask.any(axis=0)
    for i, token in zip(range(n_q), real, strict=True):
        if token:
            out[i] = masked_attention(q[i : i + 1], k, v, mask[i] | ~real)[0]
    return out


def turned_mask(q, k, v, mask=None):
    allowed = True if mask is None else np.swapaxes(mask, -1, -2)
    return masked_attention(q, k, v, allowed)


# M16: causal and padding not put together


def causal_of(q, k):
    n_q, n_k = q.shape[-2], k.shape[-2]
    return np.tril(np.ones((n_q, n_k), bool), n_k - n_q)


def either(q, k, v, mask=None):
    allowed = causal_of(q, k)
    return masked_attention(q, k, v, allowed if mask is None else allowed | mask)


@with_padding
def causal_or_real(q, k, v, mask, real):
    allowed = causal_of(q, k)
    if real is not None:
        allowed = (allowed | real[..., None, :]) & mask
    return masked_attention(q, k, v, allowed)


def mask_instead_of_causal(q, k, v, mask=None):
    return masked_attention(q, k, v, causal_of(q, k) if mask is None else mask)


def causal_instead_of_mask(q, k, v, mask=None):
    return masked_attention(q, k, v, causal_of(q, k))


@with_padding
def tril_of_padding(q, k, v, mask, real):
    allowed = causal_of(q, k)
    if real is not None:
        allowed = allowed & np.tril(real[..., None, :]) & mask  # one row has one key
    return masked_attention(q, k, v, allowed)


def either_torch(q, k, v, mask=None):
    n_q, n_k = q.size(-2), k.size(-2)
    future = torch.ones(n_q, n_k, dtype=torch.bool).triu(n_k - n_q + 1)
    blocked = future if mask is None else future & ~mask  # and not |
    return F.scaled_dot_product_attention(q, k, v, attn_mask=~blocked)


def added_twice(q, k, v, mask=None):
    n_q, n_k = q.size(-2), k.size(-2)
    if mask is not None:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    causal = torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=causal)


# M17: whose mask is it


def tiled_over_heads(q, k, v, mask=None):
    b, h, n_q, d = q.shape
    n_k = k.shape[2]
    allowed = True
    if mask is not None:
        mask = np.broadcast_to(mask, (b, h, n_q, n_k))[:, 0]
        allowed = np.tile(mask, (h, 1, 1))  # np.repeat(mask, h, axis=0) is right
    flat = [x.reshape(b * h, x.shape[2], x.shape[3]) for x in (q, k, v)]
    return masked_attention(*flat, allowed).reshape(b, h, n_q, -1)


def repeated_torch(q, k, v, mask=None):
    b, h, n_q, d = q.shape
    flat = [x.flatten(0, 1) for x in (q, k, v)]
    if mask is not None:
        mask = mask.expand(b, h, n_q, k.size(2))[:, 0].repeat(h, 1, 1)
    out = F.scaled_dot_product_attention(*flat, attn_mask=mask)
    return out.view(b, h, n_q, -1)


def heads_first(q, k, v, mask=None):
    """Heads folded in front of the batch, and the mask as for the batch in front."""
    b, h, n_q, d = q.shape
    fold = [np.swapaxes(x, 0, 1).reshape(b * h, *x.shape[2:]) for x in (q, k, v)]
    allowed = True
    if mask is not None:
        allowed = np.broadcast_to(mask, (b, h, n_q, k.shape[2])).reshape(b * h, n_q, -1)
    out = masked_attention(*fold, allowed)
    return np.swapaxes(out.reshape(h, b, n_q, -1), 0, 1)


def next_item(q, k, v, mask=None):
    b = q.shape[0]
    out = []
    for i in range(b):
        allowed = (
            True
            if mask is None
            else np.broadcast_to(mask, (*q.shape[:-1], k.shape[-2]))[i - 1]
        )
        out.append(masked_attention(q[i], k[i], v[i], allowed))
    return np.stack(out)


def item_read_as_head(q, k, v, mask=None):
    """A mask (batch, n, n) beside scores (batch, heads, n, n): right only by luck."""
    b, h, n_q, d = q.shape
    scores = q @ k.mT / d**0.5
    if mask is None:
        return scores.softmax(-1) @ v
    if mask.dim() == 4:
        mask = mask.squeeze(1)
    some = mask.any(-1, keepdim=True)
    scores = scores.masked_fill(~mask & some, float("-inf"))
    return (scores.softmax(-1) * some) @ v


CAUSAL = {"causal": True}
SPECIMENS = (
    fixed("M15", "padding of queries", pad_rows, "einsum"),
    fixed("M15", "padding of queries, torch", pad_rows_torch, "masked_fill"),
    fixed("M15", "padding of queries, loops", pad_rows_loops, "loops"),
    fixed("M15", "mask transposed", turned_mask, "einsum"),
    fixed("M16", "causal | mask", either, "einsum", **CAUSAL),
    fixed("M16", "causal | padding", causal_or_real, "adapter", **CAUSAL),
    fixed("M16", "mask instead", mask_instead_of_causal, "einsum", **CAUSAL),
    fixed("M16", "mask ignored", causal_instead_of_mask, "einsum", **CAUSAL),
    fixed("M16", "tril of padding", tril_of_padding, "adapter", **CAUSAL),
    fixed("M16", "future & padding", either_torch, "SDPA", **CAUSAL),
    fixed("M16", "mask instead, torch", added_twice, "SDPA", **CAUSAL),
    fixed("M17", "tile over heads", tiled_over_heads, "reshape"),
    fixed("M17", "repeat over heads, torch", repeated_torch, "SDPA"),
    fixed("M17", "heads folded first", heads_first, "reshape"),
    fixed("M17", "item read as head", item_read_as_head, "masked_fill"),
    fixed("M17", "mask of another item", next_item, "loops"),
)
