"""Measures for gradients by hand, and for weights taken apart."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attnlib.clinic.families.gradients import SUM_SLIPS
from attnlib.clinic.sight import Sight, number, numbers, one_table, place


def keys_sum(sight: Sight) -> str | None:
    """The gradients of the keys sum to 0: the same added to all changes no weight."""
    if len(sight.yours.arrays) != 3:
        return None
    mine, good = sight.yours.arrays[1], sight.right.arrays[1]
    if mine.shape != good.shape or not np.isfinite(mine).all():
        return None
    sums = one_table(np.asarray(mine, float)).sum(axis=-2)
    if np.allclose(sums, 0, atol=1e-3):
        return None
    return (
        f"your gradients of the keys sum to {numbers(sums)}. The same vector added to "
        "all keys changes no weight, so they must sum to 0."
    )


def times(
    part: int, said: str, value: Callable[[Sight], float]
) -> Callable[[Sight], str | None]:
    """One gradient is a multiple of the right one."""
    name = ("grad_q", "grad_k", "grad_v")[part]

    def measure(sight: Sight) -> str | None:
        if len(sight.yours.arrays) != 3:
            return None
        mine, good = sight.yours.arrays[part], sight.right.arrays[part]
        if mine.shape != good.shape:
            return None
        a, b = np.asarray(mine, float), np.asarray(good, float)
        factor = float((a * b).sum() / max(float((b * b).sum()), 1e-12))
        if abs(factor - 1) < 1e-3 or not np.allclose(a, factor * b, atol=1e-4):
            return None
        return (
            f"your {name} is {number(factor)} times the right one, and {said} is "
            f"{number(value(sight))}."
        )

    return measure


def _d_k(sight: Sight) -> int:
    return int(np.asarray(sight.case.args[0]).shape[-1])


def _root(power: float) -> Callable[[Sight], float]:
    return lambda sight: float(_d_k(sight)) ** power


def _over_two(sight: Sight) -> float:
    return float((_d_k(sight) / 2) ** 0.5)


def _size(sight: Sight) -> float:
    return 1 / np.asarray(sight.case.args[3]).size


def whose_row(sight: Sight) -> str | None:
    """Which row of in_proj_weight stands in the first column of W_q, W_k or W_v."""
    rows = np.asarray(sight.case.args[0])
    for name, mine, good in zip(
        ("W_q", "W_k", "W_v"), sight.yours.arrays, sight.right.arrays, strict=False
    ):
        if mine.shape != good.shape:
            return None
        for j in range(good.shape[1]):
            if np.allclose(mine[:, j], good[:, j]):
                continue
            found = np.argwhere(np.isclose(rows, mine[:, j]).all(axis=-1))
            wanted = np.argwhere(np.isclose(rows, good[:, j]).all(axis=-1))
            if len(found) == 1 and len(wanted) == 1:
                return (
                    f"column {j} of your {name} is row {found[0][0]} of "
                    f"in_proj_weight; row {wanted[0][0]} belongs there."
                )
            at = np.argwhere(~np.isclose(mine, good))[0]
            return (
                f"your {name} has {number(float(mine[tuple(at)]))} at {place(at)}, "
                f"where {number(float(good[tuple(at)]))} is right "
                f"({sight.case.name})."
            )
    return None


MEASURES: dict[str, Callable[[Sight], str | None]] = {
    **dict.fromkeys(SUM_SLIPS, keys_sum),
    "gradient_scale_missing": times(0, "√d_k", _root(0.5)),
    "gradient_scale_twice": times(0, "1/√d_k", _root(-0.5)),
    "gradient_scale_multiplied": times(0, "d_k", _root(1.0)),
    "gradient_scale_for_q_only": times(1, "√d_k", _root(0.5)),
    "gradient_scale_for_k_only": times(0, "√d_k", _root(0.5)),
    "gradient_scale_twice_for_k": times(1, "1/√d_k", _root(-0.5)),
    "gradient_scale_twice_for_q": times(0, "1/√d_k", _root(-0.5)),
    "gradient_scale_for_v_too": times(2, "1/√d_k", _root(-0.5)),
    "gradient_scale_of_the_example": times(0, "√d_k/√2", _over_two),
    "softmax_sides_exchanged": times(0, "the right factor", lambda sight: 1.0),
    "gradient_negative": times(2, "the right factor", lambda sight: 1.0),
    "gradient_of_the_mean": times(2, "1/out.size", _size),
    **dict.fromkeys(
        (
            "in_proj_not_transposed",
            *(f"in_proj_not_transposed_{n}" for n in ("kv", "qv", "qk", "q", "k", "v")),
            "in_proj_every_third",
            "in_proj_turned_and_reshaped",
            "in_proj_one_for_all",
            "in_proj_order_k_q_v",
            "in_proj_order_v_k_q",
            "in_proj_order_q_v_k",
            "in_proj_order_k_v_q",
            "in_proj_order_v_q_k",
        ),
        whose_row,
    ),
}
