"""Splitting, merging and many heads, with every mistake built in."""

from __future__ import annotations

import math
from typing import cast

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Case, Family, Faults, Result, View
from attnlib.clinic.families.attention import masked_softmax, mix

Float = npt.NDArray[np.floating]


def split_heads(x: Float, n_heads: int, *, faults: Faults = RIGHT) -> Float:
    """(..., n, n_heads * d) -> (..., n_heads, n, d)."""
    *batch, n, d_model = x.shape
    if "heads_of_size_n_heads" in faults:
        n_heads = d_model // n_heads
    d = d_model // n_heads
    if {"split_no_batch", "split_no_transpose"} <= faults:
        return x.reshape(n_heads, len(x), -1)
    if "split_no_batch" in faults:
        return np.swapaxes(x.reshape(len(x), n_heads, -1), 0, 1)
    if "split_no_transpose" in faults:
        return x.reshape(*batch, n_heads, n, d)
    if "split_interleaved" in faults:
        return np.moveaxis(x.reshape(*batch, n, d, n_heads), -1, -3)
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
    return parts.reshape(*batch, n, n_heads * d)


def multi_head(
    x: Float,
    W_q: Float,
    W_k: Float,
    W_v: Float,
    W_o: Float,
    n_heads: int,
    mask: npt.NDArray[np.bool_] | None = None,
    n_kv_heads: int | None = None,
    *,
    faults: Faults = RIGHT,
) -> Float:
    """Attention in many heads; returns out, (..., n, d_model)."""
    if "weights_W_transposed" in faults:
        W_q, W_k, W_v = W_q.T, W_k.T, W_v.T
    if "weights_W_reshaped" in faults:
        W_q, W_k, W_v = (_reshaped(W, n_heads) for W in (W_q, W_k, W_v))
    n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
    if "one_head" in faults:
        n_heads = n_kv_heads = 1
    q = split_heads(x @ W_q, n_heads, faults=faults)
    k = split_heads(x @ W_k, n_kv_heads, faults=faults)
    v = split_heads(x @ W_v, n_kv_heads, faults=faults)
    if "shared_q_k" in faults:
        k = q
    repeats = n_heads // n_kv_heads
    if repeats > 1 and "kv_heads_tiled" in faults:
        k, v = (np.concatenate([a] * repeats, axis=-3) for a in (k, v))
    elif repeats > 1:
        k, v = (np.repeat(a, repeats, axis=-3) for a in (k, v))
    if "roles_swapped" in faults:
        q, k = k, q
    scores = q @ np.swapaxes(k, -1, -2)
    scores = scores / _divisor(x, q, v, n_heads, faults)
    if mask is not None:
        mask = _per_head(mask, x, n_heads, faults)
    weights = _weights(scores, mask, q.shape[-1], faults)
    mixed = mix(weights, scores, q, k, v, faults)
    merged = merge_heads(mixed, faults=faults)
    if "W_o_missing" in faults:
        return merged
    out = np.asarray(merged @ (W_o.T if "W_o_transposed" in faults else W_o))
    if "out_mean" in faults:
        out = out / n_heads
    return out + x if "residual_added" in faults else out


def _reshaped(W: Float, n_heads: int) -> Float:
    """The tables (n_heads, d_model, d) that a reshape makes of W, laid side by side."""
    tables = W.reshape(n_heads, len(W), -1)
    return np.asarray(np.concatenate(list(tables), axis=-1))


def _divisor(x: Float, q: Float, v: Float, n_heads: int, faults: Faults) -> float:
    d_k = q.shape[-1]
    other = {
        "scale_missing": 1.0,
        "scale_d_model": math.sqrt(x.shape[-1]),
        "scale_d_k": float(d_k),
        "scale_n_heads": math.sqrt(n_heads),
        "scale_all_heads": math.sqrt(n_heads * d_k),
        "scale_d_v": math.sqrt(v.shape[-1]),
        "scale_multiplied": 1 / math.sqrt(d_k),
    }
    chosen = [value for key, value in other.items() if key in faults]
    return chosen[0] if chosen else math.sqrt(d_k)


def _per_head(
    mask: npt.NDArray[np.bool_], x: Float, n_heads: int, faults: Faults
) -> npt.NDArray[np.bool_]:
    """(n, n) or (batch, n, n) -> broadcastable to (batch, n_heads, n, n)."""
    if mask.ndim < 3:
        return mask
    if "mask_tiled_over_heads" in faults:
        batch, n_q, n_k = mask.shape
        return np.tile(mask, (n_heads, 1, 1)).reshape(batch, n_heads, n_q, n_k)
    return mask[:, None]


def _weights(
    scores: Float, mask: npt.NDArray[np.bool_] | None, d_k: int, faults: Faults
) -> Float:
    if "softmax_over_heads" not in faults:
        return masked_softmax(scores, mask, d_k, faults)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    e = np.exp(scores - scores.max(axis=(-3, -1), keepdims=True))
    total = e.sum(axis=(-3, -1), keepdims=True)
    return np.asarray(e / np.where(total == 0, 1, total))


def see_multi_head(case: Case, arrays: tuple[Result, ...]) -> View:
    """Read the weights off the output, where the arguments are an x-ray.

    An x-ray call holds the number of each token in its last n features, W_v copies
    them into every head, and W_o changes nothing. Then out is the weights, head by
    head.
    """
    x, W_q, W_k, W_v, W_o = (np.asarray(a) for a in case.args[:5])
    n_heads = cast(int, case.args[5])
    n_kv_heads = cast(int, case.args[7]) if len(case.args) > 7 else n_heads
    n = x.shape[-2]
    q = split_heads(x @ W_q, n_heads)
    k = np.repeat(split_heads(x @ W_k, n_kv_heads), n_heads // n_kv_heads, axis=-3)
    raw = q @ np.swapaxes(k, -1, -2)
    mask = case.args[6] if len(case.args) > 6 else None
    allowed = np.asarray(True if mask is None else mask)
    if allowed.ndim == 3:
        allowed = allowed[:, None]
    weights = None
    if arrays and is_xray(x, W_v, W_o, n_heads) and arrays[0].shape == x.shape:
        weights = split_heads(np.asarray(arrays[0], float), n_heads)
    return View(
        weights=weights,
        raw_scores=raw,
        q=q,
        k=k,
        allowed=np.broadcast_to(allowed, raw.shape),
        sizes={
            "n_q": n,
            "n_k": n,
            "d_k": q.shape[-1],
            "d_model": x.shape[-1],
            "n_heads": n_heads,
            "d_v": W_v.shape[-1] // n_kv_heads,
        },
    )


def is_xray(x: Float, W_v: Float, W_o: Float, n_heads: int) -> bool:
    """Whether the output of this call shows the weights of every head."""
    n = x.shape[-2]
    if W_o.shape[0] != W_o.shape[1] or W_v.shape[-1] != n * n_heads:
        return False
    values = split_heads(x @ W_v, n_heads)
    return np.array_equal(W_o, np.eye(len(W_o))) and np.array_equal(
        values, np.broadcast_to(np.eye(n), values.shape)
    )


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
        ),
        "batch": ("merge_no_batch",),
    },
)
MULTI_HEAD = Family(
    "multi_head",
    multi_head,
    {
        "scale": (
            "scale_missing",
            "scale_d_model",
            "scale_d_k",
            "scale_n_heads",
            "scale_all_heads",
            "scale_d_v",
            "scale_multiplied",
        ),
        "split": (
            "split_no_transpose",
            "split_interleaved",
            "split_only_reshaped",
            "heads_never_moved",
            "split_no_batch",
            "one_head",
        ),
        "merge": ("merge_no_transpose", "merge_interleaved", "merge_mean_repeated"),
        "roles": ("roles_swapped", "shared_q_k"),
        "softmax": ("softmax_over_heads", "axis_second_last", "softmax_twice"),
        "missing": ("softmax_missing", "not_stable"),
        "mix": ("values_are_keys", "weights_transposed"),
        "W_o": ("W_o_missing", "W_o_transposed", "out_mean"),
        "W": ("weights_W_transposed", "weights_W_reshaped"),
        "residual": ("residual_added",),
        "mask": ("mask_ignored", "mask_inverted", "mask_tiled_over_heads"),
        "kv": ("kv_heads_tiled",),
    },
    see_multi_head,
)
