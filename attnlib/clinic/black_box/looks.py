"""Who may look at whom, with every mistake built in. True = may look."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from attnlib.clinic.black_box.traits import Found, Traits
from attnlib.clinic.case import Faults

Truth = npt.NDArray[np.bool_]


def allowed(
    mask: Truth | None,
    causal: bool,
    shape: tuple[int, ...],
    traits: Traits,
    faults: Faults,
    padding: Truth | None = None,
) -> Truth | None:
    """Mask, padding (..., 1, n_k), causal and window in one, for `shape`."""
    look = _allowed(mask, causal, shape, traits, faults, padding)
    return ~look if "look_inverted" in faults and look is not None else look


def _allowed(
    mask: Truth | None,
    causal: bool,
    shape: tuple[int, ...],
    traits: Traits,
    faults: Faults,
    padding: Truth | None,
) -> Truth | None:
    n_q, n_k = shape[-2:]
    if "padding_dropped_beside_causal" in faults and (causal or traits.causal):
        padding = None
    given = None
    if mask is not None and padding is not None and not PADDING & faults:
        one, other = (
            _given(m, None, shape, faults - less)
            for m, less in ((mask, NONE), (padding, ITEMS))
        )
        given = one if other is None else other if one is None else one & other
    elif mask is not None or padding is not None:
        apart = padding if PADDING & faults else None
        if mask is None and "pads" in faults:
            faults = faults - ITEMS  # they are about the mask, which is not given
        whole = mask if mask is not None or apart is not None else padding
        given = _given(whole, apart, shape, faults)
    causal = (causal or traits.causal) and "causal_missing" not in faults
    if "causal_unasked" in faults:
        causal = True
    past = _past(n_q, n_k, faults & PAST) if causal else None
    if past is not None and (mask is not None or padding is not None):
        mixed = _mixed(mask, padding, past, faults)
        if mixed is not None:
            return mixed
    if traits.window is not None:
        near = _near(n_q, n_k, traits, faults & NEAR)
        past = near if past is None else past & near
    if past is None or given is None:
        return given if past is None else past
    if "mask_dropped_beside_causal" in faults:
        return past
    if "causal_dropped_beside_mask" in faults:
        return given
    if "combined_by_or" in faults:
        return np.asarray(past | given)
    if "combined_by_xor" in faults:
        return np.asarray(past ^ given)
    return _and(given, past)


def padding_of(mask: Truth) -> tuple[Truth, Truth]:
    """Keys that somebody sees, (..., 1, n_k), and the mask without that padding."""
    real = mask.any(axis=-2, keepdims=True)
    return np.asarray(real), np.asarray(mask | ~real)


def _apart(mask: Truth | None, padding: Truth | None) -> tuple[Truth, Truth]:
    if padding is not None:
        return padding, np.ones((1, 1), dtype=np.bool_) if mask is None else mask
    return padding_of(np.ones((1, 1), dtype=np.bool_) if mask is None else mask)


def _mixed(
    mask: Truth | None, padding: Truth | None, past: Truth, faults: Faults
) -> Truth | None:
    """Padding and the causal mask, put together in a wrong way."""
    real, rest = _apart(mask, padding)
    if "causal_of_padding" in faults:  # the lower triangle of one row: its first key
        first = real & (np.arange(real.shape[-1]) == 0)
        return np.asarray(past & rest & first)
    if "causal_or_padding" in faults:
        return np.asarray((past | real) & rest)
    return None


def _and(a: Truth | None, b: Truth) -> Truth:
    return b if a is None else np.asarray(a & b)


NONE: Faults = frozenset()
ITEMS: Faults = frozenset(  # masks that reach the wrong items or heads
    {
        "mask_tiled_over_heads",
        "mask_repeated_over_items",
        "head_axis_missing",
        "batch_first",
        "batch_reversed",
        "batch_one_on",
        "batch_one_back",
    }
)
# Faults for which padding must be told from other masks.
PADDING = {
    "padding_on_queries",
    "padding_on_both",
    "padding_missing",
    "causal_of_padding",
    "causal_or_padding",
}


def _given(
    mask: Truth | None, padding: Truth | None, shape: tuple[int, ...], faults: Faults
) -> Truth | None:
    n_q, n_k = shape[-2:]
    if PADDING & faults:
        real, rest = _apart(mask, padding)
        if "padding_missing" in faults:
            return rest
        if "padding_on_queries" in faults:
            return np.asarray(rest & np.swapaxes(real, -1, -2))
        if "padding_on_both" in faults:
            return np.asarray(rest & real & np.swapaxes(real, -1, -2))
        return np.asarray(rest & real)
    if mask is None:
        return None
    if "mask_ignored" in faults:
        return None
    if "mask_replaced_by_causal" in faults:
        return np.tri(n_q, n_k, n_k - n_q, dtype=np.bool_)
    if "mask_replaced_by_top_left" in faults:
        return np.tri(n_q, n_k, dtype=np.bool_)
    if "mask_inverted" in faults:
        mask = ~mask
    if "mask_transposed" in faults:
        mask = np.swapaxes(mask, -1, -2)
    if mask.ndim == len(shape) and len(shape) == 4:
        mask = _of_batch(mask, shape, faults)
    return mask


def _of_batch(mask: Truth, shape: tuple[int, ...], faults: Faults) -> Truth:
    """One mask an item, handed to the wrong items or heads."""
    batch, n_heads = shape[:2]
    if "batch_first" in faults:
        return mask[:1]
    if "batch_reversed" in faults:
        return mask[::-1]
    if "batch_one_on" in faults:
        return np.roll(mask, -1, axis=0)
    if "batch_one_back" in faults:
        return np.roll(mask, 1, axis=0)
    items = np.arange(batch)[:, None]
    heads = np.arange(n_heads)
    if "mask_tiled_over_heads" in faults:
        chosen = (items * n_heads + heads) % batch
    elif "mask_repeated_over_items" in faults:
        chosen = (heads * batch + items) // n_heads
    elif "head_axis_missing" in faults and batch == n_heads:  # else it raises
        chosen = np.broadcast_to(heads, (batch, n_heads))
    else:
        return mask
    wide = np.broadcast_to(mask, (batch, n_heads, *mask.shape[-2:]))
    return np.asarray(wide[chosen, heads])


PAST = frozenset(
    {
        "aligned_top_left",
        "diagonal_missing",
        "diagonal_missing_nan",
        "diagonal_next",
        "triu",
        "triu_shifted",
    }
)
NEAR = frozenset(
    {"window_missing", "window_one_more", "window_one_less", "window_halved"}
    | {"window_top_left"}
)


@lru_cache(maxsize=256)  # thousands of variants hide by the same few tables
def _past(n_q: int, n_k: int, faults: Faults) -> Truth:
    start = n_k - n_q
    if "aligned_top_left" in faults:
        start = 0
    if {"diagonal_missing", "diagonal_missing_nan"} & faults:
        start -= 1
    elif "diagonal_next" in faults:
        start += 1
    past = np.tri(n_q, n_k, start, dtype=np.bool_)
    if "triu" in faults:
        return np.tri(n_k, n_q, dtype=np.bool_).T
    if "triu_shifted" in faults:
        return np.asarray(~past)
    return past


@lru_cache(maxsize=256)
def _near(n_q: int, n_k: int, traits: Traits, faults: Faults) -> Truth:
    if "window_missing" in faults or traits.window is None:
        return np.ones((n_q, n_k), dtype=np.bool_)
    keys = traits.window
    if "window_one_more" in faults:
        keys += 1
    elif "window_one_less" in faults:
        keys -= 1
    elif "window_halved" in faults:
        keys = keys // 2
    start = 0 if "window_top_left" in faults else n_k - n_q
    apart = np.arange(n_q)[:, None] + start - np.arange(n_k)  # how far back
    if traits.both_sides:
        apart = np.abs(apart)
    return np.asarray(apart < keys)


def parse_fill(faults: Faults, found: Found) -> float | None:
    """The number put where the mask hides, if it is not -inf."""
    if "mask_fill_other" in faults:
        return found["fill"]
    fills = {
        "mask_fill_zero": 0.0,
        "mask_fill_10": -10.0,
        "mask_fill_100": -100.0,
        "mask_fill_10000": -1e4,
        "fill_lowest_finite": -1e9,
    }
    return next((fills[key] for key in fills if key in faults), None)
