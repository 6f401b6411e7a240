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
    if "rows_from_one" in faults:
        rows = np.arange(1, n)
    rows = rows[:-1] if "last_row_dropped" in faults else rows
    keys = rows - offset
    if "looks_forward" in faults:
        rows, keys = keys, rows
    elif "rows_wrap" in faults:
        rows = np.arange(n)
        keys = rows - offset
    elif "rows_clipped" in faults:
        rows = np.arange(n)
        keys = np.maximum(rows - offset, 0)
    elif "column_of_offset" in faults:
        rows = np.arange(n)
        keys = np.full_like(rows, min(max(offset, 0), n - 1))
    elif "whole_rows" in faults:
        keys = np.arange(n)
        rows = np.full_like(keys, min(max(offset, 0), n - 1))
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
    elif "farther_keys_too" in faults:
        found = np.stack([weights[..., i, : i - offset + 1].sum(axis=-1) for i in rows])
        found = np.moveaxis(found, 0, -1)
    else:
        found = _picked(weights, rows, keys, faults)
    return _summed(found, weights, rows, keys, faults)


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
    elif "sign_turned" in faults:
        back = period + 1
    if "row_too_early" in faults:
        first = period - 1
    elif "row_dropped" in faults:
        first = period + 1
    rows = np.arange(first if "sign_turned" in faults else max(first, back), n)
    if "first_copy_only" in faults:
        rows = rows[rows < 2 * period]
    elif "last_copy_only" in faults:
        rows = rows[rows >= n - period]
    rows = rows[:-1] if "last_row_dropped" in faults else rows
    keys = rows - back
    if "always_first_copy" in faults:
        keys = rows % period + 1
    elif "next_in_first_copy" in faults:
        keys = (rows + 1) % period
    if "looks_forward" in faults:
        rows, keys = keys, rows
    elif "rows_wrap" in faults:
        rows = np.arange(n)
        keys = rows - back
    elif "rows_clipped" in faults:
        rows = np.arange(n)
        keys = np.maximum(rows - back, 0)
    found = _picked(weights, rows, keys, faults)
    if "all_copies" in faults:
        copies = [weights[..., i, i - back :: -period].sum(axis=-1) for i in rows]
        found = np.stack(copies, axis=-1)
    if "period_counted" in faults:
        return np.asarray(found.sum(axis=-1) / period)
    return _summed(found, weights, rows, keys, faults)


def _picked(
    weights: Float,
    rows: npt.NDArray[np.int64],
    keys: npt.NDArray[np.int64],
    faults: Faults,
) -> Float:
    """One weight a row; or, by a fault, all of these rows with all of these keys."""
    if "block_for_pairs" not in faults:
        return np.asarray(weights[..., rows, keys])
    block = weights[..., rows, :][..., keys]
    return block.reshape(*block.shape[:-2], -1)


def _summed(
    found: Float,
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
        return np.asarray(found.sum(axis=-1) / weights.shape[-1])
    if "all_pairs_counted" in faults:
        return np.asarray(found.sum(axis=-1) / weights.shape[-1] ** 2)
    if "one_more_counted" in faults:
        return np.asarray(found.sum(axis=-1) / (found.shape[-1] + 1))
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
    "all_pairs_counted",
    "one_more_counted",
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
            "rows_clipped",
            "rows_from_one",
            "key_always_one_back",
            "key_from_the_end",
            "key_from_the_front",
            "column_of_offset",
            "whole_rows",
            "offsets_up_to",
            "farther_keys_too",
            "block_for_pairs",
        ),
        "offset": ("offset_one_more", "offset_one_less", "offset_always_one"),
        "rows": ("row_dropped",),
        "end": ("last_row_dropped",),
        "summed": _SUMMED,
    },
)
INDUCTION_SCORE = Family(
    "induction_score",
    induction_score,
    {
        "key": (
            "same_token",
            "token_before",
            "two_after",
            "sign_turned",
            "always_first_copy",
            "next_in_first_copy",
        ),
        "rows": (
            "row_too_early",
            "rows_wrap",
            "rows_clipped",
            "row_dropped",
            "first_copy_only",
            "last_copy_only",
        ),
        "end": ("last_row_dropped",),
        "way": ("looks_forward", "all_copies", "block_for_pairs"),
        "summed": (*_SUMMED, "period_counted"),
    },
)
