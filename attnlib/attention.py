"""Softmax and scaled dot-product attention, with every stage kept.

This module defines the right answer for the whole course. It is written to be read:
no speed, no flags, one line for each step of the formula.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from attnlib.shapes import Array, ShapeError, check_shapes, numbers


@dataclass(frozen=True)
class Attention:
    """All stages of one call of `scaled_dot_product`, in the order of the formula."""

    raw_scores: Array  # (..., n_q, n_k)  q @ k.T
    scores: Array  #     (..., n_q, n_k)  scaled; -inf where the mask says no
    weights: Array  #    (..., n_q, n_k)  after softmax; every row sums to 1 or is 0
    out: Array  #        (..., n_q, d_v)  weights @ v


def softmax(x: npt.ArrayLike, axis: int = -1) -> Array:
    """Turn scores into positive weights that sum to one along an axis.

    softmax(x)_i = exp(x_i) / sum_j exp(x_j)

    The largest score is subtracted first. That changes nothing in the result, and
    keeps `exp` from overflowing. A slice that is -inf throughout (a query that may
    look at nothing) becomes zeros, never NaN. A score of NaN or +inf does give NaN.

    Args:
        x: scores, (...).
        axis: the axis along which the weights sum to one.

    Returns:
        The weights, the same shape as `x`.

    Raises:
        TypeError: `x` is not an array of numbers.
        numpy.exceptions.AxisError: `x` has no such axis.

    Cost: about 4 FLOPs and 1 exp a score; two arrays the size of `x`.
    Source: Bridle 1990; the shift by the maximum is folklore.
    Lesson: 01.

    >>> softmax([0.0, 0.0]).tolist()
    [0.5, 0.5]
    >>> softmax([1000.0, 1000.0]).tolist()
    [0.5, 0.5]
    """
    x = _floating(numbers("x", x))
    largest = x.max(axis=axis, keepdims=True, initial=-np.inf)
    # -inf - -inf is NaN. Where everything is -inf, subtract 0 and let exp give 0.
    largest = np.where(np.isneginf(largest), 0, largest)
    with np.errstate(over="ignore"):  # too far below becomes -inf, and exp(-inf) is 0
        e = np.exp(x - largest)
    # float16 ends at 65504 and counts ones only to 2048: too little for a sum of many.
    wide = np.float32 if x.dtype == np.float16 else x.dtype
    total = e.sum(axis=axis, keepdims=True, dtype=wide)
    return np.asarray(e / np.where(total == 0, 1, total)).astype(x.dtype, copy=False)


def scaled_dot_product(
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    mask: npt.ArrayLike | None = None,
    *,
    scale: float | None = None,
) -> Attention:
    """Let every query look at every key, and mix the values accordingly.

    out = softmax(q k^T / sqrt(d_k)) v

    The order is fixed: multiply, scale, mask, softmax, mix. A query that may look at
    nothing gets zeros, in `weights` and in `out`. A mask hides a NaN in a key, but not
    a NaN in its value: 0 * NaN is NaN, here as in SDPA.

    Args:
        q: queries, (..., n_q, d_k).
        k: keys, (..., n_k, d_k).
        v: values, (..., n_k, d_v).
        mask: boolean, broadcastable to (..., n_q, n_k). True = may look.
        scale: factor on the raw scores; 1 / sqrt(d_k) if left out.

    Returns:
        All stages: raw_scores, scores, weights (..., n_q, n_k) and out (..., n_q, d_v).

    Raises:
        ShapeError: q and k differ in d_k, k and v in n_k, the batch axes do not
            broadcast, or the mask does not fit.
        TypeError: an argument is not an array of numbers, the mask not boolean, or the
            scale not one number.

    Cost: 2 n_q n_k (d_k + d_v) FLOPs for the two products; 3 n_q n_k numbers kept.
    Source: Vaswani et al. 2017, equation 1.
    Lesson: 01.

    >>> one_key = scaled_dot_product([[1.0, 0.0]], [[1.0, 2.0]], [[3.0, 4.0, 5.0]])
    >>> one_key.weights.tolist(), one_key.out.tolist()
    ([[1.0]], [[3.0, 4.0, 5.0]])
    """
    sizes = check_shapes(
        {"q": (q, "n_q d_k"), "k": (k, "n_k d_k"), "v": (v, "n_k d_v")}
    )
    q, k, v = (_floating(np.asarray(array)) for array in (q, k, v))
    _check_batch(q, k, v)
    if scale is None:
        scale = 1.0 if sizes["d_k"] == 0 else sizes["d_k"] ** -0.5
    raw_scores = q @ np.swapaxes(k, -1, -2)
    # A NumPy scalar would turn float16 scores into float64; a Python float does not.
    scores = raw_scores * _number(scale)
    if mask is not None:
        scores = np.where(_mask(mask, scores.shape), scores, -np.inf)
    weights = softmax(scores)
    return Attention(raw_scores, scores, weights, weights @ v)


def _floating(array: npt.NDArray[Any]) -> Array:
    """Whole numbers and truth values become float64; floats keep their type."""
    if array.dtype.kind == "f":
        return array
    return array.astype(np.float64)


def _mask(mask: npt.ArrayLike, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    array = np.asarray(mask)
    if array.dtype != np.bool_:
        raise TypeError(
            f"mask must be boolean (True = may look), but its dtype is {array.dtype}; "
            "a mask of 0 and 1 becomes one with mask.astype(bool)."
        )
    if _fits(array.shape, shape):
        return np.broadcast_to(array, shape)
    text = (
        f"mask with shape {array.shape} does not broadcast to the scores' shape "
        f"{shape}, which ends in (n_q, n_k)"
    )
    if array.ndim == 3 and _fits((array.shape[0], 1, *array.shape[1:]), shape):
        text += (
            "; a mask for each sequence of the batch needs an axis of 1 for the heads"
        )
    raise ShapeError(text + ".")


def _number(scale: float) -> float:
    try:
        return float(scale)
    except (TypeError, ValueError):
        raise TypeError(f"scale must be one number, but it is {scale!r}.") from None


def _fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, wanted) == wanted
    except ValueError:
        return False


def _check_batch(q: Array, k: Array, v: Array) -> None:
    of_q, of_k, of_v = q.shape[:-2], k.shape[:-2], v.shape[:-2]
    try:
        np.broadcast_shapes(of_q, of_k, of_v)
    except ValueError:
        raise ShapeError(
            f"the batch axes of q {of_q}, k {of_k} and v {of_v} do not broadcast."
        ) from None
