"""Softmax attention to fewer keys: each stands for several of the sequence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from attnlib.attention import scaled_dot_product
from attnlib.lowrank.inputs import check_real, checked, floating
from attnlib.shapes import Array, Mask, check_shapes, numbers, size


@dataclass(frozen=True)
class ShortKeys:
    """All stages of attention to n_short keys instead of n_k."""

    k_short: Array  # (..., n_short, d_k)
    v_short: Array  # (..., n_short, d_v)
    scores: Array  #  (..., n_q, n_short)
    weights: Array  # (..., n_q, n_short)
    out: Array  #     (..., n_q, d_v)

    @property
    def n_pairs(self) -> int:
        """How many scores a head computed."""
        return int(self.scores.shape[-2] * self.scores.shape[-1])


def low_rank(
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    E_k: npt.ArrayLike,
    E_v: npt.ArrayLike | None = None,
    *,
    scale: float | None = None,
) -> ShortKeys:
    """Mix all keys down to a few with a learned matrix, and look at those.

    out = softmax(q (E_k k)^T / sqrt(d_k)) (E_v v)

    The matrix is as wide as the sequence is long: it fits one length only, mixes the
    future into every short key (it cannot be causal), and must be trained. One short
    key is a mixture of all tokens, so that a single token is hard to find again.

    Args:
        q: queries, (..., n_q, d_k).
        k: keys, (..., n_k, d_k).
        v: values, (..., n_k, d_v).
        E_k: how the keys are mixed, (n_short, n_k).
        E_v: the same for the values; E_k if left out.
        scale: factor on the raw scores; 1 / sqrt(d_k) if left out.

    Returns:
        All stages: k_short (..., n_short, d_k), v_short, scores and weights
        (..., n_q, n_short), out (..., n_q, d_v).

    Raises:
        ShapeError: q, k and v do not fit together, or a matrix is not (n_short, n_k).
        TypeError: an argument is not an array of numbers.

    Cost: 2 n_short (n_k + n_q) (d_k + d_v) FLOPs; 3 n_q n_short numbers kept.
    Source: Wang et al. 2020 (Linformer), equation 7.
    Lesson: 13.

    >>> k = np.array([[1.0], [3.0], [5.0]])
    >>> result = low_rank([[0.0]], k, k, [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    >>> result.k_short[:, 0].tolist(), result.out.tolist()
    ([2.0, 5.0], [[3.5]])
    """
    q, k, v = checked(q, k, v)
    E_v = E_k if E_v is None else E_v
    sizes = {"n_k": k.shape[-2]}
    check_shapes({"E_k": (E_k, "n_short n_k"), "E_v": (E_v, "n_short n_k")}, **sizes)
    k_short, v_short = numbers("E_k", E_k) @ k, numbers("E_v", E_v) @ v
    return _look(q, floating(k_short), floating(v_short), None, scale)


def pool(
    x: npt.ArrayLike, width: int, *, real: npt.ArrayLike | None = None
) -> tuple[Array, Mask]:
    """Average every `width` neighbouring tokens; the last piece may hold fewer.

    pooled[t] = mean of x[j] over the real j from t width to (t + 1) width - 1

    Args:
        x: tokens, (..., n, d).
        width: how many tokens a piece holds.
        real: boolean, broadcastable to (..., n): which tokens are no padding; all if
            left out. Padding does not count.

    Returns:
        The means, (..., n_pieces, d), zeros where a piece holds no real token; and
        which pieces hold one, (..., n_pieces).

    Raises:
        ShapeError: width is less than 1, or real does not fit.
        TypeError: x is not an array of numbers, or real is not boolean.

    Cost: n d additions.
    Source: average pooling, with the padding left out.
    Lesson: 13.

    >>> means, there = pool([[1.0], [3.0], [8.0]], 2)
    >>> means[:, 0].tolist(), there.tolist()
    ([2.0, 8.0], [True, True])
    """
    array = floating(numbers("x", x))
    n = check_shapes({"x": (array, "n d")})["n"]
    width = size("width", width, least=1)
    counted = check_real(real, "x", array)[..., None]
    starts = np.arange(0, n, width)
    if not len(starts):
        return array, np.ones(array.shape[:-1], bool)
    wide = np.float32 if array.dtype == np.float16 else array.dtype
    # where(), not a product: a NaN in the padding must not count either.
    kept = np.where(counted, array, 0).astype(wide, copy=False)
    totals = np.add.reduceat(kept, starts, axis=-2)
    how_many = np.add.reduceat(counted.astype(wide), starts, axis=-2)
    means = totals / np.maximum(how_many, 1)
    return means.astype(array.dtype, copy=False), how_many[..., 0] > 0


def pooled(
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    *,
    width: int,
    real: npt.ArrayLike | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> ShortKeys:
    """Look at the means of every few neighbouring keys, instead of at each.

    out = softmax(q pool(k)^T / sqrt(d_k)) pool(v)

    Args:
        q: queries, (..., n_q, d_k).
        k: keys, (..., n_k, d_k).
        v: values, (..., n_k, d_v).
        width: how many keys a piece holds; the last one may hold fewer.
        real: boolean, broadcastable to (..., n_k): which keys are no padding; all if
            left out.
        causal: look only at pieces whose last key does not come after the query. The
            first queries then see nothing and get zeros: combine it with a window.
        scale: factor on the raw scores; 1 / sqrt(d_k) if left out.

    Returns:
        All stages: k_short (..., n_pieces, d_k), v_short, scores and weights
        (..., n_q, n_pieces), out (..., n_q, d_v).

    Raises:
        ShapeError: q, k and v do not fit together, width is less than 1, or real does
            not fit.
        TypeError: an argument is not an array of numbers, or real is not boolean.

    Cost: 2 n_q n_k / width (d_k + d_v) FLOPs: still quadratic, with a smaller factor.
    Source: Liu et al. 2018 and Rae et al. 2019 compress so, the latter by mean pooling.
    Lesson: 13.

    >>> result = pooled([[0.0]], [[1.0], [3.0], [8.0]], [[1.0], [3.0], [8.0]], width=2)
    >>> result.weights.tolist(), result.out.tolist()
    ([[0.5, 0.5]], [[5.0]])
    """
    q, k, v = checked(q, k, v)
    k_short, there = pool(k, width, real=check_real(real, "k", k))
    v_short, _ = pool(v, width, real=check_real(real, "v", v))
    look = there[..., None, :]
    if causal:
        n_q, n_k = q.shape[-2], k.shape[-2]
        last = np.minimum((np.arange(k_short.shape[-2]) + 1) * width, n_k) - 1
        look = look & (last <= n_k - n_q + np.arange(n_q)[:, None])
    return _look(q, k_short, v_short, look, scale)


def memory_compressed(
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    C_k: npt.ArrayLike,
    C_v: npt.ArrayLike,
    *,
    stride: int | None = None,
    scale: float | None = None,
) -> ShortKeys:
    """Let a strided convolution make one key of every few, and look at those.

    k_short[t] = sum over w of k[t stride + w] C_k[w]; the same for v;
    out = softmax(q k_short^T / sqrt(d_k)) v_short

    Behind the last key there are zeros, as many as the last step needs, so that every
    key counts. Kernels of identity / width are average pooling.

    Args:
        q: queries, (..., n_q, d_k).
        k: keys, (..., n_k, d_k).
        v: values, (..., n_k, d_v).
        C_k: the kernel of the keys, (width, d_k, d_k): row vectors, k @ C_k[w].
        C_v: the kernel of the values, (width, d_v, d_v).
        stride: how far one step goes; width if left out.
        scale: factor on the raw scores; 1 / sqrt(d_k) if left out.

    Returns:
        All stages: k_short (..., n_short, d_k), v_short, scores and weights
        (..., n_q, n_short), out (..., n_q, d_v).

    Raises:
        ShapeError: q, k and v do not fit together, a kernel does not fit, or the stride
            is less than 1.
        TypeError: an argument is not an array of numbers.

    Cost: 2 n_q n_short (d_k + d_v) FLOPs for n_short = n_k / stride, and the
        convolutions: 2 n_short width (d_k^2 + d_v^2).
    Source: Liu et al. 2018, section 4.2.3 (width and stride 3).
    Lesson: 13.

    >>> one = np.ones((2, 1, 1))
    >>> k = np.array([[1.0], [3.0], [5.0]])
    >>> memory_compressed([[0.0]], k, k, one, one).k_short[:, 0].tolist()
    [4.0, 5.0]
    """
    q, k, v = checked(q, k, v)
    d_k, d_v = k.shape[-1], v.shape[-1]
    sizes = check_shapes({"C_k": (C_k, "width d_in d_out")}, d_in=d_k, d_out=d_k)
    width = size("width", sizes["width"], least=1)
    check_shapes({"C_v": (C_v, "width d_in d_out")}, width=width, d_in=d_v, d_out=d_v)
    stride = width if stride is None else size("stride", stride, least=1)
    k_short = _convolve(k, numbers("C_k", C_k), stride)
    v_short = _convolve(v, numbers("C_v", C_v), stride)
    return _look(q, k_short, v_short, None, scale)


def _convolve(x: Array, kernel: Array, stride: int) -> Array:
    n, width = x.shape[-2], len(kernel)
    n_short = 0 if n == 0 else -(-max(n - width, 0) // stride) + 1
    padded = np.zeros((*x.shape[:-2], n_short * stride + width, x.shape[-1]), x.dtype)
    padded[..., :n, :] = x[..., : padded.shape[-2], :]
    taps = [
        padded[..., w : w + n_short * stride : stride, :] @ kernel[w]
        for w in range(width)
    ]
    return floating(np.asarray(sum(taps)))


def _look(
    q: Array, k_short: Array, v_short: Array, look: Mask | None, scale: float | None
) -> ShortKeys:
    found = scaled_dot_product(q, k_short, v_short, look, scale=scale)
    return ShortKeys(k_short, v_short, found.scores, found.weights, found.out)
