"""Attention in many heads, with every mistake built in."""

from __future__ import annotations

import math
from typing import cast

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Case, Family, Faults, Result, View
from attnlib.clinic.families.attention import masked_softmax, mix
from attnlib.clinic.families.splits import merge_heads, split_heads

Float = npt.NDArray[np.floating]


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
    if "heads_all_first" in faults:
        q, k, v = (np.repeat(a[..., :1, :, :], n_heads, axis=-3) for a in (q, k, v))
    if "roles_swapped" in faults:
        q, k = k, q
    scores = q @ np.swapaxes(k, -1, -2)
    scores = scores / _divisor(x, q, v, n_heads, faults)
    if "causal_unasked" in faults and mask is None:
        mask = np.tri(x.shape[-2], dtype=bool)
    if mask is not None:
        mask = _per_head(mask, x, n_heads, faults)
    weights = _weights(scores, mask, q.shape[-1], faults)
    if "weights_averaged" in faults:
        weights = np.repeat(weights.mean(axis=-3, keepdims=True), n_heads, axis=-3)
    mixed = mix(weights, scores, q, k, v, faults)
    merged = merge_heads(mixed, faults=faults)
    if "W_o_missing" in faults:
        return merged
    if "W_o_first_rows" in faults:
        d_v = mixed.shape[-1]
        return np.asarray(mixed.sum(axis=-3) @ W_o[:d_v])
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
        "scale_d_model_part": math.sqrt(x.shape[-1] // n_heads),
        "scale_d_model_share": math.sqrt(x.shape[-1] / n_heads),
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
    axes = {"softmax_over_heads": (-3, -1), "axis_heads": (-3,)}
    over = next((axes[key] for key in axes if key in faults), None)
    if over is None:
        return masked_softmax(scores, mask, d_k, faults)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    top = scores.max(axis=over, keepdims=True)
    e = np.exp(scores - np.where(np.isneginf(top), 0, top))
    total = e.sum(axis=over, keepdims=True)
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
            "(d_model/n_heads)": x.shape[-1] // n_heads,
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
            "scale_d_model_part",
            "scale_d_model_share",
        ),
        "split": (
            "split_no_transpose",
            "split_interleaved",
            "split_only_reshaped",
            "heads_never_moved",
            "split_no_batch",
            "one_head",
            "heads_all_first",
        ),
        "merge": ("merge_no_transpose", "merge_interleaved", "merge_mean_repeated"),
        "roles": ("roles_swapped", "shared_q_k"),
        "softmax": (
            "softmax_over_heads",
            "axis_second_last",
            "softmax_twice",
            "axis_heads",
            "axis_all",
        ),
        "causal": ("causal_unasked",),
        "missing": ("softmax_missing", "not_stable"),
        "mix": ("values_are_keys", "weights_transposed", "weights_averaged"),
        "W_o": ("W_o_missing", "W_o_transposed", "out_mean", "W_o_first_rows"),
        "W": ("weights_W_transposed", "weights_W_reshaped"),
        "residual": ("residual_added",),
        "mask": ("mask_ignored", "mask_inverted", "mask_tiled_over_heads"),
        "kv": ("kv_heads_tiled",),
    },
    see_multi_head,
)
