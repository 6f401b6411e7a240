"""Measures for positions: dot products, angles and lengths of pairs, exponents."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from attnlib.clinic.sight import Sight, number, place

CLOSE = 1e-4


def not_toeplitz(sight: Sight) -> str | None:
    """Two pairs of neighbours that should have one dot product, and have two."""
    mine = sight.result()
    if mine is None or mine.ndim != 2 or len(mine) < 3:
        return None
    a, b = float(mine[0] @ mine[1]), float(mine[1] @ mine[2])
    if abs(a - b) < 1e-3:
        return None
    return (
        f"in yours, positions 0 and 1 have the dot product {number(a)}, and positions "
        f"1 and 2 have {number(b)}; they should be equal ({sight.case.name})."
    )


def turned_pair(sight: Sight) -> str | None:
    """The first wrong pair of a turned vector: its angle, or its length."""
    mine, right = sight.result(), sight.right.arrays[0]
    if mine is None or len(sight.case.args) != 3 or mine.shape != right.shape:
        return None
    x, layout = np.asarray(sight.case.args[0], float), sight.case.args[2]
    n, d = x.shape[-2:]
    before, after, wanted = (
        np.asarray(a, float).reshape(-1, n, d)[0] for a in (x, mine, right)
    )
    for token in range(n):
        for i in range(d // 2):
            two = [2 * i, 2 * i + 1] if layout == "interleaved" else [i, i + d // 2]
            a, b, good = before[token, two], after[token, two], wanted[token, two]
            if np.allclose(b, good, rtol=CLOSE, atol=CLOSE) or not a.any():
                continue
            of = f"pair {i} of token {token}, at position {_at(sight, token)},"
            old, new = np.linalg.norm(a), np.linalg.norm(b)
            if abs(old - new) > 1e-3:
                return (
                    f"{of} has length {number(float(old))} before and "
                    f"{number(float(new))} after ({sight.case.name})."
                )
            return (
                f"{of} is turned by {_angle(a, b)} radians, where {_angle(a, good)} is "
                f"right ({sight.case.name})."
            )
    return None


def only_position_zero(sight: Sight) -> str | None:
    """Position 0 is right, and another one is not."""
    mine, right = sight.result(), sight.right.arrays[0]
    if mine is None or len(sight.case.args) != 3 or mine.shape != right.shape:
        return None
    places = np.asarray(sight.case.args[1])
    apart = np.abs(np.asarray(mine, float) - right).max(axis=-1)
    by_token = apart.reshape(-1, len(places)).max(axis=0)
    if len(places) < 2 or places[0] != 0 or by_token[0] > 1e-5:
        return None
    if by_token.max() < 1e-3:
        return None
    worst = int(by_token.argmax())
    return (
        f"the token at position 0 is right, and the one at position "
        f"{int(places[worst])} is off by up to {number(float(by_token[worst]))} "
        f"({sight.case.name})."
    )


def slope_ratio(sight: Sight) -> str | None:
    """The first slope that differs, with the count of heads."""
    mine, right = sight.result(), sight.right.arrays[0]
    if mine is None or mine.shape != right.shape or mine.ndim != 1:
        return None
    wrong = ~np.isclose(mine.astype(float), right, rtol=CLOSE)
    if not wrong.any():
        return None
    h = int(np.argmax(wrong))
    n_heads = len(right)
    heads = "1 head" if n_heads == 1 else f"{n_heads} heads"
    return (
        f"with {heads}, the slope at {place(h)} is {number(float(mine[h]))} in yours, "
        f"where {number(float(right[h]))} is right."
    )


def exponent(sight: Sight) -> str | None:
    """With which exponent the scale enters."""
    mine = sight.result()
    base, scale, d = (float(np.asarray(a)) for a in sight.case.args)
    if mine is None or mine.shape or not float(mine) > 0 or scale <= 1:
        return None
    found = math.log(float(mine) / base) / math.log(scale)
    if abs(found - d / (d - 2)) < 1e-3:  # this case does not show it
        return None
    return (
        f"for base {base:.0f}, scale {number(scale)} and d={int(d)} yours is the "
        f"base times scale to the power of {number(found)}; {number(d / (d - 2))} is "
        "right."
    )


def new_base(sight: Sight) -> str | None:
    """The first base that differs, with the arguments."""
    mine, right = sight.result(), sight.right.arrays[0]
    if mine is None or mine.shape or np.isclose(float(mine), float(right), rtol=CLOSE):
        return None
    return (
        f"yours gives {float(mine):.6g}, where {float(right):.6g} is right "
        f"({sight.case.name})."
    )


def shrinks(sight: Sight) -> str | None:
    """A scale below 1, and a base that got smaller."""
    mine = sight.result()
    base, scale, _ = (float(np.asarray(a)) for a in sight.case.args)
    if mine is None or mine.shape or scale >= 1 or not float(mine) < base:
        return None
    return (
        f"for a scale of {number(scale)} yours turns the base {base:.0f} into "
        f"{float(mine):.0f}."
    )


def _at(sight: Sight, token: int) -> int:
    return int(np.asarray(sight.case.args[1])[token])


def _angle(before: np.ndarray, after: np.ndarray) -> str:
    turned = math.atan2(after[1], after[0]) - math.atan2(before[1], before[0])
    return number((turned + math.pi) % (2 * math.pi) - math.pi)


_ANGLE = (
    "frequency_not_doubled frequency_doubled_twice frequency_from_one "
    "frequency_to_the_end frequency_sign frequency_one frequency_reversed base_1000 "
    "base_missing angles_in_turns angles_in_degrees positions_ignored "
    "positions_from_one positions_from_first positions_doubled turned_backwards "
    "first_sign second_sign partner_missing cos_part_only first_overwritten "
    "turned_added first_of_pairs_only sin_cos_exchanged angles_in_half angles_zero "
    "frequency_of_16 base_100000 base_500000 cosine_sign sinusoid_added "
    "sinusoid_multiplied second_features_zero half_untouched"
)
_LAYOUTS = (
    "layout_always_interleaved layout_always_half layouts_exchanged pairs_mirrored "
    "angles_always_repeated angles_always_tiled angles_exchanged"
)
_SLOPES = (
    "slopes_by_formula slopes_power_above slopes_power_nearest slopes_powers_too "
    "between_from_the_start between_odd between_last between_halved "
    "between_first slopes_sorted slopes_reversed slopes_from_one slopes_always_half "
    "slopes_eight_missing slopes_rising slopes_upside_down slopes_natural "
    "slopes_to_256 slopes_linear slopes_negative slopes_eight_heads between_of_below "
    "between_of_rest between_zero between_continued between_from_one first_by_count "
    "slopes_ascending slopes_exponents slopes_unbracketed slopes_normalized"
)
_EXPONENT = (
    "ntk_no_exponent ntk_exponent_inverted ntk_minus_one ntk_plus_two ntk_pairs_for_d "
    "ntk_two_over_d ntk_d ntk_scale_inverted ntk_dynamic ntk_scale_squared "
    "ntk_unbracketed ntk_whole_division ntk_d_fixed"
)
_BASE = (
    "ntk_all_raised ntk_base_raised ntk_added ntk_base_missing ntk_multiplied "
    "ntk_base_fixed ntk_base_unchanged ntk_one_below ntk_mirrored ntk_over_1024 "
    "ntk_scale_log ntk_frequency ntk_root_missing ntk_base_powered ntk_scale_whole "
    "ntk_scale_up"
)
MEASURES: dict[str, Callable[[Sight], str | None]] = {
    "frequency_by_column": not_toeplitz,
    "frequency_by_column_doubled": not_toeplitz,
    "positions_over_n": not_toeplitz,
    "sin_only": not_toeplitz,
    "cos_only": not_toeplitz,
    "ntk_shrinks": shrinks,
    "ntk_min": shrinks,
    **dict.fromkeys(_ANGLE.split(), turned_pair),
    **dict.fromkeys(_LAYOUTS.split(), only_position_zero),
    **dict.fromkeys(_SLOPES.split(), slope_ratio),
    **dict.fromkeys(_EXPONENT.split(), exponent),
    **dict.fromkeys(_BASE.split(), new_base),
}
