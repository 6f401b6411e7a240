"""A vector for each position, added to the token that stands there."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.positions.frequencies import Whole, falling, whole
from attnlib.shapes import Array, ShapeError, check_shapes, numbers, size


def sinusoidal(n: int, d_model: int, *, base: float = 10000.0) -> Array:
    """Give each position a fixed vector of sines and cosines.

    PE[pos, 2 i] = sin(pos w_i), PE[pos, 2 i + 1] = cos(pos w_i),
    where w_i = base^(-2 i / d_model)

    The sine and the cosine of a pair share one frequency. So two vectors have a dot
    product that depends on their distance alone (PE @ PE.T is Toeplitz), and a step
    of k tokens is one and the same rotation everywhere. With an odd d_model the last
    sine has no cosine: allowed, but both properties then hold without the last
    column only.

    Args:
        n: how many positions, from 0.
        d_model: how many numbers a token has.
        base: the last pair turns nearly `base` times slower than the first.

    Returns:
        The table, (n, d_model), float64.

    Raises:
        ShapeError: n is negative, or d_model below 1.
        TypeError: a size is not a whole number, or the base not one number.
        ValueError: the base is not above 1.

    Cost: n d_model sines or cosines; nothing to learn.
    Source: Vaswani et al. 2017, section 3.5.
    Lesson: 08.

    >>> sinusoidal(2, 4).round(4).tolist()
    [[0.0, 1.0, 0.0, 1.0], [0.8415, 0.5403, 0.01, 1.0]]
    """
    n, d_model = size("n", n), size("d_model", d_model, least=1)
    angles = np.arange(n)[:, None] * falling(d_model, base)  # (n, pairs)
    table = np.empty((n, d_model))
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles[:, : d_model // 2])
    return table


def look_up(table: npt.ArrayLike, positions: npt.ArrayLike) -> Array:
    """Fetch the learned vector of each position.

    vectors[..., i, :] = table[positions[..., i], :]

    A learned table has a row for each position it was trained on, and none beyond:
    it cannot extrapolate. NumPy would answer position -1 with the last row; here that
    is an error.

    Args:
        table: a row for each position, (n_rows, d_model).
        positions: whole numbers from 0 to n_rows - 1, (..., n).

    Returns:
        The vectors, (..., n, d_model).

    Raises:
        IndexError: a position has no row.
        ShapeError: the table does not have two axes.
        TypeError: the table is not an array of numbers, or the positions are not
            whole numbers.

    Cost: n d_model numbers copied; n_rows d_model numbers to learn.
    Source: Gehring et al. 2017, section 3.1; Vaswani et al. 2017, table 3, row E.
    Lesson: 08.

    >>> look_up([[1.0, 2.0], [3.0, 4.0]], [1, 1, 0]).tolist()
    [[3.0, 4.0], [3.0, 4.0], [1.0, 2.0]]
    """
    rows = _table("table", table)
    n_rows = len(rows)
    places = whole("positions", positions)
    wrong = (places < 0) | (places >= n_rows)
    if wrong.any():
        raise IndexError(
            f"position {places[wrong].flat[0]} has no row: the table has "
            f"n_rows={n_rows}, for positions from 0 on."
        )
    return np.asarray(rows[places])


def grid(rows: npt.ArrayLike, columns: npt.ArrayLike) -> Array:
    """Join a table of rows and a table of columns to a table of a picture's patches.

    table[r * n_columns + c] = [rows[r], columns[c]]

    The patches stand row by row. A patch's vector is two halves side by side, so two
    small tables serve: n_rows + n_columns rows instead of n_rows n_columns. Two
    tables of `sinusoidal` make a fixed one.

    Args:
        rows: a vector for each row of patches, (n_rows, d_row).
        columns: a vector for each column of patches, (n_columns, d_column).

    Returns:
        The table, (n_rows * n_columns, d_row + d_column).

    Raises:
        ShapeError: rows or columns do not have two axes.
        TypeError: rows or columns are not arrays of numbers.

    Cost: the numbers of the result.
    Source: Dosovitskiy et al. 2021 (ViT), appendix D.4.
    Lesson: 08.

    >>> grid([[1], [2]], [[7], [8], [9]]).tolist()
    [[1, 7], [1, 8], [1, 9], [2, 7], [2, 8], [2, 9]]
    """
    of_rows, of_columns = _table("rows", rows), _table("columns", columns)
    left = np.repeat(of_rows, len(of_columns), axis=0)
    right = np.tile(of_columns, (len(of_rows), 1))
    return np.concatenate([left, right], axis=1)


def count_positions(real_tokens: npt.ArrayLike) -> Whole:
    """Count each sequence's own positions, with its padding left out.

    positions[..., i] = max(0, #{j <= i : token j is real} - 1)

    With padding on the left, `arange(n)` would start a short sequence at a position
    above 0. That hurts learned tables and sinusoids. RoPE and ALiBi see distances
    only, so one shift of a whole sequence changes nothing there.

    Args:
        real_tokens: boolean, (..., n). True = a token, False = padding.

    Returns:
        The positions, (..., n), whole numbers. Padding gets a position that exists,
        so that a table can be asked; hide it with a mask.

    Raises:
        ShapeError: real_tokens has no axis.
        TypeError: real_tokens is not boolean.

    Cost: one pass.
    Source: the names of the course; transformers does the same for left padding.
    Lesson: 08.

    >>> count_positions([[False, False, True, True], [True] * 4]).tolist()
    [[0, 0, 0, 1], [0, 1, 2, 3]]
    """
    real_tokens = np.asarray(real_tokens)
    if real_tokens.dtype != np.bool_:
        raise TypeError(
            f"real_tokens must be boolean, but its dtype is {real_tokens.dtype}."
        )
    check_shapes({"real_tokens": (real_tokens, "n")})
    counted = np.cumsum(real_tokens, axis=-1, dtype=np.int64)
    return np.asarray(np.maximum(counted - 1, 0))


def _table(name: str, value: npt.ArrayLike) -> Array:
    table = numbers(name, value)
    if table.ndim != 2:
        raise ShapeError(f"{name} must have 2 axes, but its shape is {table.shape}.")
    return table
