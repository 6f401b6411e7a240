"""Learned positions, positions beside padding, ALiBi's bias: mistakes built in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults
from attnlib.clinic.families.slopes import ALIBI_SLOPES, alibi_slopes

Float = npt.NDArray[np.float64]


def learned_positions(
    table: Float, n: int, past: int = 0, offset: int = 0, *, faults: Faults = RIGHT
) -> Float:
    """The rows of n tokens behind `past` cached ones: past to past + n - 1."""
    rows = np.arange(n) + past + offset
    if "learned_offset_two" in faults:
        rows = rows + 2
    elif "learned_from_one" in faults:
        rows = rows + 1
    elif "learned_one_early" in faults:
        rows = rows - 1
    elif "learned_offset_missing" in faults:
        rows = rows - offset
    if "learned_past_ignored" in faults:
        rows = rows - past
    elif "learned_past_one_less" in faults:
        rows = rows - min(past, 1)
    elif "learned_past_one_more" in faults:
        rows = rows + min(past, 1)
    elif "learned_past_doubled" in faults:
        rows = rows + past
    elif "learned_all_rows" in faults:
        rows = np.arange(past + n) + offset
    elif "learned_last_rows" in faults:
        rows = np.arange(len(table) - n, len(table))
    elif "learned_reversed" in faults:
        rows = rows[::-1]
    elif "learned_first_row" in faults:
        rows = np.full_like(rows, past + offset)
    elif "learned_from_the_end" in faults:
        rows = len(table) - 1 - rows
    return np.asarray(table[rows])


def padded_positions(real: npt.ArrayLike, *, faults: Faults = RIGHT) -> Float:
    """The position of each real token among the real ones; 0 at a filler."""
    real = np.asarray(real, dtype=bool)
    counted = np.cumsum(real, axis=-1) - 1
    places = np.broadcast_to(np.arange(real.shape[-1]), real.shape)
    if "padded_by_place" in faults:
        counted = places
    elif "padded_from_one" in faults:
        counted = counted + 1
    elif "padded_from_two" in faults:
        counted = counted + 2
    elif "padded_from_the_end" in faults:
        counted = real.sum(axis=-1, keepdims=True) - 1 - counted
    elif "padded_over_batch" in faults:
        counted = np.cumsum(real, axis=0) - 1
    elif "padded_through_batch" in faults:
        counted = np.cumsum(real).reshape(real.shape) - 1
    elif "padded_like_first" in faults:
        counted = np.broadcast_to(counted[:1], real.shape)
    elif "padded_fillers_counted" in faults:
        counted = np.cumsum(~real, axis=-1)
    elif "padded_whether" in faults:
        counted = real.astype(np.int64)
    return np.where(real, counted, 0).astype(np.float64)


def alibi_bias(n_heads: int, n_q: int, n_k: int, *, faults: Faults = RIGHT) -> Float:
    """-slope times the distance, (n_heads, n_q, n_k); 0 behind the query's own place.

    Only keys up to the query are compared, each row against its own place: what is
    added to a whole row changes no weight.
    """
    slopes = alibi_slopes(n_heads, faults=faults)
    offset = n_k - n_q
    ahead = np.arange(n_k) - (np.arange(n_q)[:, None] + offset)
    distance = np.abs(ahead)
    if "bias_from_top_left" in faults:
        distance = np.abs(ahead + offset)
    if "bias_squared" in faults:
        distance = distance**2
    elif "bias_of_queries" in faults:  # counts the query's place, not the key's
        distance = np.broadcast_to(np.arange(n_q)[:, None], distance.shape)
    elif "bias_logarithm" in faults:
        distance = np.log1p(distance)
    if "bias_one_slope" in faults:
        slopes = np.full_like(slopes, slopes[0])
    elif "bias_no_slope" in faults:
        slopes = np.ones_like(slopes)
    bias = -slopes[:, None, None] * distance
    if "bias_sign" in faults:
        bias = -bias
    return tidy_bias(bias)


def tidy_bias(bias: npt.NDArray[np.generic]) -> Float:
    """A bias as it acts: each row against the query's own place, nothing behind it."""
    rows: Float = np.asarray(bias, dtype=np.float64)
    n_q, n_k = rows.shape[-2:]
    own = np.clip(np.arange(n_q) + n_k - n_q, 0, None)
    own = np.clip(own, None, n_k - 1)[:, None]
    at = np.take_along_axis(rows, np.broadcast_to(own, (*rows.shape[:-1], 1)), -1)
    return np.where(np.arange(n_k) <= own, rows - at, 0.0)


LEARNED_POSITIONS = Family(
    "learned_positions",
    learned_positions,
    {
        "offset": (
            "learned_offset_two",
            "learned_from_one",
            "learned_one_early",
            "learned_offset_missing",
        ),
        "past": (
            "learned_past_ignored",
            "learned_past_one_less",
            "learned_past_one_more",
            "learned_past_doubled",
            "learned_all_rows",
        ),
        "rows": (
            "learned_last_rows",
            "learned_reversed",
            "learned_first_row",
            "learned_from_the_end",
        ),
    },
)
PADDED_POSITIONS = Family(
    "padded_positions",
    padded_positions,
    {
        "count": (
            "padded_by_place",
            "padded_from_one",
            "padded_from_two",
            "padded_from_the_end",
            "padded_over_batch",
            "padded_through_batch",
            "padded_like_first",
            "padded_fillers_counted",
            "padded_whether",
        ),
    },
)
ALIBI_BIAS = Family(
    "alibi_bias",
    alibi_bias,
    {
        "distance": (
            "bias_from_top_left",
            "bias_squared",
            "bias_of_queries",
            "bias_logarithm",
        ),
        "slope": ("bias_one_slope", "bias_no_slope"),
        "sign": ("bias_sign",),
        **{
            slot: keys
            for slot, keys in ALIBI_SLOPES.slots.items()
            if slot in ("rule", "order", "first", "exponent")
        },
    },
)
