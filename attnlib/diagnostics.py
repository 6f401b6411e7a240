"""What a weight matrix tells: entropy, saturation, and what a gradient does in it.

The gradients are written by hand, from the formulas, so that a lesson can print every
stage of them without a framework. The tests compare them with PyTorch's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from attnlib.attention import scaled_dot_product
from attnlib.shapes import Array, ShapeError, check_shapes, numbers


@dataclass(frozen=True)
class Gradients:
    """d loss / d stage for every stage, in the order in which they are computed."""

    v: Array  #          (..., n_k, d_v)  weights.T @ grad_out
    weights: Array  #    (..., n_q, n_k)  grad_out @ v.T
    scores: Array  #     (..., n_q, n_k)  back through softmax
    raw_scores: Array  # (..., n_q, n_k)  times the scale
    q: Array  #          (..., n_q, d_k)  raw_scores @ k
    k: Array  #          (..., n_k, d_k)  raw_scores.T @ q


def entropy(weights: npt.ArrayLike) -> Array:
    """Measure how widely each query spreads its weights, in nats.

    H(w) = -sum_j w_j ln w_j, where 0 ln 0 = 0

    Uniform weights on n keys have ln n, all weight on one key has 0, and so has a
    query that may look at nothing.

    Args:
        weights: rows of weights, (..., n_k).

    Returns:
        The entropy of each row, (...).

    Raises:
        ShapeError: weights have no axis.
        TypeError: weights are not an array of numbers.

    Cost: 3 FLOPs and 1 logarithm a weight.
    Source: Shannon 1948, section 6.
    Lesson: 02.

    >>> entropy([[0.5, 0.5], [1.0, 0.0]]).round(4).tolist()
    [0.6931, 0.0]
    """
    w = _rows(weights)
    # ln 1 = 0 stands in for ln 0. Adding 0 turns -0 into 0.
    return np.asarray(-(w * np.log(np.where(w > 0, w, 1))).sum(axis=-1) + 0.0)


def effective_keys(weights: npt.ArrayLike) -> Array:
    """Say how many keys a query uses: as many as equal weights would have this entropy.

    exp(H(w))

    Args:
        weights: rows of weights, (..., n_k).

    Returns:
        The number for each row, (...): 1 to n_k, and 0 for an empty row.

    Raises:
        ShapeError: weights have no axis.
        TypeError: weights are not an array of numbers.

    Cost: that of `entropy`.
    Source: Hill 1973 (the number of order 1); perplexity in language models.
    Lesson: 02.

    >>> effective_keys([[0.25] * 4, [0.5, 0.5, 0, 0], [0] * 4]).round(4).tolist()
    [4.0, 2.0, 0.0]
    """
    w = _rows(weights)
    return np.where(w.any(axis=-1), np.exp(entropy(w)), 0.0)


def saturated_share(weights: npt.ArrayLike, threshold: float = 0.99) -> Array:
    """Count the queries that give nearly everything to one key, as a share of all.

    share = #{i : max_j w_ij > threshold} / #{i : row i is not empty}

    Args:
        weights: (..., n_q, n_k).
        threshold: a row is saturated when one weight is larger than this.

    Returns:
        The share for each head, (...); 0 where every row is empty.

    Raises:
        ShapeError: weights have fewer than two axes.
        TypeError: weights are not an array of numbers.

    Cost: one pass over the weights.
    Source: the names of the course.
    Lesson: 02.

    >>> float(saturated_share([[1.0, 0.0], [0.5, 0.5], [0.0, 0.0]]))
    0.5
    """
    w = numbers("weights", weights)
    check_shapes({"weights": (w, "n_q n_k")})
    saturated = (w > threshold).any(axis=-1).sum(axis=-1)
    rows = w.any(axis=-1).sum(axis=-1)
    return np.asarray(saturated / np.maximum(rows, 1))


def softmax_jacobian(weights: npt.ArrayLike) -> Array:
    """Say how each weight answers to each score.

    d w_i / d s_j = w_i (delta_ij - w_j), that is diag(w) - w w^T

    Args:
        weights: rows of weights, (..., n).

    Returns:
        One matrix a row, (..., n, n). Its rows and columns sum to 0.

    Raises:
        ShapeError: weights have no axis.
        TypeError: weights are not an array of numbers.

    Cost: 2 n^2 FLOPs and n^2 numbers a row.
    Source: the quotient rule; Vaswani et al. 2017, section 3.2.1 on its size.
    Lesson: 02.

    >>> softmax_jacobian([0.5, 0.5]).tolist()
    [[0.25, -0.25], [-0.25, 0.25]]
    """
    w = _rows(weights)
    identity = np.eye(w.shape[-1], dtype=w.dtype)
    return np.asarray(w[..., :, None] * (identity - w[..., None, :]))


def jacobian_norm(weights: npt.ArrayLike) -> Array:
    """Measure how much the weights of a query answer to its scores at all.

    || diag(w) - w w^T ||, the root of the sum of squares (Frobenius)

    It is 0 for a row with all its weight on one key: no gradient passes there.

    Args:
        weights: rows of weights, (..., n).

    Returns:
        The norm for each row, (...).

    Raises:
        ShapeError: weights have no axis.
        TypeError: weights are not an array of numbers.

    Cost: 4 n^2 FLOPs and n^2 numbers a row.
    Source: the names of the course.
    Lesson: 02.

    >>> jacobian_norm([[0.5, 0.5], [1.0, 0.0]]).tolist()
    [0.5, 0.0]
    """
    return np.asarray(np.sqrt((softmax_jacobian(weights) ** 2).sum(axis=(-2, -1))))


def softmax_backward(weights: npt.ArrayLike, grad: npt.ArrayLike) -> Array:
    """Carry a gradient from the weights back to the scores.

    grad_scores = weights * (grad - sum_j weights_j grad_j)

    That is the Jacobian times the gradient, without building the Jacobian.

    Args:
        weights: what softmax returned, (..., n).
        grad: d loss / d weights, (..., n).

    Returns:
        d loss / d scores, (..., n). It sums to 0; an empty row gives zeros.

    Raises:
        ShapeError: the two differ in shape, or have no axis.
        TypeError: an argument is not an array of numbers.

    Cost: 4 FLOPs a weight.
    Source: Dao et al. 2022 (FlashAttention), appendix B.2.
    Lesson: 02.

    >>> softmax_backward([0.5, 0.5], [1.0, 0.0]).tolist()
    [0.25, -0.25]
    """
    w, g = _rows(weights), numbers("grad", grad)
    if w.shape != g.shape:
        raise ShapeError(f"grad has shape {g.shape}, but weights have shape {w.shape}.")
    return np.asarray(w * (g - (w * g).sum(axis=-1, keepdims=True)))


def scaled_dot_product_backward(
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    mask: npt.ArrayLike | None,
    grad_out: npt.ArrayLike,
    *,
    scale: float | None = None,
) -> Gradients:
    """Carry a gradient from `out` back to q, k and v, stage by stage.

    grad_v = weights^T grad_out; grad_weights = grad_out v^T;
    grad_raw = scale * softmax_backward(weights, grad_weights);
    grad_q = grad_raw k; grad_k = grad_raw^T q

    Args:
        q: queries, (..., n_q, d_k).
        k: keys, (..., n_k, d_k).
        v: values, (..., n_k, d_v).
        mask: boolean, broadcastable to (..., n_q, n_k), or None. True = may look.
        grad_out: d loss / d out, the shape of `scaled_dot_product(...).out`.
        scale: the factor of the forward pass; 1 / sqrt(d_k) if left out.

    Returns:
        The gradient of each stage, each the shape of its stage. Where an argument was
        broadcast over batch axes, its gradient is summed over them.

    Raises:
        ShapeError: as `scaled_dot_product`, or grad_out differs from out in shape.
        TypeError: as `scaled_dot_product`.

    Cost: twice the forward pass, and the forward pass itself, which is done again.
    Source: Dao et al. 2022 (FlashAttention), appendix B.2.
    Lesson: 02.

    >>> q, k, v = [[1.0, 0.0]], [[1.0, 2.0], [0.0, 1.0]], [[3.0], [5.0]]
    >>> gradients = scaled_dot_product_backward(q, k, v, None, [[1.0]], scale=0.0)
    >>> gradients.v.tolist(), gradients.scores.tolist(), gradients.q.tolist()
    ([[0.5], [0.5]], [[-0.5, 0.5]], [[0.0, 0.0]])
    """
    stages = scaled_dot_product(q, k, v, mask, scale=scale)
    q, k, v, grad = (
        numbers(name, array)
        for name, array in (("q", q), ("k", k), ("v", v), ("grad_out", grad_out))
    )
    if grad.shape != stages.out.shape:
        raise ShapeError(
            f"grad_out has shape {grad.shape}, but out has shape {stages.out.shape}."
        )
    if scale is None:
        scale = 1.0 if q.shape[-1] == 0 else q.shape[-1] ** -0.5
    grad_v = np.swapaxes(stages.weights, -1, -2) @ grad
    grad_weights = grad @ np.swapaxes(v, -1, -2)
    grad_scores = softmax_backward(stages.weights, grad_weights)
    grad_raw = grad_scores * float(scale)
    return Gradients(
        v=_sum_to(grad_v, v.shape),
        weights=grad_weights,
        scores=grad_scores,
        raw_scores=grad_raw,
        q=_sum_to(grad_raw @ k, q.shape),
        k=_sum_to(np.swapaxes(grad_raw, -1, -2) @ q, k.shape),
    )


def _rows(weights: npt.ArrayLike) -> Array:
    array = numbers("weights", weights)
    check_shapes({"weights": (array, "n_k")})
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def _sum_to(grad: Array, shape: tuple[int, ...]) -> Array:
    """Undo broadcasting: sum over the batch axes that the argument did not have."""
    grad = grad.sum(axis=tuple(range(grad.ndim - len(shape))))
    stretched = tuple(
        axis for axis, n in enumerate(shape) if n == 1 and grad.shape[axis] != 1
    )
    return np.asarray(grad.sum(axis=stretched, keepdims=True))
