"""Shared keys repeated, and queries normalised, with every mistake built in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults

Float = npt.NDArray[np.floating]


def repeat_kv(k: Float, n_rep: int, axis: int = -3, *, faults: Faults = RIGHT) -> Float:
    """Each key head n_rep times in a row: 0 0 1 1."""
    k = np.moveaxis(k, axis, 0)
    n_kv_heads = len(k)
    if "kv_heads_tiled" in faults:
        k = np.concatenate([k] * n_rep)
    elif "kv_head_first_only" in faults:
        k = np.repeat(k[:1], n_rep * n_kv_heads, axis=0)
    elif "kv_heads_reversed" in faults:
        k = np.repeat(k[::-1], n_rep, axis=0)
    elif "repeat_missing" in faults:
        pass
    elif "repeat_one_more" in faults:
        k = np.repeat(k, n_rep + 1, axis=0)
    elif "repeat_to_n_rep" in faults:  # n_rep is taken for the count of all heads
        k = np.repeat(k, max(1, n_rep // n_kv_heads), axis=0)
    elif "repeat_mean" in faults:
        k = np.repeat(k.mean(axis=0, keepdims=True), n_rep * n_kv_heads, axis=0)
    elif "repeat_zeros" in faults:
        some = np.repeat(k, n_rep, axis=0)
        some[np.arange(len(some)) % n_rep > 0] = 0
        k = some
    else:
        k = np.repeat(k, n_rep, axis=0)
    k = np.moveaxis(k, 0, axis)
    if "repeat_mixed" in faults:  # the right numbers, reshaped over heads and tokens
        turned = np.swapaxes(k, -2, -3)
        k = np.ascontiguousarray(turned).reshape(k.shape)
    return np.asarray(k)


def repeated_elsewhere(
    k: Float, n_rep: int, axis: int = -3, *, faults: Faults = RIGHT
) -> Float:
    """As `repeat_kv`, or repeated along the tokens, or along the features."""
    if "repeat_on_tokens" in faults:
        return np.repeat(k, n_rep, axis=-2 if axis == -3 else -3)
    if "repeat_on_features" in faults:
        return np.repeat(k, n_rep, axis=-1)
    if "repeat_on_batch" in faults:
        return np.repeat(k, n_rep, axis=0)
    return repeat_kv(k, n_rep, axis, faults=faults)


def qk_norm(q: Float, kind: str = "rms", *, faults: Faults = RIGHT) -> Float:
    """Each query divided by its own size: (..., n_heads, n, d_k)."""
    q = np.asarray(q, dtype=np.float64)
    axes: tuple[int, ...] = (-1,)
    if "norm_over_everything" in faults:
        axes = tuple(range(q.ndim))
    for key, over in AXES.items():
        if key in faults:
            axes = over
    if "norm_missing" in faults:
        return q
    if "norm_of_merged" in faults:  # all heads of a token together
        axes = (-3, -1)
    if kind == "layer":
        q = q - q.mean(axis=axes, keepdims=True)
    squares = (q * q).sum(axis=axes, keepdims=True)
    if "norm_largest" in faults:
        return np.asarray(q / np.abs(q).max(axis=axes, keepdims=True))
    if "norm_sum" in faults:
        return np.asarray(q / np.abs(q).sum(axis=axes, keepdims=True))
    if "norm_without_root" in faults:
        return np.asarray(q / (squares if kind == "unit" else squares / q.shape[-1]))
    if "norm_root_twice" in faults:
        size = squares if kind == "unit" else squares / q.shape[-1]
        return np.asarray(q / size**0.25)
    if "norm_multiplied" in faults:
        return np.asarray(q * np.sqrt(squares / q.shape[-1]))
    if "norm_clipped" in faults:  # only large ones are made smaller
        size = np.sqrt(squares if kind == "unit" else squares / q.shape[-1])
        return np.asarray(q / np.maximum(size, 1))
    if "norm_returned" in faults:
        return np.asarray(np.sqrt(squares if kind == "unit" else squares / q.shape[-1]))
    if kind == "unit":
        return np.asarray(q / np.sqrt(squares))
    n = np.prod([q.shape[axis] for axis in axes])
    return np.asarray(q / np.sqrt(squares / n))


AXES: dict[str, tuple[int, ...]] = {
    "norm_over_tokens": (-2,),
    "norm_over_heads": (-3,),
    "norm_over_batch": (0,),
    "norm_over_tokens_too": (-2, -1),
    "norm_over_all": (-3, -2, -1),
}
REPEAT_KV = Family(
    "repeat_kv",
    repeated_elsewhere,
    {
        "order": (
            "kv_heads_tiled",
            "kv_head_first_only",
            "kv_heads_reversed",
            "repeat_missing",
            "repeat_one_more",
            "repeat_to_n_rep",
            "repeat_mean",
            "repeat_zeros",
            "repeat_on_tokens",
            "repeat_on_features",
            "repeat_on_batch",
        ),
        "mixed": ("repeat_mixed",),
    },
)
QK_NORM = Family(
    "qk_norm",
    qk_norm,
    {
        "axis": (*AXES, "norm_over_everything", "norm_of_merged"),
        "size": (
            "norm_missing",
            "norm_largest",
            "norm_sum",
            "norm_without_root",
            "norm_root_twice",
            "norm_multiplied",
            "norm_clipped",
            "norm_returned",
        ),
    },
)
