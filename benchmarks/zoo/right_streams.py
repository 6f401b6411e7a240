"""Right attentions that see the keys in parts, and those that are made for one use."""

import math

import numpy as np

from .draw import function as made


def softmax(scores, axis=-1):
    return np.exp(scores - np.logaddexp.reduce(scores, axis=axis, keepdims=True))


def one_key_at_a_time(q, k, v, mask=None):
    """Online softmax; the first keys of a row may all be hidden."""
    n_q, n_k = q.shape[-2], k.shape[-2]
    shape = np.broadcast_shapes(q.shape[:-2], k.shape[:-2])
    m = np.full((*shape, n_q), -np.inf)
    total = np.zeros((*shape, n_q))
    acc = np.zeros((*shape, n_q, v.shape[-1]))
    look = np.broadcast_to(True if mask is None else mask, (*shape, n_q, n_k))
    for j in range(n_k):
        s = (q * k[..., j : j + 1, :]).sum(-1) / math.sqrt(q.shape[-1])
        s = np.where(look[..., j], s, -np.inf)
        new = np.maximum(m, s)
        safe = np.where(np.isneginf(new), 0.0, new)
        old, now = np.exp(m - safe), np.exp(s - safe)
        total = total * old + now
        acc = acc * old[..., None] + now[..., None] * v[..., j : j + 1, :]
        m = new
    return acc / np.where(total == 0, 1, total)[..., None]


def key_tiles(block):
    def attention(q, k, v, mask=None):
        q = q / np.sqrt(q.shape[-1])
        m = np.full((*q.shape[:-1], 1), -np.inf)
        total = np.zeros_like(m)
        acc = np.zeros((*q.shape[:-1], v.shape[-1]))
        if mask is not None:
            mask = np.broadcast_to(mask, (*q.shape[:-1], k.shape[-2]))
        for start in range(0, k.shape[-2], block):
            part = slice(start, start + block)
            s = q @ np.swapaxes(k[..., part, :], -1, -2)
            if mask is not None:
                s = np.where(mask[..., part], s, -np.inf)
            new = np.maximum(m, s.max(-1, keepdims=True))
            shift = np.where(np.isneginf(new), 0, new)
            p = np.exp(s - shift)
            fade = np.exp(m - shift)
            total = fade * total + p.sum(-1, keepdims=True)
            acc = fade * acc + p @ v[..., part, :]
            m = new
        return np.divide(acc, total, out=np.zeros_like(acc), where=total > 0)

    return attention


def square_tiles(rows, columns):
    """FlashAttention-2 order: a tile of queries outside, tiles of keys inside."""

    def tile(q, k, v, look):
        m, total, acc = -np.inf * np.ones(len(q)), np.zeros(len(q)), 0.0
        for j in range(0, len(k), columns):
            s = q @ k[j : j + columns].T * q.shape[-1] ** -0.5
            s[~look[:, j : j + columns]] = -np.inf
            new = np.maximum(m, s.max(1))
            safe = np.where(new == -np.inf, 0, new)
            p = np.exp(s - safe[:, None])
            total = total * np.exp(m - safe) + p.sum(1)
            acc = acc * np.exp(m - safe)[:, None] + p @ v[j : j + columns]
            m = new
        total[total == 0] = 1
        return acc / total[:, None]

    def attention(q, k, v, mask=None):
        lead = q.shape[:-2]
        full = (*lead, q.shape[-2], k.shape[-2])
        look = np.broadcast_to(True if mask is None else mask, full)
        out = np.empty((*q.shape[:-1], v.shape[-1]), np.result_type(q, v))
        for where in np.ndindex(*lead):
            for i in range(0, q.shape[-2], rows):
                part = slice(i, i + rows)
                out[where][part] = tile(
                    q[where][part], k[where], v[where], look[where][part]
                )
        return out

    return attention


def two_halves(q, k, v, mask=None):
    """Split the keys, attend to each half, merge by their log-sum-exp."""

    def partial(k, v, look):
        n = k.shape[-2]
        if n > 1:
            left = partial(
                k[..., : n // 2, :], v[..., : n // 2, :], look[..., : n // 2]
            )
            right = partial(
                k[..., n // 2 :, :], v[..., n // 2 :, :], look[..., n // 2 :]
            )
            lse = np.logaddexp(left[1], right[1])
            base = np.where(np.isneginf(lse), 0, lse)
            return (
                np.exp(left[1] - base) * left[0] + np.exp(right[1] - base) * right[0],
                lse,
            )
        s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
        s = np.where(look, s, -np.inf)
        return np.where(look, 1.0, 0.0) * v, s

    shape = (*np.broadcast_shapes(q.shape[:-2], k.shape[:-2]), q.shape[-2], k.shape[-2])
    return partial(k, v, np.broadcast_to(True if mask is None else mask, shape))[0]


def only_allowed_keys(q, k, v, mask=None):
    """Every query gathers the keys that it may look at."""
    out = np.zeros((len(q), v.shape[-1]))
    for i, query in enumerate(q):
        keys = np.arange(len(k)) if mask is None else np.flatnonzero(mask[i])
        if keys.size:
            out[i] = softmax(k[keys] @ query / np.sqrt(len(query))) @ v[keys]
    return out


def by_logaddexp(q, k, v, mask=None):
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if mask is None:
        return softmax(scores, axis=-1) @ v
    empty = ~np.any(mask, axis=-1, keepdims=True)
    scores = np.where(np.logical_or(mask, empty), scores, -np.inf)
    return np.where(empty, 0.0, softmax(scores, axis=-1)) @ v


def without_mask(q, k, v):
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(k.shape[-1])
    e = np.exp(s - np.max(s, axis=-1, keepdims=True))
    return (e / np.sum(e, axis=-1, keepdims=True)) @ v


def unbatched_without_mask(Q, K, V):
    S = Q @ K.T / np.sqrt(K.shape[1])
    S -= S.max(axis=1)[:, None]
    P = np.exp(S)
    return (P / P.sum(axis=1)[:, None]) @ V


def causal_self(q, k, v):
    n = q.shape[-2]
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    s = np.where(np.tri(n, dtype=bool), s, -np.inf)
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


def causal_self_1e9(x_q, x_k, x_v):
    n = x_q.shape[-2]
    s = np.einsum("...id,...jd->...ij", x_q, x_k) / np.sqrt(x_q.shape[-1])
    s = s + np.triu(np.full((n, n), -1e9), k=1)
    e = np.exp(s - s.max(-1, keepdims=True))
    return np.einsum("...ij,...jd->...id", e / e.sum(-1, keepdims=True), x_v)


def causal_prefixes(q, k, v):
    """Row i attends to the first rows only: no mask is ever made."""
    first = k.shape[-2] - q.shape[-2] + 1
    rows = [
        without_mask(
            q[..., i : i + 1, :], k[..., : first + i, :], v[..., : first + i, :]
        )
        for i in range(q.shape[-2])
    ]
    return np.concatenate(rows, axis=-2)


def causal_flag(q, k, v, mask=None, causal=False):
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    n_q, n_k = s.shape[-2:]
    look = np.ones((n_q, n_k), bool)
    if causal:
        look = np.tril(look, n_k - n_q)
    if mask is not None:
        look = look & mask
    return by_logaddexp(q, k, v, look)


def window(size):
    def attention(q, k, v):
        n = q.shape[-2]
        i, j = np.arange(n)[:, None], np.arange(n)
        return by_logaddexp(q, k, v, (j <= i) & (j > i - size))

    return attention


def blocked_mask(q, k, v, key_mask=None):
    return by_logaddexp(q, k, v, None if key_mask is None else ~key_mask)


def mixed(s, v):
    top = s.max(-1, keepdims=True)
    e = np.exp(s - np.where(np.isneginf(top), 0, top))
    total = e.sum(-1, keepdims=True)
    return e / np.where(total == 0, 1, total) @ v


def added_mask(q, k, v, mask=None):
    """The mask is 0 where a query may look and -inf where not."""
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    return mixed(s if mask is None else s + mask, v)


def capped(cap):
    def attention(q, k, v, mask=None):
        s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
        s = cap * np.tanh(s / cap)
        if mask is not None:
            s = np.where(mask, s, -np.inf)
        return mixed(s, v)

    return attention


def _as_is(name, function, style, **intent):
    return made(name, lambda rng: function, style, **intent)


SPECIMENS = (
    _as_is("one key at a time", one_key_at_a_time, "online softmax"),
    made(
        "tiles of keys",
        lambda rng: key_tiles(int(rng.integers(1, 6))),
        "tiles",
    ),
    made("tiles of one key", lambda rng: key_tiles(1), "tiles"),
    made("a tile larger than the text", lambda rng: key_tiles(512), "tiles"),
    made(
        "tiles of queries and keys",
        lambda rng: square_tiles(*map(int, rng.integers(1, 5, 2))),
        "tiles",
    ),
    _as_is("halves merged", two_halves, "recursion"),
    _as_is("only the allowed keys", only_allowed_keys, "gather"),
    _as_is("softmax by logaddexp", by_logaddexp, "logaddexp"),
    _as_is("no mask argument", without_mask, "matmul"),
    _as_is("no mask argument, two axes", unbatched_without_mask, "matmul"),
    _as_is("causal by itself", causal_self, "causal", causal=True),
    _as_is("causal by itself, unsaid", causal_self, "causal"),
    _as_is("causal by itself, -1e9", causal_self_1e9, "causal", causal=True),
    _as_is("causal by growing prefixes", causal_prefixes, "causal", causal=True),
    _as_is("causal as an option", causal_flag, "causal"),
    made("window of 3", lambda rng: window(3), "window", window=3),
    made("window of 4", lambda rng: window(4), "window", window=4),
    _as_is("mask says what is blocked", blocked_mask, "masks", mask="blocked"),
    _as_is("mask is added", added_mask, "masks", mask="added"),
    made("scores capped at 5", lambda rng: capped(5.0), "softcap", softcap=5.0),
    made("scores capped at 50", lambda rng: capped(50.0), "softcap", softcap=50),
)
