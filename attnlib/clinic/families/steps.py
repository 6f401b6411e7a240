"""The first exercises: a weighted mean, and how far a table is from a possible one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults

Float = npt.NDArray[np.floating]


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
    products: Float = weights * values
    if "weights_added" in faults:
        products = weights + values
    elif "values_only_added" in faults:
        products = values
    elif "weights_forgotten" in faults:
        products = values / len(values)
    if "products_not_added" in faults:
        return products
    total = float(products.sum())
    return total / len(values) if "divided_by_n" in faults else total


def distance_to_possible(scores: Float, X: Float, *, faults: Faults = RIGHT) -> object:
    """How far a table is from the nearest X M Xᵀ: the norm of scores − P scores P."""
    onto = X @ (X.T if "transposed_for_pinv" in faults else np.linalg.pinv(X))
    if "ranks_subtracted" in faults:
        return float(np.linalg.matrix_rank(scores) - np.linalg.matrix_rank(X))
    nearest = scores
    if "only_rows_moved" not in faults:
        nearest = onto @ nearest
    if "only_columns_moved" not in faults:
        nearest = nearest @ onto
    left: Float = scores - nearest
    if "nearest_measured" in faults:
        left = nearest
    if "table_returned" in faults:
        return left
    if "largest_difference" in faults:
        return float(np.abs(left).max())
    if "differences_added" in faults:
        return float(np.abs(left).sum())
    if "spectral_norm" in faults:
        return float(np.linalg.norm(left, 2))
    if "squares_averaged" in faults:
        return float(np.sqrt(np.square(left).mean()))
    squares = float(np.square(left).sum())
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
        ),
        "sum": ("divided_by_n", "products_not_added"),
    },
)
DISTANCE_TO_POSSIBLE = Family(
    "distance_to_possible",
    distance_to_possible,
    {
        "sides": ("only_columns_moved", "only_rows_moved"),
        "projection": ("transposed_for_pinv",),
        "distance": (
            "no_root_taken",
            "squares_averaged",
            "largest_difference",
            "differences_added",
            "spectral_norm",
            "nearest_measured",
            "table_returned",
            "ranks_subtracted",
        ),
    },
)
