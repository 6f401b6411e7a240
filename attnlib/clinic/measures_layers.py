"""Measures for the attention of a real layer, and for the numbers that find a head."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attnlib.clinic.measures_scores import overflow, scaled_by
from attnlib.clinic.sight import Sight, number


def only_row_zero(sight: Sight) -> str | None:
    """The first token is right, and a later one is not."""
    mine, right = sight.result(), sight.right.arrays[0]
    if mine is None or mine.shape != right.shape or right.ndim < 2:
        return None
    apart = np.abs(np.asarray(mine, float) - right).max(axis=-1)
    by_token = apart.reshape(-1, right.shape[-2]).max(axis=0)
    if len(by_token) < 2 or by_token[0] > 1e-5 or by_token.max() < 1e-3:
        return None
    worst = int(by_token.argmax())
    return (
        f"the token at place 0 is right, and the one at place {worst} is off by up to "
        f"{number(float(by_token[worst]))} ({sight.case.name})."
    )


def shares(sight: Sight) -> str | None:
    """In an x-ray: which heads are right, and which are not."""
    mine, good = sight.weights, sight.right_weights
    if mine is None or good is None or mine.shape != good.shape:
        return None
    right = np.isclose(mine, good, atol=1e-5).all(axis=(-2, -1))
    if right.all() or not right.any():
        return None
    named = [", ".join(map(str, np.flatnonzero(which))) for which in (right, ~right)]
    return (
        f"when the values only name their token, the output shows the weights: those "
        f"of head {named[0]} are right, those of head {named[1]} are not."
    )


def above_one(sight: Sight) -> str | None:
    """A sum that no mean of weights could be."""
    mine = sight.result()
    if mine is None or not mine.size:
        return None
    top = float(np.asarray(mine, float).max())
    if top <= 1 + 1e-6:
        return None
    return f"yours gives {number(top)}, and no weight is above 1 ({sight.case.name})."


def rows_that_count(sight: Sight) -> str | None:
    """What the right mean is multiplied by, and how many rows it is taken over."""
    mine, right = sight.result(), sight.right.arrays[0]
    weights, back = np.asarray(sight.case.args[0]), sight.case.args[1]
    if mine is None or mine.shape != right.shape or not isinstance(back, int):
        return None
    if not (np.abs(right) > 1e-6).all():
        return None
    times = (np.asarray(mine, float) / np.asarray(right, float)).ravel()
    if np.ptp(times) > 1e-4 or abs(times[0] - 1) < 1e-3:
        return None
    n = weights.shape[-1]
    return (
        f"yours is {number(float(times[0]))} times the right mean, and {n - back} of "
        f"the {n} rows count ({sight.case.name})."
    )


MEASURES: dict[str, Callable[[Sight], str | None]] = {
    **dict.fromkeys(
        (
            "rope_forgotten",
            "rope_half_layout",
            "rope_on_q_only",
            "rope_on_k_only",
            "rope_places_doubled",
        ),
        only_row_zero,
    ),
    **dict.fromkeys(
        ("all_rows_counted", "all_pairs_counted", "one_more_counted", "period_counted"),
        rows_that_count,
    ),
    **dict.fromkeys(
        ("kv_head_first_only", "kv_groups_of_three", "kv_columns_repeated"), shares
    ),
    "scale_of_24": scaled_by("24", "√d_k/√24"),
    "diagonal_missing_nan": overflow,
    "sum_for_mean": above_one,
}
