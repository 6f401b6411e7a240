"""ALiBi's slopes, with every mistake built in."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults

Float = npt.NDArray[np.float64]


def alibi_slopes(n_heads: int, *, faults: Faults = RIGHT) -> Float:
    """The slopes of the power of two below, then every other one of twice as many."""
    below = 1 << (n_heads.bit_length() - 1)
    slopes = _list(n_heads, below, faults)
    if "slopes_sorted" in faults:
        slopes = np.sort(slopes)[::-1]
    elif "slopes_ascending" in faults:
        slopes = np.sort(slopes)
    elif "slopes_reversed" in faults:
        slopes = slopes[::-1]
    if "slopes_negative" in faults:
        slopes = -slopes
    elif "slopes_exponents" in faults:
        slopes = np.log2(slopes)
    elif "slopes_normalized" in faults:
        slopes = slopes / slopes.sum()
    if "slopes_with_axes" in faults:
        slopes = slopes[:, None, None]
    return np.asarray(slopes)


def _list(n_heads: int, below: int, faults: Faults) -> Float:
    """The slopes by the reference's rule, or by a wrong one."""
    if "slopes_by_formula" in faults:
        return _even(n_heads, faults)
    if "slopes_eight_heads" in faults:
        start = 0.0 if "slopes_from_one" in faults else 1.0
        return np.asarray(2.0 ** -np.arange(start, start + n_heads))
    first, between = _even(below, faults), _even(2 * below, faults)
    more = n_heads - below
    if "between_missing" in faults:
        return first
    if "between_not_cut" in faults:
        return np.concatenate([first, between[0::2]])
    if "between_cut_too_early" in faults:
        return np.concatenate([first, between[:more][0::2]])
    if "slopes_power_above" in faults and more:
        return between[:n_heads]
    if "slopes_power_nearest" in faults:
        near = 2 ** round(math.log2(n_heads))
        return np.concatenate([_even(near, faults), _even(2 * near, faults)[0::2]])[
            :n_heads
        ]
    if "slopes_powers_too" in faults and not more and below > 1:
        half = _even(below // 2, faults)
        return np.concatenate([half, first[0::2]])
    others: npt.NDArray[np.floating] = between[0::2]
    if "between_from_the_start" in faults:
        others = between
    elif "between_odd" in faults:
        others = between[1::2]
    elif "between_last" in faults:
        others = others[len(others) - more :]
    else:
        others = _others(others, first, more, faults)
    if "first_by_count" in faults:
        first = 2.0 ** (-8 * np.arange(1, below + 1) / n_heads)
    if "between_first" in faults:
        return np.concatenate([others[:more], first])
    return np.concatenate([first, others[:more]])


def _others(
    others: npt.NDArray[np.floating], first: Float, more: int, faults: Faults
) -> Float:
    """The slopes beyond the power of two below, or what is put in their place."""
    below = len(first)
    h = np.arange(1, below + 1)
    if "between_halved" in faults:
        others = first[-1] / 2.0**h
    elif "between_of_below" in faults:
        others = 2.0 ** (-8 * (2 * h - 1) / below)
    elif "between_of_rest" in faults and more:
        others = _even(more, faults)
    elif "between_zero" in faults:
        others = np.zeros(below)
    elif "between_continued" in faults:
        others = 2.0 ** (-8 * (below + h) / below)
    elif "between_from_one" in faults:
        others = 2.0 ** (-8 * (h - 1) / below)
    return np.asarray(others, dtype=np.float64)


def _even(n_heads: int, faults: Faults) -> Float:
    """The slopes of a power of two, 2^(-8 (h + 1) / n_heads), or wrong ones."""
    h = np.arange(1, n_heads + 1)
    if "slopes_from_one" in faults:
        h = h - 1
    exponent: npt.NDArray[np.floating] = -8 * h / n_heads
    if "slopes_always_half" in faults:
        exponent = -1.0 * h
    elif "slopes_eight_missing" in faults:
        exponent = -h / n_heads
    elif "slopes_rising" in faults:
        exponent = -exponent
    elif "slopes_upside_down" in faults:
        exponent = -n_heads * h / 8
    elif "slopes_unbracketed" in faults:
        return np.asarray(2.0**-8 * h / n_heads)
    if "slopes_natural" in faults:
        return np.asarray(np.exp(exponent), dtype=np.float64)
    if "slopes_to_256" in faults and n_heads > 1:
        return np.geomspace(1 / 2, 1 / 256, n_heads)
    if "slopes_linear" in faults:
        return np.asarray(h / n_heads, dtype=np.float64)
    return np.asarray(2.0**exponent)


ALIBI_SLOPES = Family(
    "alibi_slopes",
    alibi_slopes,
    {
        "rule": (
            "slopes_eight_heads",
            "slopes_by_formula",
            "slopes_power_above",
            "slopes_power_nearest",
            "slopes_powers_too",
            "between_from_the_start",
            "between_odd",
            "between_last",
            "between_halved",
            "between_first",
            "between_of_below",
            "between_of_rest",
            "between_zero",
            "between_continued",
            "between_from_one",
            "first_by_count",
            "between_not_cut",
            "between_missing",
            "between_cut_too_early",
        ),
        "order": ("slopes_sorted", "slopes_reversed", "slopes_ascending"),
        "first": ("slopes_from_one",),
        "exponent": (
            "slopes_always_half",
            "slopes_eight_missing",
            "slopes_rising",
            "slopes_upside_down",
            "slopes_natural",
            "slopes_to_256",
            "slopes_linear",
            "slopes_unbracketed",
        ),
        "result": ("slopes_negative", "slopes_exponents", "slopes_normalized"),
        "axes": ("slopes_with_axes",),
    },
)
