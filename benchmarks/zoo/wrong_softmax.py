"""Wrong softmax: axis, stability, twice or not at all. NumPy."""

# ruff: noqa: RUF059 - people unpack a whole shape and use half of it

import math

import numpy as np

from .made import fixed


def scaled(q, k):
    return q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])


def safe(x, axis):
    e = np.exp(x - np.amax(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


# M04: over the wrong axis


def over_queries(q, k, v):
    return safe(scaled(q, k), -2) @ v


def over_queries_masked(q, k, v, mask=None):
    s = scaled(q, k)
    if mask is not None:
        s = np.where(mask, s, -1e300 if s.dtype == np.float64 else -1e30)
    e = np.exp(s - s.max(axis=-2, keepdims=True))
    if mask is not None:
        e = e * mask
    total = e.sum(axis=-2, keepdims=True)
    return (e / np.where(total == 0, 1, total)) @ v


def first_axis(q, k, v):
    scores = q.dot(k.T) / np.sqrt(k.shape[1])
    e = np.exp(scores - np.max(scores, axis=0))
    weights = e / e.sum(axis=0)  # the axis that everybody has by heart
    return weights.dot(v), weights


def over_heads(q, k, v, mask=None):
    scores = np.einsum("bhid,bhjd->bhij", q, k) / np.sqrt(q.shape[-1])
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = e / e.sum(axis=1, keepdims=True)
    if mask is not None:  # the same for all heads, so that a pair is out or in
        weights = weights * np.broadcast_to(mask, weights.shape)
    return np.einsum("bhij,bhjd->bhid", weights, v)


def over_batch(q, k, v):
    batch, heads, n, d = q.shape
    scores = np.matmul(q, k.transpose(0, 1, 3, 2)) / np.sqrt(d)
    e = np.exp(scores - scores.max(axis=0))
    return np.matmul(e / sum(e[b] for b in range(batch)), v)


def over_queries_loops(q, k, v):
    n_q, n_k = len(q), len(k)
    s = [
        [float(q[i] @ k[j]) / math.sqrt(q.shape[1]) for j in range(n_k)]
        for i in range(n_q)
    ]
    w = np.zeros((n_q, n_k), dtype=q.dtype)
    for j in range(n_k):
        column = [s[i][j] for i in range(n_q)]
        top = max(column)
        total = sum(math.exp(c - top) for c in column)
        for i in range(n_q):
            w[i, j] = math.exp(column[i] - top) / total
    return w @ v


def whole_matrix(q, k, v):
    n, d = q.shape
    scores = q @ k.T / np.sqrt(d)
    e = np.exp(scores - scores.max())
    return e / e.sum() @ v


# M05: one softmax for all heads


def joint_heads(q, k, v, mask=None):
    s = np.einsum("bhid,bhjd->bihj", q, k) / np.sqrt(q.shape[-1])
    b, i, h, j = s.shape
    if mask is not None:
        allowed = np.broadcast_to(mask, (b, h, i, j)).transpose(0, 2, 1, 3)
        s = np.where(allowed, s, -np.inf)
    s = s.reshape(b, i, h * j)
    top = s.max(-1, keepdims=True)
    e = np.exp(s - np.where(np.isneginf(top), 0, top))
    total = e.sum(-1, keepdims=True)
    w = (e / np.where(total == 0, 1, total)).reshape(b, i, h, j)
    return np.einsum("bihj,bhjd->bhid", w, v)


def joint_axes(q, k, v):
    s = scaled(q, k)
    if s.ndim != 4:
        raise ValueError("expected (batch, heads, n, d)")
    e = np.exp(s - s.max(axis=(1, 3), keepdims=True))
    return {"out": e / e.sum(axis=(1, 3), keepdims=True) @ v}


def everything_at_once(q, k, v):
    batch, heads, n, d = q.shape
    scores = np.matmul(q, k.transpose(0, 1, 3, 2)) / np.sqrt(d)
    out = np.empty((batch, heads, n, v.shape[-1]), dtype=v.dtype)
    for b in range(batch):
        e = np.exp(scores[b] - scores[b].max())
        out[b] = np.matmul(e / e.sum(), v[b])
    return out


# M06: not stable


def naive(q, k, v, mask=None):
    e = np.exp(scaled(q, k))
    if mask is not None:
        e = np.where(mask, e, 0.0)
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1.0, total) @ v


def naive_loops(q, k, v):
    out = np.zeros((q.shape[0], v.shape[1]), dtype=q.dtype)
    for i in range(q.shape[0]):
        e = np.exp([q[i] @ k[j] / math.sqrt(q.shape[1]) for j in range(k.shape[0])])
        out[i] = (e / np.sum(e)) @ v
    return out


def naive_log_sum(Q, K, V):
    S = np.einsum("...id,...jd->...ij", Q, K) / np.sqrt(Q.shape[-1])
    log_z = np.log(np.exp(S).sum(-1, keepdims=True))
    return np.einsum("...ij,...jd->...id", np.exp(S - log_z), V)


def one_maximum_for_all(q, k, v, mask=None):
    s = scaled(q, k)
    if mask is not None:
        s = np.where(mask, s, -np.inf)
    top = np.max(s)
    e = np.exp(s - (top if np.isfinite(top) else 0.0))
    if mask is None:
        return e / e.sum(-1, keepdims=True) @ v
    total = e.sum(-1, keepdims=True)
    empty = ~np.broadcast_to(mask, s.shape).any(-1, keepdims=True)
    return e / np.where(empty, 1.0, total) @ v


def less_the_mean(q, k, v):
    s = scaled(q, k)
    e = np.exp(s - s.mean(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


# M47: twice, or missing


def softmax_twice(q, k, v, mask=None):
    s = scaled(q, k)
    allowed = np.ones(s.shape, bool) if mask is None else np.broadcast_to(mask, s.shape)
    for _ in range(2):
        s = np.where(allowed, s, -np.inf)
        top = s.max(-1, keepdims=True)
        e = np.exp(s - np.where(np.isneginf(top), 0, top))
        total = e.sum(-1, keepdims=True)
        s = e / np.where(total == 0, 1, total)
    return s @ v


def twice_without_mask(q, k, v):
    return safe(safe(scaled(q, k), -1), -1) @ v


def no_softmax(q, k, v, mask=None):
    scores = scaled(q, k)
    if mask is not None:
        scores = scores * mask
    return np.einsum("...ij,...jd->...id", scores, v)


def no_softmax_reassociated(q, k, v):
    return q @ (np.swapaxes(k, -1, -2) @ v) / np.sqrt(q.shape[-1])


def divided_by_sum(q, k, v):
    scores = scaled(q, k)
    return scores / scores.sum(axis=-1, keepdims=True) @ v


def exp_only(q, k, v):
    s = scaled(q, k)
    return np.exp(s - s.max(-1, keepdims=True)) @ v


SPECIMENS = (
    fixed("M04", "axis -2", over_queries, "matmul"),
    fixed("M04", "axis -2, with a mask", over_queries_masked, "matmul"),
    fixed("M04", "axis 0, 2 axes", first_axis, "dot"),
    fixed("M04", "over heads", over_heads, "einsum"),
    fixed("M04", "over the batch", over_batch, "matmul"),
    fixed("M04", "columns, loops", over_queries_loops, "loops"),
    fixed("M04", "the whole matrix", whole_matrix, "matmul"),
    fixed("M05", "heads and keys, reshape", joint_heads, "einsum"),
    fixed("M05", "heads and keys, axes", joint_axes, "dict"),
    fixed("M05", "heads, queries and keys", everything_at_once, "loops"),
    fixed("M06", "exp over sum", naive, "matmul"),
    fixed("M06", "exp over sum, loops", naive_loops, "loops"),
    fixed("M06", "log of the sum", naive_log_sum, "einsum"),
    fixed("M06", "one maximum for all", one_maximum_for_all, "matmul"),
    fixed("M06", "less the mean", less_the_mean, "matmul"),
    fixed("M47", "softmax twice", softmax_twice, "loop"),
    fixed("M47", "softmax twice, no mask", twice_without_mask, "matmul"),
    fixed("M47", "no softmax", no_softmax, "einsum"),
    fixed("M47", "no softmax, reassociated", no_softmax_reassociated, "matmul"),
    fixed("M47", "divided by the sum", divided_by_sum, "matmul"),
    fixed("M47", "exp without a sum", exp_only, "matmul"),
)
