"""Scaled dot-product attention as a black box may do it: every mistake built in.

Written apart from `attnlib.attention` on purpose. A row, column or stack in which all
scores are -inf gives NaN here, as in a plain softmax, unless a fault says "guarded":
what happens to queries that may look at nothing is examined by itself.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from attnlib.clinic.black_box.looks import Truth, allowed, parse_fill
from attnlib.clinic.black_box.scores import Float, Unforeseen, prepared, scores, turned
from attnlib.clinic.black_box.traits import NOTHING, PLAIN, Found, Traits
from attnlib.clinic.case import RIGHT, Faults

Axes = int | tuple[int, ...]
AXES: dict[str, Axes] = {
    "axis_second_last": -2,
    "axis_heads": -3,
    "axis_zero": 0,
    "softmax_over_heads": (-3, -1),
    "axis_table": (-2, -1),
    "axis_heads_and_table": (-3, -2, -1),
    "axis_batch_and_heads": (0, -3),
    "axis_everything": (0, -3, -2, -1),
}


HIDING = {  # faults that say what becomes of hidden scores
    "mask_fill_zero",
    "mask_fill_10",
    "mask_fill_100",
    "mask_fill_10000",
    "mask_fill_other",
    "mask_fill_added",
    "mask_fill_one",
    "mask_before_scale",
    "mask_added_before_scale",
    "cap_after_mask",
}


def attend(
    q: Float,
    k: Float,
    v: Float,
    mask: Truth | None = None,
    causal: bool = False,
    *,
    padding: Truth | None = None,
    traits: Traits = PLAIN,
    faults: Faults = RIGHT,
    found: Found = NOTHING,
) -> tuple[Float, Float]:
    """Return (weights, out) of q (..., n_q, d_k), k (..., n_k, d_k), v (..., n_k, d_v).

    q may have a multiple of the heads of k and v, which neighbours then share.
    """
    if "heads_as_tokens" in faults and q.ndim == 4:
        n = q.shape[-2]  # with more keys, loops over queries take the first ones
        q, k, v = (np.swapaxes(a[:, :, :n], 1, 2) for a in (q, k, v))
        if k.shape[1] < n:
            raise ValueError(f"n_k={k.shape[1]} is less than n_q={n}.")
        less = faults - {"heads_as_tokens"}
        weights, out = attend(
            q,
            k,
            v,
            mask,
            causal,
            padding=padding,
            traits=traits,
            faults=less,
            found=found,
        )
        return weights, np.swapaxes(out, 1, 2)
    q, k = prepared(q, k, traits, faults)
    if q.ndim > 2 and q.shape[-3] != k.shape[-3]:
        k, v = grouped_apart(k, v, q.shape[-3], faults)
    s = scores(q, k, v, traits, faults, found)
    if "rope_on_v" in faults and traits.rope:
        v = turned(v, np.arange(v.shape[-2]), traits.rope, traits)
    if "causal_apart" in faults and (causal or traits.causal or traits.window):
        past = allowed(None, causal, s.shape, traits, faults)
        s = s if past is None else np.where(past, s, -np.inf)
        traits, causal = replace(traits, causal=False, window=None), False
    look = allowed(mask, causal, s.shape, traits, faults, padding)
    if traits.extra is not None:  # 1 would be added to its score, too
        shift = ("mask_subtracted" in faults) - 1.0 * ("mask_added" in faults)
        s, look = traits.extra.join(s, look, q, shift)
    weights = weigh(s, look, q.shape[-1], traits, faults, found)
    said: Float | None = None
    if traits.extra is not None:
        weights, said = traits.extra.part(weights)
    if "scale_after" in faults:
        weights = weights / math.sqrt(q.shape[-1])
    if "weights_averaged" in faults and weights.ndim > 2:
        weights = np.repeat(
            weights.mean(axis=-3, keepdims=True), weights.shape[-3], axis=-3
        )
    if "weights_transposed" in faults:
        weights = np.swapaxes(weights, -1, -2)
    if "values_are_keys" in faults:
        v = k
    elif "values_are_queries" in faults:
        v = q
    out = np.asarray((s if "scores_mixed" in faults else weights) @ v)
    out = out if said is None else out + said
    if "softmax_on_out" in faults:
        out = softmax(out, -1, False)
    if "out_scaled" in faults:
        out = out / math.sqrt(q.shape[-1])
    return weights, out


def scores_of(
    q: Float, k: Float, v: Float, traits: Traits, faults: Faults, found: Found
) -> Float:
    """The scores as they meet the mask."""
    q, k = prepared(q, k, traits, faults)
    if q.ndim > 2 and q.shape[-3] != k.shape[-3]:
        k, v = grouped_apart(k, v, q.shape[-3], faults)
    return scores(q, k, v, traits, faults, found)


def grouped_apart(
    k: Float, v: Float, n_heads: int, faults: Faults
) -> tuple[Float, Float]:
    """Keys and values, each once for every query head; one of them may be tiled."""
    tiled = faults | {"kv_heads_tiled"}
    k = grouped(k, n_heads, tiled if "key_heads_tiled" in faults else faults)
    v = grouped(v, n_heads, tiled if "value_heads_tiled" in faults else faults)
    return k, v


def grouped(kv: Float, n_heads: int, faults: Faults) -> Float:
    """Each key head, once for every query head that shares it."""
    n_kv = kv.shape[-3]
    if n_heads % n_kv:
        raise ValueError(f"n_heads={n_heads} is no multiple of n_kv_heads={n_kv}.")
    heads = np.arange(n_heads)
    chosen = heads // (n_heads // n_kv)
    if "kv_heads_tiled" in faults:
        chosen = heads % n_kv
    elif "kv_head_first_only" in faults:
        chosen = np.zeros(n_heads, int)
    elif "kv_heads_reversed" in faults:
        chosen = chosen[::-1]
    return np.asarray(np.take(kv, chosen, axis=-3))


def weigh(
    s: Float,
    look: Truth | None,
    d_k: int,
    traits: Traits,
    faults: Faults,
    found: Found,
) -> Float:
    """From scores and a mask to weights."""
    guarded = "guarded" in faults
    if traits.kernel is not None:
        return traits.kernel.weigh(s, look, faults)
    online = next((key for key in faults if key.startswith("online_")), None)
    if online is not None and "finite_start" not in online:
        hidden = s if look is None else np.where(look, s, -np.inf)
        return in_blocks(hidden, online)
    if {"softmax_missing", "softmax_on_out"} & faults:
        return s if look is None else np.where(look, s, 0.0)
    if "cap_after_mask" in faults and traits.softcap is not None:
        s = traits.softcap * np.tanh(s / traits.softcap)
    if look is None:
        return _all_softmax(s, faults, guarded)
    look = np.broadcast_to(look, np.broadcast_shapes(look.shape, s.shape))
    if "mask_after" in faults:
        return np.where(look, _all_softmax(s, faults, guarded), 0)
    if {"mask_after_divided", "mask_after_divided_safely"} & faults:
        kept = np.where(look, _all_softmax(s, faults, guarded), 0)
        total = kept.sum(axis=-1, keepdims=True)
        if "mask_after_divided_safely" in faults:
            total = np.where(total == 0, 1, total)
        return np.asarray(kept / total)
    if "mask_times_infinity" in faults:  # 0 * -inf is NaN
        return _all_softmax(np.where(look, np.nan, -np.inf), faults, guarded)
    fill = parse_fill(faults, found)
    if "mask_added" in faults:
        s = s + look
    elif "mask_subtracted" in faults:
        s = s - look
    elif "hidden_lowered" in faults and not HIDING & faults:
        s = np.where(look, s, s - 1e9)
    elif "mask_fill_added" in faults:
        s = np.where(look, s, s + found.get("fill", -1e4))
    elif "mask_before_scale" in faults:
        s = np.where(look, s, found.get("fill_before_scale", -10.0) / math.sqrt(d_k))
    elif "mask_added_before_scale" in faults:
        added = found.get("fill_before_scale", -10.0) / math.sqrt(d_k)
        s = np.where(look, s, s + added)
    elif "mask_fill_one" in faults:
        s = np.where(look, s, 1.0)
    elif "cap_after_mask" in faults and traits.softcap is not None:
        s = np.where(look, s, -traits.softcap)
    else:
        s = np.where(look, s, -np.inf if fill is None else fill)
    weights = _all_softmax(s, faults, guarded)
    if "empty_zeroed" in faults:
        kept = ~look if "look_inverted" in faults else look  # what the mask itself says
        weights = np.where(kept.any(axis=-1, keepdims=True), weights, 0)
    if "masked_again" in faults:
        weights = np.where(look, weights, 0)
    return weights


def _all_softmax(s: Float, faults: Faults, guarded: bool) -> Float:
    axis: Axes = -1
    if not AXES.keys().isdisjoint(faults):
        axis = next(AXES[key] for key in AXES if key in faults)
        fits = tuple(a for a in np.atleast_1d(axis).tolist() if -s.ndim <= a < s.ndim)
        axis = fits[0] if len(fits) == 1 else fits
    if "sign_flipped" in faults:
        s = -s
    if "sigmoid" in faults:
        return np.asarray(1 / (1 + np.exp(-s)))
    weights = softmax(s, axis, guarded, faults)
    if "softmax_twice" in faults:
        if "hidden_twice" in faults:
            weights = np.where(np.isneginf(s), -np.inf, weights)
        weights = softmax(weights, axis, guarded, faults)
    return weights


def softmax(x: Float, axis: Axes, guarded: bool, faults: Faults = RIGHT) -> Float:
    """Softmax; a slice of -inf throughout gives NaN, or zeros if guarded."""
    if "scores_clipped" in faults:
        x = np.where(np.isneginf(x), x, np.clip(x, -80.0, 80.0))
    largest = x.max(axis=axis, keepdims=True)
    if guarded:
        largest = np.where(np.isneginf(largest), 0, largest)
    if "not_stable" in faults:
        largest = np.zeros_like(largest)
    elif "shift_global" in faults:
        largest = np.full_like(largest, x.max())
    e = np.exp(x - largest)
    if "exp_missing" in faults:
        e = np.where(np.isneginf(x), 0.0, x)
    if "not_normalised" in faults:
        return np.asarray(e)
    total = e.sum(axis=axis, keepdims=True)
    if "divides_by_mean" in faults:
        total = e.mean(axis=axis, keepdims=True)
    if "exp_missing" in faults:
        largest_part = np.abs(e).max(axis=axis, keepdims=True, initial=0.0)
        if ((np.abs(total) < 1e-6 * largest_part) & np.isfinite(largest_part)).any():
            raise Unforeseen  # rounding decides what a division by nearly 0 gives
    if "log_softmax" in faults:
        return np.asarray(x - largest - np.log(total))
    return np.asarray(e / (np.where(total == 0, 1, total) if guarded else total))


def in_blocks(s: Float, fault: str) -> Float:
    """The weights of an online softmax that forgets to rescale, for given blocks.

    `fault` is "online_out_16": out is not rescaled when the largest score grows, with
    16 keys a block; "online_sum_16": the sum is not; "online_both_16": neither is;
    "online_wrong_16": both are, by the inverse of the right factor; "online_mean_16":
    each block has a softmax of its own, and their results are averaged.
    """
    _, kind, size = fault.split("_")
    n_k, block = s.shape[-1], int(size)
    if kind == "mean":
        starts = range(block, n_k, block)
        own = [softmax(part, -1, True) for part in np.split(s, list(starts), axis=-1)]
        return np.concatenate(own, axis=-1) / len(own)
    weights, top = np.zeros_like(s), np.full((*s.shape[:-1], 1), -np.inf)
    total = np.zeros_like(top)
    for start in range(0, n_k, block):
        part = s[..., start : start + block]
        higher = np.maximum(top, part.max(axis=-1, keepdims=True))
        safe = np.where(np.isneginf(higher), 0, higher)
        shrink = np.exp(np.where(np.isneginf(top), -np.inf, top) - safe)
        e = np.exp(part - safe)
        if kind == "wrong":  # by e^(new - old), where e^(old - new) is meant
            shrink = np.where(shrink > 0, 1 / shrink, 0.0)
        if kind not in ("out", "both"):
            weights = weights * shrink
        kept = total if kind in ("sum", "both") else total * shrink
        total = kept + e.sum(axis=-1, keepdims=True)
        weights[..., start : start + block] = e
        top = higher
    return np.asarray(weights / np.where(total == 0, 1, total))
