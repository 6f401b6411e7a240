"""Softmax and scaled dot-product attention, with every mistake built in.

Written apart from `attnlib.attention` on purpose: two implementations that agree
are a test of both.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Case, Family, Faults, Result, View

Float = npt.NDArray[np.floating]

# A row that may look at nothing, and the size of `weak` fills.
WEAK_FILLS = {"mask_fill_10": -10.0, "mask_fill_10000": -1e4}


def softmax(x: npt.ArrayLike, axis: int = -1, *, faults: Faults = RIGHT) -> Float:
    """Softmax along an axis; a slice of -inf throughout gives zeros."""
    x = np.asarray(x)
    if x.dtype.kind != "f":
        x = x.astype(float)
    over: int | tuple[int, ...] = axis
    if "axis_zero" in faults:
        over = 0
    elif "axis_one" in faults:
        over = 1
    elif "axis_second_last" in faults:
        over = -2
    elif "axis_ignored" in faults:
        over = -1
    elif "axis_all" in faults:
        over = tuple(range(x.ndim))
    weights = _softmax(x, over, faults)
    return _softmax(weights, over, faults) if "softmax_twice" in faults else weights


def _softmax(x: Float, over: int | tuple[int, ...], faults: Faults) -> Float:
    if "sign_flipped" in faults:
        x = -x
    if "sigmoid" in faults:
        return np.asarray(1 / (1 + np.exp(-x)))
    empty = np.isneginf(x).all(axis=over, keepdims=True)
    if "not_stable" in faults:
        shift: Float = np.zeros_like(x)
    elif "shift_global" in faults:
        shift = np.broadcast_to(x.max(), x.shape)
    else:
        shift = x.max(axis=over, keepdims="keepdims_max" not in faults)
    guarded = not ({"empty_row_nan", "empty_row_uniform"} & faults)
    if guarded:
        shift = np.where(np.isneginf(shift), 0, shift)
    e = np.exp2(x - shift) if "base_two" in faults else np.exp(x - shift)
    if "exp_missing" in faults:
        e = x
    total = e.sum(axis=over, keepdims="keepdims_sum" not in faults)
    if "divides_by_mean" in faults:
        total = e.mean(axis=over, keepdims=True)
    elif "divides_by_norm" in faults:
        total = np.sqrt((e * e).sum(axis=over, keepdims=True))
    elif "not_normalised" in faults:
        total = np.ones_like(total)
    if guarded:
        total = np.where(total == 0, 1, total)
    weights = e / total
    if "empty_row_uniform" in faults:
        n = math.prod(x.shape[a] for a in np.atleast_1d(over))
        weights = np.where(empty, x.dtype.type(1 / n), weights)
    if "log_softmax" in faults:
        weights = np.log(weights)
    return np.asarray(weights)


def scaled_dot_product(
    q: Float,
    k: Float,
    v: Float,
    mask: npt.NDArray[np.bool_] | None = None,
    *,
    faults: Faults = RIGHT,
) -> tuple[Float, Float]:
    """Attention from queries, keys and values; returns (weights, out)."""
    q, k, v = (np.asarray(a) for a in (q, k, v))
    scores = scale(_scores(q, k, v, faults), q, k, v, faults)
    weights = masked_softmax(scores, mask, q.shape[-1], faults)
    if "scale_after" in faults:
        weights = weights / math.sqrt(q.shape[-1])
    out = mix(weights, scores, q, k, v, faults)
    if "nan_hidden" in faults:
        out = np.nan_to_num(out)
    if "returned_swapped" in faults:
        return out, weights
    if "returned_scores" in faults:
        return scores, out
    return weights, out


def _scores(q: Float, k: Float, v: Float, faults: Faults) -> Float:
    if "roles_swapped" in faults:
        return np.asarray(k @ np.swapaxes(q, -1, -2))
    if "score_q_q" in faults:
        return np.asarray(q @ np.swapaxes(q, -1, -2))
    if "score_k_k" in faults:
        return np.asarray(k @ np.swapaxes(k, -1, -2))
    if "score_q_v" in faults:
        return np.asarray(q @ np.swapaxes(v, -1, -2))
    return np.asarray(q @ np.swapaxes(k, -1, -2))


def scale(raw: Float, q: Float, k: Float, v: Float, faults: Faults) -> Float:
    """Divide by the root of d_k, or by what a fault puts in its place."""
    d_k = q.shape[-1]
    if "scale_missing" in faults or "scale_after" in faults:
        divisor = 1.0
    elif "scale_multiplied" in faults:
        divisor = 1 / math.sqrt(d_k)
    elif "scale_d_k" in faults:
        divisor = float(d_k)
    else:
        others = {
            "scale_d_v": v.shape[-1],
            "scale_n_k": k.shape[-2],
            "scale_n_q": q.shape[-2],
            "scale_first_of_k": k.shape[0],
            "scale_first_of_q": q.shape[0],
            "scale_second_of_q": q.shape[1],
        }
        divisor = math.sqrt(next((others[f] for f in faults & others.keys()), d_k))
    return np.asarray(raw / divisor)


def masked_softmax(
    scores: Float, mask: npt.NDArray[np.bool_] | None, d_k: int, faults: Faults
) -> Float:
    """Mask the scaled scores and turn them into weights."""
    if "softmax_missing" in faults or "softmax_on_out" in faults:
        return scores
    if mask is not None and "mask_ignored" not in faults:
        allowed = np.asarray(mask)
        if "mask_transposed" in faults:
            allowed = np.swapaxes(allowed, -1, -2)
        if "mask_inverted" in faults:
            allowed = ~allowed
        if "mask_after" in faults:
            return np.where(allowed, softmax(scores, faults=faults), 0)
        if {"mask_after_divided", "mask_after_divided_nan"} & faults:
            kept = np.where(allowed, softmax(scores, faults=faults), 0)
            total = kept.sum(axis=-1, keepdims=True)
            if "mask_after_divided" in faults:
                total = np.where(total == 0, 1, total)
            return np.asarray(kept / total)
        if "mask_times_infinity" in faults:  # ~mask * -inf: 0 * -inf is NaN
            scores = np.where(allowed, np.nan, -np.inf).astype(scores.dtype)
            return softmax(scores, faults=faults)
        if "mask_nan_throughout" in faults:  # the same, without a guarded softmax
            return np.full_like(scores, np.nan)
        if "mask_added" in faults:
            scores = scores + allowed.astype(scores.dtype)
        elif "mask_fill_zero" in faults:
            scores = np.where(allowed, scores, 0)
        elif "mask_before_scale" in faults:
            scores = np.where(allowed, scores, -10.0 / math.sqrt(d_k))
        else:
            fills = [fill for key, fill in WEAK_FILLS.items() if key in faults]
            filled = np.where(allowed, scores, fills[0] if fills else -np.inf)
            if "empty_row_unmasked" in faults:  # a constant for all drops out
                some = allowed.any(axis=-1, keepdims=True)
                filled = np.where(some, filled, scores)
            scores = filled
    return softmax(scores.astype(scores.dtype), faults=faults)


def mix(
    weights: Float, scores: Float, q: Float, k: Float, v: Float, faults: Faults
) -> Float:
    """Mix the values by the weights, or what a fault mixes instead."""
    if "weights_transposed" in faults:
        weights = np.swapaxes(weights, -1, -2)
    if "values_are_keys" in faults:
        v = k
    elif "values_are_queries" in faults:
        v = q
    out = np.asarray(weights @ v)
    return softmax(out) if "softmax_on_out" in faults else out


def see_softmax(case: Case, arrays: tuple[Result, ...]) -> View:
    """The answer is the weights, if the last axis is the one summed over."""
    axis = case.args[1] if len(case.args) > 1 else -1
    scores = np.asarray(case.args[0])
    if axis not in (-1, scores.ndim - 1) or not arrays:
        return View()
    return View(
        weights=arrays[0] if arrays[0].shape == scores.shape else None,
        raw_scores=scores,
        allowed=~np.isneginf(scores),
    )


def see_attention(case: Case, arrays: tuple[Result, ...]) -> View:
    """The first result is the weights; the rest follows from the arguments."""
    q, k, v = (np.asarray(a) for a in case.args[:3])
    sizes = {
        "n_q": q.shape[-2],
        "n_k": k.shape[-2],
        "d_k": q.shape[-1],
        "d_v": v.shape[-1],
        "k.shape[0]": k.shape[0],
        "q.shape[0]": q.shape[0],
        "q.shape[1]": q.shape[1],
    }
    raw = q @ np.swapaxes(k, -1, -2)
    mask = case.args[3] if len(case.args) > 3 else None
    allowed = np.broadcast_to(True if mask is None else np.asarray(mask), raw.shape)
    weights = arrays[0] if arrays and arrays[0].shape == raw.shape else None
    return View(weights, raw, q, k, allowed, sizes)


_EXP = ("sign_flipped", "base_two", "exp_missing", "sigmoid", "log_softmax")
_SUM = (
    "not_normalised",
    "keepdims_sum",
    "divides_by_mean",
    "divides_by_norm",
)
SOFTMAX = Family(
    "softmax",
    softmax,
    {
        "axis": (
            "axis_ignored",
            "axis_zero",
            "axis_one",
            "axis_second_last",
            "axis_all",
        ),
        "shift": ("not_stable", "shift_global", "keepdims_max"),
        "sum": _SUM,
        "exp": _EXP,
        "empty": ("empty_row_nan", "empty_row_uniform"),
        "twice": ("softmax_twice",),
    },
    see_softmax,
)

_SCALE = (
    "scale_missing",
    "scale_d_k",
    "scale_multiplied",
    "scale_d_v",
    "scale_n_k",
    "scale_n_q",
    "scale_after",
)
_ATTENTION = {
    "scale": _SCALE,
    "scores": ("roles_swapped", "score_q_q", "score_k_k", "score_q_v"),
    "axis": ("axis_second_last", "axis_all", "softmax_missing", "softmax_on_out"),
    "softmax": ("softmax_twice", "sign_flipped", "not_normalised", "keepdims_sum"),
    "shift": ("not_stable", "keepdims_max"),
    "mix": ("values_are_keys", "values_are_queries", "weights_transposed"),
    "returned": ("returned_swapped", "returned_scores"),
}
# Sizes and axes counted from the front: only a batch shows what is wrong with them.
_FROM_THE_FRONT = {
    "scale": ("scale_first_of_k", "scale_first_of_q", "scale_second_of_q"),
    "axis": ("axis_zero", "axis_one"),
}
SCALED_DOT_PRODUCT = Family(
    "scaled_dot_product",
    scaled_dot_product,
    {
        slot: (*keys, *_FROM_THE_FRONT.get(slot, ()))
        for slot, keys in _ATTENTION.items()
    },
    see_attention,
)
MASKED_ATTENTION = Family(
    "masked attention",
    scaled_dot_product,
    {
        **_ATTENTION,
        "mask": (
            "mask_ignored",
            "mask_inverted",
            "mask_added",
            "mask_fill_zero",
            "mask_after",
            "mask_after_divided",
            "mask_after_divided_nan",
            "mask_times_infinity",
            "mask_nan_throughout",
            *WEAK_FILLS,
            "mask_before_scale",
        ),
        "mask axes": ("mask_transposed",),
        "empty": ("empty_row_nan", "empty_row_uniform", "empty_row_unmasked"),
        "nan": ("nan_hidden",),
    },
    see_attention,
)
