"""What a rank of a ring computes and sends, with every mistake built in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults
from attnlib.clinic.families.masks import HANDED_OVER, Array, hand_over, see_mask

Float = npt.NDArray[np.floating]


def ring_step(
    out: Float,
    log_sum_exp: Float,
    part_out: Float,
    part_log: Float,
    *,
    faults: Faults = RIGHT,
) -> tuple[Float, Float]:
    """Join what was found so far to what was found among one more block of keys."""
    one, two = log_sum_exp, part_log
    log = _joined(one, two, faults)
    base = log if "join_empty_nan" in faults else np.where(np.isneginf(log), 0, log)
    mine, theirs = _shares(one, two, base, faults)
    found = mine[:, None] * out + theirs[:, None] * part_out
    returned = {
        "join_returns_max": np.maximum(one, two),
        "join_returns_sum": one + two,
        "join_log_not_updated": one,
        "join_log_of_part": two,
        "join_returns_total": np.exp(one) + np.exp(two),
        "join_guard_stored": base,
    }
    log = next((returned[key] for key in faults & returned.keys()), log)
    return (log, found) if "join_exchanged" in faults else (found, log)


def _joined(one: Float, two: Float, faults: Faults) -> Float:
    if "join_log_is_max" in faults:
        return np.maximum(one, two)
    if "join_log_is_sum" in faults:
        return np.asarray(one + two)
    if "join_not_stable" in faults:
        return np.asarray(np.log(np.exp(one) + np.exp(two)))
    return np.logaddexp(one, two)


def _shares(one: Float, two: Float, base: Float, faults: Faults) -> tuple[Float, Float]:
    ones = np.ones_like(one)
    if "join_averaged" in faults:
        return ones / 2, ones / 2
    if "join_added" in faults:
        return ones, ones
    if "join_by_logs" in faults:
        return one / (one + two), two / (one + two)
    if "join_larger_only" in faults:
        return np.where(one >= two, 1.0, 0.0), np.where(one >= two, 0.0, 1.0)
    if "join_not_divided" in faults:
        return np.exp(one), np.exp(two)
    if "join_part_only" in faults:
        return 0 * ones, ones
    if "join_old_kept" in faults:
        return ones, 0 * ones
    mine, theirs = np.exp(one - base), np.exp(two - base)
    if "join_shares_exchanged" in faults:
        return theirs, mine
    if "join_old_not_shrunk" in faults:
        return ones, theirs
    if "join_part_not_shrunk" in faults:
        return mine, ones
    if "join_shares_inverted" in faults:
        return np.exp(base - one), np.exp(base - two)
    if "join_over_queries" in faults:
        return mine / mine.sum(), theirs / theirs.sum()
    return mine, theirs


def may_see(
    rank: int, other: int, n_ranks: int, n_local: int, *, faults: Faults = RIGHT
) -> Array:
    """Which keys of `other` the queries of `rank` may see, where tokens lie in stripes.

    Rank r holds tokens r, r + n_ranks, r + 2 n_ranks, and so on.
    """
    step = np.arange(n_local)
    mine, theirs = rank + n_ranks * step, other + n_ranks * step
    if "see_blocks" in faults:
        mine, theirs = rank * n_local + step, other * n_local + step
    elif "see_places_only" in faults:
        mine = theirs = step
    elif "see_ranks_only" in faults:
        mine, theirs = 0 * step + rank, 0 * step + other
    elif "see_strides_of_n_local" in faults:
        mine, theirs = rank + n_local * step, other + n_local * step
    elif "see_neighbours" in faults:
        mine, theirs = rank + step, other + step
    elif "see_ranks_exchanged" in faults:
        mine, theirs = theirs, mine
    i, j = mine[:, None], theirs
    allowed = j <= i
    if "diagonal_missing" in faults:
        allowed = j < i
    elif "causal_mirrored" in faults:
        allowed = j >= i
    elif "causal_missing" in faults:
        allowed = np.ones_like(allowed)
    return hand_over(allowed, faults)


def ring_bytes(
    n: int,
    n_ranks: int,
    n_heads: int,
    n_kv_heads: int,
    d_k: int,
    itemsize: int,
    *,
    faults: Faults = RIGHT,
) -> tuple[float, float]:
    """What one rank sends, forward and backward: whole blocks of keys and values."""
    tokens: float = n if "ring_whole_text" in faults else n / n_ranks
    heads: float = 2 * n_kv_heads
    if "ring_keys_only" in faults:
        heads = n_kv_heads
    elif "ring_all_heads" in faults:
        heads = 2 * n_heads
    elif "ring_queries_too" in faults:
        heads = n_heads + 2 * n_kv_heads
    elif "ring_heads_missing" in faults:
        heads = 2
    elif "ring_heads_per_group" in faults:
        heads = 2 * n_heads / n_kv_heads
    width: float = d_k
    if "ring_width_missing" in faults:
        width = 1
    elif "ring_width_divided" in faults:
        width = d_k / n_heads
    size: float = itemsize
    if "ring_numbers" in faults:
        size = 1
    elif "ring_bits" in faults:
        size = 8 * itemsize
    block = tokens * heads * width * size
    if "ring_received_too" in faults:
        block = 2 * block
    others = n_ranks - 1
    keys, grads = others, n_ranks
    if "ring_all_hops" in faults:
        others = keys = n_ranks
    elif "ring_one_hop" in faults:
        others = keys = grads = 1
    elif "ring_two_hops_less" in faults:
        others, keys, grads = others - 1, keys - 1, grads - 1
    if "ring_gradients_not_home" in faults:
        grads = n_ranks - 1
    elif "ring_gradients_missing" in faults:
        grads = 0
    elif "ring_keys_not_again" in faults:
        keys = 0
    forward, backward = others * block, (keys + grads) * block
    if "ring_backward_is_all" in faults:
        backward = forward + backward
    if "ring_exchanged" in faults:
        return backward, forward
    return forward, backward


RING_STEP = Family(
    "ring_step",
    ring_step,
    {
        "shares": (
            "join_averaged",
            "join_added",
            "join_by_logs",
            "join_larger_only",
            "join_not_divided",
            "join_part_only",
            "join_old_kept",
            "join_shares_exchanged",
            "join_old_not_shrunk",
            "join_part_not_shrunk",
            "join_shares_inverted",
            "join_over_queries",
        ),
        "log": ("join_log_is_max", "join_log_is_sum", "join_not_stable"),
        "empty": ("join_empty_nan",),
        "returned": (
            "join_returns_max",
            "join_returns_sum",
            "join_log_not_updated",
            "join_log_of_part",
            "join_returns_total",
            "join_guard_stored",
        ),
        "order": ("join_exchanged",),
    },
)
MAY_SEE = Family(
    "may_see",
    may_see,
    {
        "tokens": (
            "see_blocks",
            "see_places_only",
            "see_ranks_only",
            "see_strides_of_n_local",
            "see_neighbours",
            "see_ranks_exchanged",
        ),
        "rule": ("diagonal_missing", "causal_mirrored", "causal_missing"),
        "handed over": HANDED_OVER,
    },
    see_mask,
)
RING_BYTES = Family(
    "ring_bytes",
    ring_bytes,
    {
        "tokens": ("ring_whole_text",),
        "heads": (
            "ring_keys_only",
            "ring_all_heads",
            "ring_queries_too",
            "ring_heads_missing",
            "ring_heads_per_group",
        ),
        "width": ("ring_width_missing", "ring_width_divided"),
        "size": ("ring_numbers", "ring_bits"),
        "both": ("ring_received_too",),
        "hops": ("ring_all_hops", "ring_one_hop", "ring_two_hops_less"),
        "backward": (
            "ring_gradients_not_home",
            "ring_gradients_missing",
            "ring_keys_not_again",
        ),
        "returned": (
            "ring_backward_is_all",
            "ring_exchanged",
        ),
    },
)
