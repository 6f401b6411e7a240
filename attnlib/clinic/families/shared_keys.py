"""Attention of many query heads over few key heads, with every mistake built in."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Case, Family, Faults, Result, View
from attnlib.clinic.families.attention import masked_softmax, scale

Float = npt.NDArray[np.floating]
Whole = npt.NDArray[np.integer]

# The key head of query head h.
KEY_OF: dict[str, Callable[[Whole, int, int], Whole]] = {
    "kv_heads_tiled": lambda h, n_kv, group: h % n_kv,
    "kv_head_first_only": lambda h, n_kv, group: 0 * h,
    "kv_head_last_only": lambda h, n_kv, group: 0 * h + n_kv - 1,
    "kv_heads_reversed": lambda h, n_kv, group: n_kv - 1 - h // group,
    "kv_groups_of_three": lambda h, n_kv, group: np.minimum(h // 3, n_kv - 1),
    "kv_groups_of_two": lambda h, n_kv, group: np.minimum(h // 2, n_kv - 1),
    "kv_group_is_count": lambda h, n_kv, group: np.minimum(h // n_kv, n_kv - 1),
}


def grouped_attention(q: Float, k: Float, v: Float, *, faults: Faults = RIGHT) -> Float:
    """softmax(q_h k_g^T / sqrt(d_k)) v_g, where g = h // (n_heads / n_kv_heads)."""
    n_heads, n_kv = q.shape[-3], k.shape[-3]
    group = n_heads // n_kv
    h = np.arange(n_heads)
    key_of: Whole = h // group
    value_of: Whole = key_of
    for key, of in KEY_OF.items():
        if key in faults:
            key_of = value_of = of(h, n_kv, group)
    if "kv_keys_tiled" in faults:
        key_of = h % n_kv
    elif "kv_values_tiled" in faults:
        value_of = h % n_kv
    elif "kv_keys_first_only" in faults:
        key_of = 0 * h
    elif "kv_values_first_only" in faults:
        value_of = 0 * h
    if "group_queries_dropped" in faults:  # as many queries as keys, one each
        q, group, key_of, value_of = q[..., :n_kv, :, :], 1, h[:n_kv], h[:n_kv]
    elif "group_mean_alone" in faults:
        q = q.reshape(*q.shape[:-3], n_kv, group, *q.shape[-2:]).mean(axis=-3)
        group, key_of, value_of = 1, h[:n_kv], h[:n_kv]
    elif "group_queries_mean" in faults:
        means = q.reshape(*q.shape[:-3], n_kv, group, *q.shape[-2:]).mean(axis=-3)
        q = np.repeat(means, group, axis=-3)
    if "group_queries_regrouped" in faults:  # tokens before the group, then a cut
        cut = q.reshape(*q.shape[:-3], n_kv, group, *q.shape[-2:])
        q = np.ascontiguousarray(np.swapaxes(cut, -3, -2)).reshape(q.shape)
    if "group_folded_by_stride" in faults:  # heads 0 2 4, then 1 3 5; cut back plainly
        q = q[..., h.reshape(group, n_kv).T.ravel(), :, :]
    elif "group_tokens_first" in faults:
        q = np.ascontiguousarray(np.swapaxes(q, -3, -2)).reshape(q.shape)
    keys, values = (np.take(a, of, axis=-3) for a, of in ((k, key_of), (v, value_of)))
    if "repeat_mean" in faults:
        keys, values = (
            np.repeat(a.mean(axis=-3, keepdims=True), n_heads, axis=-3) for a in (k, v)
        )
    elif "repeat_mixed" in faults:  # the right numbers, cut at the wrong axes
        keys, values = (
            np.ascontiguousarray(np.swapaxes(a, -3, -2)).reshape(a.shape)
            for a in (keys, values)
        )
    elif "kv_heads_joined" in faults:  # the keys of all heads in one long table
        keys, values = (
            np.repeat(a.reshape(*a.shape[:-3], 1, -1, a.shape[-1]), n_heads, axis=-3)
            for a in (k, v)
        )
    scores = scale(q @ np.swapaxes(keys, -1, -2), q, keys, values, faults)
    if "scale_n_heads" in faults:
        scores = q @ np.swapaxes(keys, -1, -2) / np.sqrt(n_heads)
    if {"causal_unasked", "causal_unasked_top_left"} & faults:
        n_q, n_k = scores.shape[-2:]
        offset = n_k - n_q if "causal_unasked" in faults else 0
        scores = np.where(np.tri(n_q, n_k, offset, dtype=bool), scores, -np.inf)
    if "axis_folded_rows" in faults:  # over all queries of a group
        rows = scores.reshape(*scores.shape[:-3], n_kv, -1, scores.shape[-1])
        e = np.exp(rows - rows.max(axis=-2, keepdims=True))
        weights = (e / e.sum(axis=-2, keepdims=True)).reshape(scores.shape)
    elif "axis_heads" in faults:
        e = np.exp(scores - scores.max(axis=-3, keepdims=True))
        weights = e / e.sum(axis=-3, keepdims=True)
    else:
        weights = masked_softmax(scores, None, q.shape[-1], faults)
    return _returned(np.asarray(weights @ values), n_kv, group, faults)


def _returned(out: Float, n_kv: int, group: int, faults: Faults) -> Float:
    *batch, n_heads, n_q, d_v = out.shape
    if "group_unfolded_wrongly" in faults:  # (group n_q) cut as (n_q group)
        cut = out.reshape(*batch, n_kv, n_q, group, d_v)
        return np.swapaxes(cut, -3, -2).reshape(out.shape)
    if "group_unfolded_tokens_first" in faults:  # cut as (n_q n_heads)
        return np.swapaxes(out.reshape(*batch, n_q, n_heads, d_v), -3, -2)
    if "group_heads_permuted" in faults:
        cut = out.reshape(*batch, n_kv, group, n_q, d_v)
        return np.swapaxes(cut, -4, -3).reshape(out.shape)
    if "group_still_folded" in faults:
        return out.reshape(*batch, n_kv, group * n_q, d_v)
    if "group_axis_kept" in faults:
        return out.reshape(*batch, n_kv, group, n_q, d_v)
    if "group_out_mean" in faults:
        cut = out.reshape(*batch, n_kv, group, n_q, d_v)
        return np.asarray(cut.mean(axis=-3))
    if "group_out_first" in faults:
        return out[..., ::group, :, :]
    if "group_heads_dropped" in faults:  # as many query heads as key heads
        return out[..., :n_kv, :, :]
    if "heads_merged_too" in faults:
        return np.swapaxes(out, -3, -2).reshape(*batch, n_q, n_heads * d_v)
    return out


def see_grouped(case: Case, arrays: tuple[Result, ...]) -> View:
    """Where every value only names its token, the output is the weights."""
    q, k, v = (np.asarray(a) for a in case.args)
    n_heads, n_q, d_k = q.shape[-3:]
    n_k = k.shape[-2]
    raw = q @ np.swapaxes(np.repeat(k, n_heads // k.shape[-3], axis=-3), -1, -2)
    named = v.shape[-1] == n_k and bool((v == np.eye(n_k)).all())
    shown = named and bool(arrays) and arrays[0].shape == raw.shape
    return View(
        weights=arrays[0] if shown else None,
        raw_scores=raw,
        sizes={"n_q": n_q, "n_k": n_k, "d_k": d_k, "d_v": v.shape[-1]},
    )


GROUPED_ATTENTION = Family(
    "grouped_attention",
    grouped_attention,
    {
        "order": (
            *KEY_OF,
            "kv_keys_tiled",
            "kv_values_tiled",
            "kv_keys_first_only",
            "kv_values_first_only",
            "kv_heads_joined",
            "repeat_mean",
            "repeat_mixed",
        ),
        "queries": (
            "group_queries_mean",
            "group_mean_alone",
            "group_queries_dropped",
            "group_queries_regrouped",
            "group_folded_by_stride",
            "group_tokens_first",
        ),
        "returned": (
            "group_unfolded_wrongly",
            "group_unfolded_tokens_first",
            "group_heads_permuted",
            "group_still_folded",
            "group_axis_kept",
            "group_out_mean",
            "group_out_first",
            "group_heads_dropped",
            "heads_merged_too",
        ),
        "scale": (
            "scale_missing",
            "scale_d_k",
            "scale_multiplied",
            "scale_d_v",
            "scale_n_k",
            "scale_n_q",
            "scale_n_heads",
        ),
        "axis": (
            "axis_second_last",
            "axis_folded_rows",
            "axis_heads",
            "axis_all",
            "softmax_missing",
            "causal_unasked",
            "causal_unasked_top_left",
        ),
    },
    see_grouped,
)
