"""From q and k to the scores that meet the mask, with every mistake built in."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from attnlib.clinic.black_box.traits import Found, Traits
from attnlib.clinic.case import Faults
from attnlib.clinic.families.slopes import ALIBI_SLOPES, alibi_slopes
from attnlib.positions import rope
from attnlib.positions.rotary import Layout

Float = npt.NDArray[np.floating]


class Unforeseen(Exception):
    """What a variant gives here depends on more than is modelled: anything fits."""


def scores(
    q: Float, k: Float, v: Float, traits: Traits, faults: Faults, found: Found
) -> Float:
    """(..., n_q, n_k): products, scaled, capped, with a bias by distance."""
    n_q, n_k = q.shape[-2], k.shape[-2]
    if traits.kernel is not None and traits.kernel.phi != "sigmoid":
        return traits.kernel.scores(q, k)
    raw = products(q, k, v, faults)
    scaled = raw * factor(q, k, v, traits, faults, found)
    if traits.softcap is not None and "cap_missing" not in faults:
        cap = traits.softcap
        if "cap_before_scale" in faults:
            scaled = cap * np.tanh(raw / cap) / math.sqrt(q.shape[-1])
        elif "cap_on_raw" in faults:
            scaled = cap * np.tanh(raw / cap)
        elif "cap_inside_only" in faults:
            scaled = np.tanh(scaled / cap)
        elif "cap_outside_only" in faults:
            scaled = cap * np.tanh(scaled)
        elif "cap_other" in faults:
            cap = found["cap"]
            scaled = cap * np.tanh(scaled / cap)
        elif "cap_clipped" in faults:
            scaled = np.clip(scaled, -cap, cap)
        elif "cap_after_mask" not in faults:
            scaled = cap * np.tanh(scaled / cap)
    if traits.alibi:
        scaled = scaled + bias(q.shape, n_q, n_k, faults, found)
    if traits.bias is not None:
        scaled = scaled + traits.bias.table(scaled.shape)
    return scaled


def prepared(q: Float, k: Float, traits: Traits, faults: Faults) -> tuple[Float, Float]:
    """Queries and keys, turned by their places and normed where the kind says so."""
    if traits.qk_norm:
        q, k = normed(q, k, traits.qk_norm, faults)
    if traits.rope:
        q, k = rotated(q, k, traits, faults)
    return q, k


def bias(
    shape: tuple[int, ...], n_q: int, n_k: int, faults: Faults, found: Found
) -> Float:
    """ALiBi: minus a slope for each head, times the distance."""
    if "alibi_missing" in faults:
        return np.zeros((n_q, n_k))
    n_heads = shape[-3] if len(shape) > 2 else 1
    slopes = np.asarray(alibi_slopes(n_heads, faults=faults & set(ALIBI_SLOPES.faults)))
    if "slopes_other" in faults:
        if f"slope_{n_heads - 1}" not in found:  # they were read off fewer heads
            raise Unforeseen
        slopes = np.array([found[f"slope_{h}"] for h in range(n_heads)])
    start = 0 if "alibi_from_zero" in faults else n_k - n_q
    apart = np.arange(n_k) - (np.arange(n_q) + start)[:, None]
    distance = apart if "alibi_signed" in faults else -np.abs(apart)
    if "alibi_rising" in faults:
        distance = -distance
    return np.asarray(slopes[:n_heads, None, None] * distance)


def products(q: Float, k: Float, v: Float, faults: Faults) -> Float:
    """Queries times keys, or what a fault multiplies instead."""
    if "key_reshaped" in faults:
        return np.asarray(q @ k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2]))
    if "roles_swapped" in faults:
        q, k = k, q
    elif "score_q_q" in faults:
        k = q
    elif "score_k_k" in faults:
        q = k
    elif "score_q_v" in faults:
        k = v
    elif "score_k_v" in faults:
        q, k = k, v
    if "cosine" in faults:
        q, k = (a / np.linalg.norm(a, axis=-1, keepdims=True) for a in (q, k))
    return np.asarray(q @ np.swapaxes(k, -1, -2))


def factor(
    q: Float, k: Float, v: Float, traits: Traits, faults: Faults, found: Found
) -> float:
    """1 / sqrt(d_k), or by what a fault multiplies in its place."""
    d_k = q.shape[-1]
    right = 1 / math.sqrt(d_k) if traits.scale is None else traits.scale
    if SCALES.isdisjoint(faults):
        return right
    if "scale_other" in faults:
        return found["scale"]
    if "scale_missing" in faults:
        return 1.0 if traits.scale is None or right != 1 else 1 / math.sqrt(d_k)
    sizes = sizes_of(q, k, v)
    for key, size in ROOTS.items():
        if key in faults:
            return 1 / math.sqrt(sizes[size])
    other = {
        "scale_multiplied": math.sqrt(d_k),
        "scale_d_k": 1 / d_k,
        "scale_twice": right * right,
        "scale_d_model_whole": 1 / sizes["d_model"],
        "scale_on_one_side": d_k**-0.25,
        "scale_square": d_k**-2.0,
        "scale_of_half": math.sqrt(2 / d_k),
        "scale_base_2": right * math.log(2),
        "scale_base_e_twice": right / math.log(2),
    }
    return next((other[key] for key in other if key in faults), right)


ROOTS = {
    "scale_d_model": "d_model",
    "scale_n_heads": "n_heads",
    "scale_n_k": "n_k",
    "scale_n_q": "n_q",
    "scale_d_v": "d_v",
    "scale_batch": "batch",
}


SCALES = frozenset({"scale_other", "scale_missing", *ROOTS}).union(
    *(
        {"scale_multiplied", "scale_d_k", "scale_twice", "scale_d_model_whole"},
        {"scale_on_one_side", "scale_square", "scale_of_half"},
        {"scale_base_2", "scale_base_e_twice"},
    )
)


def sizes_of(q: Float, k: Float, v: Float) -> dict[str, int]:
    """The sizes by which people divide."""
    n_heads = q.shape[-3] if q.ndim > 2 else 1
    return {
        "d_k": q.shape[-1],
        "d_v": v.shape[-1],
        "n_q": q.shape[-2],
        "n_k": k.shape[-2],
        "n_heads": n_heads,
        "d_model": n_heads * q.shape[-1],
        "batch": q.shape[0],
    }


def normed(q: Float, k: Float, norm: str, faults: Faults) -> tuple[Float, Float]:
    """QK-norm, each query and key by itself, or over a wrong axis."""
    wide = norm.startswith("wide ")
    axis: int | tuple[int, ...] = (-3, -1) if wide else -1
    norm = norm.removeprefix("wide ")
    if "norm_over_tokens" in faults:
        axis = -2
    elif "norm_over_heads" in faults:
        axis = -3
    elif "norm_over_all_features" in faults:
        axis = (-3, -1)
    if "norm_missing" in faults:
        return q, k
    if "norm_on_k_missing" not in faults:
        k = _norm(k, norm, axis)
    if "norm_on_q_missing" not in faults:
        q = _norm(q, norm, axis)
    return q, k


def _norm(x: Float, norm: str, axis: int | tuple[int, ...]) -> Float:
    if norm == "layer":
        x = x - x.mean(axis=axis, keepdims=True)
    if norm == "l2":
        return np.asarray(x / np.linalg.norm(x, axis=axis, keepdims=True))
    return np.asarray(x / np.sqrt((x * x).mean(axis=axis, keepdims=True)))


def rotated(q: Float, k: Float, traits: Traits, faults: Faults) -> tuple[Float, Float]:
    """RoPE on both, by the position of each token, or by what a fault takes for it."""
    if "rope_forgotten" in faults:
        return q, k
    layouts = {"q": traits.rope, "k": traits.rope}
    other = "half" if traits.rope == "interleaved" else "interleaved"
    if "rope_other_layout" in faults:
        layouts = {"q": other, "k": other}
    elif "rope_other_layout_in_k" in faults:
        layouts["k"] = other
    elif "rope_other_layout_in_q" in faults:
        layouts["q"] = other
    n_q, n_k = q.shape[-2], k.shape[-2]
    at_q, at_k = np.arange(n_q) + n_k - n_q, np.arange(n_k)
    if "rope_q_one_on" in faults:
        at_q = at_q + 1
    elif "rope_k_one_on" in faults:
        at_k = at_k + 1
    elif {"rope_q_from_zero", "rope_q_alone_from_zero"} & faults:
        at_q = np.arange(n_q)
    elif "rope_chunk_from_zero" in faults:
        at_q, at_k = np.arange(n_q), np.r_[np.arange(n_k - n_q), np.arange(n_q)]
    elif "rope_cache_turned_twice" in faults:
        at_k = np.where(at_k < n_k - n_q, 2 * at_k, at_k)
    elif "rope_last_position" in faults:
        at_q, at_k = np.full(n_q, n_k - 1), np.full(n_k, n_k - 1)
    elif "rope_places_doubled" in faults:
        at_q, at_k = 2 * at_q, 2 * at_k
    elif "rope_k_turned_twice" in faults:
        at_k = 2 * at_k
    elif "turned_backwards" in faults:
        at_q, at_k = -at_q, -at_k
    elif "rope_k_turned_backwards" in faults:
        at_k = -at_k
    elif "rope_q_turned_backwards" in faults:
        at_q = -at_q
    for name, at in (("rope_by_head", -3), ("rope_by_item", 0)):
        if name in faults and q.ndim >= -at:
            axes = [1] * (q.ndim - 1)
            axes[at + 1 if at < 0 else at] = -1
            at_q = np.arange(q.shape[at]).reshape(axes) * np.ones(n_q, int)[:, None].T
            at_k = np.arange(k.shape[at]).reshape(axes) * np.ones(n_k, int)[:, None].T
    if "rope_angles_of_other_layout" in faults:
        return mixed(q, at_q, traits), mixed(k, at_k, traits)
    if "rope_on_k_only" not in faults:
        q = turned(q, at_q, layouts["q"], traits)
    if not {"rope_on_q_only", "rope_q_alone_from_zero"} & faults:
        k = turned(k, at_k, layouts["k"], traits)
    return q, k


def turned(x: Float, at: npt.NDArray[np.int_], layout: str, traits: Traits) -> Float:
    """Rotate by position, all features or the first few."""
    width = traits.rope_width or x.shape[-1]
    told = at.tobytes(), at.dtype.str, at.shape
    how: Layout = "half" if layout == "half" else "interleaved"
    cos, sin, partner = _turn(*told, width, x.shape[-1], how, traits.rope_base)
    return np.asarray(x * cos + x[..., partner] * sin)


def mixed(x: Float, at: npt.NDArray[np.int_], traits: Traits) -> Float:
    """The pairs of one layout, turned by angles laid out as in the other one."""
    width = traits.rope_width or x.shape[-1]
    half, i = width // 2, np.arange(width)
    own_half = traits.rope == "half"
    pair = i // 2 if own_half else i % half  # the angles as the other layout has them
    angle = at[..., None] * traits.rope_base ** (-2.0 * pair / width)
    partner = (i + half) % width if own_half else i ^ 1
    sign = np.where(i < half if own_half else i % 2 == 0, -1.0, 1.0)
    first = x[..., :width]
    out = first * np.cos(angle) + sign * first[..., partner] * np.sin(angle)
    return np.concatenate([out, x[..., width:]], axis=-1)


@lru_cache(maxsize=256)  # thousands of variants turn by the same few angles
def _turn(
    places: bytes,
    kind: str,
    shape: tuple[int, ...],
    width: int,
    d: int,
    layout: Layout,
    base: float,
) -> tuple[Float, Float, npt.NDArray[np.int_]]:
    """The cosine and signed sine of each feature, and which feature is its partner.

    Read off `rope` itself: a one in each feature shows what it turns into.
    """
    at = np.frombuffer(places, dtype=kind).reshape(shape)
    first = np.arange(width)
    half = width // 2
    partner = np.arange(d)
    partner[:width] = first ^ 1 if layout == "interleaved" else (first + half) % width
    cos, sin = np.ones((*shape, d)), np.zeros((*shape, d))
    for i in range(width):
        one = np.zeros((*shape, width))
        one[..., i] = 1.0
        image = rope(one, at, base=base, layout=layout)
        cos[..., i], sin[..., partner[i]] = image[..., i], image[..., partner[i]]
    return cos, sin, partner
