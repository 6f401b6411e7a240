"""Scaled dot-product attention as a black box may do it: every mistake built in.

Written apart from `attnlib.attention` on purpose. A row, column or stack in which all
scores are -inf gives NaN here, as in a plain softmax, unless a fault says "guarded":
what happens to queries that may look at nothing is examined by itself.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from attnlib.clinic.black_box.looks import Truth, allowed
from attnlib.clinic.black_box.scores import Float, prepared, scores, turned
from attnlib.clinic.black_box.stages import Stages
from attnlib.clinic.black_box.traits import NOTHING, PLAIN, Found, Traits
from attnlib.clinic.black_box.weighing import softmax, weigh
from attnlib.clinic.case import RIGHT, Faults


def attend(
    q: Float,
    k: Float,
    v: Float,
    mask: Truth | None = None,
    causal: bool = False,
    *,
    padding: Truth | None = None,
    traits: Traits = PLAIN,
    faults: Faults = RIGHT,
    found: Found = NOTHING,
    stages: Stages | None = None,
) -> tuple[Float, Float]:
    """Return (weights, out) of q (..., n_q, d_k), k (..., n_k, d_k), v (..., n_k, d_v).

    q may have a multiple of the heads of k and v, which neighbours then share. `stages`
    holds what other variants of this kind had in common with this one.
    """
    if "heads_as_tokens" in faults and q.ndim == 4:
        n = q.shape[-2]  # with more keys, loops over queries take the first ones
        q, k, v = (np.swapaxes(a[:, :, :n], 1, 2) for a in (q, k, v))
        if k.shape[1] < n:
            raise ValueError(f"n_k={k.shape[1]} is less than n_q={n}.")
        less = faults - {"heads_as_tokens"}
        weights, out = attend(
            q,
            k,
            v,
            mask,
            causal,
            padding=padding,
            traits=traits,
            faults=less,
            found=found,
        )
        return weights, np.swapaxes(out, 1, 2)
    stages = Stages() if stages is None else stages
    first, second = stages.before(faults)
    shared = q.ndim > 2 and q.shape[-3] != k.shape[-3]
    v = grouped(v, q.shape[-3], faults, "value_heads_tiled") if shared else v

    def scored() -> tuple[Float, Float, Float]:
        asks, keys = prepared(q, k, traits, faults)
        keys = grouped(keys, q.shape[-3], faults, "key_heads_tiled") if shared else keys
        return asks, keys, scores(asks, keys, v, traits, faults, found)

    asks, keys, s = stages.kept(stages.scores, first, scored)

    def weighed() -> tuple[Float, Float, Float | None]:
        return masked(s, mask, causal, padding, asks, traits, faults, found)

    s, weights, said = stages.kept(stages.weights, second, weighed)
    if "rope_on_v" in faults and traits.rope:
        v = turned(v, np.arange(v.shape[-2]), traits.rope, traits)
    if "scale_after" in faults:
        weights = weights / math.sqrt(q.shape[-1])
    if "weights_averaged" in faults and weights.ndim > 2:
        weights = np.repeat(
            weights.mean(axis=-3, keepdims=True), weights.shape[-3], axis=-3
        )
    if "weights_transposed" in faults:
        weights = np.swapaxes(weights, -1, -2)
    if "values_are_keys" in faults:
        v = keys
    elif "values_are_queries" in faults:
        v = asks
    out = np.asarray((s if "scores_mixed" in faults else weights) @ v)
    out = out if said is None else out + said
    if "softmax_on_out" in faults:
        out = softmax(out, -1, False)
    if "out_scaled" in faults:
        out = out / math.sqrt(q.shape[-1])
    return weights, out


def masked(
    s: Float,
    mask: Truth | None,
    causal: bool,
    padding: Truth | None,
    q: Float,
    traits: Traits,
    faults: Faults,
    found: Found,
) -> tuple[Float, Float, Float | None]:
    """The scores that may be seen, their weights, and what a key of its own says."""
    if "causal_apart" in faults and (causal or traits.causal or traits.window):
        past = allowed(None, causal, s.shape, traits, faults)
        s = s if past is None else np.where(past, s, -np.inf)
        traits, causal = replace(traits, causal=False, window=None), False
    look = allowed(mask, causal, s.shape, traits, faults, padding)
    if traits.extra is not None:  # 1 would be added to its score, too
        shift = ("mask_subtracted" in faults) - 1.0 * ("mask_added" in faults)
        s, look = traits.extra.join(s, look, q, shift)
    weights = weigh(s, look, q.shape[-1], traits, faults, found)
    if traits.extra is None:
        return s, weights, None
    return s, *traits.extra.part(weights)


def scores_of(
    q: Float, k: Float, v: Float, traits: Traits, faults: Faults, found: Found
) -> Float:
    """The scores as they meet the mask."""
    asks, keys = prepared(q, k, traits, faults)
    if q.ndim > 2 and q.shape[-3] != k.shape[-3]:
        keys = grouped(keys, q.shape[-3], faults, "key_heads_tiled")
        v = grouped(v, q.shape[-3], faults, "value_heads_tiled")
    return scores(asks, keys, v, traits, faults, found)


def grouped(kv: Float, n_heads: int, faults: Faults, tiled: str) -> Float:
    """Each key head, once for every query head that shares it.

    `tiled` is the fault by which these alone lie one group after the other.
    """
    n_kv = kv.shape[-3]
    if n_heads % n_kv:
        raise ValueError(f"n_heads={n_heads} is no multiple of n_kv_heads={n_kv}.")
    heads = np.arange(n_heads)
    chosen = heads // (n_heads // n_kv)
    if "kv_heads_tiled" in faults or tiled in faults:
        chosen = heads % n_kv
    elif "kv_head_first_only" in faults:
        chosen = np.zeros(n_heads, int)
    elif "kv_heads_reversed" in faults:
        chosen = chosen[::-1]
    return np.asarray(np.take(kv, chosen, axis=-3))
