"""From scores and a mask to weights, with every mistake built in.

A row, column or stack in which all scores are -inf gives NaN here, as in a plain
softmax, unless a fault says "guarded".
"""

from __future__ import annotations

import math

import numpy as np

from attnlib.clinic.black_box.looks import Truth, parse_fill
from attnlib.clinic.black_box.scores import Float, Unforeseen
from attnlib.clinic.black_box.traits import Found, Traits
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
