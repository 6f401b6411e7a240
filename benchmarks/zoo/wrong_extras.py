"""Wrong groups of heads, dropout, softcap and QK-norm, in functions."""

# ruff: noqa: RUF059 - people unpack a whole shape and use half of it

import math

import numpy as np
import torch
import torch.nn.functional as F

from .made import drawn, fixed


def attend(q, k, v, mask=None, change=lambda s: s):
    s = change(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]))
    if mask is not None:
        s = np.where(mask, s, -np.inf)
    return softmax(s) @ v


def softmax(s):
    top = s.max(-1, keepdims=True)
    e = np.exp(s - np.where(np.isneginf(top), 0, top))
    total = e.sum(-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


# M33: which heads share


def tiled(q, k, v, mask=None):
    groups = q.shape[1] // k.shape[1]
    return attend(q, np.tile(k, (1, groups, 1, 1)), np.tile(v, (1, groups, 1, 1)), mask)


def repeated(q, k, v, mask=None):
    n = q.size(1) // k.size(1)
    k, v = k.repeat(1, n, 1, 1), v.repeat(1, n, 1, 1)  # repeat_interleave is right
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def modulo(q, k, v):
    out = [
        attend(q[:, h], k[:, h % k.shape[1]], v[:, h % k.shape[1]])
        for h in range(q.shape[1])
    ]
    return np.stack(out, axis=1)


def grouped_einsum(q, k, v):
    b, h, n, d = q.shape
    kv = k.shape[1]
    q = q.reshape(b, h // kv, kv, n, d)  # (b, kv, h // kv, n, d) is right
    w = softmax(np.einsum("bgkid,bkjd->bgkij", q, k) / math.sqrt(d))
    return np.einsum("bgkij,bkjd->bgkid", w, v).reshape(b, h, n, -1)


# M34: dropout, always


def dropout_of_f(rng):
    p = float(rng.choice([0.1, 0.2, 0.5]))

    def attention(q, k, v):
        weights = (q @ k.mT / math.sqrt(q.size(-1))).softmax(-1)
        return F.dropout(weights, p=p) @ v

    return attention


def dropout_of_sdpa(rng):
    p = float(rng.choice([0.1, 0.3]))

    def attention(q, k, v, mask=None):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p)

    return attention


def dropout_numpy(rng):
    p, own = (
        float(rng.choice([0.1, 0.25])),
        np.random.default_rng(rng.integers(1 << 30)),
    )

    def attention(q, k, v, mask=None):
        s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
        w = softmax(s if mask is None else np.where(mask, s, -np.inf))
        return w * (own.random(w.shape) >= p) / (1 - p) @ v, w

    return attention


def dropout_same_every_time(rng):
    """Seeded inside, so that two calls agree; the weights are torn all the same."""
    seed = int(rng.integers(1 << 30))

    def attention(q, k, v):
        s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
        keep = np.random.default_rng(seed).random(s.shape) > 0.3
        return softmax(s) * keep / 0.7 @ v

    return attention


# M37: softcap


def cap_forgotten(cap):
    def attention(q, k, v, mask=None):
        return attend(q, k, v, mask)

    return attention


def cap_forgotten_torch(cap):
    def attention(q, k, v, mask=None, softcap=None):
        scores = q @ k.mT / math.sqrt(q.size(-1))
        if softcap:  # nobody hands it over
            scores = softcap * torch.tanh(scores / softcap)
        if mask is None:
            return scores.softmax(-1) @ v
        some = mask.expand_as(scores).any(-1, keepdim=True)
        scores = scores.masked_fill(~mask & some, -torch.inf)
        return (scores.softmax(-1) * some) @ v

    return attention


def cap_after_mask(cap):
    def attention(q, k, v, mask=None):
        s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
        if mask is None:
            return softmax(cap * np.tanh(s / cap)) @ v
        s = cap * np.tanh(np.where(mask, s, -np.inf) / cap)
        return softmax(s) * np.broadcast_to(mask, s.shape).any(-1, keepdims=True) @ v

    return attention


def cap_after_mask_torch(cap):
    def attention(q, k, v, mask=None):
        scores = torch.einsum("...id,...jd->...ij", q, k) * q.size(-1) ** -0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        return torch.softmax(torch.tanh(scores / cap) * cap, dim=-1) @ v

    return attention


def cap_not_divided(cap):
    def attention(q, k, v, mask=None):
        return attend(q, k, v, mask, lambda s: cap * np.tanh(s))

    return attention


def cap_not_multiplied(cap):
    def attention(q, k, v, mask=None):
        return attend(q, k, v, mask, lambda s: np.tanh(s / cap))

    return attention


def cap_of_another(cap):
    other = cap * 0.6

    def attention(q, k, v):
        return attend(q, k, v, None, lambda s: other * np.tanh(s / other))

    return attention


# M38: QK-norm


def rms(x, axis=-1):
    return x / np.sqrt((x**2).mean(axis=axis, keepdims=True) + 1e-6)


def norm_forgotten(q, k, v, mask=None):
    return attend(q, k, v, mask)


def norm_thrown_away(q, k, v, mask=None):
    F.normalize(q, dim=-1), F.normalize(k, dim=-1)  # the results go nowhere
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def norm_of_q_only(q, k, v, mask=None):
    return attend(rms(q), k, v, mask)


def norm_over_tokens(q, k, v, mask=None):
    return attend(rms(q, -2), rms(k, -2), v, mask)


def norm_over_tokens_torch(q, k, v):
    n, m = q.size(-2), k.size(-2)
    q, k = F.normalize(q, dim=-2) * n**0.5, F.normalize(k, dim=-2) * m**0.5
    return F.scaled_dot_product_attention(q, k, v)


def norm_over_heads(q, k, v):
    b, h, n, d = q.shape
    if not b or not n:
        raise ValueError("nothing to attend to")
    return attend(rms(q, 1), rms(k, 1), v)


NORM = {"qk_norm": True}
GROUPS = {"n_heads": 6, "n_kv_heads": 2}
NO_EMPTY = {"empty_rows": False}
SPECIMENS = (
    fixed("M33", "tile", tiled, "matmul", **GROUPS),
    fixed("M33", "repeat, torch", repeated, "SDPA", **GROUPS),
    fixed("M33", "modulo", modulo, "loops", **GROUPS),
    fixed("M33", "groups in front, unsaid", grouped_einsum, "einsum"),
    drawn("M34", "F.dropout", dropout_of_f, "matmul"),
    drawn("M34", "dropout_p", dropout_of_sdpa, "SDPA"),
    drawn("M34", "NumPy", dropout_numpy, "matmul"),
    drawn("M34", "the same every time", dropout_same_every_time, "matmul"),
    *(
        fixed("M37", f"cap {cap:g}: {name}", build(cap), style, softcap=cap, **more)
        for cap in (2.0, 20.0)
        for name, build, style, more in (
            ("missing", cap_forgotten, "matmul", {}),
            ("missing, torch", cap_forgotten_torch, "masked_fill", {}),
            ("not divided", cap_not_divided, "lambda", {}),
            ("not multiplied", cap_not_multiplied, "lambda", {}),
            ("another cap", cap_of_another, "lambda", {}),
        )
    ),
    *(
        fixed("M37", f"cap {cap:g}: {name}", build(cap), style, softcap=cap, **more)
        for cap in (1.0, 2.0, 5.0)
        for name, build, style, more in (
            ("after the mask", cap_after_mask, "where", {}),
            ("after the mask, torch", cap_after_mask_torch, "masked_fill", NO_EMPTY),
        )
    ),
    fixed("M38", "missing", norm_forgotten, "matmul", **NORM),
    fixed("M38", "thrown away", norm_thrown_away, "SDPA", **NORM),
    fixed("M38", "only q", norm_of_q_only, "matmul", **NORM),
    fixed("M38", "over tokens", norm_over_tokens, "matmul", **NORM),
    fixed("M38", "over tokens, torch", norm_over_tokens_torch, "SDPA", **NORM),
    fixed("M38", "over heads", norm_over_heads, "matmul", **NORM),
)
