"""The attention of one layer of a language model, with every mistake built in."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Case, Family, Faults, Result, View
from attnlib.clinic.families.attention import masked_softmax, mix
from attnlib.clinic.families.splits import merge_heads, split_heads
from attnlib.positions import rope

Float = npt.NDArray[Any]


def layer_attention(
    normed: Float,
    W_q: Float,
    W_k: Float,
    W_v: Float,
    W_o: Float,
    n_heads: int,
    n_kv_heads: int,
    *,
    faults: Faults = RIGHT,
) -> Float:
    """Causal, with RoPE, query heads in groups; returns out, (..., n, d_model)."""
    if len(faults) > 1:  # its NaN would hide the other one, and spread
        faults = faults - {"diagonal_missing_nan"}
    x: Float = normed
    n = normed.shape[-2]
    if "norm_again" in faults:
        x = np.asarray(x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5))
    places = np.arange(n)
    if "rope_on_x" in faults:
        x = np.asarray(rope(x, places))
    wide_q, wide_k, wide_v = x @ W_q, x @ W_k, x @ W_v
    if "rope_before_split" in faults:
        wide_q, wide_k = rope(wide_q, places), rope(wide_k, places)
    if "kv_columns_repeated" in faults:
        each, n_kv_heads = n_heads // n_kv_heads, n_heads
        wide_k, wide_v = (np.repeat(a, each, axis=-1) for a in (wide_k, wide_v))
    q = split_heads(wide_q, n_heads, faults=faults)
    k = split_heads(wide_k, n_kv_heads, faults=faults)
    v = split_heads(wide_v, n_kv_heads, faults=faults)
    q, k, v = _turned(q, k, v, places, faults)
    k, v = (_shared(a, n_heads, faults) for a in (k, v))
    if "roles_swapped" in faults:
        q, k = k, q
    scores = q @ np.swapaxes(k, -1, -2) / _divisor(normed, q, v, faults)
    mask = _mask(n, faults)
    weights = _weights(scores, mask, q.shape[-1], faults)
    mixed = mix(weights, scores, q, k, v, faults)
    merged = merge_heads(mixed, faults=faults)
    if "W_o_missing" in faults:
        return merged
    out = np.asarray(merged @ (W_o.T if "W_o_transposed" in faults else W_o))
    return out + normed if "residual_added" in faults else out


def _turned(
    q: Float, k: Float, v: Float, places: npt.NDArray[np.int64], faults: Faults
) -> tuple[Float, Float, Float]:
    """Queries and keys at their places; values stay, in the right version."""
    if {"rope_forgotten", "rope_on_x", "rope_before_split"} & faults:
        return q, k, v
    if "rope_half_layout" in faults:
        return rope(q, places, layout="half"), rope(k, places, layout="half"), v
    if "rope_places_reversed" in faults:
        places = places[::-1]
    elif "rope_places_doubled" in faults:
        places = 2 * places
    if "rope_on_q_only" in faults:
        return rope(q, places), k, v
    if "rope_on_k_only" in faults:
        return q, rope(k, places), v
    turned_v = rope(v, places) if "rope_on_v" in faults else v
    return rope(q, places), rope(k, places), turned_v


def _shared(a: Float, n_heads: int, faults: Faults) -> Float:
    """Keys or values, one for each query head."""
    repeats = n_heads // a.shape[-3]
    if "kv_heads_tiled" in faults:
        return np.concatenate([a] * repeats, axis=-3)
    if "kv_head_first_only" in faults:
        return np.repeat(a[..., :1, :, :], n_heads, axis=-3)
    if "kv_heads_reversed" in faults:
        a = a[..., ::-1, :, :]
    if "kv_groups_of_three" in faults:
        return np.asarray(a[..., np.arange(n_heads) // 3, :, :])
    return np.repeat(a, repeats, axis=-3)


def _divisor(x: Float, q: Float, v: Float, faults: Faults) -> float:
    n_heads, n, d_k = q.shape[-3:]
    other = {
        "scale_missing": 1.0,
        "scale_d_model": math.sqrt(x.shape[-1]),
        "scale_d_k": float(d_k),
        "scale_multiplied": 1 / math.sqrt(d_k),
        "scale_d_v": math.sqrt(v.shape[-1]),
        "scale_n_k": math.sqrt(n),
        "scale_of_24": math.sqrt(24),
        "scale_d_model_share": math.sqrt(x.shape[-1] / n_heads),
        "scale_d_model_part": math.sqrt(max(x.shape[-1] // n_heads, 1)),
        "scale_n_heads": math.sqrt(n_heads),
        "scale_all_heads": math.sqrt(n_heads * d_k),
    }
    chosen = [value for key, value in other.items() if key in faults]
    return chosen[0] if chosen else math.sqrt(d_k)


def _mask(n: int, faults: Faults) -> npt.NDArray[np.bool_] | None:
    if "causal_missing" in faults:
        return None
    if "causal_mirrored" in faults:
        return np.asarray(np.tri(n, dtype=bool).T)
    if {"diagonal_missing", "diagonal_missing_nan"} & faults:
        return np.asarray(np.tri(n, k=-1, dtype=bool))
    if "diagonal_next" in faults:
        return np.asarray(np.tri(n, k=1, dtype=bool))
    return np.asarray(np.tri(n, dtype=bool))


def _weights(
    scores: Float, mask: npt.NDArray[np.bool_] | None, d_k: int, faults: Faults
) -> Float:
    if {"diagonal_missing_nan", "not_stable"} & faults:  # 0 / 0, as people write it
        faults = faults | {"empty_row_nan"}
    if "softmax_over_heads" not in faults:
        return masked_softmax(scores, mask, d_k, faults)
    seen = scores if mask is None else np.where(mask, scores, -np.inf)
    e = np.exp(seen - seen.max(axis=(-3, -1), keepdims=True))
    return np.asarray(e / e.sum(axis=(-3, -1), keepdims=True))


def see_layer(case: Case, arrays: tuple[Result, ...]) -> View:
    """Read the weights off the output, where the arguments are an x-ray.

    Then the last n features of a token are its number, W_v copies them into every
    head, and W_o changes nothing: out is the weights, head by head.
    """
    x, W_q, W_k, W_v, W_o = (np.asarray(a) for a in case.args[:5])
    n_heads, n_kv_heads = (cast(int, a) for a in case.args[5:7])
    n, places = x.shape[-2], np.arange(x.shape[-2])
    q = rope(split_heads(x @ W_q, n_heads), places)
    k = rope(split_heads(x @ W_k, n_kv_heads), places)
    k = np.repeat(k, n_heads // n_kv_heads, axis=-3)
    raw = q @ np.swapaxes(k, -1, -2)
    named = W_v.shape[-1] == n * n_kv_heads and W_o.shape == (n * n_heads,) * 2
    xray = named and np.array_equal(W_o, np.eye(len(W_o)))
    weights = None
    if xray and arrays and arrays[0].shape == (n, n * n_heads):
        weights = split_heads(np.asarray(arrays[0], float), n_heads)
    return View(
        weights=weights,
        raw_scores=raw,
        q=q,
        k=k,
        allowed=np.broadcast_to(np.tri(n, dtype=bool), raw.shape),
        sizes={
            "d_k": q.shape[-1],
            "d_model": x.shape[-1],
            "n_heads": n_heads,
            "n_k": n,
            "d_v": W_v.shape[-1] // n_kv_heads,
            "24": 24,
            "(d_model/n_heads)": x.shape[-1] // n_heads,
        },
    )


LAYER_ATTENTION = Family(
    "layer_attention",
    layer_attention,
    {
        "rope": (
            "rope_forgotten",
            "rope_half_layout",
            "rope_on_q_only",
            "rope_on_k_only",
            "rope_on_v",
            "rope_before_split",
            "rope_on_x",
            "rope_places_reversed",
            "rope_places_doubled",
        ),
        "kv": (
            "kv_heads_tiled",
            "kv_head_first_only",
            "kv_heads_reversed",
            "kv_groups_of_three",
            "kv_columns_repeated",
        ),
        "mask": (
            "causal_missing",
            "causal_mirrored",
            "diagonal_missing",
            "diagonal_missing_nan",
            "diagonal_next",
            "mask_inverted",
            "mask_fill_zero",
            "mask_after",
            "mask_fill_10",
            "mask_fill_10000",
        ),
        "scale": (
            "scale_missing",
            "scale_d_model",
            "scale_d_k",
            "scale_multiplied",
            "scale_d_v",
            "scale_n_k",
            "scale_of_24",
            "scale_d_model_share",
            "scale_d_model_part",
            "scale_n_heads",
            "scale_all_heads",
        ),
        "split": ("split_no_transpose", "split_interleaved"),
        "merge": ("merge_no_transpose", "merge_interleaved", "merge_mean_repeated"),
        "softmax": (
            "softmax_over_heads",
            "axis_second_last",
            "softmax_twice",
            "softmax_missing",
        ),
        "shift": ("not_stable",),
        "roles": ("roles_swapped",),
        "mix": ("values_are_keys",),
        "W_o": ("W_o_missing", "W_o_transposed"),
        "x": ("norm_again",),
        "residual": ("residual_added",),
    },
    see_layer,
)
