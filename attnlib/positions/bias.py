"""A number for each distance, added to the scaled scores before the softmax.

Nothing is added to the tokens, so the values stay free of positions. The bias goes
where the mask goes: softmax(q k^T / sqrt(d_k) + bias).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.positions.frequencies import Whole, whole
from attnlib.shapes import Array, ShapeError, check_shapes, numbers, size


def distances(n_q: int, n_k: int | None = None) -> Whole:
    """Say how far each key stands behind (-) or ahead of (+) each query.

    distance[i, j] = j - (n_k - n_q + i)

    Args:
        n_q: how many queries.
        n_k: how many keys; n_q if left out.

    Returns:
        The distances, (n_q, n_k), whole numbers.

    Raises:
        ShapeError: a size is negative.
        TypeError: a size is not a whole number.

    Cost: n_q n_k numbers.
    Source: the names of the course; bottom-right, as in `masks.causal`.
    Lesson: 08.

    >>> distances(2, 3).tolist()
    [[-1, 0, 1], [-2, -1, 0]]
    """
    n_q = size("n_q", n_q)
    n_k = n_q if n_k is None else size("n_k", n_k)
    q_positions = n_k - n_q + np.arange(n_q, dtype=np.int64)
    return np.arange(n_k, dtype=np.int64) - q_positions[:, None]


def alibi_slopes(n_heads: int) -> Array:
    """Give each head its slope: how fast distance costs score.

    m_h = 2^(-8 (h + 1) / n_heads), h = 0, 1, ..., for 1, 2, 4, 8, ... heads

    For other counts the reference takes the slopes of the power of two below, p, and
    then every other slope of 2 p heads. They do not fall from head to head, and they
    are not the formula above with n_heads put in: a checkpoint needs these.

    Args:
        n_heads: how many heads; any number from 1.

    Returns:
        The slopes, (n_heads).

    Raises:
        ShapeError: n_heads is below 1.
        TypeError: n_heads is not a whole number.

    Cost: none worth counting.
    Source: Press et al. 2022, section 3, and the authors' code for other counts.
    Lesson: 08.

    >>> alibi_slopes(4).tolist()
    [0.25, 0.0625, 0.015625, 0.00390625]
    >>> alibi_slopes(6).round(4).tolist()  # those of 4, then 2 of those of 8
    [0.25, 0.0625, 0.0156, 0.0039, 0.5, 0.125]
    """
    n_heads = size("n_heads", n_heads, least=1)
    below = 1 << (n_heads.bit_length() - 1)  # the power of two at or below n_heads
    first = _even_slopes(below)
    between = _even_slopes(2 * below)[0::2]
    return np.concatenate([first, between[: n_heads - below]])


def alibi_bias(n_heads: int, n_q: int, n_k: int | None = None) -> Array:
    """Take a slope times the distance off every score.

    bias[h, i, j] = -m_h |j - (n_k - n_q + i)|

    Keys behind and ahead cost the same; a causal decoder hides those ahead with its
    mask. The reference adds m_h j instead, which differs by a constant in each row
    among the keys a causal query sees, so its weights are the same.

    Args:
        n_heads: how many heads.
        n_q: how many queries.
        n_k: how many keys; n_q if left out.

    Returns:
        The bias, (n_heads, n_q, n_k): added to scaled scores (batch, n_heads, n_q,
        n_k) as it is.

    Raises:
        ShapeError: n_heads is below 1, or a size negative.
        TypeError: a size is not a whole number.

    Cost: n_heads n_q n_k numbers; nothing to learn.
    Source: Press et al. 2022, section 3.
    Lesson: 08.

    >>> alibi_bias(2, 1, 3)[0].tolist()  # the first head's slope is 1 / 16
    [[-0.125, -0.0625, 0.0]]
    """
    slopes = alibi_slopes(n_heads)
    # Adding 0 turns the -0 on the diagonal into 0.
    return np.asarray(-slopes[:, None, None] * np.abs(distances(n_q, n_k)) + 0.0)


def relative_buckets(
    n_q: int,
    n_k: int | None = None,
    *,
    n_buckets: int = 32,
    max_distance: int = 128,
    bidirectional: bool = True,
) -> Whole:
    """Sort distances into buckets, fine near the query and coarse far away.

    bucket = distance, for the near half of the buckets, e = side / 2; from there on
    bucket = e + floor((side - e) ln(distance / e) / ln(max_distance / e)),
    and never above side - 1

    `side` is n_buckets, or half of it if bidirectional: then keys ahead of the query
    have the second half for themselves. If not, all keys ahead share bucket 0 with
    the query's own position, and a mask hides them.

    Args:
        n_q: how many queries.
        n_k: how many keys; n_q if left out.
        n_buckets: how many buckets.
        max_distance: from about here on, all distances share the last bucket.
        bidirectional: whether keys ahead have buckets of their own.

    Returns:
        The buckets, (n_q, n_k), whole numbers from 0 to n_buckets - 1.

    Raises:
        ShapeError: a size is negative, there are too few buckets or an odd number of
            them for two sides, or max_distance ends inside the near half.
        TypeError: a size is not a whole number.

    Cost: n_q n_k numbers.
    Source: Raffel et al. 2020 (T5), section 2.1, and the authors' code.
    Lesson: 08.

    >>> relative_buckets(1, 8, n_buckets=8, max_distance=16).tolist()
    [[3, 3, 2, 2, 2, 2, 1, 0]]
    """
    n_buckets = size("n_buckets", n_buckets, least=4 if bidirectional else 2)
    if bidirectional and n_buckets % 2:
        raise ShapeError(f"n_buckets={n_buckets} does not halve into two sides.")
    side = n_buckets // 2 if bidirectional else n_buckets
    edges = _edges(side, size("max_distance", max_distance))
    ahead = distances(n_q, n_k)
    behind = np.abs(ahead) if bidirectional else np.maximum(-ahead, 0)
    bucket = np.searchsorted(edges, behind, side="right")
    return np.asarray(bucket + (side * (ahead > 0) if bidirectional else 0), np.int64)


def clipped_distances(n_q: int, n_k: int | None = None, *, max_distance: int) -> Whole:
    """Give every distance up to a limit a bucket of its own.

    bucket[i, j] = min(max(distance[i, j], -max_distance), max_distance) + max_distance

    Args:
        n_q: how many queries.
        n_k: how many keys; n_q if left out.
        max_distance: farther keys share the bucket of this distance, on each side.

    Returns:
        The buckets, (n_q, n_k), whole numbers from 0 to 2 max_distance.

    Raises:
        ShapeError: a size is negative.
        TypeError: a size is not a whole number.

    Cost: n_q n_k numbers.
    Source: Shaw et al. 2018, section 3.2 (who look up vectors, not one number).
    Lesson: 08.

    >>> clipped_distances(1, 4, max_distance=2).tolist()
    [[0, 0, 1, 2]]
    """
    limit = size("max_distance", max_distance)
    return np.asarray(np.clip(distances(n_q, n_k), -limit, limit) + limit)


def relative_bias(table: npt.ArrayLike, buckets: npt.ArrayLike) -> Array:
    """Look up the learned number of each head for each pair of query and key.

    bias[h, i, j] = table[buckets[i, j], h]

    Args:
        table: a number for each bucket and head, (n_buckets, n_heads), as T5 stores it.
        buckets: (n_q, n_k), from `relative_buckets` or `clipped_distances`.

    Returns:
        The bias, (n_heads, n_q, n_k).

    Raises:
        IndexError: a bucket has no row in the table.
        ShapeError: table or buckets do not have two axes.
        TypeError: the table is not an array of numbers, or buckets are not whole.

    Cost: n_heads n_q n_k numbers; n_buckets n_heads numbers to learn.
    Source: Raffel et al. 2020 (T5), section 2.1.
    Lesson: 08.

    >>> relative_bias([[0.0, 5.0], [1.0, 6.0]], [[1, 0]]).tolist()
    [[[1.0, 0.0]], [[6.0, 5.0]]]
    """
    rows, places = numbers("table", table), whole("buckets", buckets)
    for name, array in (("table", rows), ("buckets", places)):
        if array.ndim != 2:
            raise ShapeError(
                f"{name} must have 2 axes, but its shape is {array.shape}."
            )
    n_buckets = check_shapes({"table": (rows, "n_buckets n_heads")})["n_buckets"]
    wrong = (places < 0) | (places >= n_buckets)
    if wrong.any():
        raise IndexError(
            f"bucket {places[wrong].flat[0]} has no row: the table has "
            f"n_buckets={n_buckets}."
        )
    return np.asarray(np.moveaxis(rows[places], -1, 0))


def _even_slopes(n_heads: int) -> Array:
    """The slopes of a power of two: 2^(-8/n), its square, its cube, ..."""
    return np.asarray(2.0 ** (-8.0 * np.arange(1, n_heads + 1) / n_heads))


def _edges(side: int, max_distance: int) -> list[int]:
    """The distance at which each bucket from 1 on begins: a bucket is a count of edges.

    Whole numbers throughout. The logarithm of the formula can land just below a whole
    number, and then puts a distance into the bucket before its own.
    """
    near = side // 2
    if max_distance <= near:
        raise ShapeError(
            f"max_distance={max_distance} must be above {near}, where the buckets of "
            "one distance each end."
        )
    far = side - near
    edges = list(range(1, near + 1))
    distance = near
    for j in range(1, far):
        # distance >= near (max_distance / near)^(j / far), without a root
        while distance**far < near ** (far - j) * max_distance**j:
            distance += 1
        edges.append(distance)
    return edges
