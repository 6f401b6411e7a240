"""Which pairs of a query and a key are computed: all, the past, or a window."""

from __future__ import annotations

from attnlib.shapes import size


def allowed_pairs(
    n_q: int,
    n_k: int | None = None,
    *,
    causal: bool = False,
    left: int | None = None,
    right: int | None = None,
) -> int:
    """Count the pairs of a query and a key that a mask of positions leaves.

    sum_i |{j: p - left <= j <= p + right}|, where p = n_k - n_q + i

    Args:
        n_q: how many queries.
        n_k: how many keys; n_q if left out.
        causal: hide what comes after a query; the same as right=0.
        left: how many keys before itself a query may see; all if left out.
        right: how many keys after itself; all if left out.

    Returns:
        The count, an int; there is no array, hence no shape.

    Raises:
        ShapeError: a size is negative.
        TypeError: a size is not a whole number.

    Cost: n_q steps.
    Source: the alignment of `attnlib.masks`.
    Lesson: 11.

    >>> allowed_pairs(4), allowed_pairs(4, causal=True)
    (16, 10)
    >>> allowed_pairs(4, left=1, right=0)
    7
    """
    n_q = size("n_q", n_q)
    n_k = n_q if n_k is None else size("n_k", n_k)
    before = n_k + n_q if left is None else size("left", left)
    after = n_k + n_q if right is None else size("right", right)
    after = 0 if causal else after
    pairs = 0
    for position in range(n_k - n_q, n_k):
        first, last = max(0, position - before), min(n_k - 1, position + after)
        pairs += max(0, last - first + 1)
    return pairs


def causal_share(n_q: int, n_k: int | None = None) -> float:
    """Give the share of all pairs that a causal mask leaves.

    (n + 1) / (2 n) for n_q = n_k = n: a little more than half

    Args:
        n_q: how many queries.
        n_k: how many keys; n_q if left out.

    Returns:
        A share from 0 to 1; there is no array, hence no shape.

    Raises:
        ShapeError: a size is less than 1.
        TypeError: a size is not a whole number.

    Cost: n_q steps.
    Source: the alignment of `attnlib.masks`.
    Lesson: 11.

    >>> causal_share(4), causal_share(1, 4)
    (0.625, 1.0)
    """
    n_q = size("n_q", n_q, least=1)
    n_k = n_q if n_k is None else size("n_k", n_k, least=1)
    return allowed_pairs(n_q, n_k, causal=True) / (n_q * n_k)
