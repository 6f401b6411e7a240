"""ALiBi's slopes and the base of NTK scaling, with every mistake built in."""

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
    elif "slopes_reversed" in faults:
        slopes = slopes[::-1]
    if "slopes_negative" in faults:
        slopes = -slopes
    if "slopes_with_axes" in faults:
        slopes = slopes[:, None, None]
    return np.asarray(slopes)


def _list(n_heads: int, below: int, faults: Faults) -> Float:
    """The slopes by the reference's rule, or by a wrong one."""
    if "slopes_by_formula" in faults:
        return _even(n_heads, faults)
    first, between = _even(below, faults), _even(2 * below, faults)
    more = n_heads - below
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
    elif "between_halved" in faults:
        others = np.asarray(first[-1] / 2.0 ** np.arange(1, below + 1), np.float64)
    if "between_first" in faults:
        return np.concatenate([others[:more], first])
    return np.concatenate([first, others[:more]])


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
    if "slopes_natural" in faults:
        return np.asarray(np.exp(exponent), dtype=np.float64)
    if "slopes_to_256" in faults and n_heads > 1:
        return np.geomspace(1 / 2, 1 / 256, n_heads)
    if "slopes_linear" in faults:
        return np.asarray(h / n_heads, dtype=np.float64)
    return np.asarray(2.0**exponent)


def ntk_base(base: float, scale: float, d: int, *, faults: Faults = RIGHT) -> float:
    """base scale^(d / (d - 2)); a scale below 1 counts as 1."""
    scale = scale if "ntk_shrinks" in faults else max(1.0, scale)
    if "ntk_dynamic" in faults:
        scale = scale * scale - (scale - 1)
    elif "ntk_scale_inverted" in faults:
        scale = 1 / scale
    elif "ntk_scale_squared" in faults:
        scale = scale**2
    exponents = {
        "ntk_no_exponent": 1.0,
        "ntk_exponent_inverted": (d - 2) / d,
        "ntk_minus_one": d / (d - 1),
        "ntk_plus_two": d / (d + 2),
        "ntk_pairs_for_d": (d / 2) / (d / 2 - 2),
        "ntk_two_over_d": 2 / d,
        "ntk_d": float(d),
    }
    chosen = [value for key, value in exponents.items() if key in faults]
    exponent = chosen[0] if chosen else d / (d - 2)
    if "ntk_all_raised" in faults:
        return float((base * scale) ** exponent)
    if "ntk_base_raised" in faults:
        return float(base**exponent * scale)
    if "ntk_added" in faults:
        return float(base + scale**exponent)
    if "ntk_base_missing" in faults:
        return float(scale**exponent)
    if "ntk_multiplied" in faults:
        return float(base * scale * exponent)
    if "ntk_base_fixed" in faults:
        base = 10000.0
    return float(base * scale**exponent)


ALIBI_SLOPES = Family(
    "alibi_slopes",
    alibi_slopes,
    {
        "rule": (
            "slopes_by_formula",
            "slopes_power_above",
            "slopes_power_nearest",
            "slopes_powers_too",
            "between_from_the_start",
            "between_odd",
            "between_last",
            "between_halved",
            "between_first",
        ),
        "order": ("slopes_sorted", "slopes_reversed"),
        "first": ("slopes_from_one",),
        "exponent": (
            "slopes_always_half",
            "slopes_eight_missing",
            "slopes_rising",
            "slopes_upside_down",
            "slopes_natural",
            "slopes_to_256",
            "slopes_linear",
        ),
        "sign": ("slopes_negative",),
        "axes": ("slopes_with_axes",),
    },
)
NTK_BASE = Family(
    "ntk_base",
    ntk_base,
    {
        "exponent": (
            "ntk_no_exponent",
            "ntk_exponent_inverted",
            "ntk_minus_one",
            "ntk_plus_two",
            "ntk_pairs_for_d",
            "ntk_two_over_d",
            "ntk_d",
        ),
        "scale": ("ntk_scale_inverted", "ntk_dynamic", "ntk_scale_squared"),
        "below one": ("ntk_shrinks",),
        "form": (
            "ntk_all_raised",
            "ntk_base_raised",
            "ntk_added",
            "ntk_base_missing",
            "ntk_multiplied",
            "ntk_base_fixed",
        ),
    },
)
