"""Numbers that find a head: one for a place back, one for induction; and mistakes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults

Float = npt.NDArray[np.floating]


def offset_mass(weights: Float, offset: int, *, faults: Faults = RIGHT) -> Float:
    """The mean weight on the key `offset` places back, over rows that have one."""
    n = weights.shape[-1]
    if "offset_one_more" in faults:
        offset = offset + 1
    elif "offset_one_less" in faults:
        offset = offset - 1
    elif "offset_always_one" in faults:
        offset = 1
    first = max(offset, 0) + ("row_dropped" in faults)
    rows = np.arange(first, min(n, n + offset))
    keys = rows - offset
    if "looks_forward" in faults:
        rows, keys = keys, rows
    elif "rows_wrap" in faults:
        rows = np.arange(n)
        keys = rows - offset
    elif "key_always_one_back" in faults:
        keys = rows - 1
    elif "key_from_the_end" in faults:
        keys = np.full_like(rows, n - 1 - offset)
    elif "key_from_the_front" in faults:
        keys = np.full_like(rows, min(max(offset, 0), n - 1))
    if "offsets_up_to" in faults:
        found = np.stack(
            [weights[..., rows, rows - back] for back in range(offset + 1)]
        ).sum(axis=0)
    else:
        found = weights[..., rows, keys]
    return _summed(found, n, weights, rows, keys, faults)


def induction_score(weights: Float, period: int, *, faults: Faults = RIGHT) -> Float:
    """The mean weight on the key after the last time, over rows that had one."""
    n = weights.shape[-1]
    first, back = period, period - 1
    if "same_token" in faults:
        back = period
    elif "token_before" in faults:
        back = period + 1
    elif "two_after" in faults:
        back = period - 2
    if "row_too_early" in faults:
        first = period - 1
    elif "row_dropped" in faults:
        first = period + 1
    rows = np.arange(max(first, back), n)
    if "first_copy_only" in faults:
        rows = rows[rows < 2 * period]
    elif "last_copy_only" in faults:
        rows = rows[rows >= n - period]
    keys = rows - back
    if "looks_forward" in faults:
        rows, keys = keys, rows
    elif "rows_wrap" in faults:
        rows = np.arange(n)
        keys = rows - back
    found = weights[..., rows, keys]
    if "all_copies" in faults:
        copies = [weights[..., i, i - back :: -period].sum(axis=-1) for i in rows]
        found = np.stack(copies, axis=-1)
    return _summed(found, n, weights, rows, keys, faults)


def _summed(
    found: Float,
    n: int,
    weights: Float,
    rows: npt.NDArray[np.int64],
    keys: npt.NDArray[np.int64],
    faults: Faults,
) -> Float:
    """One number a head, or what a fault makes of the weights that were picked."""
    if "mean_over_heads" in faults:
        return np.asarray(found.mean())
    if "sum_for_mean" in faults:
        return np.asarray(found.sum(axis=-1))
    if "all_rows_counted" in faults:
        return np.asarray(found.sum(axis=-1) / n)
    if "largest_for_mean" in faults:
        return np.asarray(found.max(axis=-1, initial=0))
    if "middle_for_mean" in faults:
        return np.asarray(np.median(found, axis=-1))
    if "wins_counted" in faults:
        return np.asarray((weights[..., rows, :].argmax(axis=-1) == keys).mean(axis=-1))
    if "not_yet_averaged" in faults:
        return found
    return np.asarray(found.mean(axis=-1))


_SUMMED = (
    "all_rows_counted",
    "sum_for_mean",
    "largest_for_mean",
    "middle_for_mean",
    "wins_counted",
    "mean_over_heads",
    "not_yet_averaged",
)
OFFSET_MASS = Family(
    "offset_mass",
    offset_mass,
    {
        "key": (
            "looks_forward",
            "rows_wrap",
            "key_always_one_back",
            "key_from_the_end",
            "key_from_the_front",
            "offsets_up_to",
        ),
        "offset": ("offset_one_more", "offset_one_less", "offset_always_one"),
        "rows": ("row_dropped",),
        "summed": _SUMMED,
    },
)
INDUCTION_SCORE = Family(
    "induction_score",
    induction_score,
    {
        "key": ("same_token", "token_before", "two_after"),
        "rows": (
            "row_too_early",
            "rows_wrap",
            "row_dropped",
            "first_copy_only",
            "last_copy_only",
        ),
        "way": ("looks_forward", "all_copies"),
        "summed": _SUMMED,
    },
)
