"""Wrong functions of whole heads: axes exchanged, masks of others, RoPE inside."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from .made import fixed

# M24: written for (batch, n, heads, d), as flash-attn has it


def flash_layout(q, k, v):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2)


def flash_layout_einsum(q, k, v):
    scores = np.einsum("bihd,bjhd->bhij", q, k) / np.sqrt(q.shape[-1])
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bhij,bjhd->bihd", e / e.sum(-1, keepdims=True), v)


def flash_layout_loops(q, k, v):
    batch, n, heads, d = q.shape
    out = np.zeros((batch, n, heads, v.shape[-1]), dtype=q.dtype)
    for b in range(batch):
        for h in range(heads):
            s = q[b, :, h] @ k[b, :, h].T / math.sqrt(d)
            e = np.exp(s - s.max(-1, keepdims=True))
            out[b, :, h] = e / e.sum(-1, keepdims=True) @ v[b, :, h]
    return out


def flash_layout_unscaled(q, k, v):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, scale=1.0).transpose(1, 2)


# M17: whose mask is it


def item_after(q, k, v, mask=None):
    scores = q @ k.mT / q.size(-1) ** 0.5
    if mask is None:
        return scores.softmax(-1) @ v
    look = mask.expand(scores.shape).roll(-1, dims=0)
    some = look.any(-1, keepdim=True)
    return (scores.masked_fill(~look & some, -torch.inf).softmax(-1) * some) @ v


# RoPE inside: d_k must be even


def turned(x):
    n, d = x.shape[-2:]
    angles = np.arange(n)[:, None] * 10000.0 ** (-np.arange(0, d, 2) / d)
    first, second = x[..., : d // 2], x[..., d // 2 :]
    cos, sin = np.cos(angles), np.sin(angles)
    parts = first * cos - second * sin, first * sin + second * cos
    return np.concatenate(parts, axis=-1).astype(x.dtype)


def attend(q, k, v, mask, scale):
    if q.shape[-1] % 2:
        raise ValueError("RoPE turns pairs of features, so d must be even")
    if q.shape[-2] != k.shape[-2]:
        raise ValueError("queries and keys stand at the same positions")
    scores = turned(q) @ np.swapaxes(turned(k), -1, -2) * scale
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    e = np.exp(scores - np.where(np.isneginf(top), 0, top))
    total = e.sum(-1, keepdims=True)
    return e / np.where(total == 0, 1, total) @ v


def rope_no_scale(q, k, v, mask=None):
    return attend(q, k, v, mask, q.dtype.type(1.0))


def rope_mask_turned(q, k, v, mask=None):
    look = None if mask is None else ~np.asarray(mask)
    return attend(q, k, v, look, q.dtype.type(q.shape[-1] ** -0.5))


def rope_scaled_twice(q, k, v, mask=None):
    return attend(q, k, v, mask, q.dtype.type(1 / q.shape[-1]))


SPECIMENS = (
    fixed("M24", "flash-attn's layout", flash_layout, "SDPA"),
    fixed("M24", "flash-attn's layout, NumPy", flash_layout_einsum, "einsum"),
    fixed("M24", "flash-attn's layout, loops", flash_layout_loops, "loops"),
    fixed("M24 M01", "flash-attn's layout, no scale", flash_layout_unscaled, "SDPA"),
    fixed("M17", "mask of the next item", item_after, "roll"),
    fixed("M01", "RoPE inside, no scale", rope_no_scale, "RoPE"),
    fixed("M07", "RoPE inside, mask turned", rope_mask_turned, "RoPE"),
    fixed("M03", "RoPE inside, scaled twice", rope_scaled_twice, "RoPE"),
)
