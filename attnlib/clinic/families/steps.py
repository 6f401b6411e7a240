"""The first exercises: a weighted mean, and how far a table is from a possible one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults

Float = npt.NDArray[np.floating]


KEPT = {
    "last_left_out": slice(None, -1),
    "first_left_out": slice(1, None),
    "first_product_only": slice(None, 1),
    "last_product_only": slice(-1, None),
}


def weighted_mean(
    weights: Float, values: Float, *, faults: Faults = RIGHT
) -> float | Float:
    """Values mixed by weights that sum to one."""
    if "weights_reversed" in faults:
        weights = weights[::-1]
    if "weights_squared" in faults:
        weights = np.square(weights)
    if "largest_weight_taken" in faults:
        return float(values[np.argmax(weights)])
    if "weights_through_softmax" in faults:
        weights = np.exp(weights) / np.exp(weights).sum()
    products: Float = weights * values
    if "weights_added" in faults:
        products = weights + values
    elif "values_only_added" in faults:
        products = values
    elif "weights_forgotten" in faults:
        products = values / len(values)
    if "products_not_added" in faults:
        return products
    kept = next((KEPT[key] for key in KEPT if key in faults), slice(None))
    total = float(products[kept].sum())
    if "divided_by_values" in faults:
        return total / float(values.sum())
    return total / len(values) if "divided_by_n" in faults else total


def distance_to_possible(scores: Float, X: Float, *, faults: Faults = RIGHT) -> object:
    """How far a table is from the nearest X M Xᵀ: the norm of scores − P scores P."""
    onto = X @ (X.T if "transposed_for_pinv" in faults else np.linalg.pinv(X))
    if "columns_taken_as_independent" in faults:
        directions = np.linalg.qr(X)[0]
        onto = directions @ directions.T
    if "ranks_subtracted" in faults:
        return float(np.linalg.matrix_rank(scores) - np.linalg.matrix_rank(X))
    nearest = scores
    if "only_rows_moved" not in faults:
        nearest = onto @ nearest
    if "only_columns_moved" not in faults:
        nearest = nearest @ onto
    if "turned_on_the_way" in faults:
        nearest = nearest.T
    elif "sides_averaged" in faults:
        nearest = (onto @ scores + scores @ onto) / 2
    left: Float = scores - nearest
    if "nearest_measured" in faults:
        left = nearest
    elif "both_outside" in faults:
        left = left - (onto @ left + left @ onto)  # neither here nor there
    elif "sides_measured_apart" in faults:
        left = np.stack([scores - onto @ scores, scores - scores @ onto])
    if "table_returned" in faults:
        return left
    if "largest_difference" in faults:
        return float(np.abs(left).max())
    if "differences_added" in faults:
        return float(np.abs(left).sum())
    if "differences_averaged" in faults:
        return float(np.abs(left).mean())
    if "sum_before_squares" in faults:
        return abs(float(left.sum()))
    if "spectral_norm" in faults:
        return float(np.linalg.norm(left, 2))
    if "squares_averaged" in faults:
        return float(np.sqrt(np.square(left).mean()))
    squares = float(np.square(left).sum())
    if "distance_relative" in faults:
        return float(np.sqrt(squares / np.square(scores).sum()))
    return squares if "no_root_taken" in faults else float(np.sqrt(squares))


WEIGHTED_MEAN = Family(
    "weighted_mean",
    weighted_mean,
    {
        "weights": (
            "weights_forgotten",
            "values_only_added",
            "weights_added",
            "weights_squared",
            "weights_reversed",
            "largest_weight_taken",
            "weights_through_softmax",
        ),
        "sum": ("divided_by_n", "products_not_added", "divided_by_values"),
        "kept": tuple(KEPT),
    },
)
DISTANCE_TO_POSSIBLE = Family(
    "distance_to_possible",
    distance_to_possible,
    {
        "sides": (
            "only_columns_moved",
            "only_rows_moved",
            "turned_on_the_way",
            "sides_averaged",
            "both_outside",
            "sides_measured_apart",
        ),
        "projection": ("transposed_for_pinv", "columns_taken_as_independent"),
        "distance": (
            "no_root_taken",
            "squares_averaged",
            "largest_difference",
            "differences_added",
            "spectral_norm",
            "nearest_measured",
            "table_returned",
            "ranks_subtracted",
            "distance_relative",
            "sum_before_squares",
            "differences_averaged",
        ),
    },
)
