"""The gradient of attention by hand, with every mistake built in."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults
from attnlib.clinic.families.softmax import softmax

Float = npt.NDArray[np.floating]
Three = tuple[Float, Float, Float]


def attention_gradient(
    q: Float, k: Float, v: Float, grad_out: Float, *, faults: Faults = RIGHT
) -> Three:
    """How (out * grad_out).sum() answers to q, k and v."""
    scale = 1 / math.sqrt(q.shape[-1])
    if "grad_out_ignored" in faults:
        grad_out = np.ones_like(grad_out)
    raw = q @ _turned(k)
    weights = softmax(raw if "scale_missing" in faults else raw * scale)
    grad_v = np.asarray(_turned(weights) @ grad_out)
    if "grad_v_not_transposed" in faults:
        grad_v = weights @ grad_out
    elif "grad_v_unweighted" in faults:
        summed = grad_out.sum(axis=-2, keepdims=True)
        grad_v = np.broadcast_to(summed, v.shape).copy()
    grad_scores = _through_softmax(weights, grad_out @ _turned(v), faults)
    back = scale
    if {"scale_missing", "gradient_scale_missing"} & faults:
        back = 1.0
    elif "gradient_scale_twice" in faults:
        back = scale**2
    elif "gradient_scale_multiplied" in faults:
        back = 1 / scale
    grad_raw = grad_scores * back
    grad_q, grad_k = np.asarray(grad_raw @ k), np.asarray(_turned(grad_raw) @ q)
    if "grad_k_not_transposed" in faults:
        grad_k = grad_raw @ q
    if "gradient_scale_for_q_only" in faults:
        grad_k = grad_k / scale
    elif "gradient_scale_for_k_only" in faults:
        grad_q = grad_q / scale
    if "q_and_k_exchanged" in faults:
        grad_q, grad_k = _turned(grad_raw) @ k, grad_raw @ q
    three: Three = grad_q, grad_k, grad_v
    if "gradient_negative" in faults:
        three = -grad_q, -grad_k, -grad_v
    elif "gradient_of_the_mean" in faults:
        size = grad_out.size
        three = grad_q / size, grad_k / size, grad_v / size
    if "gradients_k_first" in faults:
        return three[1], three[0], three[2]
    return (three[2], three[0], three[1]) if "gradients_v_first" in faults else three


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
    return np.asarray(weights * (grad - total))


def _turned(array: Float) -> Float:
    return np.swapaxes(array, -1, -2)


ATTENTION_GRADIENT = Family(
    "attention_gradient",
    attention_gradient,
    {
        "softmax": (
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
        ),
        "scale": (
            "scale_missing",
            "gradient_scale_missing",
            "gradient_scale_twice",
            "gradient_scale_multiplied",
            "gradient_scale_for_q_only",
            "gradient_scale_for_k_only",
        ),
        "turned": (
            "grad_k_not_transposed",
            "grad_v_not_transposed",
            "grad_v_unweighted",
            "q_and_k_exchanged",
        ),
        "loss": ("gradient_negative", "grad_out_ignored", "gradient_of_the_mean"),
        "order": ("gradients_k_first", "gradients_v_first"),
    },
)
