"""Keep scores from growing until softmax gives everything to one key.

Each of these bounds the scores, or says what a bound on them is worth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from attnlib.shapes import Array, check_shapes, numbers, size


@dataclass(frozen=True)
class NormedScores:
    """All stages of one call of `qk_norm`."""

    q: Array  #      (..., n_q, d_k)  of length 1
    k: Array  #      (..., n_k, d_k)  of length 1
    scores: Array  # (..., n_q, n_k)  scale times their cosine


def softcap(scores: npt.ArrayLike, cap: float) -> Array:
    """Bend scores so that none leaves the range from -cap to cap.

    cap tanh(scores / cap)

    Small scores stay what they are, and large ones keep their order and a gradient,
    unlike clipped ones. Cap first, then mask: -inf becomes -cap, and a key that was
    hidden is back.

    Args:
        scores: scaled and not yet masked, (..., n_q, n_k).
        cap: the largest size of a score; Gemma 2 has 50.

    Returns:
        The capped scores, the same shape as `scores`.

    Raises:
        TypeError: scores are not an array of numbers.
        ValueError: cap is not larger than 0 and finite.

    Cost: 2 FLOPs and 1 tanh a score.
    Source: Gemma Team 2024 (Gemma 2), section 2; Bello et al. 2016.
    Lesson: 09.

    >>> softcap([0.5, 60.0, 55.0], 50.0).round(2).tolist()
    [0.5, 41.68, 40.02]
    """
    z = _floating(numbers("scores", scores))
    cap = float(cap)
    if not 0 < cap < np.inf:
        raise ValueError(f"cap must be larger than 0 and finite, but it is {cap}.")
    return np.asarray(cap * np.tanh(z / cap))


def qk_norm(q: npt.ArrayLike, k: npt.ArrayLike, scale: float) -> NormedScores:
    """Give queries and keys length 1, so that only their directions make the score.

    scores = scale (q / |q|) (k / |k|)^T

    No score is larger than the scale, however large W_q and W_k grow. The norm is
    taken in each head, over d_k. The scale stands in for 1 / sqrt(d_k) and is learned;
    without one, scores lie between -1 and 1 and the weights stay nearly even. A query
    of zeros stays zeros.

    Args:
        q: queries, (..., n_q, d_k).
        k: keys, (..., n_k, d_k).
        scale: the factor on the cosine, learned in a model.

    Returns:
        The normed q and k, and the scores, (..., n_q, n_k).

    Raises:
        ShapeError: q and k differ in d_k.
        TypeError: q or k is not an array of numbers.

    Cost: 2 n_q n_k d_k FLOPs for the scores, 3 d_k (n_q + n_k) for the norms.
    Source: Henry et al. 2020.
    Lesson: 09.

    >>> qk_norm([[3.0, 4.0]], [[30.0, 40.0], [4.0, 3.0]], 10.0).scores.round(4).tolist()
    [[10.0, 9.6]]
    """
    check_shapes({"q": (q, "n_q d_k"), "k": (k, "n_k d_k")})
    q, k = _unit(numbers("q", q)), _unit(numbers("k", k))
    return NormedScores(q, k, float(scale) * (q @ np.swapaxes(k, -1, -2)))


def entropy_bound(sigma: npt.ArrayLike, n: int) -> Array:
    """Give the least entropy that n scores of norm sigma can have, in nats.

    ln(1 + (n - 1) b) + sigma sqrt(n (n - 1)) b / (1 + (n - 1) b),
    where b = exp(-sigma sqrt(n / (n - 1)))

    It is reached by one score of sigma sqrt((n - 1) / n) and n - 1 equal ones of
    -sigma / sqrt(n (n - 1)). Small scores keep attention spread out; large ones may
    still be spread out, they only need not be.

    Args:
        sigma: a bound on the norm of a row of scores, (...).
        n: how many keys.

    Returns:
        The bound, (...): ln n for sigma = 0, towards 0 for large sigma.

    Raises:
        TypeError: sigma is not an array of numbers, or n not a whole number.
        ShapeError: n is smaller than 1.
        ValueError: a sigma is negative.

    Cost: 2 exponentials and logarithms a sigma.
    Source: Zhai et al. 2023 (sigmaReparam), theorem 3.1.
    Lesson: 09.

    >>> entropy_bound([0.0, 1.0, 3.0, 6.0, 12.0], 16).round(4).tolist()
    [2.7726, 2.7168, 1.7675, 0.2137, 0.0008]
    """
    n = size("n", n, least=1)
    s = np.asarray(numbers("sigma", sigma), np.float64)
    if (s < 0).any():
        raise ValueError(f"sigma must be at least 0, but one is {s.min()}.")
    if n == 1:
        return np.zeros_like(s)  # one key has all the weight
    b = np.exp(-s * np.sqrt(n / (n - 1)))
    rest = (n - 1) * b
    return np.asarray(np.log1p(rest) + s * np.sqrt(n * (n - 1)) * b / (1 + rest))


def sigma_reparam(W: npt.ArrayLike, gamma: float = 1.0) -> Array:
    """Divide a weight matrix by its spectral norm, and let one number set that norm.

    gamma W / ||W||_2, where ||W||_2 is the largest singular value

    With ||W_q||_2 and ||W_k||_2 held, the scores are held too, and `entropy_bound`
    says what that is worth. A model learns W and gamma, and finds the norm by power
    iteration; here it is computed exactly. A matrix of zeros stays zeros.

    Args:
        W: weights, (..., d_in, d_out).
        gamma: the spectral norm of the result, learned in a model.

    Returns:
        The weights with that norm, the same shape as `W`.

    Raises:
        ShapeError: W has fewer than two axes.
        TypeError: W is not an array of numbers.

    Cost: a singular value decomposition, about 4 d_in d_out min(d_in, d_out) FLOPs.
    Source: Zhai et al. 2023, section 3.
    Lesson: 09.

    >>> sigma_reparam([[3.0, 0.0], [0.0, 4.0]], gamma=2.0).tolist()
    [[1.5, 0.0], [0.0, 2.0]]
    """
    check_shapes({"W": (W, "d_in d_out")})
    weight = _floating(numbers("W", W))
    wide = weight.astype(np.result_type(weight.dtype, np.float32))
    if weight.size == 0:  # NumPy 2.2 knows no norm of nothing
        return wide.astype(weight.dtype)
    norm = np.linalg.norm(wide, ord=2, axis=(-2, -1), keepdims=True)
    scaled = float(gamma) * (wide / np.where(norm == 0, 1, norm))
    return np.asarray(scaled).astype(weight.dtype, copy=False)


def _unit(vectors: Array) -> Array:
    vectors = _floating(vectors)
    # Squares overflow long before the numbers do; those of numbers up to 1 never.
    largest = np.abs(vectors).max(axis=-1, keepdims=True, initial=0)
    wide = np.result_type(vectors.dtype, np.float32)
    even = vectors.astype(wide) / np.where(largest == 0, 1, largest)
    length = np.sqrt((even**2).sum(axis=-1, keepdims=True))
    return np.asarray(even / np.where(length == 0, 1, length)).astype(vectors.dtype)


def _floating(array: Array) -> Array:
    """Whole numbers and truth values become float64; floats keep their type."""
    return array if array.dtype.kind == "f" else array.astype(np.float64)
