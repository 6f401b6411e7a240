"""The gradient of attention by hand, with every mistake built in."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults
from attnlib.clinic.families.softmax import softmax

Float = npt.NDArray[np.floating]
Three = tuple[Float, Float, Float]

ORDERS = {
    "gradients_k_first": (1, 0, 2),
    "gradients_v_first": (2, 0, 1),
    "gradients_reversed": (2, 1, 0),
    "gradients_v_before_k": (0, 2, 1),
    "gradients_q_last": (1, 2, 0),
}


def attention_gradient(
    q: Float, k: Float, v: Float, grad_out: Float, *, faults: Faults = RIGHT
) -> Three:
    """How (out * grad_out).sum() answers to q, k and v."""
    right = 1 / math.sqrt(q.shape[-1])
    scale = _scale(q, k, v, faults)
    seen = np.ones_like(grad_out) if "grad_out_ignored" in faults else grad_out
    for_weights = np.ones_like(seen) if "grad_out_for_v_only" in faults else seen
    raw = q @ _turned(k) * (1.0 if "gradient_scale_only_back" in faults else scale)
    weights = softmax(raw, faults=faults & {"axis_second_last", "axis_zero"})
    grad_v = _grad_v(weights, seen, v, right, faults)
    grad_scores = _through_softmax(weights, for_weights @ _turned(v), faults)
    back = {
        "gradient_scale_missing": 1.0,
        "gradient_scale_twice": scale**2,
        "gradient_scale_multiplied": 1 / scale,
        "gradient_scale_of_the_example": 1 / math.sqrt(2),
    }
    grad_raw = grad_scores * next((back[key] for key in faults & back.keys()), scale)
    grad_q, grad_k = np.asarray(grad_raw @ k), np.asarray(_turned(grad_raw) @ q)
    if "grad_k_not_transposed" in faults:
        grad_k = grad_raw @ q
    elif "grad_k_of_the_last_query" in faults:
        grad_k = _turned(grad_raw)[..., -1:] @ q[..., -1:, :]
    if "gradient_scale_for_q_only" in faults:
        grad_k = grad_k / scale
    elif "gradient_scale_for_k_only" in faults:
        grad_q = grad_q / scale
    elif "gradient_scale_twice_for_k" in faults:
        grad_k = grad_k * scale
    elif "gradient_scale_twice_for_q" in faults:
        grad_q = grad_q * scale
    if "q_and_k_exchanged" in faults:
        grad_q, grad_k = _turned(grad_raw) @ k, grad_raw @ q
    three: Three = grad_q, grad_k, grad_v
    if "gradient_negative" in faults:
        three = -grad_q, -grad_k, -grad_v
    elif "gradient_of_the_mean" in faults:
        size = grad_out.size
        three = grad_q / size, grad_k / size, grad_v / size
    first, second, third = next(
        (ORDERS[key] for key in ORDERS if key in faults), (0, 1, 2)
    )
    return three[first], three[second], three[third]


def _scale(q: Float, k: Float, v: Float, faults: Faults) -> float:
    """What the scores are multiplied with, forward and back."""
    d_k = q.shape[-1]
    others = {
        "scale_missing": 1.0,
        "scale_d_k": d_k**-1.0,
        "scale_n_k": k.shape[-2] ** -0.5,
        "scale_d_v": v.shape[-1] ** -0.5,
        "scale_of_the_example": 2**-0.5,
    }
    found = next((others[key] for key in others if key in faults), d_k**-0.5)
    return float(found)


def _grad_v(
    weights: Float, grad: Float, v: Float, scale: float, faults: Faults
) -> Float:
    if "grad_v_not_transposed" in faults:
        return np.asarray(weights @ grad)
    if "grad_v_unweighted" in faults:
        return np.broadcast_to(grad.sum(axis=-2, keepdims=True), v.shape).copy()
    if "grad_v_of_the_last_query" in faults:
        return np.asarray(_turned(weights)[..., -1:] @ grad[..., -1:, :])
    if "grad_v_without_grad_out" in faults:
        grad = np.ones_like(grad)
    grad_v = np.asarray(_turned(weights) @ grad)
    return grad_v * scale if "gradient_scale_for_v_too" in faults else grad_v


def _through_softmax(weights: Float, grad: Float, faults: Faults) -> Float:
    """From the gradient of the weights to that of the scores."""
    if "softmax_not_differentiated" in faults:
        return grad
    if "softmax_sum_missing" in faults:
        return np.asarray(weights * grad)
    if "softmax_diagonal_only" in faults:
        return np.asarray(weights * (1 - weights) * grad)
    if "softmax_sum_unweighted" in faults:
        return np.asarray(weights * (grad - grad.sum(axis=-1, keepdims=True)))
    if "softmax_mean_for_sum" in faults:
        return np.asarray(weights * (grad - grad.mean(axis=-1, keepdims=True)))
    products = weights * grad
    if "softmax_own_term_twice" in faults:  # the sum should leave out the own weight
        total = products.sum(axis=-1, keepdims=True)
        return np.asarray(weights * ((1 - weights) * grad - total))
    if "softmax_mean_of_products" in faults:
        return np.asarray(weights * (grad - products.mean(axis=-1, keepdims=True)))
    if "softmax_sum_over_first" in faults:
        return np.asarray(weights * (grad - products.sum(axis=0)))
    if "softmax_sum_over_queries" in faults:
        return np.asarray(weights * (grad - products.sum(axis=-2, keepdims=True)))
    if "softmax_sum_over_all" in faults:
        total = products.sum(axis=(-1, -2), keepdims=True)
        return np.asarray(weights * (grad - total))
    if "softmax_sum_everywhere" in faults:
        return np.asarray(weights * (grad - products.sum()))
    total = products.sum(axis=-1, keepdims=True)
    if "softmax_factor_missing" in faults:
        return np.asarray(grad - total)
    if "softmax_sum_not_shared" in faults:
        return np.asarray(products - total)
    if "softmax_sum_added" in faults:
        return np.asarray(weights * (grad + total))
    if "softmax_sides_exchanged" in faults:
        return np.asarray(weights * (total - grad))
    return np.asarray(weights * (grad - total))


def _turned(array: Float) -> Float:
    return np.swapaxes(array, -1, -2)


# Slips of sum_j(w_j g_j) after which the gradients of the keys no longer sum to 0.
SUM_SLIPS = (
    "softmax_not_differentiated",
    "softmax_sum_missing",
    "softmax_diagonal_only",
    "softmax_sum_unweighted",
    "softmax_mean_for_sum",
    "softmax_sum_over_queries",
    "softmax_sum_over_all",
    "softmax_sum_everywhere",
    "softmax_factor_missing",
    "softmax_sum_not_shared",
    "softmax_sum_added",
    "softmax_own_term_twice",
    "softmax_mean_of_products",
    "softmax_sum_over_first",
)

ATTENTION_GRADIENT = Family(
    "attention_gradient",
    attention_gradient,
    {
        "softmax": (*SUM_SLIPS, "softmax_sides_exchanged"),
        "scale": (
            "scale_missing",
            "gradient_scale_missing",
            "gradient_scale_twice",
            "gradient_scale_multiplied",
            "gradient_scale_for_q_only",
            "gradient_scale_for_k_only",
            "gradient_scale_twice_for_k",
            "gradient_scale_twice_for_q",
            "gradient_scale_only_back",
            "gradient_scale_of_the_example",
            "scale_d_k",
            "scale_n_k",
            "scale_d_v",
            "scale_of_the_example",
        ),
        "axis": ("axis_second_last", "axis_zero"),
        "turned": (
            "grad_k_not_transposed",
            "grad_k_of_the_last_query",
            "q_and_k_exchanged",
        ),
        "value": (
            "grad_v_not_transposed",
            "grad_v_unweighted",
            "grad_v_of_the_last_query",
            "grad_v_without_grad_out",
            "gradient_scale_for_v_too",
        ),
        "loss": (
            "gradient_negative",
            "grad_out_ignored",
            "grad_out_for_v_only",
            "gradient_of_the_mean",
        ),
        "order": tuple(ORDERS),
    },
)
