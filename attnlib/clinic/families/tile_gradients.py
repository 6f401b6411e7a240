"""The gradient of one tile, from recomputed weights, with every mistake built in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults
from attnlib.clinic.families.softmax import softmax

Float = npt.NDArray[np.floating]


def tile_grad_q(
    q: Float,
    k: Float,
    v: Float,
    grad_out: Float,
    log_sum_exp: Float,
    delta: Float,
    *,
    faults: Faults = RIGHT,
) -> Float:
    """What one tile of keys brings to the gradient of q, weights recomputed."""
    right = q.shape[-1] ** -0.5
    forward = {
        "scale_missing": 1.0,
        "gradient_scale_only_back": 1.0,
        "scale_d_k": right**2,
        "scale_n_k": len(k) ** -0.5,
        "scale_d_v": v.shape[-1] ** -0.5,
    }
    scale = next((forward[key] for key in faults & forward.keys()), right)
    back = {
        "gradient_scale_missing": 1.0,
        "gradient_scale_twice": right**2,
        "gradient_scale_multiplied": 1 / right,
        "gradient_scale_only_back": right,
    }
    again = next((back[key] for key in faults & back.keys()), scale)
    weights = _recomputed(q @ k.T * scale, log_sum_exp[:, None], faults)
    if "tile_log_scaled" in faults:
        weights = np.exp((q @ k.T - log_sum_exp[:, None]) * scale)
    if "grad_out_ignored" in faults:
        grad_out = np.ones_like(grad_out)
    grad = grad_out @ v.T
    if "delta_not_scaled" in faults:  # the root of d_k, one step too early
        grad, again = grad * scale, 1.0
    grad_scores = _through(weights, grad, delta[:, None], faults)
    return np.asarray(again * grad_scores @ k)


def _recomputed(scores: Float, log_sum_exp: Float, faults: Faults) -> Float:
    """The weights of the tile."""
    if "tile_softmax" in faults:
        return softmax(scores)
    if "tile_without_sum" in faults:
        return np.asarray(np.exp(scores))
    if "tile_by_own_maximum" in faults:
        return np.asarray(np.exp(scores - scores.max(axis=-1, keepdims=True)))
    if "tile_divided_by_log" in faults:
        return np.asarray(np.exp(scores) / log_sum_exp)
    if "tile_log_added" in faults:
        return np.asarray(np.exp(scores + log_sum_exp))
    if "tile_not_exponential" in faults:
        return np.asarray(scores - log_sum_exp)
    return np.asarray(np.exp(scores - log_sum_exp))


def _through(weights: Float, grad: Float, delta: Float, faults: Faults) -> Float:
    """From the gradient of the weights to that of the scores."""
    products = weights * grad
    results = {
        "softmax_not_differentiated": grad,
        "softmax_sum_missing": products,
        "softmax_diagonal_only": products * (1 - weights),
        "softmax_factor_missing": grad - delta,
        "softmax_sum_not_shared": products - delta,
        "softmax_sum_added": weights * (grad + delta),
        "softmax_sides_exchanged": weights * (delta - grad),
        "softmax_sum_unweighted": weights * (grad - grad.sum(-1, keepdims=True)),
        "delta_of_the_tile": weights * (grad - products.sum(-1, keepdims=True)),
        "delta_multiplied": products * delta,
        "delta_of_the_mean": weights * (grad - delta / weights.shape[-1]),
    }
    right = weights * (grad - delta)
    found = next((results[key] for key in faults & results.keys()), right)
    return np.asarray(found)


TILE_GRAD_Q = Family(
    "tile_grad_q",
    tile_grad_q,
    {
        "weights": (
            "tile_softmax",
            "tile_without_sum",
            "tile_by_own_maximum",
            "tile_divided_by_log",
            "tile_log_added",
            "tile_not_exponential",
            "tile_log_scaled",
        ),
        "softmax": (
            "delta_of_the_tile",
            "softmax_not_differentiated",
            "softmax_sum_missing",
            "softmax_diagonal_only",
            "softmax_factor_missing",
            "softmax_sum_not_shared",
            "softmax_sum_added",
            "softmax_sides_exchanged",
            "softmax_sum_unweighted",
            "delta_multiplied",
            "delta_of_the_mean",
        ),
        "scale": (
            "gradient_scale_missing",
            "gradient_scale_twice",
            "gradient_scale_multiplied",
            "gradient_scale_only_back",
            "delta_not_scaled",
            "scale_missing",
            "scale_d_k",
            "scale_n_k",
            "scale_d_v",
        ),
        "loss": ("grad_out_ignored",),
    },
)
