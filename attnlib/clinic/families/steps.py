"""The first exercises: a weighted mean, and which score tables can exist."""

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


def can_exist(scores: Float, X: Float, *, faults: Faults = RIGHT) -> bool:
    """Whether some W_q and W_k give (X W_q)(X W_k)ᵀ = scores."""
    n_tokens = len(X)
    onto = X @ np.linalg.pinv(X)  # projects on the column space of X
    rank_x = np.linalg.matrix_rank(X)
    left, right = onto @ scores, scores @ onto
    if "always_true" in faults or "always_false" in faults:
        return "always_true" in faults
    if "rank_only" in faults:
        return bool(np.linalg.matrix_rank(scores) <= rank_x)
    if "determinant" in faults:
        return bool(abs(np.linalg.det(scores)) < 1e-9)
    if "full_rank_only" in faults:
        return bool(rank_x == n_tokens)
    if "left_side_only" in faults:
        return bool(np.allclose(left, scores))
    if "right_side_only" in faults:
        return bool(np.allclose(right, scores))
    if "exact_comparison" in faults:
        return bool((onto @ scores @ onto == scores).all())
    answer = bool(np.allclose(onto @ scores @ onto, scores))
    return not answer if "verdict_inverted" in faults else answer


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
        ),
        "sum": ("divided_by_n", "products_not_added"),
    },
)
# Answers of yes and no hold little information: no pairs, lest they fit by chance.
CAN_EXIST = Family(
    "can_exist",
    can_exist,
    {
        "test": (
            "rank_only",
            "left_side_only",
            "right_side_only",
            "determinant",
            "full_rank_only",
            "verdict_inverted",
            "exact_comparison",
            "always_true",
            "always_false",
        )
    },
    pairs=False,
)
