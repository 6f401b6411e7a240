"""Linear attention: without a softmax, the keys can be added up before any query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from attnlib.lowrank.inputs import checked, floating
from attnlib.shapes import Array, numbers


@dataclass(frozen=True)
class Linear:
    """All stages of one call of `linear`."""

    q_features: Array  # (..., n_q, d_k)  positive
    k_features: Array  # (..., n_k, d_k)  positive
    state: Array  #      (..., d_k, d_v)  after the last key: all that is kept of them
    total: Array  #      (..., d_k)       likewise, what to divide by
    out: Array  #        (..., n_q, d_v)


@dataclass(frozen=True)
class LinearDense:
    """All stages of one call of `linear_dense`."""

    scores: Array  #  (..., n_q, n_k)  positive, or 0 where hidden
    weights: Array  # (..., n_q, n_k)  every row sums to 1 or is 0
    out: Array  #     (..., n_q, d_v)


def features(x: npt.ArrayLike) -> Array:
    """Make every number positive: elu(x) + 1.

    features(x) = x + 1 where x > 0, exp(x) elsewhere

    Args:
        x: queries or keys, (..., n, d_k).

    Returns:
        The features, the same shape.

    Raises:
        TypeError: x is not an array of numbers.

    Cost: one exp a number.
    Source: Katharopoulos et al. 2020, equation 7.
    Lesson: 13.

    >>> features([0.0, 2.0]).tolist()
    [1.0, 3.0]
    """
    array = floating(numbers("x", x))
    return np.where(array > 0, array + 1, np.exp(np.minimum(array, 0)))


def linear(
    q: npt.ArrayLike, k: npt.ArrayLike, v: npt.ArrayLike, *, causal: bool = False
) -> Linear:
    """Attend through sums over the keys, in time and memory that grow as n.

    out_i = features(q_i) S / (features(q_i) . z), with S = sum over j of
    features(k_j)^T v_j and z = sum over j of features(k_j)

    Causal, both sums run along the text: S and z after key p are all that query p
    needs, whatever the length of the text. That is a recurrent network, with a state
    of d_k (d_v + 1) numbers for a past of any length; what does not fit into them is
    forgotten. There is no softmax and no 1 / sqrt(d_k) in it.

    Args:
        q: queries, (..., n_q, d_k).
        k: keys, (..., n_k, d_k).
        v: values, (..., n_k, d_v).
        causal: hide what comes after a query, which stands at n_k - n_q + i.

    Returns:
        All stages: the features, the last state (..., d_k, d_v), total (..., d_k), and
        out (..., n_q, d_v). A query without a key gets zeros.

    Raises:
        ShapeError: q, k and v do not fit together.
        TypeError: an argument is not an array of numbers.

    Cost: 2 (n_q + n_k) d_k (d_v + 1) FLOPs; d_k (d_v + 1) numbers besides inputs and
        result.
    Source: Katharopoulos et al. 2020, equations 6 and 9 to 12.
    Lesson: 13.

    >>> k = np.array([[0.0], [2.0]])
    >>> result = linear(k, k, [[4.0], [8.0]], causal=True)
    >>> result.out[:, 0].tolist(), result.state.tolist(), result.total.tolist()
    ([4.0, 7.0], [[28.0]], [4.0])
    """
    q, k, v = checked(q, k, v)
    q_features, k_features = features(q), features(k)
    if not causal:
        state = np.swapaxes(k_features, -1, -2) @ v
        total = k_features.sum(axis=-2)
        out = _divide(q_features @ state, (q_features @ total[..., None]))
        return Linear(q_features, k_features, state, total, out)
    n_q, n_k = q.shape[-2], k.shape[-2]
    batch = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    out = np.zeros((*batch, n_q, v.shape[-1]), np.result_type(q, k, v))
    before = max(0, n_k - n_q)  # keys that stand before every query
    early = k_features[..., :before, :]
    state = np.swapaxes(early, -1, -2) @ v[..., :before, :]
    total = early.sum(axis=-2)
    for i in range(n_q):
        p = n_k - n_q + i
        if p >= 0:
            key = k_features[..., p, :]
            state = state + key[..., :, None] * v[..., p, None, :]
            total = total + key
            query = q_features[..., i, None, :]
            row = _divide(query @ state, query @ total[..., None])
            out[..., i, :] = row[..., 0, :]
    return Linear(q_features, k_features, state, total, out)


def linear_dense(
    q: npt.ArrayLike, k: npt.ArrayLike, v: npt.ArrayLike, *, causal: bool = False
) -> LinearDense:
    """Compute linear attention the long way, with its matrix of weights.

    weights_ij = features(q_i) . features(k_j) / sum over j of the same; out = weights v

    It equals `linear` up to rounding, and shows what linear attention looks at.

    Args:
        q: queries, (..., n_q, d_k).
        k: keys, (..., n_k, d_k).
        v: values, (..., n_k, d_v).
        causal: hide what comes after a query, which stands at n_k - n_q + i.

    Returns:
        The scores and weights (..., n_q, n_k), and out (..., n_q, d_v).

    Raises:
        ShapeError: q, k and v do not fit together.
        TypeError: an argument is not an array of numbers.

    Cost: 2 n_q n_k (d_k + d_v) FLOPs; 2 n_q n_k numbers kept.
    Source: Katharopoulos et al. 2020, equation 4.
    Lesson: 13.

    >>> k = np.array([[0.0], [2.0]])
    >>> linear_dense(k, k, [[4.0], [8.0]], causal=True).weights.tolist()
    [[1.0, 0.0], [0.25, 0.75]]
    """
    q, k, v = checked(q, k, v)
    scores = features(q) @ np.swapaxes(features(k), -1, -2)
    if causal:
        n_q, n_k = scores.shape[-2:]
        look = np.arange(n_k) <= n_k - n_q + np.arange(n_q)[:, None]
        scores = np.where(look, scores, 0)
    weights = _divide(scores, scores.sum(axis=-1, keepdims=True))
    return LinearDense(scores, weights, weights @ v)


def _divide(part: Array, whole: Array) -> Array:
    """Zeros where there is nothing: a query without a key."""
    return np.asarray(part / np.where(whole == 0, 1, whole))
