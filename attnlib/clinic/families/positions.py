"""The sinusoid and RoPE, with every mistake built in."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults

Float = npt.NDArray[np.float64]

BASE = 10000.0


def frequencies(d: int, faults: Faults, base: float = BASE) -> Float:
    """Radians a token for each pair, base^(-2 i / d), or a wrong version of it."""
    i = np.arange((d + 1) // 2)
    exponent: npt.NDArray[np.floating] = -2 * i / d
    if "frequency_not_doubled" in faults:
        exponent = -i / d
    elif "frequency_doubled_twice" in faults:
        exponent = -4 * i / d
    elif "frequency_from_one" in faults:
        exponent = -2 * (i + 1) / d
    elif "frequency_to_the_end" in faults:
        exponent = -2 * i / max(d - 2, 1)
    elif "frequency_sign" in faults:
        exponent = 2 * i / d
    elif "frequency_one" in faults:
        exponent = 0.0 * i
    elif "frequency_reversed" in faults:
        exponent = exponent[::-1]
    elif "frequency_of_16" in faults:
        exponent = -2 * i / 16
    elif "angles_zero" in faults:
        return np.zeros(len(i))
    elif "base_1000" in faults:
        base = 1000.0
    elif "base_10000" in faults:
        base = 10000.0
    elif "base_100000" in faults:
        base = 100000.0
    elif "base_500000" in faults:
        base = 500000.0
    elif "base_missing" in faults:
        base = math.e
    turns: Float = np.power(base, exponent, dtype=np.float64)
    if "angles_in_turns" in faults:
        turns = 2 * math.pi * turns
    elif "angles_in_degrees" in faults:
        turns = np.deg2rad(turns)
    return turns


def sinusoidal(
    n: int, d_model: int, base: float = BASE, *, faults: Faults = RIGHT
) -> Float:
    """sin in the even columns, cos in the odd ones, of position times frequency."""
    if d_model % 2 and "odd_width_breaks" in faults:
        raise ValueError(f"{d_model // 2} columns cannot hold {d_model // 2 + 1}")
    positions = np.arange(n, dtype=np.float64)
    if "positions_from_one" in faults:
        positions = positions + 1
    elif "positions_over_n" in faults:
        positions = positions / n
    column = np.arange(d_model)
    turns = frequencies(d_model, faults, base)[column // 2]
    if "frequency_by_column" in faults:
        turns = base ** (-column / d_model)
    elif "frequency_by_column_doubled" in faults:
        turns = base ** (-2 * column / d_model)
    elif "frequency_of_cosines" in faults:  # 2 j / d for the odd column j itself
        turns = np.where(column % 2, base ** (-2.0 * column / d_model), turns)
    elif "frequency_of_odd_columns" in faults:  # (j + 1) / d, or 2 (i + 1) / d
        turns = np.where(column % 2, base ** (-(column + 1.0) / d_model), turns)
    angles = positions[:, None] * turns
    sin = column % 2 == 0
    if "sin_cos_exchanged" in faults:
        sin = ~sin
    elif "sin_only" in faults:
        sin = column >= 0
    elif "cos_only" in faults:
        sin = column < 0
    elif "sines_by_row" in faults:
        sin = (np.arange(n) % 2 == 0)[:, None]
    table = np.where(sin, np.sin(angles), np.cos(angles))
    if d_model % 2 and "odd_width_cut" in faults:
        table = table[:, :-1]
    elif d_model % 2 and "odd_width_grows" in faults:
        table = np.concatenate([table, np.cos(angles[:, -1:])], axis=1)
    if "cosines_missing" in faults:
        table[:, 1::2] = 0
    elif "sines_negative" in faults:
        table[:, 0::2] = -table[:, 0::2]
    if "sin_then_cos" in faults:
        table = np.concatenate([table[:, 0::2], table[:, 1::2]], axis=1)
    if "table_whole" in faults:
        table = np.trunc(table)
    elif "table_scaled" in faults:
        table = table / math.sqrt(d_model)
    elif "table_empty" in faults:
        table = np.zeros((n, d_model))
    elif "table_transposed" in faults:
        table = table.T
    return np.asarray(table)


def rope(
    x: npt.ArrayLike,
    positions: npt.ArrayLike,
    layout: str,
    base: float = BASE,
    *,
    faults: Faults = RIGHT,
) -> Float:
    """Each pair (a, b) becomes (a cos t - b sin t, a sin t + b cos t)."""
    x = np.asarray(x, dtype=np.float64)
    n, d = x.shape[-2:]
    places = np.asarray(positions, dtype=np.float64)
    if "places_along_heads" in faults:  # the axis of the heads is taken for the tokens
        places = np.arange(x.shape[-3], dtype=np.float64)[:, None, None]
        places = np.broadcast_to(places, (*x.shape[-3:-1], 1))[..., 0]
    if "positions_ignored" in faults:
        places = np.arange(n, dtype=np.float64)
    elif "positions_from_one" in faults:
        places = places + 1
    elif "positions_from_first" in faults:
        places = places - places[0]
    elif "positions_doubled" in faults:
        places = 2 * places
    if layout == "half" and "half_untouched" in faults:
        return x
    turns = frequencies(d, faults, base)
    angles = places[..., None] * turns  # (n, d / 2)
    if "angles_in_half" in faults:
        half = places.astype(np.float16)[..., None] * turns.astype(np.float16)
        angles = half.astype(np.float64)
    layout = _layout(layout, faults)
    first, second = _features(d, layout, faults)
    of_first, of_second = _angles(angles, layout, faults)
    a, b = x[..., first], x[..., second]
    out = x.copy()
    out[..., first], out[..., second] = _turned(a, b, of_first, of_second, faults)
    joined = np.concatenate([out[..., first], out[..., second]], axis=-1)
    if "joined_as_half" in faults:
        out = joined
    elif "joined_as_pairs" in faults:
        out = np.empty_like(joined)
        out[..., 0::2], out[..., 1::2] = np.split(joined, 2, axis=-1)
    if "turned_added" in faults:
        out = x + out
    elif "first_pair_only" in faults:
        rest = [f for f in range(d) if f not in (first[0], second[0])]
        out[..., rest] = x[..., rest]
    elif "first_of_pairs_only" in faults:
        out[..., second] = b
    elif "second_features_zero" in faults:
        out[..., second] = 0
    return np.asarray(out)


def _layout(layout: str, faults: Faults) -> str:
    if "layout_always_interleaved" in faults:
        return "interleaved"
    if "layout_always_half" in faults:
        return "half"
    if "layouts_exchanged" in faults:
        return "half" if layout == "interleaved" else "interleaved"
    return layout


def _features(
    d: int, layout: str, faults: Faults
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Which features are the first and which the second of each pair."""
    if layout == "interleaved":
        return np.arange(0, d, 2), np.arange(1, d, 2)
    first, second = np.arange(d // 2), np.arange(d // 2, d)
    return first, second[::-1] if "pairs_mirrored" in faults else second


def _angles(angles: Float, layout: str, faults: Faults) -> tuple[Float, Float]:
    """The angle of each pair, for its first and for its second feature."""
    always = {"angles_always_repeated": "interleaved", "angles_always_tiled": "half"}
    wanted = next((always[key] for key in always if key in faults), layout)
    if "angles_exchanged" in faults:
        wanted = "half" if layout == "interleaved" else "interleaved"
    if wanted == layout:
        return angles, angles
    if wanted == "half":  # tiled over features that are paired as neighbours
        features = np.concatenate([angles, angles], axis=-1)
        return features[..., 0::2], features[..., 1::2]
    features = np.repeat(angles, 2, axis=-1)
    one, two = np.split(features, 2, axis=-1)
    return one, two


def _turned(
    a: Float, b: Float, of_a: Float, of_b: Float, faults: Faults
) -> tuple[Float, Float]:
    if "sin_cos_exchanged" in faults:
        of_a, of_b = math.pi / 2 - of_a, math.pi / 2 - of_b
    if "sinusoid_added" in faults:
        return a + np.sin(of_a), b + np.cos(of_b)
    if "sinusoid_multiplied" in faults:
        return a * np.sin(of_a), b * np.cos(of_b)
    cos_a, sin_a, cos_b, sin_b = np.cos(of_a), np.sin(of_a), np.cos(of_b), np.sin(of_b)
    if "turned_backwards" in faults:
        sin_a, sin_b = -sin_a, -sin_b
    if "first_sign" in faults:
        return a * cos_a + b * sin_a, a * sin_b + b * cos_b
    if "second_sign" in faults:
        return a * cos_a - b * sin_a, b * cos_b - a * sin_b
    if "cosine_sign" in faults:
        return a * cos_a - b * sin_a, a * sin_b - b * cos_b
    if "partner_missing" in faults:
        return a * cos_a + a * sin_a, b * cos_b + b * sin_b
    if "cos_part_only" in faults:
        return a * cos_a, b * cos_b
    new = a * cos_a - b * sin_a
    kept = new if "first_overwritten" in faults else a
    return new, kept * sin_b + b * cos_b


# Wrong frequencies, which a sinusoid and RoPE can share.
_FREQUENCIES = (
    "frequency_not_doubled",
    "frequency_doubled_twice",
    "frequency_from_one",
    "frequency_to_the_end",
    "frequency_sign",
    "frequency_one",
    "frequency_reversed",
    "frequency_of_16",
    "base_1000",
    "base_100000",
    "base_500000",
    "base_missing",
)
SINUSOIDAL = Family(
    "sinusoidal",
    sinusoidal,
    {
        "frequency": (
            "angles_zero",
            "frequency_by_column",
            "frequency_by_column_doubled",
            *_FREQUENCIES,
        ),
        "angle": ("angles_in_turns", "angles_in_degrees"),
        "positions": ("positions_from_one", "positions_over_n"),
        "columns": ("sin_then_cos",),
        "functions": ("sin_cos_exchanged", "sin_only", "cos_only", "sines_by_row"),
        "values": ("cosines_missing", "sines_negative"),
        "table": ("table_whole", "table_transposed", "table_scaled", "table_empty"),
    },
)
ROPE = Family(
    "rope",
    rope,
    {
        "layout": (
            "layout_always_interleaved",
            "layout_always_half",
            "layouts_exchanged",
            "pairs_mirrored",
            "half_untouched",
        ),
        "joined": ("joined_as_half", "joined_as_pairs"),
        "angles": (
            "angles_always_repeated",
            "angles_always_tiled",
            "angles_exchanged",
            "angles_in_half",
        ),
        "frequency": (
            "angles_zero",
            *_FREQUENCIES,
        ),
        "unit": ("angles_in_turns", "angles_in_degrees"),
        "positions": (
            "positions_ignored",
            "positions_from_one",
            "positions_from_first",
            "positions_doubled",
        ),
        "turn": (
            "turned_backwards",
            "first_sign",
            "second_sign",
            "cosine_sign",
            "sinusoid_added",
            "sinusoid_multiplied",
            "sin_cos_exchanged",
            "partner_missing",
            "cos_part_only",
            "first_overwritten",
        ),
        "result": (
            "turned_added",
            "first_pair_only",
            "first_of_pairs_only",
            "second_features_zero",
        ),
    },
)
