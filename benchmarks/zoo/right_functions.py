"""Right attentions as functions on NumPy arrays, mask boolean, True = may look."""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from .draw import function as made


def plain(q, k, v, mask=None):
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    e = np.exp(scores - top)
    total = e.sum(axis=-1, keepdims=True)
    return (e / np.where(total == 0, 1.0, total)) @ v


def loops(q, k, v, mask=None):
    n_q, d = q.shape
    n_k, d_v = v.shape
    out = np.zeros((n_q, d_v), dtype=q.dtype)
    for i in range(n_q):
        scores = []
        for j in range(n_k):
            if mask is not None and not mask[i][j]:
                continue
            s = 0.0
            for c in range(d):
                s += float(q[i, c]) * float(k[j, c])
            scores.append((j, s / math.sqrt(d)))
        if not scores:
            continue
        biggest = max(s for _, s in scores)
        total = 0.0
        for _, s in scores:
            total += math.exp(s - biggest)
        for j, s in scores:
            for c in range(d_v):
                out[i, c] += math.exp(s - biggest) / total * v[j, c]
    return out


def comprehensions(q, k, v, mask=None):
    def row(query, allowed):
        scores = [sum(a * b for a, b in zip(query, key, strict=True)) for key in k]
        scores = [s * len(query) ** -0.5 for s in scores]
        seen = [s for s, ok in zip(scores, allowed, strict=True) if ok]
        if not seen:
            return [0.0] * v.shape[1]
        e = [
            math.exp(s - max(seen)) if ok else 0.0
            for s, ok in zip(scores, allowed, strict=True)
        ]
        return [
            sum(w * x for w, x in zip(e, column, strict=True)) / sum(e)
            for column in v.T.tolist()
        ]

    everything = np.ones((len(q), len(k)), dtype=bool)
    looks = everything if mask is None else np.broadcast_to(mask, everything.shape)
    rows = zip(q.tolist(), looks, strict=True)
    return np.array([row(query, allowed) for query, allowed in rows])


def einsum(Q, K, V, mask=None):
    S = np.einsum("...id,...jd->...ij", Q, K) / Q.shape[-1] ** 0.5
    allowed = np.ones(S.shape, bool) if mask is None else np.broadcast_to(mask, S.shape)
    S = np.where(allowed, S, -np.inf)
    M = np.max(S, axis=-1, keepdims=True)
    M[np.isneginf(M)] = 0
    P = np.exp(S - M)
    Z = np.einsum("...ij->...i", P)[..., None]
    A = np.divide(P, Z, out=np.zeros_like(P), where=Z > 0)
    return np.einsum("...ij,...jd->...id", A, V)


def prescaled(q, k, v, mask=None):
    q = q * q.shape[-1] ** -0.5
    logits = np.matmul(q, k.swapaxes(-2, -1))
    if mask is None:
        mask = np.ones(logits.shape[-2:], bool)
    logits = np.where(mask, logits, -np.inf)
    peak = np.max(logits, axis=-1, keepdims=True, initial=np.finfo(logits.dtype).min)
    weights = np.exp(logits - peak)
    weights /= np.maximum(weights.sum(-1, keepdims=True), 1e-30)
    return np.matmul(weights, v)


def quarter_power(q, k, v, mask=None):
    """As in diffusion models: the fourth root of d on both sides, safe in float16."""
    scale = 1 / math.sqrt(math.sqrt(q.shape[-1]))
    w = np.einsum("...tc,...sc->...ts", q * scale, k * scale)
    if mask is not None:
        w = np.where(mask, w, -np.inf)
    with np.errstate(invalid="ignore"):
        w = np.exp(w - w.max(-1, keepdims=True))
        w = np.nan_to_num(w / w.sum(-1, keepdims=True))
    return np.einsum("...ts,...sc->...tc", w, v)


def log_sum_exp(q, k, v, mask=None):
    scores = (q @ np.swapaxes(k, -1, -2)) / np.sqrt(k.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    lse = np.logaddexp.reduce(scores, axis=-1, keepdims=True)
    lse = np.where(np.isneginf(lse), 0.0, lse)
    return np.exp(scores - lse) @ v


def renormalised_over_allowed(q, k, v, mask=None):
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    m = np.ones_like(s, dtype=bool) if mask is None else np.broadcast_to(mask, s.shape)
    top = np.max(s, axis=-1, keepdims=True, where=m, initial=-np.inf)
    e = np.exp(np.minimum(s - np.where(np.isinf(top), 0, top), 0)) * m
    total = e.sum(-1, keepdims=True)
    return e @ v / np.where(total > 0, total, 1)


def renormalised_after_softmax(q, k, v, mask=None):
    """Softmax over all keys, then mask and divide: right but for underflow."""
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    p = np.exp(s - s.max(-1, keepdims=True))
    p = p / p.sum(-1, keepdims=True)
    if mask is not None:
        p = p * mask
        total = p.sum(-1, keepdims=True)
        p = np.divide(p, total, out=np.zeros_like(p), where=total != 0)
    return p @ v


def bias_made_inside(q, k, v, mask=None):
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    bias = 0.0 if mask is None else np.where(mask, 0.0, -np.inf)
    scores = scores + bias
    scores = scores - np.nan_to_num(scores.max(-1, keepdims=True), neginf=0.0)
    weights = np.exp(scores)
    norm = weights.sum(-1, keepdims=True)
    norm[norm == 0] = 1
    return weights / norm @ v


def minus_1e9_zeroed(q, k, v, mask=None):
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -1e9)
    scores = scores - scores.max(-1, keepdims=True)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    if mask is not None:
        weights = np.where(np.any(mask, axis=-1, keepdims=True), weights, 0)
    return weights @ v


def finfo_min(q, k, v, mask=None):
    scores = q @ np.moveaxis(k, -1, -2) / math.sqrt(k.shape[-1])
    if mask is not None:
        scores = np.where(mask == 0, np.finfo(scores.dtype).min, scores)
    with np.errstate(over="ignore"):
        e = np.exp(scores - scores.max(-1, keepdims=True))
    out = e / e.sum(-1, keepdims=True) @ v
    return out if mask is None else out * np.any(mask, axis=-1)[..., None]


def exp_where(q, k, v, mask=None):
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    look = np.broadcast_to(True if mask is None else mask, s.shape)
    top = s.max(-1, keepdims=True, where=look, initial=-np.inf)
    top[~np.isfinite(top)] = 0
    e = np.exp(s - top, where=look, out=np.zeros_like(s))
    total = e.sum(-1, keepdims=True)
    return (e / (total + (total == 0))) @ v


def base_two(q, k, v, mask=None):
    """exp(x) = 2^(x log2 e), as fused kernels do."""
    s = q @ np.swapaxes(k, -1, -2) * (np.log2(np.e) / np.sqrt(q.shape[-1]))
    if mask is not None:
        s = np.where(mask, s, -np.inf)
    top = s.max(-1, keepdims=True)
    p = np.exp2(s - np.where(np.isneginf(top), 0, top))
    total = p.sum(-1, keepdims=True)
    return p @ v / np.where(total == 0, 1, total)


def masked_array(q, k, v, mask=None):
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    hidden = False if mask is None else ~np.broadcast_to(mask, s.shape)
    s = np.ma.array(s, mask=hidden)
    e = np.ma.exp(s - s.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True)).filled(0.0) @ v


def float32_inside(q, k, v, mask=None):
    kind = q.dtype
    q, k, v = (a.astype(np.float32) for a in (q, k, v))
    return plain(q, k, v, mask).astype(kind)


def float64_inside(query, key, value, attn_mask=None):
    wide = [np.asarray(a, np.float64) for a in (query, key, value)]
    return plain(*wide, attn_mask).astype(query.dtype)


def one_head_at_a_time(q, k, v, mask=None):
    batch, heads, n_q, _ = q.shape
    out = np.empty((batch, heads, n_q, v.shape[-1]), q.dtype)
    if mask is not None:
        mask = np.broadcast_to(mask, (batch, heads, n_q, k.shape[2]))
    for b in range(batch):
        for h in range(heads):
            part = None if mask is None else mask[b, h]
            out[b, h] = plain(q[b, h], k[b, h], v[b, h], part)
    return out


def scaled_by_hand(q, k, v, mask=None, scale=None):
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return plain(q * (scale * q.shape[-1] ** 0.5), k, v, mask)


def pair_of_results(q, k, v, mask=None):
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    s = s if mask is None else np.where(mask, s, -np.inf)
    top = s.max(-1, keepdims=True)
    e = np.exp(s - np.where(np.isneginf(top), 0, top))
    weights = e / np.maximum(e.sum(-1, keepdims=True), np.finfo(e.dtype).tiny)
    return weights @ v, weights


@dataclass
class Result:
    output: np.ndarray
    attention_weights: np.ndarray


def dataclass_result(q, k, v, mask=None):
    return Result(*pair_of_results(q, k, v, mask))


def dict_result(q, k, v, mask=None):
    out, weights = pair_of_results(q, k, v, mask)
    return {"weights": weights, "out": out}


class Callable:
    """Somebody's class with a __call__."""

    def softmax(self, x):
        top = x.max(-1, keepdims=True)
        e = np.exp(x - np.where(np.isneginf(top), 0, top))
        total = e.sum(-1, keepdims=True)
        return e / np.where(total == 0, 1, total)

    def __call__(self, q, k, v, mask=None):
        x = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
        return self.softmax(x if mask is None else np.where(mask, x, -np.inf)) @ v


def _right(name, function, style, **intent):
    return made(name, lambda rng: function, style, **intent)


SPECIMENS = (
    _right("plain NumPy", plain, "matmul"),
    _right("three loops", loops, "loops"),
    _right("list comprehensions", comprehensions, "lists"),
    _right("einsum", einsum, "einsum"),
    _right("queries scaled before", prescaled, "pre-scaled"),
    _right("fourth root on both", quarter_power, "pre-scaled"),
    _right("log-sum-exp", log_sum_exp, "matmul"),
    _right("masked exp, divided", renormalised_over_allowed, "renormalised"),
    _right("masked after softmax, divided", renormalised_after_softmax, "renormalised"),
    _right("additive bias made inside", bias_made_inside, "additive"),
    _right("-1e9, empty rows zeroed", minus_1e9_zeroed, "finite fill"),
    _right("finfo.min, empty rows zeroed", finfo_min, "finite fill"),
    _right("exp with where", exp_where, "matmul"),
    _right("powers of two", base_two, "kernel"),
    _right("masked arrays", masked_array, "numpy.ma"),
    _right("float32 inside", float32_inside, "dtype"),
    _right("float64 inside", float64_inside, "dtype"),
    _right("one head at a time", one_head_at_a_time, "loops"),
    _right("with a scale argument", scaled_by_hand, "matmul"),
    _right("partial of a function", partial(scaled_by_hand, scale=None), "partial"),
    _right("out and weights", pair_of_results, "results"),
    _right("a dataclass of results", dataclass_result, "results"),
    _right("a dict of results", dict_result, "results"),
    _right("an object with __call__", Callable(), "class"),
)
