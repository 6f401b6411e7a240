"""What a rank of a ring computes, with every mistake built in."""

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
    if "join_empty_as_zero" in faults:
        one, two = (np.where(np.isneginf(log), 0, log) for log in (one, two))
    elif "join_minus_billion" in faults:
        one, two = np.maximum(one, -1e9), np.maximum(two, -1e9)
    log = _joined(one, two, faults)
    base = log if "join_empty_nan" in faults else np.where(np.isneginf(log), 0, log)
    mine, theirs = _shares(one, two, base, faults)
    found = mine[:, None] * out + theirs[:, None] * part_out
    if "join_one_empty_dropped" in faults:
        empty = np.isneginf(one) | np.isneginf(two)
        found, log = np.where(empty[:, None], 0, found), np.where(empty, -np.inf, log)
    elif "join_empty_stays" in faults:
        empty = np.isneginf(one)
        found, log = np.where(empty[:, None], out, found), np.where(empty, one, log)
    larger = _larger(one, two)
    returned = {
        "join_returns_max": np.maximum(one, two),
        "join_returns_sum": one + two,
        "join_returns_mean": (one + two) / 2,
        "join_log_not_updated": one,
        "join_log_of_part": two,
        "join_returns_total": np.exp(one) + np.exp(two),
        "join_guard_stored": base,
        "join_log_finite": np.nan_to_num(log.astype(np.float64)),
        "join_larger_not_added": np.log(np.exp(one - larger) + np.exp(two - larger)),
    }
    log = next((returned[key] for key in faults & returned.keys()), log)
    return (log, found) if "join_exchanged" in faults else (found, log)


def _larger(one: Float, two: Float) -> Float:
    """The larger log, as a base that is never -inf."""
    larger = np.maximum(one, two)
    return np.where(np.isneginf(larger), 0, larger)


def _joined(one: Float, two: Float, faults: Faults) -> Float:
    if "join_log_is_max" in faults:
        return np.maximum(one, two)
    if "join_log_is_sum" in faults:
        return np.asarray(one + two)
    if faults & {"join_not_stable", "join_exponentials_bare"}:
        return np.asarray(np.log(np.exp(one) + np.exp(two)))
    return np.logaddexp(one, two)


def _shares(one: Float, two: Float, base: Float, faults: Faults) -> tuple[Float, Float]:
    ones = np.ones_like(one)
    if "join_averaged" in faults:
        return ones / 2, ones / 2
    if "join_averaged_where_seen" in faults:
        seen = [np.where(np.isneginf(log), 0.0, 1.0) for log in (one, two)]
        total = np.maximum(seen[0] + seen[1], 1)
        return seen[0] / total, seen[1] / total
    if "join_added" in faults:
        return ones, ones
    if "join_by_logs" in faults:
        return one / (one + two), two / (one + two)
    if "join_larger_only" in faults:
        return np.where(one >= two, 1.0, 0.0), np.where(one >= two, 0.0, 1.0)
    if "join_not_divided" in faults:
        return np.exp(one), np.exp(two)
    if faults & {"join_shares_bare", "join_exponentials_bare"}:
        total = np.exp(one) + np.exp(two)
        return np.exp(one) / total, np.exp(two) / total
    if "join_logs_subtracted" in faults:
        # One log less the joined one, written so that float32 does not round it away.
        return -np.logaddexp(0, two - one), -np.logaddexp(0, one - two)
    if "join_from_larger" in faults:
        larger = _larger(one, two)
        return np.exp(one - larger), np.exp(two - larger)
    if "join_part_only" in faults:
        return 0 * ones, ones
    if "join_old_kept" in faults:
        return ones, 0 * ones
    mine, theirs = np.exp(one - base), np.exp(two - base)
    if "join_shares_exchanged" in faults:
        return theirs, mine
    if "join_share_for_both" in faults:
        return mine, mine
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
    elif "see_runs_of_n_ranks" in faults:
        mine, theirs = rank * n_ranks + step, other * n_ranks + step
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
    elif "see_one_ahead" in faults:
        allowed = j <= i + n_ranks
    elif "causal_missing" in faults:
        allowed = np.ones_like(allowed)
    if rank != other and "see_own_rank_only" in faults:
        allowed = np.zeros_like(allowed)
    elif rank != other and "see_other_ranks_whole" in faults:
        allowed = np.ones_like(allowed)
    return hand_over(allowed, faults)


RING_STEP = Family(
    "ring_step",
    ring_step,
    {
        "shares": (
            "join_averaged",
            "join_averaged_where_seen",
            "join_added",
            "join_by_logs",
            "join_larger_only",
            "join_not_divided",
            "join_shares_bare",
            "join_logs_subtracted",
            "join_from_larger",
            "join_part_only",
            "join_old_kept",
            "join_shares_exchanged",
            "join_share_for_both",
            "join_old_not_shrunk",
            "join_part_not_shrunk",
            "join_shares_inverted",
            "join_over_queries",
        ),
        "log": (
            "join_log_is_max",
            "join_log_is_sum",
            "join_not_stable",
            "join_exponentials_bare",
        ),
        "empty": (
            "join_empty_nan",
            "join_one_empty_dropped",
            "join_empty_stays",
            "join_empty_as_zero",
            "join_minus_billion",
        ),
        "returned": (
            "join_returns_max",
            "join_returns_sum",
            "join_returns_mean",
            "join_log_not_updated",
            "join_log_of_part",
            "join_returns_total",
            "join_guard_stored",
            "join_log_finite",
            "join_larger_not_added",
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
            "see_runs_of_n_ranks",
            "see_places_only",
            "see_ranks_only",
            "see_strides_of_n_local",
            "see_neighbours",
            "see_ranks_exchanged",
        ),
        "rule": (
            "diagonal_missing",
            "causal_mirrored",
            "see_one_ahead",
            "causal_missing",
        ),
        "other ranks": ("see_own_rank_only", "see_other_ranks_whole"),
        "handed over": HANDED_OVER,
    },
    see_mask,
)
