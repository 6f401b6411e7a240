"""Cross-attention from tokens, a memory and three tables, with mistakes built in."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Case, Family, Faults, Result, View
from attnlib.clinic.families import attention
from attnlib.clinic.families.attention import see_attention

Float = npt.NDArray[np.floating]
Mask = npt.NDArray[np.bool_]

_WIDTHS = {"scale_d_model": 1, "scale_d_memory": 2}  # whose width, counted in the call


def cross_attention(
    x: Float,
    memory: Float,
    W_q: Float,
    W_k: Float,
    W_v: Float,
    mask: Mask | None = None,
    *,
    faults: Faults = RIGHT,
) -> tuple[Float, Float]:
    """Queries from x, keys and values from memory; returns (weights, out)."""
    asks, found, said = x, memory, memory  # what q, k and v are made of
    if "self_attention" in faults:
        found = said = x
    elif "self_attention_of_memory" in faults:
        asks = memory
    elif "keys_from_x" in faults:
        found = x
    elif "values_from_x" in faults:
        said = x
    elif "memory_asks" in faults:
        asks, found, said = memory, x, x
    if "tables_k_v_swapped" in faults:
        W_k, W_v = W_v, W_k
    elif "tables_q_k_swapped" in faults:
        W_q, W_k = W_k, W_q
    q: Float = np.asarray(asks @ W_q)
    k: Float = np.asarray(found @ W_k)
    v: Float = np.asarray(said @ W_v)
    if "keys_not_projected" in faults:
        k = found
    elif "queries_not_projected" in faults:
        q = asks
    elif "values_not_projected" in faults:
        v = said
    if "memory_asks_with_its_table" in faults:
        q, k, v = k, q, q
    elif "queries_for_all" in faults:
        k = v = q
    if "memory_zeroed" in faults and mask is not None:
        there = np.swapaxes(np.atleast_2d(mask), -1, -2)
        k, v, mask = k * there, v * there, None
    if "mask_on_queries" in faults and mask is not None:
        mask = np.swapaxes(np.atleast_2d(mask), -1, -2)
    if "mask_without_axis" in faults and mask is not None and mask.ndim == 3:
        mask = mask[:, 0]
    for key, place in _WIDTHS.items():
        if key in faults:  # divided by the width's root, where √d_k is right
            wide = (x, memory)[place - 1].shape[-1]
            q = q * math.sqrt(q.shape[-1] / wide)
    if "mask_times_infinity" in faults and mask is not None:
        mask = np.broadcast_to(mask, (q @ np.swapaxes(k, -1, -2)).shape)
    if "returned_masked_scores" in faults:
        faults = faults | {"returned_scores"}
    weights, out = attention.scaled_dot_product(q, k, v, mask, faults=faults)
    if "returned_raw_scores" in faults:
        return np.asarray(q @ np.swapaxes(k, -1, -2)), out
    as_scores = {"softmax_missing", "returned_masked_scores"} & faults
    if as_scores and mask is not None:
        weights = np.where(mask, weights, -np.inf)
        out = weights @ v if "softmax_missing" in faults else out
    if "out_added_to_x" in faults:
        out = x + out
    return weights, out


def see_cross(case: Case, arrays: tuple[Result, ...]) -> View:
    """Queries and keys follow from the arguments; the first result is the weights."""
    x, memory, W_q, W_k, W_v = (np.asarray(a) for a in case.args[:5])
    inner = Case(case.name, (x @ W_q, memory @ W_k, memory @ W_v, *case.args[5:]))
    view = see_attention(inner, arrays)
    sizes = {**view.sizes, "d_model": x.shape[-1], "d_memory": memory.shape[-1]}
    return View(view.weights, view.raw_scores, view.q, view.k, view.allowed, sizes)


CROSS_ATTENTION = Family(
    "cross-attention",
    cross_attention,
    {
        "source": (
            "self_attention",
            "self_attention_of_memory",
            "keys_from_x",
            "values_from_x",
            "memory_asks",
        ),
        "tables": (
            "tables_k_v_swapped",
            "tables_q_k_swapped",
            "keys_not_projected",
            "queries_not_projected",
            "values_not_projected",
        ),
        "scale": (
            "scale_missing",
            "scale_multiplied",
            "scale_d_k",
            "scale_after",
            "scale_d_model",
            "scale_d_memory",
            "scale_d_v",
            "scale_n_k",
            "scale_n_q",
            "scale_first_of_k",
            "scale_second_of_q",
        ),
        "scores": (
            "roles_swapped",
            "score_q_q",
            "score_k_k",
            "cosine",
            "key_reshaped",
            "memory_asks_with_its_table",
            "queries_for_all",
        ),
        "axis": (
            "axis_second_last",
            "axis_zero",
            "axis_one",
            "axis_all",
            "softmax_missing",
        ),
        "softmax": ("softmax_twice", "not_stable", "not_normalised"),
        "mix": ("values_are_keys", "weights_transposed", "scores_mixed"),
        "mask": (
            "mask_ignored",
            "mask_inverted",
            "mask_added",
            "mask_fill_zero",
            "mask_after",
            "mask_after_divided",
            "mask_after_divided_nan",
            "mask_fill_10",
            "mask_fill_10000",
            "mask_times_infinity",
            "mask_nan_throughout",
            "memory_zeroed",
        ),
        "mask axes": ("mask_on_queries", "mask_without_axis"),
        "empty": ("empty_row_nan", "empty_row_filled", "empty_row_unmasked"),
        "returned": (
            "returned_swapped",
            "returned_scores",
            "returned_masked_scores",
            "returned_raw_scores",
            "out_added_to_x",
        ),
    },
    see_cross,
)
