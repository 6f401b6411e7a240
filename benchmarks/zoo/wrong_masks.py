"""Wrong masks, in functions on NumPy arrays."""

import math

import numpy as np

from .made import drawn, fixed

FILLS = (-10.0, -50.0, -100.0, -1e3, -1e4)


def scaled(q, k):
    return np.einsum("...id,...jd->...ij", q, k) / np.sqrt(q.shape[-1])


def softmax(s):
    top = s.max(axis=-1, keepdims=True)
    e = np.exp(s - np.where(np.isneginf(top), 0, top))
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


def seen(mask, s):
    """Which rows may look at anything, (..., n_q, 1)."""
    return np.broadcast_to(mask, s.shape).any(axis=-1, keepdims=True)


# M07: the other way round


def true_is_blocked(q, k, v, mask=None):
    s = scaled(q, k)
    return softmax(s if mask is None else np.where(mask, -np.inf, s)) @ v


def true_is_blocked_1e9(q, k, v, mask=None):
    s = scaled(q, k)
    if mask is not None:
        s = s + mask * -1e9
    return softmax(s) @ v


def true_is_blocked_loops(q, k, v, mask=None):
    out = np.zeros((len(q), v.shape[1]), dtype=q.dtype)
    for i in range(len(q)):
        keys = [j for j in range(len(k)) if mask is None or not mask[i, j]]
        if keys:
            s = np.array([q[i] @ k[j] for j in keys]) / math.sqrt(q.shape[1])
            out[i] = softmax(s) @ v[keys]
    return out


def may_look_read_as_blocked(q, k, v, blocked=None):
    s = scaled(q, k)
    return softmax(s if blocked is None else np.where(blocked, s, -np.inf)) @ v


# M08: 0 and 1 added


def bool_added(q, k, v, mask=None):
    s = scaled(q, k)
    return (
        softmax(s if mask is None else s + mask)
        @ v
        * (1.0 if mask is None else seen(mask, s))
    )


def ones_added(q, k, v, mask=None):
    s = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    if mask is not None:
        s += np.asarray(mask, dtype=s.dtype)
    return softmax(s) @ v


# M09: a score of 0 hides nothing


def multiplied(q, k, v, mask=None):
    s = scaled(q, k)
    if mask is None:
        return softmax(s) @ v
    return softmax(s * mask) * seen(mask, s) @ v


def filled_small(rng):
    fill = float(rng.choice([0.0, 1e-9, -1e-9, 1e-20]))

    def attention(q, k, v, mask=None):
        s = scaled(q, k)
        if mask is not None:
            s = np.where(mask, s, fill)
        return softmax(s) @ v, softmax(s)

    return attention


def zeroed_in_loops(q, k, v, mask=None):
    s = np.zeros((len(q), len(k)), dtype=q.dtype)
    for i in range(len(q)):
        for j in range(len(k)):
            if mask is None or mask[i, j]:
                s[i, j] = q[i] @ k[j] / math.sqrt(q.shape[1])
    return softmax(s) @ v


# M10: hidden only after the softmax


def after_softmax(q, k, v, mask=None):
    w = softmax(scaled(q, k))
    if mask is not None:
        w = w * mask
    return w @ v


def after_softmax_loops(q, k, v, mask=None):
    w = softmax(scaled(q, k))
    out = np.zeros((*q.shape[:-1], v.shape[-1]), dtype=q.dtype)
    for j in range(k.shape[-2]):
        sees = 1.0 if mask is None else np.broadcast_to(mask, w.shape)[..., j, None]
        out = out + w[..., j, None] * v[..., j, None, :] * sees
    return out


# M11: a fill that a score can beat


def weak_where(rng):
    fill = float(rng.choice(FILLS))

    def attention(q, k, v, mask=None):
        s = scaled(q, k)
        if mask is None:
            return softmax(s) @ v
        return softmax(np.where(mask, s, fill)) * seen(mask, s) @ v

    return attention


def weak_put(fill):
    def attention(q, k, v, mask=None):
        s = scaled(q, k)
        if mask is not None:
            s[~np.broadcast_to(mask, s.shape)] = fill
        return softmax(s) @ v

    return lambda rng: attention


def weak_added(fill):
    def attention(q, k, v, mask=None):
        s = scaled(q, k)
        bias = 0.0 if mask is None else (1.0 - mask) * fill
        return softmax(s + bias) @ v

    return lambda rng: attention


# M12: filled before the scale


def filled_before_scale(rng):
    fill = float(rng.choice(FILLS))

    def attention(q, k, v, mask=None):
        raw = q @ np.swapaxes(k, -1, -2)
        if mask is not None:
            raw = np.where(mask, raw, fill)
        w = softmax(raw / np.sqrt(q.shape[-1]))
        return w @ v if mask is None else w * seen(mask, raw) @ v

    return attention


def biased_before_scale(rng):
    fill = float(rng.choice(FILLS))

    def attention(q, k, v, mask=None):
        raw = np.einsum("...id,...jd->...ij", q, k)
        if mask is not None:
            raw = raw + np.where(mask, 0.0, fill)
        return softmax(raw * q.shape[-1] ** -0.5) @ v

    return attention


# M14: rows that may look at nothing


def nan_rows(q, k, v, mask=None):
    s = scaled(q, k)
    if mask is not None:
        s = np.where(mask, s, -np.inf)
    with np.errstate(invalid="ignore"):
        e = np.exp(s - s.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True) @ v


def uniform_rows(rng):
    fill = float(rng.choice([-1e9, -1e20, np.finfo(np.float32).min]))

    def attention(q, k, v, mask=None):
        s = scaled(q, k)
        return softmax(s if mask is None else np.where(mask, s, fill)) @ v

    return attention


def zero_over_zero(q, k, v, mask=None):
    s = scaled(q, k)
    s = s if mask is None else np.where(mask, s, -1e30)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    e = e if mask is None else e * mask
    with np.errstate(invalid="ignore"):
        return e / e.sum(axis=-1, keepdims=True) @ v


def leaking_rows(q, k, v, mask=None):
    s = scaled(q, k)
    if mask is not None:  # nothing to look at, so look at everything
        s = np.where(mask | ~seen(mask, s), s, -np.inf)
    return softmax(s) @ v


def mean_of_the_values(q, k, v, mask=None):
    out = np.zeros((len(q), v.shape[1]), dtype=q.dtype)
    for i in range(len(q)):
        row = np.ones(len(k), bool) if mask is None else mask[i]
        w = softmax(q[i] @ k[row].T / math.sqrt(q.shape[1])) if row.any() else None
        out[i] = v.mean(axis=0) if w is None else w @ v[row]
    return out


# M45: a NaN is made a number


def nan_made_zero_at_the_end(q, k, v, mask=None):
    s = scaled(q, k)
    s = s if mask is None else np.where(mask, s, -np.inf)
    out = softmax(s) @ v
    out[np.isnan(out)] = 0.0
    return out


NO_EMPTY = {"empty_rows": False}

SPECIMENS = (
    fixed("M07", "where turned", true_is_blocked, "where"),
    fixed("M07", "mask * -1e9", true_is_blocked_1e9, "additive", **NO_EMPTY),
    fixed("M07", "if not mask", true_is_blocked_loops, "loops"),
    fixed("M07", "meant to block", may_look_read_as_blocked, "where", mask="blocked"),
    fixed("M08", "bool added", bool_added, "additive"),
    fixed("M08", "ones added", ones_added, "in place", **NO_EMPTY),
    fixed("M09", "multiplied", multiplied, "matmul"),
    drawn("M09", "filled with 0 or 1e-9", filled_small, "where", **NO_EMPTY),
    fixed("M09", "left at 0", zeroed_in_loops, "loops", **NO_EMPTY),
    fixed("M10", "weights * mask", after_softmax, "matmul"),
    fixed("M10", "weights * mask, loops", after_softmax_loops, "loops"),
    drawn("M11", "where, any fill", weak_where, "where"),
    *(
        drawn("M11", f"put {fill:g}", weak_put(fill), "in place", **NO_EMPTY)
        for fill in FILLS
    ),
    *(
        drawn("M11", f"added {fill:g}", weak_added(fill), "additive", **NO_EMPTY)
        for fill in FILLS
    ),
    drawn("M12", "where, then scale", filled_before_scale, "where"),
    drawn("M12", "bias, then scale", biased_before_scale, "additive", **NO_EMPTY),
    fixed("M14", "NaN", nan_rows, "where"),
    drawn("M14", "uniform", uniform_rows, "where"),
    fixed("M14", "0 / 0", zero_over_zero, "matmul"),
    fixed("M14", "looks at everything", leaking_rows, "where"),
    fixed("M14", "mean of the values", mean_of_the_values, "loops"),
    fixed("M45", "isnan of the result", nan_made_zero_at_the_end, "in place"),
)
