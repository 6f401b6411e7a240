"""Attention inside pieces, then to their means; and the article's attempt at it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from attnlib.attention import scaled_dot_product
from attnlib.lowrank.inputs import check_real, floating
from attnlib.lowrank.short_keys import pool
from attnlib.shapes import Array, ShapeError, check_shapes, numbers, size


@dataclass(frozen=True)
class ArticlePooled:
    """All stages of one call of `article_pooled`."""

    queries: Array  # (..., n_out, d)  called `local_pooled` in the article
    weights: Array  # (..., n_out, n)
    out: Array  #     (..., n_out, d)

    @property
    def n_pairs(self) -> int:
        """How many scores a head computed."""
        return int(self.weights.shape[-2] * self.weights.shape[-1])


def article_pooled(x: npt.ArrayLike) -> ArticlePooled:
    """Do what the article's snippet for long sequences does, as it stands.

    queries[t] = mean of x[2 t], x[2 t + 1], x[2 t + 2]; out = attention(queries, x, x)

    The text promises attention inside pieces and then to the pooled results. The code
    pools the queries instead and looks at every token. So there is no local attention;
    half of all pairs are still computed; the result has half as many tokens as x, which
    fits no residual connection; of an even number of tokens the last is in no query;
    padding is averaged in; and a result sees what comes after it.

    Args:
        x: tokens, (..., n, d), at least 3 of them.

    Returns:
        All stages: queries (..., n_out, d), weights (..., n_out, n), out, where
        n_out = (n - 3) // 2 + 1.

    Raises:
        ShapeError: x has fewer than 3 tokens, where the snippet fails, too.
        TypeError: x is not an array of numbers.

    Cost: 4 n_out n d FLOPs, about half of full attention.
    Source: the article's `nn.AvgPool1d(kernel_size=3, stride=2)`.
    Lesson: 13.

    >>> result = article_pooled(np.arange(8.0)[:, None])
    >>> result.queries[:, 0].tolist(), result.out.shape
    ([1.0, 3.0, 5.0], (3, 1))
    """
    array = floating(numbers("x", x))
    n = check_shapes({"x": (array, "n d")})["n"]
    if n < 3:
        raise ShapeError(f"a pool of 3 tokens needs at least 3, but x has n={n}.")
    n_out = (n - 3) // 2 + 1
    taps = [array[..., first : first + 2 * n_out : 2, :] for first in range(3)]
    queries = np.asarray(sum(tap[..., :n_out, :] for tap in taps)) / 3
    found = scaled_dot_product(queries, array, array)
    return ArticlePooled(queries, found.weights, found.out)


@dataclass(frozen=True)
class Hierarchical:
    """All stages of one call of `hierarchical`."""

    local: Array  #   (..., n, d)         attention inside the pieces
    means: Array  #   (..., n_pieces, d)  of what it found
    weights: Array  # (..., n, n_pieces)  of every token on the pieces
    far: Array  #     (..., n, d)         attention to the means
    out: Array  #     (..., n, d)         local + far
    n_pairs: int  #   scores that a head computed


def hierarchical(
    x: npt.ArrayLike,
    *,
    width: int,
    real: npt.ArrayLike | None = None,
    causal: bool = False,
) -> Hierarchical:
    """Attend inside pieces, then from every token to the means of the pieces.

    local = attention of each piece to itself; means = pool(local);
    out = local + attention(local, means, means)

    It keeps what the article's text promises: every token gets a result, near tokens
    are seen one by one and far ones as means, padding counts nowhere.

    Args:
        x: tokens, (..., n, d).
        width: how many tokens a piece holds; the last one may hold fewer. The square
            root of n costs least.
        real: boolean, broadcastable to (..., n): which tokens are no padding; all if
            left out. Padding gets zeros.
        causal: hide what comes after a token: inside its piece, and pieces that end
            after it.

    Returns:
        All stages, as named in the class; out has a row for every token, (..., n, d).

    Raises:
        ShapeError: x has too few axes, width is less than 1 or real does not fit.
        TypeError: x is not an array of numbers, or real is not boolean.

    Cost: 4 n (width + n / width) d FLOPs: n^1.5 with width = sqrt(n).
    Source: the article's sentence, taken at its word; Yang et al. 2016 for the idea.
    Lesson: 13.

    >>> result = hierarchical(np.arange(5.0)[:, None], width=2)
    >>> result.means.shape, result.out.shape, result.n_pairs
    ((3, 1), (5, 1), 27)
    """
    array = floating(numbers("x", x))
    n = check_shapes({"x": (array, "n d")})["n"]
    width = size("width", width, least=1)
    counted = check_real(real, "x", array)
    # Full pieces of equal length, so that all are one product.
    n_pieces = -(-n // width)
    padded = np.zeros((*array.shape[:-2], n_pieces * width, array.shape[-1]))
    padded[..., :n, :] = np.where(counted[..., None], array, 0)
    there = np.zeros(padded.shape[:-1], bool)
    there[..., :n] = counted
    pieces = padded.astype(array.dtype).reshape(
        *array.shape[:-2], n_pieces, width, array.shape[-1]
    )
    inside = there.reshape(*there.shape[:-1], n_pieces, width)
    look = inside[..., :, None] & inside[..., None, :]
    if causal:
        look &= np.tri(width, dtype=bool)
    found = scaled_dot_product(pieces, pieces, pieces, look).out
    local = found.reshape(padded.shape)[..., :n, :]
    means, some = pool(local, width, real=counted)
    see = counted[..., :, None] & some[..., None, :]
    if causal:
        ends = np.minimum((np.arange(n_pieces) + 1) * width, n) - 1
        see &= ends <= np.arange(n)[:, None]
    far = scaled_dot_product(local, means, means, see)
    n_pairs = n_pieces * width**2 + n * n_pieces
    return Hierarchical(local, means, far.weights, far.out, local + far.out, n_pairs)
