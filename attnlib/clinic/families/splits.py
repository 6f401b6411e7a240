"""Splitting into heads and merging them, with every mistake built in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults

Float = npt.NDArray[np.floating]


def split_heads(x: Float, n_heads: int, *, faults: Faults = RIGHT) -> Float:
    """(..., n, n_heads * d) -> (..., n_heads, n, d)."""
    *batch, n, d_model = x.shape
    if "heads_of_size_n_heads" in faults:
        n_heads = d_model // n_heads
    d = d_model // n_heads
    if {"split_no_batch", "split_no_transpose"} <= faults:
        return x.reshape(n_heads, len(x), -1)
    if {"split_no_batch", "split_interleaved"} <= faults:
        return np.moveaxis(x.reshape(len(x), -1, n_heads), -1, 0)
    if "split_no_batch" in faults:
        return np.swapaxes(x.reshape(len(x), n_heads, -1), 0, 1)
    if "split_no_transpose" in faults:
        return x.reshape(*batch, n_heads, n, d)
    if "split_interleaved" in faults:
        return np.moveaxis(x.reshape(*batch, n, d, n_heads), -1, -3)
    if "split_overlapping" in faults:
        return np.stack([x[..., h : h + d] for h in range(n_heads)], axis=-3)
    if "split_turned_first" in faults:
        return np.swapaxes(x, -1, -2).reshape(*batch, n_heads, n, d)
    parts = x.reshape(*batch, n, n_heads, d)
    if "split_first_axes" in faults:
        return np.swapaxes(parts, 0, 1)
    if "split_only_reshaped" in faults or "heads_never_moved" in faults:
        return parts
    if "split_features_first" in faults:
        return np.moveaxis(parts, -3, -1)
    if "split_wrong_axes" in faults:
        return np.swapaxes(parts, -1, -2)
    if "split_heads_before_batch" in faults:
        return np.moveaxis(parts, -2, 0)
    return np.swapaxes(parts, -2, -3)


def merge_heads(x: Float, *, faults: Faults = RIGHT) -> Float:
    """(..., n_heads, n, d) -> (..., n, n_heads * d)."""
    *batch, n_heads, n, d = x.shape
    if "heads_never_moved" in faults:  # then x is still (..., n, n_heads, d)
        return x.reshape(*batch, n_heads, n * d)
    if {"merge_no_batch", "merge_no_transpose"} <= faults:
        return x.reshape(x.shape[1], -1)
    if "merge_no_transpose" in faults:
        return x.reshape(*batch, n, n_heads * d)
    if "merge_interleaved" in faults:
        return np.moveaxis(x, -3, -1).reshape(*batch, n, d * n_heads)
    if "merge_features_first" in faults:
        return np.swapaxes(x, -1, -2).reshape(*batch, n, n_heads * d)
    if "merge_sum" in faults:
        return np.asarray(x.sum(axis=-3))
    if "merge_mean" in faults:
        return np.asarray(x.mean(axis=-3))
    if "merge_along_tokens" in faults:
        return np.concatenate(np.moveaxis(x, -3, 0), axis=-2)
    if "merge_items" in faults:  # the first axis, taken for the heads
        return np.concatenate(x, axis=-1)
    if "merge_items_stacked" in faults:
        return np.hstack(tuple(x))
    if "merge_mean_repeated" in faults:
        return np.concatenate([x.mean(axis=-3)] * n_heads, axis=-1)
    if "merge_no_batch" in faults:
        return x.transpose(1, 0, 2).reshape(n, n_heads * d)
    if "merge_first_axes_counted" in faults:
        return np.swapaxes(x, 0, 1).reshape(*batch, n, n_heads * d)
    if "merge_first_axes" in faults:
        return np.swapaxes(x, 0, 1).reshape(x.shape[1], -1)
    parts = np.swapaxes(x, -2, -3)
    if "merge_not_reshaped" in faults:
        return parts
    if "merge_batch_flattened" in faults:
        return parts.reshape(-1, n_heads * d)
    return parts.reshape(*batch, n, n_heads * d)


SPLIT_HEADS = Family(
    "split_heads",
    split_heads,
    {
        "split": (
            "split_no_transpose",
            "split_only_reshaped",
            "split_interleaved",
            "split_features_first",
            "split_wrong_axes",
            "split_heads_before_batch",
            "split_first_axes",
            "split_overlapping",
            "split_turned_first",
        ),
        "batch": ("split_no_batch",),
        "size": ("heads_of_size_n_heads",),
    },
)
MERGE_HEADS = Family(
    "merge_heads",
    merge_heads,
    {
        "merge": (
            "merge_no_transpose",
            "merge_interleaved",
            "merge_features_first",
            "merge_not_reshaped",
            "merge_sum",
            "merge_mean",
            "merge_first_axes",
            "merge_first_axes_counted",
            "merge_along_tokens",
            "merge_items",
            "merge_items_stacked",
            "merge_batch_flattened",
        ),
        "batch": ("merge_no_batch",),
    },
)
