"""Softmax, with every mistake built in.

Written apart from `attnlib.attention` on purpose: two implementations that agree
are a test of both.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Case, Family, Faults, Result, View

Float = npt.NDArray[np.floating]
Axes = int | tuple[int, ...]

_UNGUARDED = {
    "empty_row_nan",
    "empty_row_uniform",
    "nan_replaced",
    "scores_clipped",
    "infinity_empties_row",
}
CLIP = 80.0  # any number from 10 to 700 gives the same on all cases


def softmax(x: npt.ArrayLike, axis: int = -1, *, faults: Faults = RIGHT) -> Float:
    """Softmax along an axis; a slice of -inf throughout gives zeros."""
    x = np.asarray(x)
    if x.dtype.kind != "f":
        x = x.astype(float)
    over: Axes = axis
    if "axis_zero" in faults:
        over = 0
    elif "axis_one" in faults:
        over = 1
    elif "axis_second_last" in faults:
        over = -2
    elif "axis_ignored" in faults:
        over = -1
    elif "axis_default_zero" in faults:
        over = 0 if axis == -1 else axis
    elif "axis_all" in faults:
        over = tuple(range(x.ndim))
    weights = _softmax(x, over, faults)
    return _softmax(weights, over, faults) if "softmax_twice" in faults else weights


def _softmax(x: Float, over: Axes, faults: Faults) -> Float:
    if "sign_flipped" in faults:
        x = -x
    if "sigmoid" in faults:
        return np.asarray(1 / (1 + np.exp(-x)))
    if "largest_only" in faults:
        return np.asarray(x == x.max(axis=over, keepdims=True), x.dtype)
    if "divides_by_largest" in faults:
        x = x / x.max(axis=over, keepdims=True)
    empty = np.isneginf(x).all(axis=over, keepdims=True)
    guarded = not (_UNGUARDED & faults)
    e = _exponentials(x, over, guarded, faults)
    if "axis_in_max_only" in faults:
        over = -1
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
    elif "nan_replaced" in faults:
        weights = np.nan_to_num(weights)
    elif "infinity_empties_row" in faults:
        some = np.isneginf(x).any(axis=over, keepdims=True)
        weights = np.where(some, 0, weights)
    if "log_of_weights" in faults:
        weights = np.log(weights)
    elif "log_softmax" in faults:  # the same where no weight is rounded to 0
        largest = x.max(axis=over, keepdims=True)
        if guarded:
            largest = np.where(np.isneginf(largest), 0, largest)
        weights = x - largest - np.log(total)
    return np.asarray(weights)


def _exponentials(x: Float, over: Axes, guarded: bool, faults: Faults) -> Float:
    """exp of the scores, shifted by the largest or by what a fault subtracts."""
    if "scores_clipped" in faults:
        return np.asarray(np.exp(np.clip(x, -CLIP, CLIP)))
    keep = "keepdims_max" not in faults
    if "axis_in_sum_only" in faults:
        over = -1
    if "not_stable" in faults:
        shift: Float = np.zeros_like(x)
    elif "shift_global" in faults:
        shift = np.broadcast_to(x.max(), x.shape)
    elif "shift_mean" in faults:
        shift = x.mean(axis=over, keepdims=True)
    elif "shift_smallest" in faults:
        shift = x.min(axis=over, keepdims=True)
    elif "shift_absolute" in faults:
        shift = np.abs(x).max(axis=over, keepdims=True)
    else:
        shift = x.max(axis=over, keepdims=keep)
    if guarded:
        shift = np.where(np.isneginf(shift), 0, shift)
    if "exp_missing" in faults:
        return x
    if "shift_reversed" in faults:
        x, shift = shift, x
    return np.asarray(np.exp2(x - shift) if "base_two" in faults else np.exp(x - shift))


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


SOFTMAX = Family(
    "softmax",
    softmax,
    {
        "axis": (
            "axis_ignored",
            "axis_zero",
            "axis_default_zero",
            "axis_one",
            "axis_second_last",
            "axis_all",
            "axis_in_max_only",
            "axis_in_sum_only",
        ),
        "shift": (
            "not_stable",
            "shift_global",
            "keepdims_max",
            "shift_mean",
            "shift_smallest",
            "shift_absolute",
            "scores_clipped",
        ),
        "sum": (
            "not_normalised",
            "keepdims_sum",
            "divides_by_mean",
            "divides_by_norm",
        ),
        "exp": (
            "sign_flipped",
            "shift_reversed",
            "base_two",
            "exp_missing",
            "sigmoid",
            "log_softmax",
            "log_of_weights",
            "largest_only",
            "divides_by_largest",
        ),
        "empty": (
            "empty_row_nan",
            "empty_row_uniform",
            "nan_replaced",
            "infinity_empties_row",
        ),
        "twice": ("softmax_twice",),
    },
    see_softmax,
)
