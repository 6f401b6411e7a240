"""Wrong causal masks and windows, in functions that are causal by themselves."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from .made import fixed


def rows(scores, allowed, v):
    """Softmax over the allowed keys, and mix; an empty row gives zeros. NumPy."""
    scores = np.where(allowed, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    e = np.exp(scores - np.where(np.isneginf(top), 0, top))
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total) @ v


def scaled(q, k):
    return q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])


# M18: the diagonal


def strict(q, k, v):
    n_q, n_k = q.shape[-2], k.shape[-2]
    return rows(scaled(q, k), np.tril(np.ones((n_q, n_k), bool), n_k - n_q - 1), v)


def strict_masked(q, k, v, mask=None):
    n_q, n_k = q.shape[-2], k.shape[-2]
    before = np.arange(n_k) < np.arange(n_q)[:, None] + (n_k - n_q)
    return rows(scaled(q, k), before if mask is None else before & mask, v)


def strict_nan(q, k, v):
    n = q.size(-2)
    scores = q @ k.mT / math.sqrt(q.size(-1))
    blocked = torch.triu(torch.ones(n, n, dtype=torch.bool))  # and not diagonal=1
    return scores.masked_fill(blocked, float("-inf")).softmax(-1) @ v


def strict_1e9(q, k, v):
    n = q.size(-2)
    bias = torch.triu(torch.full((n, n), -1e9, dtype=q.dtype), diagonal=0)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def strict_loops(q, k, v):
    out = np.zeros((len(q), v.shape[1]), dtype=q.dtype)
    for i in range(len(q)):
        end = i + len(k) - len(q)
        if end > 0:
            s = np.array([q[i] @ k[j] / math.sqrt(q.shape[1]) for j in range(end)])
            out[i] = np.exp(s - s.max()) / np.exp(s - s.max()).sum() @ v[:end]
    return out


def one_ahead(q, k, v, mask=None):
    n_q, n_k = q.shape[-2], k.shape[-2]
    allowed = np.tril(np.ones((n_q, n_k), dtype=bool), k=n_k - n_q + 1)
    return rows(scaled(q, k), allowed if mask is None else allowed & mask, v)


def one_ahead_torch(q, k, v):
    n = q.size(-2)
    allowed = torch.ones(n, n).triu(diagonal=2) == 0
    scores = torch.einsum("...id,...jd->...ij", q, k) / q.size(-1) ** 0.5
    return scores.masked_fill(~allowed, float("-inf")).softmax(-1) @ v


def one_ahead_loops(q, k, v):
    out = []
    for i in range(len(q), 0, -1):  # from the last key back
        end = max(len(k) - i + 2, 0)
        s = np.array([q[-i] @ key for key in k[:end]]) * q.shape[1] ** -0.5
        e = np.exp(s - s.max(initial=-1e300))
        out.append(e / (e.sum() or 1.0) @ v[:end])
    return np.array(out, dtype=q.dtype)


# M19: aligned top left


def top_left(q, k, v):
    return rows(scaled(q, k), np.tri(q.shape[-2], k.shape[-2], dtype=bool), v)


def top_left_masked(q, k, v, mask=None):
    i, j = np.ogrid[: q.shape[-2], : k.shape[-2]]
    return rows(scaled(q, k), i >= j if mask is None else (i >= j) & mask, v)


def sdpa_is_causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def a_buffer(q, k, v):
    allowed = torch.tril(torch.ones(512, 512, dtype=q.dtype))[
        : q.size(-2), : k.size(-2)
    ]
    scores = q @ k.mT / math.sqrt(q.size(-1))
    return scores.masked_fill(allowed == 0, float("-inf")).softmax(dim=-1) @ v


def top_left_flag(q, k, v, mask=None, causal=True):
    scores = scaled(q, k)
    allowed = np.ones(scores.shape, bool) if mask is None else mask
    if causal:
        allowed = allowed & np.tri(*scores.shape[-2:], dtype=bool)
    return rows(scores, allowed, v)


# M07, M09, M10 of a causal mask


def future_only(q, k, v):
    n = q.size(-2)
    future = torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=1)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=future)


def tril_of_scores(q, k, v):
    scores = torch.tril(q @ k.mT / math.sqrt(q.size(-1)), k.size(-2) - q.size(-2))
    return F.softmax(scores, dim=-1) @ v


def tril_of_weights(q, k, v):
    s = scaled(q, k)
    e = np.exp(s - s.max(-1, keepdims=True))
    weights = e / e.sum(-1, keepdims=True)
    return np.tril(weights, k.shape[-2] - q.shape[-2]) @ v


def one_minus_tril(q, k, v):
    n_q, n_k = q.shape[-2], k.shape[-2]
    bias = 1.0 * np.tril(np.ones((n_q, n_k)), n_k - n_q)
    s = scaled(q, k) + bias.astype(q.dtype)
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


# M32: a window of one key more or less


def window_slice(width, slip):
    def attention(q, k, v):
        n_q, n_k = q.shape[-2], k.shape[-2]
        position = np.arange(n_q)[:, None] + n_k - n_q
        back = position - np.arange(n_k)
        return rows(scaled(q, k), (back >= 0) & (back < width + slip), v)

    return attention


def window_triu(width, slip):
    def attention(q, k, v, mask=None):
        n_q, n_k = q.size(-2), k.size(-2)
        ones = torch.ones(n_q, n_k, dtype=torch.bool)
        allowed = ones.tril(n_k - n_q) & ones.triu(n_k - n_q - width + 1 - slip)
        allowed = allowed if mask is None else allowed & mask
        return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)

    return attention


def window_loops(width, slip):
    def attention(q, k, v):
        out = np.zeros((len(q), v.shape[1]), dtype=q.dtype)
        for i in range(len(q)):
            p = i + len(k) - len(q)
            first = max(0, p - width + 1 - slip)
            if p < first:
                continue
            s = k[first : p + 1] @ q[i] / math.sqrt(q.shape[1])
            e = np.exp(s - s.max())
            out[i] = e @ v[first : p + 1] / e.sum()
        return out

    return attention


CAUSAL = {"causal": True}
SPECIMENS = (
    fixed("M18", "tril(-1)", strict, "matmul", **CAUSAL),
    fixed("M18", "before, with a mask", strict_masked, "arange", **CAUSAL),
    fixed("M18", "triu without diagonal=1", strict_nan, "masked_fill", **CAUSAL),
    fixed("M18", "triu of -1e9", strict_1e9, "SDPA", **CAUSAL),
    fixed("M18", "range(i)", strict_loops, "loops", **CAUSAL),
    fixed("M18", "tril(1)", one_ahead, "matmul", **CAUSAL),
    fixed("M18", "triu(2)", one_ahead_torch, "einsum", **CAUSAL),
    fixed("M18", "one key more", one_ahead_loops, "loops", **CAUSAL),
    fixed("M19", "tri", top_left, "matmul", **CAUSAL),
    fixed("M19", "ogrid, with a mask", top_left_masked, "ogrid", **CAUSAL),
    fixed("M19", "is_causal", sdpa_is_causal, "SDPA", **CAUSAL),
    fixed("M19", "a buffer cut", a_buffer, "masked_fill", **CAUSAL),
    fixed("M19", "a flag", top_left_flag, "matmul", **CAUSAL),
    fixed("M07", "causal: only the future", future_only, "SDPA", **CAUSAL),
    fixed("M09", "causal: tril of scores", tril_of_scores, "tril", **CAUSAL),
    fixed("M10", "causal: tril of weights", tril_of_weights, "tril", **CAUSAL),
    fixed("M08", "causal: tril added", one_minus_tril, "additive", **CAUSAL),
    fixed("M32", "w=2, one more", window_slice(2, 1), "arange", window=2),
    fixed("M32", "w=3, one less", window_slice(3, -1), "arange", window=3, **CAUSAL),
    fixed("M32", "w=3, one more, torch", window_triu(3, 1), "SDPA", window=3),
    fixed(
        "M32", "w=4, one less, torch", window_triu(4, -1), "SDPA", window=4, **CAUSAL
    ),
    fixed("M32", "w=2, one less, loops", window_loops(2, -1), "loops", window=2),
    fixed(
        "M32", "w=5, one more, loops", window_loops(5, 1), "loops", window=5, **CAUSAL
    ),
)
