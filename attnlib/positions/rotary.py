"""RoPE: turn each pair of features by an angle that grows with the position.

Two turned vectors have a dot product that depends on the difference of their
positions alone. Queries and keys are turned, values are not, and a cached key is
turned once, at the position where its own token stands.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from attnlib.positions.frequencies import Whole, falling
from attnlib.shapes import Array, ShapeError, check_shapes, numbers, size

Layout = Literal["interleaved", "half"]


def rope_frequencies(d: int, base: float = 10000.0) -> Array:
    """Say by how many radians each pair turns from one token to the next.

    w_i = base^(-2 i / d)

    Args:
        d: features of one head that are turned; even.
        base: the last pair turns nearly `base` times slower than the first.

    Returns:
        The frequencies, (d / 2), from 1 falling towards 1 / base.

    Raises:
        ShapeError: d is odd or below 2.
        TypeError: d is not a whole number, or the base not one number.
        ValueError: the base is not above 1.

    Cost: none worth counting.
    Source: Su et al. 2021 (RoFormer), section 3.2.2.
    Lesson: 08.

    >>> rope_frequencies(4).tolist()
    [1.0, 0.01]
    """
    return falling(even(d), base)


def rope(
    x: npt.ArrayLike,
    positions: npt.ArrayLike,
    *,
    base: float = 10000.0,
    layout: Layout = "interleaved",
    frequencies: npt.ArrayLike | None = None,
) -> Array:
    """Turn every pair of features by its frequency times the token's position.

    (a, b) of pair i -> (a cos t - b sin t, a sin t + b cos t), where t = position w_i

    Lengths stay as they are, position 0 changes nothing, and `rope(x, -positions)`
    turns back (which also is the gradient: the transpose of a rotation). Angles are
    computed in float64 whatever the type of x.

    Args:
        x: queries or keys, (..., n, d); d is even.
        positions: where each token stands, (n); or with as many axes as x has before
            d, such as (batch, 1, n) for x of (batch, n_heads, n, d). Not
            (batch, n), which would be taken for heads where the two counts agree.
        base: for `rope_frequencies`; without effect if `frequencies` are given.
        layout: which features are a pair: "interleaved" is 2 i and 2 i + 1, "half" is
            i and i + d / 2.
        frequencies: radians a token for each pair, (d / 2), such as
            `yarn_frequencies` gives.

    Returns:
        The turned x, the same shape and float type.

    Raises:
        ShapeError: d is odd, or sizes do not fit, named one by one.
        TypeError: an argument is not an array of numbers.
        ValueError: there is no such layout, or the base is not above 1.

    Cost: 3 FLOPs a feature, and d / 2 sines and cosines a position.
    Source: Su et al. 2021 (RoFormer), equations 15 and 34; "half" as in GPT-NeoX.
    Lesson: 08.

    >>> quarter = [np.pi / 2]
    >>> rope([[1.0, 0.0]], [1], frequencies=quarter).round(6).tolist()
    [[0.0, 1.0]]
    >>> rope([[3.0, 4.0]], [0]).tolist()
    [[3.0, 4.0]]
    """
    x, places = numbers("x", x), numbers("positions", positions)
    if layout not in ("interleaved", "half"):
        raise ValueError(
            f"layout must be 'interleaved' or 'half', but it is {layout!r}."
        )
    if places.dtype.kind == "b":
        raise TypeError("positions must be numbers, but their dtype is bool.")
    d = check_shapes({"x": (x, "n d"), "positions": (places, "n")})["d"]
    _check_batch(x, places)
    half = even(d) // 2
    if frequencies is None:
        turns = rope_frequencies(d, base)
    else:
        turns = numbers("frequencies", frequencies)
        if turns.shape != (half,):
            raise ShapeError(
                f"frequencies must have shape ({half},), one for each pair of d={d}, "
                f"but their shape is {turns.shape}."
            )
    x = x if x.dtype.kind == "f" else x.astype(np.float64)
    angles = places[..., None].astype(np.float64) * turns  # (..., n, d / 2)
    cos, sin = np.cos(angles), np.sin(angles)
    pairs = _pairs(x, layout)
    a, b = pairs[..., 0, :], pairs[..., 1, :]
    turned = np.stack([a * cos - b * sin, a * sin + b * cos], axis=-2)
    if layout == "interleaved":
        turned = np.swapaxes(turned, -1, -2)
    return np.asarray(turned.reshape(x.shape).astype(x.dtype, copy=False))


def half_order(d: int) -> Whole:
    """List the features in the order that turns "interleaved" into "half".

    order = 0, 2, 4, ..., 1, 3, 5, ...

    rope(x[..., order], layout="half") == rope(x, layout="interleaved")[..., order]

    Args:
        d: features of one head; even.

    Returns:
        The order, (d), whole numbers: `x[..., half_order(d)]`.

    Raises:
        ShapeError: d is odd or below 2.
        TypeError: d is not a whole number.

    Cost: none worth counting.
    Source: the conversion of Llama's weights in transformers.
    Lesson: 08.

    >>> half_order(6).tolist()
    [0, 2, 4, 1, 3, 5]
    """
    return np.arange(even(d)).reshape(-1, 2).T.ravel()


def interleaved_order(d: int) -> Whole:
    """List the features in the order that turns "half" into "interleaved".

    order = 0, d/2, 1, d/2 + 1, ..., the inverse of `half_order`

    Args:
        d: features of one head; even.

    Returns:
        The order, (d), whole numbers: `x[..., interleaved_order(d)]`.

    Raises:
        ShapeError: d is odd or below 2.
        TypeError: d is not a whole number.

    Cost: none worth counting.
    Source: llama.cpp converts the weights from transformers this way.
    Lesson: 08.

    >>> interleaved_order(6).tolist()
    [0, 3, 1, 4, 2, 5]
    """
    return np.arange(even(d)).reshape(2, -1).T.ravel()


def change_layout(x: npt.ArrayLike, to: Layout, n_heads: int = 1) -> Array:
    """Reorder features, or the columns of weights, for the other layout of RoPE.

    changed[..., h * d + c] = x[..., h * d + order[c]]

    Applied to W_q and W_k alike, the scores stay what they were with the other
    layout. Applied to one of the two, or to W_v, they do not.

    Args:
        x: features (..., n_heads * d), weights W_q or W_k (d_model, n_heads * d), or
            a bias (n_heads * d). PyTorch stores weights the other way: give `W.T`.
        to: "half" for what is "interleaved" now, "interleaved" for what is "half".
        n_heads: into how many heads the last axis is cut. For W_k that is n_kv_heads.

    Returns:
        The same numbers in another order, in the shape of x.

    Raises:
        ShapeError: x has no axis, its last one is no multiple of n_heads, or d is odd.
        TypeError: x is not an array of numbers, or n_heads not a whole number.
        ValueError: there is no such layout.

    Cost: one copy of x.
    Source: the conversion of Llama's weights in transformers.
    Lesson: 08.

    >>> change_layout([0, 1, 2, 3, 4, 5, 6, 7], "half", n_heads=2).tolist()
    [0, 2, 1, 3, 4, 6, 5, 7]
    """
    x, n_heads = numbers("x", x), size("n_heads", n_heads, least=1)
    if to not in ("interleaved", "half"):
        raise ValueError(f"to must be 'interleaved' or 'half', but it is {to!r}.")
    width = check_shapes({"x": (x, "width")})["width"]
    if width % n_heads:
        raise ShapeError(
            f"the last axis of x, {width}, is not a multiple of n_heads={n_heads}."
        )
    d = width // n_heads
    order = half_order(d) if to == "half" else interleaved_order(d)
    heads = x.reshape(*x.shape[:-1], n_heads, d)
    return np.asarray(heads[..., order].reshape(x.shape))


def even(d: int) -> int:
    """d as a size, or an error: pairs need an even number of features."""
    d = size("d", d, least=2)
    if d % 2:
        raise ShapeError(f"d={d} is odd, but RoPE turns features in pairs.")
    return d


def _pairs(x: Array, layout: Layout) -> Array:
    """(..., d) as (..., 2, d / 2): the first of every pair, then the second."""
    if layout == "half":
        return x.reshape(*x.shape[:-1], 2, x.shape[-1] // 2)
    return np.swapaxes(x.reshape(*x.shape[:-1], x.shape[-1] // 2, 2), -1, -2)


def _check_batch(x: Array, positions: npt.NDArray[np.generic]) -> None:
    """One row of positions for all, or as many axes as x has before d."""
    before = x.shape[:-1]
    fits = positions.ndim in (1, len(before)) and all(
        found in (1, wanted)
        for found, wanted in zip(positions.shape[::-1], before[::-1], strict=False)
    )
    if not fits:
        raise ShapeError(
            f"positions with shape {positions.shape} do not fit x with shape "
            f"{x.shape}: they need the shape (n) or as many axes as x has before d, "
            "with an axis of 1 for the heads."
        )
