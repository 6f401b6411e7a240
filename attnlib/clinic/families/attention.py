"""Scaled dot-product attention, with every mistake built in.

Written apart from `attnlib.attention` on purpose: two implementations that agree
are a test of both.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Case, Family, Faults, Result, View
from attnlib.clinic.families.softmax import softmax

Float = npt.NDArray[np.floating]

# A row that may look at nothing, and the size of `weak` fills.
WEAK_FILLS = {"mask_fill_10": -10.0, "mask_fill_10000": -1e4}


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
    if "shift_global" in faults and mask is None:  # nobody expects an empty row there
        faults = faults | {"empty_row_nan"}
    if "causal_unasked" in faults:
        past = np.tri(*scores.shape[-2:], dtype=np.bool_)
        scores = np.where(past, scores, -np.inf)
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
    if "returned_masked_scores" in faults and mask is not None:
        return np.where(mask, scores, -np.inf), out
    return weights, out


def _scores(q: Float, k: Float, v: Float, faults: Faults) -> Float:
    if "cosine" in faults:
        q, k = (a / np.linalg.norm(a, axis=-1, keepdims=True) for a in (q, k))
    if "key_reshaped" in faults:
        return np.asarray(q @ k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2]))
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
    elif "scale_of_the_example" in faults:
        divisor = math.sqrt(2)  # the d_k of lesson 01
    elif "scale_of_the_example_d_model" in faults:
        divisor = math.sqrt(4)
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
    if "empty_row_filled" in faults:  # all scores of the row equal, as with -1e9
        faults = faults | {"empty_row_uniform"}
    if "softmax_missing" in faults or "softmax_on_out" in faults:
        return scores
    if mask is not None and "mask_ignored" not in faults:
        allowed = np.asarray(mask)
        if "mask_replaced_by_causal" in faults:
            allowed = np.tri(*scores.shape[-2:], dtype=np.bool_)
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
    if "scores_mixed" in faults:
        weights = scores
    out = np.asarray(weights @ v)
    if "out_scaled" in faults:
        out = out / math.sqrt(k.shape[-1])
    return softmax(out) if "softmax_on_out" in faults else out


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
# Slips of the first who write it. Sizes and axes counted from the front need a batch
# to be seen.
_AT_FIRST = {
    "scale": (
        "scale_first_of_k",
        "scale_first_of_q",
        "scale_second_of_q",
        "scale_of_the_example",
        "scale_of_the_example_d_model",
    ),
    "scores": ("cosine", "key_reshaped"),
    "axis": ("axis_zero", "axis_one"),
    "softmax": ("divides_by_mean",),
    "shift": ("shift_global",),
    "mix": ("scores_mixed", "out_scaled"),
}
SCALED_DOT_PRODUCT = Family(
    "scaled_dot_product",
    scaled_dot_product,
    {
        **{slot: keys + _AT_FIRST.get(slot, ()) for slot, keys in _ATTENTION.items()},
        "unasked": ("causal_unasked",),
    },
    see_attention,
)
MASKED_ATTENTION = Family(
    "masked attention",
    scaled_dot_product,
    {
        **_ATTENTION,
        "returned": (*_ATTENTION["returned"], "returned_masked_scores"),
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
            "mask_replaced_by_causal",
        ),
        "mask axes": ("mask_transposed",),
        "empty": ("empty_row_nan", "empty_row_filled", "empty_row_unmasked"),
        "nan": ("nan_hidden",),
    },
    see_attention,
)
