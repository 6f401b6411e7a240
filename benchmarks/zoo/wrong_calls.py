"""Wrong functions that want to be called in other ways, or whose mask means another."""

import math
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F

from .made import fixed


def softmax(x, axis=-1):
    top = x.max(axis=axis, keepdims=True)
    e = np.exp(x - np.where(np.isneginf(top), 0, top))
    total = e.sum(axis=axis, keepdims=True)
    return e / np.where(total == 0, 1, total)


# The mask is added: 0 or -inf


def added_no_scale(q, k, v, bias=None):
    s = q @ np.swapaxes(k, -1, -2)
    return softmax(s if bias is None else s + bias) @ v


def added_embed_dim(query, key, value, attn_mask=None):
    h, d = query.shape[1], query.shape[3]
    s = np.einsum("bhid,bhjd->bhij", query, key) / math.sqrt(h * d)
    s = s if attn_mask is None else s + attn_mask
    return np.einsum("bhij,bhjd->bhid", softmax(s), value)


def added_twice_scaled(q, k, v, attn_bias=None):
    q = q / math.sqrt(q.size(-1))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=attn_bias)


def added_after_softmax(q, k, v, bias=None):
    w = softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]))
    return w @ v if bias is None else (w * np.exp(bias)) @ v


def added_nan(q, k, v, bias=None):
    scores = q @ k.mT / math.sqrt(q.size(-1))
    return (scores if bias is None else scores + bias).softmax(-1) @ v


def added_clamped(q, k, v, bias=None):
    """-inf is made -1e4, so that half precision can hold it."""
    scores = q @ k.mT / math.sqrt(q.size(-1))
    if bias is not None:
        scores = scores + bias.clamp_min(-1e4)
    return scores.softmax(-1) @ v


def added_subtracted(q, k, v, bias=None):
    """One minus a mask of 0 and 1 was meant; -inf stands in it already."""
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if bias is not None:
        s = np.where(bias == 0, -np.inf, s)
    return softmax(s) @ v


# The mask says what is blocked


def blocked_no_scale(q, k, v, key_padding_mask=None):
    s = np.einsum("...id,...jd->...ij", q, k)
    if key_padding_mask is not None:
        s = np.where(key_padding_mask, -np.inf, s)
    return softmax(s) @ v


def blocked_nan(q, k, v, attn_mask=None):
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
    if attn_mask is not None:
        scores = scores.masked_fill(attn_mask, float("-inf"))
    return torch.softmax(scores, dim=-1) @ v


def blocked_added(q, k, v, attn_mask=None):
    s = q @ np.swapaxes(k, -1, -2) * q.shape[-1] ** -0.5
    return softmax(s if attn_mask is None else s - attn_mask * 1.0) @ v


def blocked_multiplied(q, k, v, attn_mask=None):
    s = q @ k.mT * q.size(-1) ** -0.5
    return (s if attn_mask is None else s * ~attn_mask).softmax(-1) @ v


def blocked_dim(q, k, v, attn_mask=None):
    s = q @ k.mT * q.size(-1) ** -0.5
    if attn_mask is not None:
        s = s.masked_fill(attn_mask, -1e30)
    weights = s.softmax(dim=-2)
    return (weights if attn_mask is None else weights * ~attn_mask) @ v


# Flags, objects, named results


class Attended(NamedTuple):
    values: np.ndarray
    probabilities: np.ndarray


def flag_off_by_one(q, k, v, mask=None, is_causal=False):
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    n_q, n_k = s.shape[-2:]
    allowed = np.ones(s.shape, bool) if mask is None else np.broadcast_to(mask, s.shape)
    if is_causal:
        allowed = allowed & np.tri(n_q, n_k, n_k - n_q + 1, dtype=bool)
    w = softmax(np.where(allowed, s, -np.inf))
    return Attended(w @ v, w)


def flag_top_left(query, key, value, attn_mask=None, is_causal=False):
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=attn_mask, is_causal=is_causal
    )


def flag_drops_the_mask(q, k, v, mask=None, causal=False):
    n_q, n_k = q.size(-2), k.size(-2)
    if causal:
        mask = torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class ScaledDotProduct:
    """A class with the temperature of another model: sqrt(512)."""

    def __init__(self, temperature):
        self.temperature = temperature

    def __call__(self, q, k, v, mask=None):
        attn = np.matmul(q / self.temperature, np.swapaxes(k, -1, -2))
        if mask is not None:
            attn = np.where(mask, attn, -np.inf)
        attn = softmax(attn)
        return np.matmul(attn, v), attn


def float32_inside(q, k, v, mask=None):
    scores = torch.matmul(q.float(), k.float().mT)
    if mask is not None:
        some = mask.expand_as(scores).any(-1, keepdim=True)
        scores = scores.masked_fill(~mask & some, -torch.inf)
        return ((scores.softmax(-1) * some) @ v.float()).to(v.dtype)
    return (scores.softmax(-1) @ v.float()).to(v.dtype)


def float32_tutorial(q, k, v, mask=None):
    scores = (q @ k.mT).float() / math.sqrt(k.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, torch.finfo(torch.float32).min)
    return scores.softmax(dim=-1).type_as(q) @ v


ADDED = {"mask": "added"}
BLOCKED = {"mask": "blocked"}
NO_EMPTY = {"empty_rows": False}
SPECIMENS = (
    fixed("M01", "a bias, NumPy", added_no_scale, "additive", **ADDED),
    fixed("M02", "a bias, einsum", added_embed_dim, "einsum", **ADDED),
    fixed("M03", "a bias, SDPA", added_twice_scaled, "SDPA", **ADDED),
    fixed("M10", "exp of a bias", added_after_softmax, "additive", **ADDED),
    fixed("M14", "a bias, NaN", added_nan, "additive", **ADDED),
    fixed("M11", "a bias, clamped", added_clamped, "additive", **ADDED, **NO_EMPTY),
    fixed("M07", "a bias, read turned", added_subtracted, "additive", **ADDED),
    fixed("M01", "blocked, NumPy", blocked_no_scale, "einsum", **BLOCKED),
    fixed("M14", "blocked, NaN", blocked_nan, "masked_fill", **BLOCKED),
    fixed(
        "M08", "blocked, subtracted", blocked_added, "additive", **BLOCKED, **NO_EMPTY
    ),
    fixed(
        "M09", "blocked, * ~mask", blocked_multiplied, "matmul", **BLOCKED, **NO_EMPTY
    ),
    fixed("M04", "blocked, dim=-2", blocked_dim, "masked_fill", **BLOCKED),
    fixed("M18", "is_causal, one ahead", flag_off_by_one, "flag"),
    fixed("M19", "is_causal of SDPA", flag_top_left, "flag"),
    fixed("M16", "causal drops the mask", flag_drops_the_mask, "flag"),
    fixed("M02", "temperature of a class", ScaledDotProduct(512**0.5), "class"),
    fixed("M01", "float32 inside", float32_inside, "dtype"),
    fixed("M14", "float32 inside, finfo.min", float32_tutorial, "dtype"),
)
