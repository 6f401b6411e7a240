"""How far scores spread, and how widely weights do, with every mistake built in."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults

Float = npt.NDArray[np.floating]


def predicted_std(
    d_k: int, std_q: float, std_k: float, *, faults: Faults = RIGHT
) -> float:
    """The std of q @ k for independent numbers of mean 0."""
    one = std_q * std_k  # the std of one product
    if "std_of_q_only" in faults:
        one = std_q
    elif "stds_taken_as_one" in faults:
        one = 1.0
    elif "stds_added" in faults:
        one = std_q + std_k
    elif "variances_added" in faults:
        one = math.hypot(std_q, std_k)
    elif "stds_under_the_root" in faults:
        one = math.sqrt(std_q * std_k)
    elif "variances_outside_the_root" in faults:
        one = (std_q * std_k) ** 2
    elif "std_of_k_only" in faults:
        one = std_k
    elif "stds_averaged" in faults:
        one = (std_q + std_k) / 2
    elif "std_q_not_squared" in faults:
        one = math.sqrt(std_q) * std_k
    elif "std_k_not_squared" in faults:
        one = std_q * math.sqrt(std_k)
    elif "std_q_twice" in faults:
        one = std_q**2
    growth = math.sqrt(d_k)
    if "std_grows_as_d_k" in faults:
        growth = float(d_k)
    elif "std_does_not_grow" in faults:
        growth = 1.0
    elif "std_shrinks" in faults:
        growth = 1 / math.sqrt(d_k)
    elif "half_of_d_k" in faults:
        growth = d_k / 2
    elif "std_grows_as_square" in faults:
        growth = float(d_k) ** 2
    elif "width_of_64" in faults:
        growth = 8.0
    std = one * growth
    return std**2 if "variance_for_std" in faults else std


def entropy(weights: npt.ArrayLike, *, faults: Faults = RIGHT) -> Float:
    """-sum w ln w of each row, with 0 ln 0 = 0."""
    w = np.asarray(weights, dtype=float)
    if "softmax_of_weights" in faults:
        w = np.exp(w) / np.exp(w).sum(axis=-1, keepdims=True)
    unguarded = {"log_of_zero", "row_with_zero_lost"} & faults
    log = np.log(w if unguarded else np.where(w > 0, w, 1))
    if "log_of_one_plus" in faults:
        log = np.log1p(w)
    elif "entropy_of_uniform" in faults:
        log = np.full_like(w, -math.log(w.shape[-1]))
    elif "gini" in faults:
        log = w - 1
    if "log_base_two" in faults:
        log = log / math.log(2)
    elif "log_base_ten" in faults:
        log = log / math.log(10)
    terms = log if "weight_factor_missing" in faults else w * log
    if "zero_counts_one" in faults:
        terms = np.where(w > 0, terms, 1)
    if "sum_missing" in faults:
        total = terms
    elif "entropy_axis_kept" in faults:
        total = terms.sum(axis=-1, keepdims=True)
    elif "sum_over_everything" in faults:
        total = terms.sum()
    elif "sum_over_first_axis" in faults:
        total = terms.sum(axis=0)
    elif "mean_for_sum" in faults:
        total = terms.mean(axis=-1)
    else:
        total = terms.sum(axis=-1)
    h = total if "minus_missing" in faults else -total
    if "row_with_zero_lost" in faults:
        h = np.nan_to_num(h)
    elif "distance_to_uniform" in faults:
        h = math.log(w.shape[-1]) - h
    if "effective_keys_for_entropy" in faults:
        h = np.exp(h)
    elif "entropy_normalised" in faults:
        h = h / math.log(w.shape[-1])
    return np.asarray(h)


PREDICTED_STD = Family(
    "predicted_std",
    predicted_std,
    {
        "squared": ("variance_for_std",),
        "growth": (
            "std_grows_as_d_k",
            "std_does_not_grow",
            "std_shrinks",
            "half_of_d_k",
            "std_grows_as_square",
            "width_of_64",
        ),
        "product": (
            "std_of_q_only",
            "stds_taken_as_one",
            "stds_added",
            "variances_added",
            "stds_under_the_root",
            "variances_outside_the_root",
            "std_of_k_only",
            "stds_averaged",
            "std_q_not_squared",
            "std_k_not_squared",
            "std_q_twice",
        ),
    },
)
ENTROPY = Family(
    "entropy",
    entropy,
    {
        "zero": ("log_of_zero", "row_with_zero_lost", "zero_counts_one"),
        "sign": ("minus_missing",),
        "log": ("log_base_two", "log_base_ten", "log_of_one_plus"),
        "sum": (
            "sum_over_everything",
            "sum_over_first_axis",
            "mean_for_sum",
            "sum_missing",
            "entropy_axis_kept",
        ),
        "weight": ("weight_factor_missing", "softmax_of_weights"),
        "form": (
            "effective_keys_for_entropy",
            "entropy_normalised",
            "distance_to_uniform",
            "entropy_of_uniform",
            "gini",
        ),
    },
)
