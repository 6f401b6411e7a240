"""Functions that do not work in half precision, though they are meant to."""

import math

import numpy as np
import torch

from .made import fixed


def scores_first(q, k, v, mask=None):
    """q·k passes 65504 before it is divided."""
    with np.errstate(all="ignore"):
        s = (q @ np.swapaxes(k, -1, -2)) / q.dtype.type(math.sqrt(q.shape[-1]))
        s = s.astype(np.float32)
        s = s if mask is None else np.where(mask, s, -np.inf)
        top = s.max(-1, keepdims=True)
        e = np.exp(s - np.where(np.isneginf(top), 0, top))
        total = e.sum(-1, keepdims=True)
        return (e / np.where(total == 0, 1, total) @ v).astype(q.dtype)


def scores_first_torch(q, k, v, mask=None):
    scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.size(-1))
    if mask is not None:
        some = mask.expand_as(scores).any(-1, keepdim=True)
        scores = scores.masked_fill(~mask & some, float("-inf"))
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
    return weights @ v if mask is None else (weights * some) @ v


def scores_first_einsum(q, k, v):
    s = torch.einsum("bhid,bhjd->bhij", q, k)
    s = s * q.shape[-1] ** -0.5
    return torch.einsum("bhij,bhjd->bhid", s.softmax(-1), v)


def exp_in_half(q, k, v):
    """Scaled before; in half, exp of a score of 11 is more than 65504."""
    q = q * q.dtype.type(q.shape[-1] ** -0.5)
    with np.errstate(all="ignore"):
        e = np.exp(q @ np.swapaxes(k, -1, -2))
        return e / e.sum(-1, keepdims=True, dtype=np.float32).astype(q.dtype) @ v


def sum_in_half(q, k, v):
    """A running sum in half: beyond 2048, adding 1 changes nothing."""
    s = (q.astype(np.float32) @ np.swapaxes(k, -1, -2).astype(np.float32)).astype(
        np.float32
    ) / math.sqrt(q.shape[-1])
    e = np.exp(s - s.max(-1, keepdims=True)).astype(q.dtype)
    total = np.add.accumulate(e, axis=-1, dtype=q.dtype)[..., -1:]
    out = e.astype(np.float32) @ v.astype(np.float32)
    return (out / total.astype(np.float32)).astype(q.dtype)


def blocks_in_bfloat16(q, k, v):
    """Online softmax whose running sum is a bfloat16: it stops at 256."""
    q = q * q.size(-1) ** -0.5
    m = q.new_full((*q.shape[:-1], 1), float("-inf"))
    total, out = torch.zeros_like(m), q.new_zeros(*q.shape[:-1], v.size(-1))
    for kj, vj in zip(k.unbind(-2), v.unbind(-2), strict=True):
        s = (q * kj.unsqueeze(-2)).sum(-1, keepdim=True)
        new = torch.maximum(m, s)
        p, old = torch.exp(s - new), torch.exp(m - new)
        total, out, m = total * old + p, out * old + p * vj.unsqueeze(-2), new
    return out / total


HALF = {"dtype": "float16"}
SPECIMENS = (
    fixed("M35", "scores first", scores_first, "matmul", **HALF),
    fixed("M35", "scores first, torch", scores_first_torch, "matmul", **HALF),
    fixed("M35", "scores first, einsum", scores_first_einsum, "einsum", **HALF),
    fixed("M06", "exp in half", exp_in_half, "matmul", **HALF),
    fixed("M35", "sum in half", sum_in_half, "accumulate", **HALF),
    fixed("M35", "sum in bfloat16", blocks_in_bfloat16, "one key", dtype="bfloat16"),
)
