"""Windows, dense and dilated: each query with its neighbours, one neighbour at a time.

The scores of a window are a band along the diagonal of the score matrix. Turned
upright, it is an array of n_q rows and as many columns as a window has keys: column c
holds the score of every query with its c-th neighbour.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from attnlib.attention import softmax
from attnlib.shapes import Array, size
from attnlib.sparse.inputs import check_width, checked

Keys = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Window:
    """All stages of one call of `window`; column c is the c-th neighbour."""

    keys: Keys  #     (n_q, width)  which key it is; -1 past the ends
    scores: Array  #  (..., n_q, width)  scaled; -inf where there is no key
    weights: Array  # (..., n_q, width)
    out: Array  #     (..., n_q, d_v)

    @property
    def n_pairs(self) -> int:
        """How many pairs of a query and a key look at each other."""
        return int((self.keys >= 0).sum())

    @property
    def n_computed(self) -> int:
        """How many scores a head computed for it: a few past the ends come on top."""
        return self.keys.size


def window(
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    *,
    left: int,
    right: int = 0,
    dilation: int = 1,
    scale: float | None = None,
) -> Window:
    """Let every query look at its neighbours, computing only what it looks at.

    scores[i, c] = q_i k_j / sqrt(d_k), with j = p + dilation * (c - left) and
    p = n_k - n_q + i; out_i = sum over c of softmax(scores[i])_c v_j

    It equals `scaled_dot_product` under `masks.window` with the same arguments. A query
    without a key gets zeros.

    Args:
        q: queries, (..., n_q, d_k).
        k: keys, (..., n_k, d_k).
        v: values, (..., n_k, d_v).
        left: how many keys before its own position a query sees.
        right: how many keys after its own position a query sees.
        dilation: how far apart the keys stand that a query sees.
        scale: factor on the raw scores; 1 / sqrt(d_k) if left out.

    Returns:
        All stages, upright: keys, scores, weights (..., n_q, left + 1 + right) and out
        (..., n_q, d_v).

    Raises:
        ShapeError: q, k and v do not fit together, a size is negative, or the window
            is wider than the sequence.
        TypeError: an argument is not an array of numbers, or a size no whole number.

    Cost: 2 n_q w (d_k + d_v) FLOPs and 2 n_q w numbers, where w = left + 1 + right;
        n_k does not stand in it.
    Source: Beltagy et al. 2020 (Longformer), section 3.1.
    Lesson: 13.

    >>> result = window(np.zeros((3, 2)), np.zeros((3, 2)), np.eye(3), left=1)
    >>> result.keys.tolist(), result.weights.tolist()
    ([[-1, 0], [0, 1], [1, 2]], [[0.0, 1.0], [0.5, 0.5], [0.5, 0.5]])
    """
    q, k, v, scale = checked(q, k, v, scale)
    n_q, n_k = q.shape[-2], k.shape[-2]
    keys = neighbours(n_q, n_k, left, right, dilation)
    scores = upright_scores(q, k, keys, scale)
    weights = softmax(scores)
    return Window(keys, scores, weights, mix(weights, v, keys))


def neighbours(n_q: int, n_k: int, left: int, right: int, dilation: int = 1) -> Keys:
    """Which key the c-th neighbour of each query is, (n_q, width); -1 for none."""
    left, right = size("left", left), size("right", right)
    dilation = size("dilation", dilation, least=1)
    check_width(n_q, n_k, dilation, left=left, right=right)
    p = n_k - n_q + np.arange(n_q, dtype=np.int64)[:, None]
    keys = p + dilation * np.arange(-left, right + 1)
    return np.where((keys >= 0) & (keys < n_k), keys, -1)


def upright_scores(q: Array, k: Array, keys: Keys, scale: float) -> Array:
    """The band of the score matrix: one diagonal of it is one column here."""
    batch = np.broadcast_shapes(q.shape[:-2], k.shape[:-2])
    dtype = np.result_type(q, k)
    scores = np.full((*batch, *keys.shape), -np.inf, dtype)
    for column, which in enumerate(keys.T):
        there = which >= 0
        pairs = q[..., there, :] * k[..., which[there], :]
        scores[..., there, column] = pairs.sum(axis=-1) * scale
    return scores


def mix(weights: Array, v: Array, keys: Keys) -> Array:
    """The values, mixed with upright weights."""
    batch = np.broadcast_shapes(weights.shape[:-2], v.shape[:-2])
    out = np.zeros((*batch, len(keys), v.shape[-1]), np.result_type(weights, v))
    for column, which in enumerate(keys.T):
        there = which >= 0
        share = weights[..., there, column, None]
        out[..., there, :] += share * v[..., which[there], :]
    return out
