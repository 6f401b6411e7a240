"""New tokens that look at a cache and at themselves, with every mistake built in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Case, Family, Faults, Result, View
from attnlib.clinic.families.attention import masked_softmax, scale
from attnlib.clinic.families.masks import causal as causal_mask

Float = npt.NDArray[np.floating]

_TRIANGLE = (
    "causal_missing",
    "aligned_top_left",
    "diagonal_missing",
    "diagonal_next",
    "causal_mirrored",
    "triu",
    "triu_shifted",
    "offset_negated",
    "causal_self_only",
    "causal_at_start_only",
    "causal_behind_cache_only",
    "cache_hidden",
    "cache_oldest_hidden",
    "cache_triangle_too",
    "cache_sizes_in_front",
    "offset_is_n_new",
    "mirrored_top_left",
)


def cached_step(
    q: Float,
    k: Float,
    v: Float,
    old_k: Float,
    old_v: Float,
    *,
    faults: Faults = RIGHT,
) -> tuple[Float, Float, Float]:
    """softmax(q [old_k k]^T / sqrt(d_k)) [old_v v], causal, and both joined."""
    keys, values = _joined(k, v, old_k, old_v, faults)
    all_k, all_v = keys, values
    if "cache_own_missing" in faults:
        all_k, all_v = old_k, old_v
    raw = np.asarray(q @ np.swapaxes(all_k, -1, -2))
    scores = scale(raw, q, all_k, all_v, faults)
    look = _look(q.shape[-2], all_k.shape[-2], old_k.shape[-2], faults)
    if "cache_sizes_in_front" in faults:  # len(q), len(keys)
        look = np.array(causal_mask(len(q), len(all_k)), np.bool_)
    weights = scores  # of nothing, nothing
    if all_k.shape[-2]:
        weights = masked_softmax(scores, look, q.shape[-1], faults)
    out: Float = np.asarray(weights @ all_v)
    if {"parts_added", "parts_averaged"} & faults:
        out = _apart(q, k, v, old_k, old_v, faults)
    if "kept_nothing_new" in faults:
        keys, values = old_k, old_v
    elif "kept_new_only" in faults:
        keys, values = k, v
    elif "kept_new_first" in faults:
        new_first = frozenset({"cache_new_first"})
        keys, values = _joined(k, v, old_k, old_v, new_first)
    elif "kept_keys_twice" in faults:
        values = keys
    elif "kept_swapped" in faults:
        keys, values = values, keys
    elif "kept_scaled" in faults:
        keys = keys / np.sqrt(q.shape[-1])
    elif "kept_last_dropped" in faults:
        keys, values = keys[..., :-1, :], values[..., :-1, :]
    elif "kept_first_dropped" in faults:
        keys, values = keys[..., 1:, :], values[..., 1:, :]
    elif "kept_before_out" in faults:
        return keys, values, out
    return out, keys, values


def _joined(
    k: Float, v: Float, old_k: Float, old_v: Float, faults: Faults
) -> tuple[Float, Float]:
    axis = -2
    if "cache_first_axis" in faults:
        axis = 0
    elif "cache_axis_of_heads" in faults:
        axis = -3
    keys_first, values_first = [old_k, k], [old_v, v]
    if {"cache_new_first", "cache_keys_new_first"} & faults:
        keys_first = keys_first[::-1]
    if {"cache_new_first", "cache_values_new_first"} & faults:
        values_first = values_first[::-1]
    return (
        np.concatenate(keys_first, axis=axis),
        np.concatenate(values_first, axis=axis),
    )


def _apart(
    q: Float, k: Float, v: Float, old_k: Float, old_v: Float, faults: Faults
) -> Float:
    """A softmax over the cache, another one over the new tokens."""
    of_new = cached_step(q, k, v, k[..., :0, :], v[..., :0, :])[0]
    alone = frozenset({"cache_own_missing"})  # of an empty cache, zeros
    both = of_new + cached_step(q, k, v, old_k, old_v, faults=alone)[0]
    return both / 2 if "parts_averaged" in faults else both


def _look(n_new: int, n: int, n_old: int, faults: Faults) -> npt.NDArray[np.bool_]:
    """Which of n keys each new token may see, the last one beside the last key."""
    if "cache_own_missing" in faults:
        return np.ones((n_new, n), np.bool_)
    if ("causal_at_start_only" in faults and n_old) or (
        "causal_behind_cache_only" in faults and not n_old
    ):
        faults = faults | {"causal_missing"}
    kind = faults & set(_TRIANGLE)
    look = np.array(causal_mask(n_new, n, faults=kind), np.bool_)
    if "offset_is_n_new" in faults:
        look = np.tri(n_new, n, n_new, dtype=np.bool_)
    elif "mirrored_top_left" in faults:
        look = ~np.tri(n_new, n, -1, dtype=np.bool_)
    elif "cache_triangle_too" in faults:
        look[:, :n_old] = np.tri(n_new, n_old, dtype=np.bool_)
    elif "cache_hidden" in faults:
        look[:, :n_old] = False
    elif "cache_oldest_hidden" in faults and n_old:
        look[:, 0] = False
    return look


def see_cached_step(case: Case, arrays: tuple[Result, ...]) -> View:
    """Where all values together are the unit matrix, the output is the weights."""
    q, k, v, old_k, old_v = (np.asarray(a) for a in case.args)
    keys = np.concatenate([old_k, k], axis=-2)
    values = np.concatenate([old_v, v], axis=-2)
    raw = q @ np.swapaxes(keys, -1, -2)
    n_q, n_k = raw.shape[-2:]
    named = values.shape == (n_k, n_k) and bool((values == np.eye(n_k)).all())
    shown = named and bool(arrays) and arrays[0].shape == raw.shape
    look = np.asarray(causal_mask(n_q, n_k), np.bool_)
    return View(
        weights=arrays[0] if shown else None,
        raw_scores=raw,
        q=q,
        k=keys,
        allowed=np.broadcast_to(look, raw.shape),
        sizes={"n_q": n_q, "n_k": n_k, "d_k": q.shape[-1], "d_v": v.shape[-1]},
    )


CACHED_STEP = Family(
    "cached_step",
    cached_step,
    {
        "join": (
            "cache_new_first",
            "cache_keys_new_first",
            "cache_values_new_first",
            "cache_first_axis",
            "cache_axis_of_heads",
            "cache_own_missing",
            "parts_added",
            "parts_averaged",
        ),
        "mask": _TRIANGLE,
        "kept": (
            "kept_nothing_new",
            "kept_new_only",
            "kept_new_first",
            "kept_keys_twice",
            "kept_swapped",
            "kept_scaled",
            "kept_last_dropped",
            "kept_first_dropped",
            "kept_before_out",
        ),
        "scale": (
            "scale_missing",
            "scale_d_k",
            "scale_multiplied",
            "scale_d_v",
            "scale_n_k",
            "scale_n_q",
        ),
        "fill": ("mask_fill_zero", "mask_after", "mask_added", "mask_fill_10"),
        "axis": ("axis_second_last", "axis_all", "softmax_missing"),
    },
    see_cached_step,
)
