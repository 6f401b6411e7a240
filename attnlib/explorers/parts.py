"""`matrix`, `bars`, `histogram`, `note`: from arrays to the panels of a figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import get_args

import numpy as np
import numpy.typing as npt

from attnlib.explorers.cells import Colour
from attnlib.explorers.numbers import labels as texts
from attnlib.explorers.numbers import rounded, table
from attnlib.explorers.panels import Bars, Histogram, Matrix, Note
from attnlib.shapes import ShapeError

MAX_CELLS = 400


def matrix(
    values: npt.ArrayLike,
    *,
    rows: Sequence[object] | None = None,
    columns: Sequence[object] | None = None,
    title: str,
    digits: int = 2,
    colour: Colour = "weights",
    marked: Iterable[tuple[int, int]] = (),
    groups: npt.ArrayLike | None = None,
    maximum: float | None = None,
    numbers: bool = True,
) -> Matrix:
    """A table of numbers coloured by value, or a picture of coloured squares.

    Args:
        values: (n_rows, n_columns), at most 400 numbers.
        rows, columns: labels; 0, 1, 2, ... if left out.
        title: the caption.
        digits: decimals shown, and kept.
        colour: "weights" from 0 up, "signed" around 0, "mask" for True and False,
            "groups" by `groups`, "none".
        marked: cells with a frame, as (row, column).
        groups: whole numbers 0 to 7, the shape of `values`, for colour="groups".
        maximum: the value with the full colour; the largest of all states if left out.
        numbers: False shows small squares alone, without numbers and labels, as the
            pixels of a picture. Marked cells, a rectangle, get one frame.

    Raises:
        ShapeError: no two axes, labels or groups that do not fit, too many cells.
        ValueError: a colour that is none.
    """
    if colour not in get_args(Colour):
        raise ValueError(
            f"colour={colour!r} is none of {', '.join(map(repr, get_args(Colour)))}."
        )
    array = table(title, values)
    n_rows, n_columns = array.shape
    if array.size > MAX_CELLS:
        raise ShapeError(
            f"{title} has {n_rows} x {n_columns} cells; a table takes at most "
            f"{MAX_CELLS}, and attnlib.figures.heat shows more."
        )
    cells = tuple(marked)
    for i, j in cells:
        if not (0 <= i < n_rows and 0 <= j < n_columns):
            raise ShapeError(
                f"marked cell ({i}, {j}) lies outside {title} with {n_rows} rows and "
                f"{n_columns} columns."
            )
    flat_groups: tuple[int, ...] = ()
    if groups is not None:
        if np.shape(groups) != array.shape:
            raise ShapeError(
                f"groups has shape {np.shape(groups)}, but {title} has {array.shape}."
            )
        flat_groups = tuple(int(g) % 8 for g in np.asarray(groups).ravel())
    elif colour == "groups":
        raise ValueError(f"{title} has colour='groups', but no groups were given.")
    return Matrix(
        title,
        tuple(rounded(array, digits)),
        texts(title, rows, n_rows, "rows"),
        texts(title, columns, n_columns, "columns"),
        digits,
        colour,
        tuple(i * n_columns + j for i, j in cells),
        flat_groups,
        largest(array) if maximum is None else float(maximum),
        numbers,
    )


def bars(
    values: npt.ArrayLike,
    labels: Sequence[object],
    title: str,
    *,
    digits: int = 2,
    maximum: float | None = None,
) -> Bars:
    """Horizontal bars from 0, with their numbers as text.

    Args:
        values: (n,), at least 0.
        labels: n texts.
        title: the caption.
        digits: decimals shown, and kept.
        maximum: the value of a full bar; the largest of all states if left out.

    Raises:
        ShapeError: `values` and `labels` differ in length.
    """
    array = np.asarray(values)
    if array.shape != (len(labels),):
        raise ShapeError(
            f"{title} has values of shape {array.shape}, but {len(labels)} labels."
        )
    top = largest(array) if maximum is None else float(maximum)
    names = tuple(str(label) for label in labels)
    return Bars(title, tuple(rounded(array, digits)), names, digits, top)


def histogram(
    counts: npt.ArrayLike,
    edges: npt.ArrayLike,
    title: str,
    *,
    x_title: str = "",
    digits: int = 0,
    maximum: float | None = None,
) -> Histogram:
    """Upright bars over equal bins, as `np.histogram` returns them.

    Args:
        counts: (n,), counts or shares.
        edges: (n + 1,), rising.
        title: the caption.
        x_title: the name of the axis, such as "score".
        digits: decimals of the counts that are kept.
        maximum: the count of a full bar; the largest of all states if left out.

    Raises:
        ShapeError: `edges` is not one longer than `counts`.
    """
    array, ends = np.asarray(counts), np.asarray(edges, dtype=float)
    if array.ndim != 1 or ends.shape != (array.size + 1,):
        raise ShapeError(
            f"{title} has {array.shape} counts and {ends.shape} edges; "
            "n counts need n + 1 edges."
        )
    top = largest(array) if maximum is None else float(maximum)
    low, high = (f"{end:.4g}" for end in (ends[0], ends[-1]))
    counted = tuple(rounded(array, digits))
    return Histogram(title, counted, low, high, top, x_title)


def note(words: str) -> Note:
    """A sentence that belongs to a state and changes with it."""
    return Note(words)


def largest(array: npt.NDArray[np.generic]) -> float:
    """The largest finite size in an array, 0 if there is none."""
    sizes = np.abs(array.astype(float))
    finite = sizes[np.isfinite(sizes)]
    return float(f"{finite.max():.6g}") if finite.size else 0.0
