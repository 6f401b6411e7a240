"""A block of keys, and attention in tiles, with every mistake built in.

Here a state starts as NumPy makes it, m = -inf, and mistakes meet it unguarded, as they
do in a kernel. `families.online` holds the whole loop.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults
from attnlib.clinic.families.softmax import softmax

Float = npt.NDArray[np.floating]
State = tuple[Float, Float, Float]


def online_update(
    m: Float,
    total: Float,
    mixed: Float,
    scores: Float,
    v: Float,
    *,
    faults: Faults = RIGHT,
) -> State:
    """Take one block of keys into the state of the online softmax."""
    top = scores.max(axis=-1)
    if "online_max_of_all" in faults:
        top = np.full_like(top, scores.max())
    new = np.maximum(m, top)
    if "online_max_of_block" in faults:
        new = top
    elif "online_max_kept" in faults:
        new = np.where(np.isneginf(m), top, m)
    by = new if "online_empty_block" in faults else _finite(new)
    weights, shrink = _exponentials(m, top, by, scores, faults)
    block_sum = weights.sum(axis=-1)
    if "online_sum_of_all" in faults:
        block_sum = np.full_like(block_sum, weights.sum())
    elif "online_sum_is_mean" in faults:
        block_sum = weights.mean(axis=-1)
    part = weights @ v
    if "online_block_normalised" in faults:
        part = part / block_sum[:, None]
    of_total = of_mixed = of_part = shrink
    one = np.ones_like(shrink)
    if faults & {"online_not_rescaled", "online_new_part_shrunk"}:
        of_total = of_mixed = one
    elif "online_out_not_rescaled" in faults:
        of_mixed = one
    elif "online_sum_not_rescaled" in faults:
        of_total = one
    if "online_new_part_shrunk" not in faults:
        of_part = one
    if faults & {"online_sum_replaced", "online_last_only"}:
        of_total = 0 * one
    if faults & {"online_mixed_replaced", "online_last_only"}:
        of_mixed = 0 * one
    if "online_first_paper" in faults:
        of_mixed = of_mixed * total
    new_total = of_total * total + of_part * block_sum
    new_mixed = of_mixed[:, None] * mixed + of_part[:, None] * part
    if faults & {"online_divided_early", "online_first_paper"}:
        new_mixed = new_mixed / new_total[:, None]
    if "online_state_exchanged" in faults:
        return new_total, new, new_mixed
    kept = {
        "online_m_not_stored": m,
        "online_top_stored": top,
        "online_guard_stored": by,
    }
    stored = next((kept[key] for key in faults & kept.keys()), new)
    return stored, new_total, new_mixed


def _exponentials(
    m: Float, top: Float, by: Float, scores: Float, faults: Faults
) -> tuple[Float, Float]:
    """The exponentials of the block, and the factor for what was summed before."""
    weights = np.exp(scores - by[:, None])
    if "online_old_maximum" in faults:
        weights = np.exp(scores - m[:, None])
    elif "online_old_maximum_guarded" in faults:
        weights = np.exp(scores - np.where(np.isneginf(m), by, m)[:, None])
    elif "online_own_maximum" in faults:
        weights = np.exp(scores - _finite(top)[:, None])
    shrink = np.exp(m - by)
    if "online_shrink_upside_down" in faults:
        shrink = np.exp(by - m)
    elif "online_shrink_by_block" in faults:
        shrink = np.exp(m - _finite(top))
    elif "online_shrink_no_exp" in faults:
        shrink = m - by
    if "online_not_stable" in faults:
        weights, shrink = np.exp(scores), np.ones_like(shrink)
    return weights, shrink


def _finite(m: Float) -> Float:
    return np.asarray(np.where(np.isneginf(m), 0, m))


_STEP = (
    "online_not_rescaled",
    "online_out_not_rescaled",
    "online_sum_not_rescaled",
    "online_shrink_upside_down",
    "online_shrink_by_block",
    "online_shrink_no_exp",
    "online_new_part_shrunk",
    "online_sum_replaced",
    "online_mixed_replaced",
    "online_block_normalised",
    "online_own_maximum",
    "online_old_maximum",
    "online_old_maximum_guarded",
    "online_not_stable",
    "online_first_paper",
)
_MAXIMUM = ("online_max_of_block", "online_max_kept", "online_max_of_all")
_SUM = ("online_sum_of_all", "online_sum_is_mean")

ONLINE_UPDATE = Family(
    "online_update",
    online_update,
    {
        "step": (*_STEP, "online_last_only", "online_divided_early"),
        "maximum": _MAXIMUM,
        "sum": _SUM,
        "empty": ("online_empty_block",),
        "state": (
            "online_state_exchanged",
            "online_m_not_stored",
            "online_top_stored",
            "online_guard_stored",
        ),
    },
)

# From m = -inf on, these make a whole kernel NaN, as a hundred other slips do.
_ALL_NAN = ("online_shrink_upside_down", "online_shrink_no_exp", "online_old_maximum")
STARTS = {"online_starts_at_0": 0.0, "online_starts_at_10000": -1e4}


def tiled_attention(
    q: Float,
    k: Float,
    v: Float,
    block_q: int,
    block_k: int,
    *,
    faults: Faults = RIGHT,
) -> Float:
    """Attention in tiles; where nothing was stored, NaN."""
    out = np.full((len(q), v.shape[-1]), np.nan)
    scale = _scale(q, k, v, block_k, faults)
    state: State | None = None
    for i in range(0, len(q), block_q):
        if "tile_rest_dropped" in faults and i + block_q > len(q):
            break
        rows = slice(i, i + block_q)
        scores = q[rows] @ k.T * scale
        if state is None or "tile_state_kept" not in faults:
            start = next((STARTS[key] for key in STARTS if key in faults), -np.inf)
            n = len(scores)
            state = np.full(n, start), np.zeros(n), np.zeros((n, v.shape[-1]))
        state, out[rows] = _tile(state, scores, v, block_k, faults)
    return out


def _tile(
    state: State, scores: Float, v: Float, block_k: int, faults: Faults
) -> tuple[State, Float]:
    """All keys for one tile of queries."""
    n_k = len(v)
    ends: Sequence[int] = range(0, n_k, block_k)
    if "online_rest_dropped" in faults:
        ends = range(0, n_k // block_k * block_k, block_k)
    elif "online_last_only" in faults:
        ends = ends[-1:]
    elif "online_first_only" in faults:
        ends = ends[:1]
    blocks = [slice(j, j + block_k) for j in ends]
    alone = [softmax(scores[:, cols]) @ v[cols] for cols in blocks]
    if "online_means_averaged" in faults:
        return state, np.asarray(np.mean(alone, axis=0))
    if "online_means_added" in faults:
        return state, np.asarray(np.sum(alone, axis=0))
    inside = faults & {*_STEP, *_MAXIMUM, *_SUM}
    for cols in blocks:
        state = online_update(*state, scores[:, cols], v[cols], faults=inside)
        if "online_old_sum_divides" in faults:
            m, total, mixed = state
            state = m, total, mixed / total[:, None]
    _, total, mixed = state
    if faults & {"online_not_divided", "online_old_sum_divides"}:
        return state, mixed
    extra = 1.0 if "online_epsilon" in faults else 0.0
    return state, mixed / (total + extra)[:, None]


def _scale(q: Float, k: Float, v: Float, block_k: int, faults: Faults) -> float:
    others = {
        "scale_missing": 1.0,
        "scale_d_k": 1 / q.shape[-1],
        "scale_multiplied": q.shape[-1] ** 0.5,
        "scale_n_k": len(k) ** -0.5,
        "scale_d_v": v.shape[-1] ** -0.5,
        "scale_block_k": block_k**-0.5,
    }
    right = q.shape[-1] ** -0.5
    return float(next((others[key] for key in faults & others.keys()), right))


TILED_ATTENTION = Family(
    "tiled_attention",
    tiled_attention,
    {
        "scale": (
            "scale_missing",
            "scale_d_k",
            "scale_multiplied",
            "scale_n_k",
            "scale_d_v",
            "scale_block_k",
        ),
        "start": (*STARTS, "tile_state_kept"),
        "step": (
            *(key for key in _STEP if key not in _ALL_NAN),
            "online_old_sum_divides",
        ),
        "maximum": _MAXIMUM,
        "sum": _SUM,
        "blocks": (
            "online_rest_dropped",
            "online_last_only",
            "online_first_only",
            "online_means_averaged",
            "online_means_added",
        ),
        "rows": ("tile_rest_dropped",),
        "end": ("online_not_divided", "online_epsilon"),
    },
)
