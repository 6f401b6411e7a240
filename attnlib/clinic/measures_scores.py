"""Measures for softmax and scaled dot-product attention."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attnlib.clinic.sight import Float, Sight, first, number, numbers, one_table, place

SMALLEST_WEIGHT = 1e-30  # logarithms of smaller ones say nothing
GOOD_FIT = 1e-3


def slope(sight: Sight, scores: Float | None = None) -> float | None:
    """By what factor raw scores arrive in the softmax, read off the weights.

    log(weight) is score plus a constant of its row, so the differences within a row
    are differences of scores. Divided by the differences of q·k they give one factor,
    if the answer is a softmax of q·k (or of the `scores` given) at all.
    """
    weights, raw, allowed = sight.weights, sight.view.raw_scores, sight.view.allowed
    raw = raw if scores is None else scores
    if weights is None or raw is None or weights.shape != raw.shape:
        return None
    seen = (weights > SMALLEST_WEIGHT) & np.isfinite(raw)
    if allowed is not None:
        seen &= np.asarray(allowed, bool)
    x, y = (
        _within_rows(np.asarray(raw, float), seen),
        np.log(np.where(seen, weights, 1)),
    )
    y = _within_rows(y, seen)
    if not (x * x).sum() > 0:
        return None
    factor = float((x * y).sum() / (x * x).sum())
    rest = float(np.abs(y - factor * x)[seen].max(initial=0.0))
    spread = float(np.abs(y[seen]).max(initial=0.0))
    return factor if rest <= GOOD_FIT * max(spread, 1e-9) else None


def _within_rows(values: Float, seen: np.ndarray) -> Float:
    count = np.maximum(seen.sum(axis=-1, keepdims=True), 1)
    values = np.where(seen, values, 0.0)
    return np.where(seen, values - values.sum(axis=-1, keepdims=True) / count, 0.0)


def scaled_by(size: str, said: str) -> Callable[[Sight], str | None]:
    """Your scores are c times the right ones, and c is a number of these sizes."""

    def measure(sight: Sight) -> str | None:
        factor, sizes = slope(sight), sight.view.sizes
        if factor is None or "d_k" not in sizes or size not in sizes:
            return None
        d_k, other = float(sizes["d_k"]), float(sizes[size])
        times = factor * d_k**0.5
        if abs(times - 1) < 1e-3:
            return None  # two sizes are equal: this call does not show it
        values = {
            "√d_k": d_k**0.5,
            "1/√d_k": d_k**-0.5,
            "d_k": d_k,
            f"√d_k/√{size}": (d_k / other) ** 0.5,
            f"1/√{size}": other**-0.5,
        }
        return (
            f"your scores are {number(times)} times the right ones, and {said} is "
            f"{number(values[said])}."
        )

    return measure


def follows(left: str, right: str) -> Callable[[Sight], str | None]:
    """The weights are a softmax of other products than q·k: of k·q, q·q or k·k."""

    def measure(sight: Sight) -> str | None:
        arrays = {"q": sight.view.q, "k": sight.view.k}
        a, b = arrays[left], arrays[right]
        if a is None or b is None or slope(sight) is not None:
            return None
        x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
        factor = slope(sight, x @ np.swapaxes(y, -1, -2))
        if factor is None:
            return None
        return (
            f"your weights are exactly softmax({number(factor)} * {left} @ {right}ᵀ), "
            "and q @ kᵀ is nowhere in them."
        )

    return measure


def base(sight: Sight) -> str | None:
    """How much a weight grows with its score: by a factor of e for powers of e."""
    factor = slope(sight)
    if factor is None or abs(factor - 1) < 1e-3:
        return None
    return (
        f"a score higher by 1 makes your weight {number(float(np.exp(factor)))} times "
        "as large; e times is right, and e is 2.718."
    )


def mixed_transposed(sight: Sight) -> str | None:
    """What the rows of the transposed weights sum to, if the output used them."""
    weights, out = sight.weights, sight.result(1)
    if weights is None or out is None or len(sight.case.args) < 3:
        return None
    turned, v = np.swapaxes(weights, -1, -2), np.asarray(sight.case.args[2])
    if turned.shape[-1] != v.shape[-2] or out.shape != sight.right.arrays[1].shape:
        return None
    if not np.allclose(turned @ v, out, atol=1e-4):
        return None
    sums = one_table(turned).sum(axis=-1)
    return f"your out is weightsᵀ @ v, and the rows of weightsᵀ sum to {numbers(sums)}."


def column_sums(sight: Sight) -> str | None:
    """Columns that sum to 1, and rows that do not."""
    weights = sight.weights
    if weights is None or weights.ndim < 2 or not np.isfinite(weights).all():
        return None
    rows, columns = one_table(weights).sum(axis=-1), one_table(weights).sum(axis=-2)
    if np.allclose(rows, 1, atol=1e-3):
        return None
    return f"your columns sum to {numbers(columns)}, your rows to {numbers(rows)}."


def row_sums(sight: Sight) -> str | None:
    """Rows that do not sum to 1."""
    weights = sight.weights
    if weights is None or not np.isfinite(weights).all():
        return None
    rows = np.atleast_2d(one_table(weights)).sum(axis=-1)
    if np.allclose(rows, 1, atol=1e-3):
        return None
    if rows.size == 1:
        return f"your row sums to {numbers(rows)}; a row should sum to 1."
    return f"your rows sum to {numbers(rows)}; each should sum to 1."


def whole_sum(sight: Sight) -> str | None:
    """All weights together sum to 1."""
    weights = sight.weights
    if weights is None or weights.ndim < 2:
        return None
    rows = one_table(weights).sum(axis=-1)
    if np.allclose(rows, 1, atol=1e-3):  # a single row shows nothing of it
        return None
    return (
        f"all your weights together sum to {number(float(weights.sum()))}, your rows "
        f"to {numbers(rows)}; each row should sum to 1."
    )


def other_axis(sight: Sight) -> str | None:
    """Along the axis that was asked for, the sums are not 1."""
    result = sight.result()
    if len(sight.case.args) < 2 or result is None or result.ndim == 0:
        return None
    axis = sight.case.args[1]
    if not isinstance(axis, int) or not -result.ndim <= axis < result.ndim:
        return None
    sums = result.astype(float).sum(axis=axis)
    if np.allclose(sums, 1, atol=1e-3):
        return None
    return f"asked for axis={axis}, your weights sum to {numbers(sums)} along it."


def overflow(sight: Sight) -> str | None:
    """Not finite (or zero) on scores that are large, where the right answer is."""
    for mine, good in zip(sight.yours.arrays, sight.right.arrays, strict=False):
        if mine.shape != good.shape:
            continue
        bad = ~np.isfinite(mine.astype(float)) & np.isfinite(good.astype(float))
        if bad.any():
            where = place(np.argwhere(bad)[0]) if bad.ndim else "its only place"
            value = mine.astype(float)[bad][0]
            return (
                f"given {sight.case.name}, you get {number(float(value))} at {where}; "
                f"{int(bad.sum())} of {bad.size} numbers are not finite."
            )
    return None


def empty_row(sight: Sight) -> str | None:
    """What stands in a row that may look at nothing."""
    weights, allowed = sight.weights, sight.view.allowed
    if weights is None or allowed is None or weights.ndim < 2:
        return None
    empty = ~np.broadcast_to(allowed, weights.shape).any(axis=-1)
    if not empty.any():
        return None
    row = np.argwhere(empty)[0]
    return (
        f"row {row[-1]} may look at nothing, and your weights there are "
        f"{numbers(weights[tuple(row)])}."
    )


def smallest(sight: Sight) -> str | None:
    """The smallest weight of a second softmax: it cannot go below 1 / (1 + (n-1) e)."""
    weights = sight.weights
    if weights is None or not np.isfinite(weights).all():
        return None
    n, good, least = weights.shape[-1], sight.right_weights, float(weights.min())
    if good is None or least <= max(0.0, float(good.min()) + 1e-3):
        return None
    return (
        f"your smallest weight is {number(least)}, where one softmax gives "
        f"{number(float(good.min()))}; after a second one none can lie below "
        f"1/(1 + {n - 1}e) = {number(1 / (1 + (n - 1) * np.e))}."
    )


def negative(sight: Sight) -> str | None:
    """A negative weight."""
    weights = sight.weights
    if weights is None or not (weights < -1e-6).any():
        return None
    where = place(np.argwhere(weights < -1e-6)[0])
    return f"your weight at {where} is {number(float(weights[weights < -1e-6][0]))}."


def order(sight: Sight) -> str | None:
    """The largest score should have the largest weight."""
    weights = sight.weights
    if weights is None or not isinstance(sight.case.args[0], np.ndarray):
        return None
    scores = np.atleast_2d(one_table(np.asarray(sight.case.args[0], float)))
    if sight.view.raw_scores is not None:
        scores = np.atleast_2d(one_table(np.asarray(sight.view.raw_scores, float)))
    mine = np.atleast_2d(one_table(weights))
    if mine.shape != scores.shape or mine[0].argmax() == scores[0].argmax():
        return None
    top = int(scores[0].argmax())
    return (
        f"in row 0 the largest score stands at {top}, but your largest weight at "
        f"{int(mine[0].argmax())}."
    )


def returned_other(sight: Sight) -> str | None:
    """The shapes of the two results."""
    if len(sight.yours.arrays) != 2 or len(sight.right.arrays) != 2:
        return None
    shapes = [a.shape for a in sight.yours.arrays]
    good = [a.shape for a in sight.right.arrays]
    if shapes == good:
        return None
    return f"your results have the shapes {shapes[0]} and {shapes[1]}, not " + (
        f"{good[0]} and {good[1]}."
    )


MEASURES: dict[str, Callable[[Sight], str | None]] = {
    "scale_missing": scaled_by("d_k", "√d_k"),
    "scale_multiplied": scaled_by("d_k", "d_k"),
    "scale_d_k": scaled_by("d_k", "1/√d_k"),
    "scale_d_model": scaled_by("d_model", "√d_k/√d_model"),
    "scale_n_heads": scaled_by("n_heads", "√d_k/√n_heads"),
    "scale_d_v": scaled_by("d_v", "√d_k/√d_v"),
    "scale_n_k": scaled_by("n_k", "√d_k/√n_k"),
    "scale_n_q": scaled_by("n_q", "√d_k/√n_q"),
    "scale_first_of_k": scaled_by("k.shape[0]", "√d_k/√k.shape[0]"),
    "scale_first_of_q": scaled_by("q.shape[0]", "√d_k/√q.shape[0]"),
    "scale_second_of_q": scaled_by("q.shape[1]", "√d_k/√q.shape[1]"),
    "scale_after": row_sums,
    "axis_ignored": other_axis,
    "axis_zero": column_sums,
    "axis_one": first(other_axis, row_sums),
    "axis_second_last": column_sums,
    "axis_all": whole_sum,
    "not_stable": overflow,
    "shift_global": overflow,
    "keepdims_max": row_sums,
    "keepdims_sum": row_sums,
    "not_normalised": row_sums,
    "divides_by_mean": row_sums,
    "divides_by_norm": row_sums,
    "base_two": base,
    "roles_swapped": follows("k", "q"),
    "score_q_q": follows("q", "q"),
    "score_k_k": follows("k", "k"),
    "shared_q_k": follows("q", "q"),
    "weights_transposed": mixed_transposed,
    "sign_flipped": order,
    "exp_missing": negative,
    "log_softmax": negative,
    "log_of_weights": negative,
    "sigmoid": row_sums,
    "empty_row_nan": empty_row,
    "empty_row_uniform": empty_row,
    "empty_row_filled": empty_row,
    "softmax_twice": smallest,
    "softmax_missing": row_sums,
    "returned_swapped": returned_other,
    "returned_scores": row_sums,
}
