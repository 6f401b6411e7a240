"""Scores that fit into float16, and capped scores, with every mistake built in."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults

Float = npt.NDArray[np.floating]

FILLS = {  # what is written over a hidden score
    "mask_fill_zero": 0.0,
    "mask_fill_10000": -1e4,
    "fill_lowest": float(np.finfo(np.float16).min),
    "fill_billion": -1e9,  # does not fit into float16: the array became a wider one
}


def half_scores(
    q: Float, k: Float, mask: npt.NDArray[np.bool_], *, faults: Faults = RIGHT
) -> Float:
    """Scores in float16: scaled before they are stored, -inf where hidden."""
    q, k = (np.asarray(a, np.float16) for a in (q, k))
    allowed, d_k = np.asarray(mask), q.shape[-1]
    if "mask_inverted" in faults:
        allowed = ~allowed
    if "mask_replaced_by_causal" in faults:
        allowed = np.tri(*allowed.shape[-2:], dtype=np.bool_)
    raw = q.astype(float) @ np.swapaxes(k, -1, -2).astype(float)
    scale = 1 / math.sqrt(d_k)
    if "scale_missing" in faults:
        scale = 1.0
    elif "scale_d_k" in faults:
        scale = 1 / d_k
    elif "scale_multiplied" in faults:
        scale = math.sqrt(d_k)
    elif "scale_n_k" in faults:
        scale = 1 / math.sqrt(k.shape[-2])
    elif "scale_n_q" in faults:
        scale = 1 / math.sqrt(q.shape[-2])
    elif "scale_half_d_k" in faults:  # d_k ** 1 / 2
        scale = 2 / d_k
    elif "scale_of_128" in faults:
        scale = 1 / math.sqrt(128)
    if "raw_overflow" in faults:
        raw = raw.astype(np.float16).astype(float)
    scores = raw * scale
    if "overflow_clipped" in faults:
        scores = np.clip(raw, -65504, 65504) * scale
    elif "infinity_to_zero" in faults:
        held = raw.astype(np.float16)
        scores = np.where(np.isinf(held), 0, held.astype(float) * scale)
    elif "infinity_to_largest" in faults:
        held = raw.astype(np.float16)
        scores = np.where(
            np.isinf(held), 65504 * np.sign(raw), held.astype(float) * scale
        )
    elif "scores_clipped" in faults:
        scores = np.clip(scores, -50, 50)
    if "mask_ignored" in faults:
        return np.asarray(scores, np.float16)
    if "mask_added" in faults:
        return np.asarray(scores + allowed, np.float16)
    if "mask_times_infinity" in faults:  # 0 * -inf is NaN
        return np.where(allowed, np.nan, -np.inf).astype(np.float16)
    if "empty_row_zeroed" in faults:
        some = allowed.any(axis=-1, keepdims=True)
        filled = np.where(allowed, scores, -np.inf)
        return np.where(some, filled, 0).astype(np.float16)
    if "fill_to_scores" in faults:  # added to the score, where it still fits
        filled = np.where(allowed, scores, scores + FILLS["fill_lowest"])
        return np.asarray(filled, np.float16)
    if "lowered_10000" in faults:
        return np.asarray(np.where(allowed, scores, scores - 1e4), np.float16)
    fill = next((value for key, value in FILLS.items() if key in faults), -np.inf)
    filled = np.where(allowed, scores, fill)
    if "softmax_applied" in faults:
        return _softmax(filled)
    if "softmaxed_then_masked" in faults:
        return np.where(allowed, _softmax(scores), 0).astype(np.float16)
    if "maximum_subtracted" in faults:
        return np.asarray(filled - filled.max(axis=-1, keepdims=True), np.float16)
    return filled if "fill_billion" in faults else filled.astype(np.float16)


def capped_scores(
    scores: Float, mask: npt.NDArray[np.bool_], cap: float, *, faults: Faults = RIGHT
) -> Float:
    """cap tanh(scores / cap) first, then -inf where hidden."""
    z, allowed = np.asarray(scores, float), np.asarray(mask)
    if "mask_inverted" in faults:
        allowed = ~allowed
    if "cap_after_mask" in faults:
        return _cap(np.where(allowed, z, -np.inf), cap, faults)
    if "mask_replaced_by_causal" in faults:
        allowed = np.tri(*allowed.shape[-2:], dtype=np.bool_)
    bent = _cap(z, cap, faults)
    if "mask_ignored" in faults:
        return bent
    if "empty_row_zeroed" in faults:
        some = allowed.any(axis=-1, keepdims=True)
        return np.where(some, np.where(allowed, bent, -np.inf), 0)
    if "mask_added" in faults:
        return bent + allowed
    if "mask_times_infinity" in faults:
        return np.where(allowed, np.nan, -np.inf)
    fills = {"mask_fill_zero": 0.0, "fill_billion": -1e9}
    fill = next((value for key, value in fills.items() if key in faults), -np.inf)
    filled = np.where(allowed, bent, fill)
    return _softmax(filled) if "softmax_applied" in faults else filled


def _cap(z: Float, cap: float, faults: Faults) -> Float:
    if "cap_missing" in faults:
        return z
    if "cap_clips" in faults:
        return np.clip(z, -cap, cap)
    if "cap_clips_above" in faults:
        return np.minimum(z, cap)
    if "cap_not_restored" in faults:
        return np.asarray(np.tanh(z / cap))
    if "cap_not_divided" in faults:
        return np.asarray(cap * np.tanh(z))
    if "cap_multiplied" in faults:
        return np.asarray(cap * np.tanh(z * cap))
    if "cap_upside_down" in faults:
        return np.asarray(np.tanh(z * cap) / cap)
    if "cap_of_ones" in faults:
        return np.asarray(np.tanh(z))
    if "cap_scales" in faults:
        return np.asarray(z / cap)
    if "cap_by_arctan" in faults:
        return np.asarray(cap * 2 / np.pi * np.arctan(z / cap))
    if "cap_by_softsign" in faults:
        return np.asarray(cap * z / (cap + np.abs(z)))
    if "cap_by_sigmoid" in faults:
        return np.asarray(cap / (1 + np.exp(-z / cap)))
    if "cap_rescales" in faults:
        return np.asarray(z * min(1.0, cap / float(np.abs(z).max())))
    if "cap_rescales_rows" in faults:
        return np.asarray(z * cap / np.abs(z).max(axis=-1, keepdims=True))
    if "cap_beyond_only" in faults:
        return np.where(np.abs(z) > cap, cap * np.tanh(z / cap), z)
    if "cap_above_only" in faults:
        return np.where(z > 0, cap * np.tanh(z / cap), z)
    if "cap_size_only" in faults:
        return np.asarray(cap * np.tanh(np.abs(z) / cap))
    if "cap_of_50" in faults:
        return np.asarray(50 * np.tanh(z / 50))
    return np.asarray(cap * np.tanh(z / cap))


def _softmax(x: Float) -> Float:
    """Zeros for an empty row, as the course has it."""
    largest = x.max(axis=-1, keepdims=True)
    e = np.exp(x - np.where(np.isneginf(largest), 0, largest))
    total = e.sum(axis=-1, keepdims=True)
    return np.asarray(e / np.where(total == 0, 1, total), x.dtype)


HALF_SCORES = Family(
    "half_scores",
    half_scores,
    {
        "overflow": (
            "raw_overflow",
            "overflow_clipped",
            "infinity_to_zero",
            "infinity_to_largest",
            "scores_clipped",
        ),
        "scale": (
            "scale_missing",
            "scale_d_k",
            "scale_multiplied",
            "scale_n_k",
            "scale_n_q",
            "scale_half_d_k",
            "scale_of_128",
        ),
        "fill": (
            *FILLS,
            "fill_to_scores",
            "lowered_10000",
            "mask_ignored",
            "mask_added",
            "mask_times_infinity",
            "empty_row_zeroed",
        ),
        "mask": ("mask_inverted", "mask_replaced_by_causal"),
        "returned": (
            "softmax_applied",
            "softmaxed_then_masked",
            "maximum_subtracted",
        ),
    },
)
CAPPED_SCORES = Family(
    "capped_scores",
    capped_scores,
    {
        "cap": (
            "cap_missing",
            "cap_clips",
            "cap_clips_above",
            "cap_not_restored",
            "cap_not_divided",
            "cap_multiplied",
            "cap_upside_down",
            "cap_of_ones",
            "cap_scales",
            "cap_by_sigmoid",
            "cap_by_arctan",
            "cap_by_softsign",
            "cap_rescales",
            "cap_rescales_rows",
            "cap_beyond_only",
            "cap_above_only",
            "cap_size_only",
            "cap_of_50",
        ),
        "order": ("cap_after_mask",),
        "fill": (
            "mask_ignored",
            "mask_fill_zero",
            "fill_billion",
            "mask_added",
            "mask_times_infinity",
            "empty_row_zeroed",
        ),
        "mask": ("mask_inverted", "mask_replaced_by_causal"),
        "returned": ("softmax_applied",),
    },
)
