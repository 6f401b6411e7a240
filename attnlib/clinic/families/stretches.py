"""The base of NTK scaling, with every mistake built in."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults

Float = npt.NDArray[np.float64]


def ntk_base(
    base: float, scale: float, d: int, *, faults: Faults = RIGHT
) -> float | Float:
    """base scale^(d / (d - 2)); a scale below 1 counts as 1."""
    if scale < 1 and "ntk_one_below" in faults:
        return 1.0
    scale = _scale(scale, faults)
    d = 128 if "ntk_d_fixed" in faults else d
    if "ntk_base_fixed" in faults:
        base = 10000.0
    exponent = _exponent(d, faults)
    slowest = -(d - 2) / d
    pairs = np.arange(d // 2)
    # Each is worked out only if asked for, and raises where a learner's would.
    forms: dict[str, Callable[[], float | Float]] = {
        "ntk_all_raised": lambda: (base * scale) ** exponent,
        "ntk_base_raised": lambda: base**exponent * scale,
        "ntk_added": lambda: base + scale**exponent,
        "ntk_base_missing": lambda: scale**exponent,
        "ntk_multiplied": lambda: base * scale * exponent,
        "ntk_base_unchanged": lambda: base,
        "ntk_frequency": lambda: base**slowest / scale,
        "ntk_root_missing": lambda: base**-slowest * scale,
        "ntk_frequencies": lambda: (base * scale**exponent) ** (-2 * pairs / d),
        "ntk_interpolation": lambda: base ** (-2 * pairs / d) / scale,
        "ntk_base_powered": lambda: base**scale,
    }
    wrong = next((form for key, form in forms.items() if key in faults), None)
    return wrong() if wrong else base * scale**exponent


def _exponent(d: int, faults: Faults) -> float:
    exponents: dict[str, Callable[[], float]] = {
        "ntk_no_exponent": lambda: 1.0,
        "ntk_exponent_inverted": lambda: (d - 2) / d,
        "ntk_minus_one": lambda: d / (d - 1),
        "ntk_plus_two": lambda: d / (d + 2),
        "ntk_pairs_for_d": lambda: (d / 2) / (d / 2 - 2),
        "ntk_two_over_d": lambda: 2 / d,
        "ntk_d": lambda: float(d),
        "ntk_unbracketed": lambda: -1.0,
        "ntk_whole_division": lambda: float(d // (d - 2)),
    }
    wrong = next((one for key, one in exponents.items() if key in faults), None)
    return wrong() if wrong else d / (d - 2)


def _scale(scale: float, faults: Faults) -> float:
    """The scale that counts: 1 at the least, or what is made of it instead."""
    if "ntk_over_1024" in faults:
        return scale / 1024
    if "ntk_scale_whole" in faults:
        scale = float(int(scale))
    elif "ntk_scale_up" in faults:
        scale = float(math.ceil(scale))
    if "ntk_min" in faults:
        return min(1.0, scale)
    if "ntk_mirrored" in faults:
        scale = max(scale, 1 / scale)
    elif "ntk_shrinks" not in faults:
        scale = max(1.0, scale)
    if "ntk_dynamic" in faults:
        return scale * scale - (scale - 1)
    if "ntk_scale_inverted" in faults:
        return 1 / scale
    if "ntk_scale_squared" in faults:
        return scale**2
    if "ntk_scale_log" in faults:
        return math.log(max(1.0, scale))
    return scale


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
            "ntk_unbracketed",
            "ntk_whole_division",
        ),
        "scale": (
            "ntk_scale_inverted",
            "ntk_dynamic",
            "ntk_scale_squared",
            "ntk_scale_log",
        ),
        "given": ("ntk_scale_whole", "ntk_scale_up", "ntk_over_1024"),
        "below one": ("ntk_shrinks", "ntk_min", "ntk_one_below", "ntk_mirrored"),
        "width": ("ntk_d_fixed",),
        "form": (
            "ntk_all_raised",
            "ntk_base_raised",
            "ntk_added",
            "ntk_base_missing",
            "ntk_multiplied",
            "ntk_base_fixed",
            "ntk_base_unchanged",
            "ntk_frequency",
            "ntk_root_missing",
            "ntk_frequencies",
            "ntk_interpolation",
            "ntk_base_powered",
        ),
    },
)
