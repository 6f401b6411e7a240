"""Wrong scale and wrong roles, in functions on NumPy arrays."""

# ruff: noqa: RUF059 - people unpack a whole shape and use half of it

import math

import numpy as np

from .made import drawn, fixed


def softmax(x, axis=-1):
    top = x.max(axis=axis, keepdims=True)
    e = np.exp(x - np.where(np.isfinite(top), top, 0.0))
    total = e.sum(axis=axis, keepdims=True)
    return e / np.where(total == 0, 1.0, total)


def masked(scores, mask):
    return scores if mask is None else np.where(mask, scores, -np.inf)


# M01: the scale is missing


def no_scale(q, k, v, mask=None):
    return softmax(masked(q @ np.swapaxes(k, -1, -2), mask)) @ v


def no_scale_einsum(Q, K, V):
    A = np.einsum("bhid,bhjd->bhij", Q, K)
    return np.einsum("bhij,bhjd->bhid", softmax(A), V)


def no_scale_loops(q, k, v, mask=None):
    n_q, n_k = len(q), len(k)
    out = np.zeros((n_q, v.shape[1]), dtype=q.dtype)
    weights = np.zeros((n_q, n_k), dtype=q.dtype)
    for i in range(n_q):
        keys = [j for j in range(n_k) if mask is None or mask[i, j]]
        if not keys:
            continue
        scores = [float(np.dot(q[i], k[j])) for j in keys]
        e = [math.exp(s - max(scores)) for s in scores]
        for j, x in zip(keys, e, strict=True):
            weights[i, j] = x / sum(e)
            out[i] += weights[i, j] * v[j]
    return out, weights


def scaled_afterwards(q, k, v):
    d_k = q.shape[-1]
    weights = softmax(q @ k.swapaxes(-1, -2))
    weights = weights / np.sqrt(d_k)  # after the softmax, and then put right again
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return {"output": weights @ v, "weights": weights}


# M02: another size under the root


def d_model(q, k, v, mask=None):
    batch, heads, n, d_k = q.shape
    scores = np.matmul(q, k.transpose(0, 1, 3, 2)) / np.sqrt(heads * d_k)
    return np.matmul(softmax(masked(scores, mask)), v)


def d_model_einsum(q, k, v):
    h, d = q.shape[1], q.shape[3]
    scores = np.einsum("bhqd,bhkd->bhqk", q, k) * (h * d) ** -0.5
    return np.einsum("bhqk,bhkd->bhqd", softmax(scores), v)


def root_of_length(q, k, v, mask=None):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(k.shape[-2])
    return softmax(masked(scores, mask)) @ v


def root_of_length_loops(q, k, v):
    out = []
    for query in q:
        scores = np.array([query @ key for key in k]) / math.sqrt(len(k))
        weights = softmax(scores)
        out.append(sum(w * value for w, value in zip(weights, v, strict=True)))
    return np.array(out)


def root_of_first_axis(q, k, v, mask=None):
    scale = math.sqrt(q.shape[1])  # d_k for (n, d_k), but here come four axes
    scores = np.einsum("bhid,bhjd->bhij", q, k) / scale
    return softmax(masked(scores, mask)) @ v


def size_written_down(rng):
    divisor = math.sqrt(int(rng.choice([128, 256, 512, 768])))

    def attention(q, k, v, mask=None):
        scores = q @ np.swapaxes(k, -1, -2) / divisor
        return softmax(masked(scores, mask)) @ v

    return attention


# M03: scaled twice


def over_d(q, k, v, mask=None):
    return softmax(masked(q @ np.swapaxes(k, -1, -2) / q.shape[-1], mask)) @ v


def twice(q, k, v, mask=None):
    d = q.shape[-1]
    q = q / np.sqrt(d)
    scores = q @ np.swapaxes(k, -1, -2)
    scores /= math.sqrt(d)
    return softmax(masked(scores, mask)) @ v


def both_scaled(Q, K, V):
    s = Q.shape[-1] ** -0.5
    logits = np.einsum("...nd,...md->...nm", Q * s, K * s)
    return np.einsum("...nm,...md->...nd", softmax(logits), V)


def over_d_loops(q, k, v, mask=None):
    n, d = q.shape
    rows = []
    for i in range(n):
        s = np.full(len(k), -np.inf, dtype=q.dtype)
        for j in range(len(k)):
            if mask is None or mask[i][j]:
                s[j] = sum(q[i, c] * k[j, c] for c in range(d)) / d
        rows.append(softmax(s) @ v)
    return np.stack(rows)


# M46: roles


def keys_ask(q, k, v, mask=None):
    scores = k @ np.swapaxes(q, -1, -2) / np.sqrt(q.shape[-1])
    return softmax(masked(scores, mask)) @ v


def keys_ask_loops(q, k, v):
    n = len(q)
    scores = np.zeros((n, n), dtype=q.dtype)
    for i in range(n):
        for j in range(n):
            scores[i, j] = k[i] @ q[j]
    return softmax(scores / math.sqrt(q.shape[1])) @ v


def queries_with_queries(q, k, v, mask=None):
    scores = np.einsum("...id,...jd->...ij", q, q) / np.sqrt(q.shape[-1])
    return softmax(masked(scores, mask)) @ v


def keys_with_keys(q, k, v):
    return softmax(k @ k.swapaxes(-1, -2) / np.sqrt(k.shape[-1])) @ v


def queries_with_values(q, k, v, mask=None):
    scores = q @ np.swapaxes(v, -1, -2) / np.sqrt(q.shape[-1])
    return softmax(masked(scores, mask)) @ v


def keys_with_values(q, k, v):
    logits = np.einsum("...id,...jd->...ij", k, v) * k.shape[-1] ** -0.5
    weights = softmax(logits)
    return weights @ v, weights


def values_are_keys(q, k, v, mask=None):
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    return softmax(masked(scores, mask)) @ k


def values_are_queries(q, k, v):
    scores = np.einsum("bhid,bhjd->bhij", q, k) / np.sqrt(q.shape[-1])
    return np.einsum("bhij,bhjd->bhid", softmax(scores), q)


def weights_turned(q, k, v, mask=None):
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    return np.swapaxes(softmax(masked(scores, mask)), -1, -2) @ v


def weights_turned_einsum(q, k, v):
    w = softmax(np.einsum("bhid,bhjd->bhij", q, k) / np.sqrt(q.shape[-1]))
    return np.einsum("bhji,bhjd->bhid", w, v)


SPECIMENS = (
    fixed("M01", "matmul", no_scale, "matmul"),
    fixed("M01", "einsum, 4 axes", no_scale_einsum, "einsum"),
    fixed("M01", "loops, out and weights", no_scale_loops, "loops"),
    fixed("M01", "scaled after softmax", scaled_afterwards, "dict"),
    fixed("M02", "heads * d_k", d_model, "matmul"),
    fixed("M02", "heads * d_k, einsum", d_model_einsum, "einsum"),
    fixed("M02", "root of n_k", root_of_length, "matmul"),
    fixed("M02", "root of n_k, loops", root_of_length_loops, "loops"),
    fixed("M02", "root of shape[1]", root_of_first_axis, "einsum"),
    drawn("M02", "a size written down", size_written_down, "constant"),
    fixed("M03", "divided by d_k", over_d, "matmul"),
    fixed("M03", "twice, in place", twice, "in place"),
    fixed("M03", "q and k both", both_scaled, "einsum"),
    fixed("M03", "divided by d_k, loops", over_d_loops, "loops"),
    fixed("M46", "q and k swapped", keys_ask, "matmul"),
    fixed("M46", "q and k swapped, loops", keys_ask_loops, "loops"),
    fixed("M46", "q with q", queries_with_queries, "einsum"),
    fixed("M46", "k with k", keys_with_keys, "matmul"),
    fixed("M46", "q with v", queries_with_values, "matmul"),
    fixed("M46", "k with v", keys_with_values, "einsum"),
    fixed("M46", "values are keys", values_are_keys, "matmul"),
    fixed("M46", "values are queries", values_are_queries, "einsum"),
    fixed("M46", "weights transposed", weights_turned, "matmul"),
    fixed("M46", "weights transposed, einsum", weights_turned_einsum, "einsum"),
)
