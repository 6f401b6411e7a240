"""Attention block by block, with every mistake built in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults
from attnlib.clinic.families.softmax import softmax

Float = npt.NDArray[np.floating]
STARTS = {"online_starts_at_0": 0.0, "online_starts_at_10000": -1e4}


def online_softmax(
    scores: Float, v: Float, block: int, *, faults: Faults = RIGHT
) -> Float:
    """softmax(scores) @ v, from blocks of keys: a maximum, a sum and an output."""
    scores, v = np.asarray(scores, float), np.asarray(v, float)
    ends = range(0, scores.shape[-1], block)
    if "online_rest_dropped" in faults:
        ends = range(0, scores.shape[-1] // block * block, block)
    elif "online_last_only" in faults:
        ends = ends[-1:]
    elif "online_first_only" in faults:
        ends = ends[:1]
    parts = [(scores[..., i : i + block], v[i : i + block]) for i in ends]
    return _online(parts, scores.shape[:-1], v.shape[-1], faults)


def online_blocks(
    scores: Sequence[Float], values: Sequence[Float], *, faults: Faults = RIGHT
) -> Float:
    """The same from two lists of blocks."""
    if "online_last_only" in faults:
        scores, values = scores[-1:], values[-1:]
    elif "online_first_only" in faults:
        scores, values = scores[:1], values[:1]
    parts = list(zip(scores, values, strict=True))
    return _online(parts, scores[0].shape[:-1], values[0].shape[-1], faults)


def _online(
    parts: Sequence[tuple[Float, Float]],
    rows: tuple[int, ...],
    d_v: int,
    faults: Faults,
) -> Float:
    if "online_means_averaged" in faults:
        return np.asarray(np.mean([softmax(s) @ v for s, v in parts], axis=0))
    if "online_means_added" in faults:
        return np.asarray(np.sum([softmax(s) @ v for s, v in parts], axis=0))
    start = next((STARTS[key] for key in STARTS if key in faults), -np.inf)
    m = np.full((*rows, 1), start)
    total, out = np.zeros((*rows, 1)), np.zeros((*rows, d_v))
    for scores, v in parts:
        top = scores.max(axis=-1, keepdims=True)
        new = top if "online_max_of_block" in faults else np.maximum(m, top)
        if "online_not_stable" in faults:
            new = np.zeros_like(m)
        elif "online_max_kept" in faults:  # the first one, for good
            new = np.where(np.isneginf(m), top, m)
        guarded = "online_empty_block" not in faults
        by = np.where(np.isneginf(new), 0, new) if guarded else new
        shrink, e = np.exp(m - by), np.exp(scores - by)
        if "online_shrink_upside_down" in faults:
            shrink = np.exp(np.where(np.isneginf(m), -np.inf, by - m))
        elif "online_not_stable" in faults:
            shrink = np.ones_like(shrink)
        of_total = of_out = shrink
        if "online_not_rescaled" in faults:
            of_total = of_out = np.ones_like(shrink)
        elif "online_out_not_rescaled" in faults:
            of_out = np.ones_like(shrink)
        elif "online_sum_not_rescaled" in faults:
            of_total = np.ones_like(shrink)
        if "online_old_sum_divides" in faults:
            out = out / np.where(total == 0, 1, total)
        block_sum = e.sum(axis=-1, keepdims=True)
        total = total * of_total + block_sum
        if "online_sum_replaced" in faults:
            total = block_sum
        part = e @ v
        if "online_block_normalised" in faults:
            part = part / np.where(block_sum == 0, 1, block_sum)
        elif "online_new_part_shrunk" in faults:
            part = part * np.where(np.isneginf(m), 1, shrink)
        out = out * of_out + part
        m = new
    if "online_not_divided" in faults:
        return np.asarray(out)
    if "empty_row_nan" in faults:
        return np.asarray(out / total)
    if "online_epsilon" in faults:
        return np.asarray(out / (total + 1))
    return np.asarray(out / np.where(total == 0, 1, total))


_ONLINE = {
    "start": tuple(STARTS),
    "rescale": (
        "online_not_rescaled",
        "online_out_not_rescaled",
        "online_sum_not_rescaled",
        "online_shrink_upside_down",
        "online_new_part_shrunk",
        "online_sum_replaced",
        "online_max_of_block",
        "online_max_kept",
        "online_block_normalised",
        "online_old_sum_divides",
        "online_means_averaged",
        "online_means_added",
        "online_not_stable",
    ),
    "blocks": ("online_rest_dropped", "online_last_only", "online_first_only"),
    "empty": ("online_empty_block",),
    "end": ("empty_row_nan", "online_not_divided", "online_epsilon"),
}
ONLINE_SOFTMAX = Family("online_softmax", online_softmax, _ONLINE)
ONLINE_BLOCKS = Family(
    "online_blocks",
    online_blocks,
    _ONLINE | {"blocks": ("online_last_only", "online_first_only")},
)
