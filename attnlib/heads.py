"""Many heads: cut the features into heads, attend in each, and join them again.

A head is a range of columns. Column c of q belongs to head c // d_k, because
`split_heads` cuts each token's features into n_heads pieces and then moves the axis
of the heads before the axis of the tokens. Without that move (a reshape alone), the
heads mix tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from attnlib.attention import scaled_dot_product
from attnlib.shapes import Array, ShapeError, check_shapes, numbers, size


@dataclass(frozen=True)
class MultiHead:
    """All stages of one call of `multi_head`, in the order of the formula."""

    q: Array  #          (..., n_heads, n_q, d_k)
    k: Array  #          (..., n_kv_heads, n_k, d_k)  what a cache keeps
    v: Array  #          (..., n_kv_heads, n_k, d_v)
    raw_scores: Array  # (..., n_heads, n_q, n_k)
    scores: Array  #     (..., n_heads, n_q, n_k)
    weights: Array  #    (..., n_heads, n_q, n_k)
    mixed: Array  #      (..., n_heads, n_q, d_v)
    out: Array  #        (..., n_q, d_model)  merge_heads(mixed) @ W_o


def split_heads(x: npt.ArrayLike, n_heads: int) -> Array:
    """Cut the features of every token into heads.

    split[..., h, i, c] = x[..., i, h * d + c]

    Args:
        x: tokens, (..., n, n_heads * d).
        n_heads: how many heads.

    Returns:
        The heads, (..., n_heads, n, d): a view of `x`, nothing is copied if `x` lies
        in memory in its own order.

    Raises:
        ShapeError: x has too few axes, or its features are no multiple of n_heads.
        TypeError: x is not an array of numbers, or n_heads not a whole number.

    Cost: none worth counting.
    Source: Vaswani et al. 2017, section 3.2.2.
    Lesson: 04.

    >>> split_heads([[1, 2, 3, 4], [5, 6, 7, 8]], 2).tolist()
    [[[1, 2], [5, 6]], [[3, 4], [7, 8]]]
    """
    n_heads = size("n_heads", n_heads, least=1)
    array = numbers("x", x)
    d_model = check_shapes({"x": (array, "n d_model")})["d_model"]
    if d_model % n_heads:
        raise ShapeError(f"d_model={d_model} is not a multiple of n_heads={n_heads}.")
    cut = array.reshape(*array.shape[:-1], n_heads, d_model // n_heads)
    return np.swapaxes(cut, -3, -2)


def merge_heads(x: npt.ArrayLike) -> Array:
    """Join the heads of every token again: `split_heads` undone.

    merged[..., i, h * d + c] = x[..., h, i, c]

    Args:
        x: heads, (..., n_heads, n, d).

    Returns:
        The tokens, (..., n, n_heads * d).

    Raises:
        ShapeError: x has too few axes.
        TypeError: x is not an array of numbers.

    Cost: one copy of x.
    Source: Vaswani et al. 2017, section 3.2.2.
    Lesson: 04.

    >>> merge_heads([[[1, 2], [5, 6]], [[3, 4], [7, 8]]]).tolist()
    [[1, 2, 3, 4], [5, 6, 7, 8]]
    """
    array = numbers("x", x)
    sizes = check_shapes({"x": (array, "n_heads n d")})
    by_token = np.swapaxes(array, -3, -2)
    width = sizes["n_heads"] * sizes["d"]
    return by_token.reshape(*by_token.shape[:-2], width)


def repeat_heads(x: npt.ArrayLike, n_heads: int) -> Array:
    """Hand each key or value head to a group of neighbouring query heads.

    repeated[..., h, i, c] = x[..., h // (n_heads // n_kv_heads), i, c]

    Args:
        x: keys or values, (..., n_kv_heads, n_k, d).
        n_heads: how many query heads there are.

    Returns:
        The heads, (..., n_heads, n_k, d).

    Raises:
        ShapeError: x has too few axes, or n_heads is no multiple of n_kv_heads.
        TypeError: x is not an array of numbers, or n_heads not a whole number.

    Cost: n_heads n_k d numbers, so that the formula stays plain; real kernels read
        the few heads again instead.
    Source: Ainslie et al. 2023 (GQA), section 2.2; Shazeer 2019 for one head.
    Lesson: 04.

    >>> repeat_heads([[[1.0]], [[2.0]]], 4).ravel().tolist()
    [1.0, 1.0, 2.0, 2.0]
    """
    n_heads = size("n_heads", n_heads, least=1)
    array = numbers("x", x)
    n_kv_heads = check_shapes({"x": (array, "n_kv_heads n_k d")})["n_kv_heads"]
    _group(n_heads, n_kv_heads)
    repeated = np.repeat(array, n_heads // n_kv_heads, axis=-3)
    return repeated


def multi_head(
    x: npt.ArrayLike,
    W_q: npt.ArrayLike,
    W_k: npt.ArrayLike,
    W_v: npt.ArrayLike,
    W_o: npt.ArrayLike,
    n_heads: int,
    *,
    n_kv_heads: int | None = None,
    memory: npt.ArrayLike | None = None,
    mask: npt.ArrayLike | None = None,
) -> MultiHead:
    """Attend with several heads at once, and mix their results with W_o.

    out = merge(softmax(q_h k_h^T / sqrt(d_k)) v_h for each head h) W_o

    With fewer key and value heads than query heads (`n_kv_heads`), neighbouring query
    heads share one: grouped-query attention, or multi-query attention with one.

    Args:
        x: the tokens that ask, (..., n_q, d_model).
        W_q: (d_model, n_heads * d_k).
        W_k: (d_memory, n_kv_heads * d_k).
        W_v: (d_memory, n_kv_heads * d_v). d_v may differ from d_k.
        W_o: (n_heads * d_v, d_model), or another width.
        n_heads: how many query heads.
        n_kv_heads: how many key and value heads; n_heads if left out.
        memory: the tokens that are looked at, (..., n_k, d_memory); x if left out.
        mask: boolean, broadcastable to (..., n_heads, n_q, n_k). True = may look.
            A mask that differs by batch needs an axis of 1 for the heads.

    Returns:
        All stages; `k` and `v` as they are before they are repeated.

    Raises:
        ShapeError: sizes that do not fit, named one by one.
        TypeError: an argument is not an array of numbers, or the mask not boolean.

    Cost: the products with W_q, W_k, W_v, W_o, and n_heads times the cost of
        `scaled_dot_product`; n_heads n_q n_k weights.
    Source: Vaswani et al. 2017, section 3.2.2; Ainslie et al. 2023 for groups.
    Lesson: 04.

    >>> x, W = np.eye(3, 4), np.eye(4)
    >>> stages = multi_head(x, W, W, W, W, n_heads=2)
    >>> stages.q.shape, stages.weights.shape, stages.out.shape
    ((2, 3, 2), (2, 3, 3), (3, 4))
    """
    n_heads = size("n_heads", n_heads, least=1)
    n_kv_heads = (
        n_heads if n_kv_heads is None else size("n_kv_heads", n_kv_heads, least=1)
    )
    _group(n_heads, n_kv_heads)
    x = numbers("x", x)
    memory = x if memory is None else numbers("memory", memory)
    W_q, W_k, W_v, W_o = _weights(x, memory, W_q, W_k, W_v, W_o, n_heads, n_kv_heads)
    q = split_heads(x @ W_q, n_heads)
    k = split_heads(memory @ W_k, n_kv_heads)
    v = split_heads(memory @ W_v, n_kv_heads)
    heads = scaled_dot_product(
        q, repeat_heads(k, n_heads), repeat_heads(v, n_heads), mask
    )
    out = merge_heads(heads.out) @ W_o
    return MultiHead(
        q, k, v, heads.raw_scores, heads.scores, heads.weights, heads.out, out
    )


def parameter_count(
    d_model: int,
    n_heads: int,
    *,
    n_kv_heads: int | None = None,
    d_k: int | None = None,
    d_v: int | None = None,
    bias: bool = False,
) -> int:
    """Count the numbers in W_q, W_k, W_v and W_o.

    d_model (n_heads d_k + n_kv_heads d_k + n_kv_heads d_v + n_heads d_v)

    With d_k = d_v = d_model / n_heads that is 4 d_model^2, however many heads.

    Args:
        d_model: how many numbers a token has.
        n_heads: how many query heads.
        n_kv_heads: how many key and value heads; n_heads if left out.
        d_k: numbers in a query or key of one head; d_model / n_heads if left out.
        d_v: numbers in a value of one head; d_k if left out.
        bias: whether each of the four products adds a vector.

    Returns:
        The count, an int; there is no array, hence no shape.

    Raises:
        ShapeError: d_model is no multiple of n_heads, n_heads none of n_kv_heads.
        TypeError: a size is not a whole number.

    Cost: none worth counting.
    Source: Vaswani et al. 2017, section 3.2.2.
    Lesson: 04.

    >>> parameter_count(8, n_heads=1), parameter_count(8, n_heads=4)
    (256, 256)
    >>> parameter_count(8, n_heads=4, n_kv_heads=1)
    160
    """
    d_model = size("d_model", d_model, least=1)
    n_heads = size("n_heads", n_heads, least=1)
    n_kv_heads = (
        n_heads if n_kv_heads is None else size("n_kv_heads", n_kv_heads, least=1)
    )
    _group(n_heads, n_kv_heads)
    if d_k is None:
        if d_model % n_heads:
            raise ShapeError(
                f"d_model={d_model} is not a multiple of n_heads={n_heads}."
            )
        d_k = d_model // n_heads
    d_k = size("d_k", d_k, least=1)
    d_v = d_k if d_v is None else size("d_v", d_v, least=1)
    wide = n_heads * d_k + n_kv_heads * (d_k + d_v)  # columns of W_q, W_k, W_v
    biases = wide + d_model if bias else 0
    return d_model * (wide + n_heads * d_v) + biases


def _group(n_heads: int, n_kv_heads: int) -> None:
    if n_kv_heads == 0 or n_heads % n_kv_heads:
        raise ShapeError(
            f"n_heads={n_heads} is not a multiple of n_kv_heads={n_kv_heads}."
        )


def _weights(
    x: Array,
    memory: Array,
    W_q: npt.ArrayLike,
    W_k: npt.ArrayLike,
    W_v: npt.ArrayLike,
    W_o: npt.ArrayLike,
    n_heads: int,
    n_kv_heads: int,
) -> list[Array]:
    """Read the four matrices, and raise where heads or tokens do not fit them."""
    given = {"W_q": W_q, "W_k": W_k, "W_v": W_v, "W_o": W_o}
    W = {name: numbers(name, matrix) for name, matrix in given.items()}
    for name, matrix in W.items():
        if matrix.ndim != 2:
            raise ShapeError(
                f"{name} must have 2 axes, but its shape is {matrix.shape}."
            )
    check_shapes({"x": (x, "n_q d_model"), "W_q": (W["W_q"], "d_model columns")})
    look, width = ("x", "d_model") if memory is x else ("memory", "d_memory")
    for name in ("W_k", "W_v"):
        check_shapes({look: (memory, f"n_k {width}"), name: (W[name], f"{width} c")})
    counts = {"n_heads": n_heads, "n_kv_heads": n_kv_heads}
    for name, heads in (("W_q", "n_heads"), ("W_v", "n_kv_heads")):
        columns, count = W[name].shape[1], counts[heads]
        if columns % count:
            raise ShapeError(
                f"{name} has {columns} columns, not a multiple of {heads}={count}."
            )
    d_k = W["W_q"].shape[1] // n_heads
    d_v = W["W_v"].shape[1] // n_kv_heads
    if W["W_k"].shape[1] != n_kv_heads * d_k:
        raise ShapeError(
            f"W_k has {W['W_k'].shape[1]} columns, but n_kv_heads={n_kv_heads} "
            f"heads of d_k={d_k} need {n_kv_heads * d_k}."
        )
    if W["W_o"].shape[0] != n_heads * d_v:
        raise ShapeError(
            f"W_o has {W['W_o'].shape[0]} rows, but n_heads={n_heads} heads of "
            f"d_v={d_v} need {n_heads * d_v}."
        )
    return list(W.values())
