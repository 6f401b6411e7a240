"""The parts a figure is made of: `matrix`, `bars`, `histogram`, `note`.

Each holds rounded numbers, draws itself once as a plain HTML table (`html`), and
hands its numbers over as data (`data`). The script of the page repaints the same
table from other numbers; it never builds one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import get_args

import numpy as np
import numpy.typing as npt

from attnlib.explorers.cells import Colour, td, text
from attnlib.explorers.numbers import Number, labels, rounded, table
from attnlib.shapes import ShapeError

MAX_CELLS = 400


@dataclass(frozen=True)
class Matrix:
    """A table of numbers, coloured by value."""

    title: str
    values: tuple[Number, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    digits: int
    colour: Colour
    marked: tuple[int, ...]  # flat indices
    groups: tuple[int, ...]
    maximum: float

    def layout(self) -> tuple[object, ...]:
        """What has to be the same in every state of an explorer."""
        return ("matrix", len(self.rows), len(self.columns), self.digits, self.colour)

    def data(self) -> dict[str, object]:
        """What may differ between states."""
        data: dict[str, object] = {"t": self.title, "v": list(self.values)}
        if self.marked:
            data["m"] = list(self.marked)
        return data

    def html(self, maximum: float | None = None) -> str:
        """The table, with each number as text."""
        maximum = self.maximum if maximum is None else maximum
        n = len(self.columns)
        head = "".join(f'<th scope="col">{escape(c)}</th>' for c in self.columns)
        body = []
        for i, row in enumerate(self.rows):
            cells = "".join(
                td(
                    self.values[at],
                    self.digits,
                    self.colour,
                    maximum,
                    marked=at in self.marked,
                    group=self.groups[at] if self.groups else None,
                )
                for at in range(i * n, (i + 1) * n)
            )
            body.append(f'<tr><th scope="row">{escape(row)}</th>{cells}</tr>')
        return (
            f'<table class="attn-m" data-kind="matrix" data-digits="{self.digits}" '
            f'data-colour="{self.colour}" data-maximum="{maximum:g}">'
            f"<caption>{escape(self.title)}</caption>"
            f"<thead><tr><td></td>{head}</tr></thead>"
            f"<tbody>{''.join(body)}</tbody></table>"
        )


@dataclass(frozen=True)
class Bars:
    """Horizontal bars with their numbers as text."""

    title: str
    values: tuple[Number, ...]
    labels: tuple[str, ...]
    digits: int
    maximum: float

    def layout(self) -> tuple[object, ...]:
        """What has to be the same in every state of an explorer."""
        return ("bars", len(self.labels), self.digits)

    def data(self) -> dict[str, object]:
        """What may differ between states."""
        return {"t": self.title, "v": list(self.values)}

    def html(self, maximum: float | None = None) -> str:
        """A table of two columns: a bar, and its number."""
        maximum = self.maximum if maximum is None else maximum
        rows = "".join(
            f'<tr><th scope="row">{escape(label)}</th><td class="attn-bar">'
            f'<span style="width:{_share(value, maximum):.1f}%"></span></td>'
            f'<td class="attn-num">{text(value, self.digits)}</td></tr>'
            for label, value in zip(self.labels, self.values, strict=True)
        )
        return (
            f'<table class="attn-b" data-kind="bars" data-digits="{self.digits}" '
            f'data-maximum="{maximum:g}"><caption>{escape(self.title)}</caption>'
            f"<tbody>{rows}</tbody></table>"
        )


@dataclass(frozen=True)
class Histogram:
    """Counts over equal bins, with the ends of the axis as text."""

    title: str
    values: tuple[Number, ...]
    low: str
    high: str
    maximum: float

    def layout(self) -> tuple[object, ...]:
        """What has to be the same in every state of an explorer."""
        return ("histogram", len(self.values))

    def data(self) -> dict[str, object]:
        """What may differ between states."""
        return {"t": self.title, "v": list(self.values), "x": [self.low, self.high]}

    def html(self, maximum: float | None = None) -> str:
        """Upright bars. Their numbers stand in the label, for a screen reader."""
        maximum = self.maximum if maximum is None else maximum
        bars = "".join(
            f'<span style="height:{_share(v, maximum):.1f}%"></span>'
            for v in self.values
        )
        heard = escape(f"{self.title}: from {self.low} to {self.high}, ")
        counts = " ".join(str(v) for v in self.values)
        return (
            f'<figure class="attn-h" data-kind="histogram" data-maximum="{maximum:g}">'
            f"<figcaption>{escape(self.title)}</figcaption>"
            f'<div class="attn-bins" role="img" aria-label="{heard}bins {counts}">'
            f"{bars}</div>"
            f'<div class="attn-ends"><span>{escape(self.low)}</span>'
            f"<span>{escape(self.high)}</span></div></figure>"
        )


@dataclass(frozen=True)
class Note:
    """A sentence that belongs to a state."""

    title: str

    def layout(self) -> tuple[object, ...]:
        """What has to be the same in every state of an explorer."""
        return ("note",)

    def data(self) -> dict[str, object]:
        """What may differ between states."""
        return {"t": self.title}

    def html(self, maximum: float | None = None) -> str:
        """A paragraph that a screen reader reads when it changes."""
        return (
            '<p class="attn-note" data-kind="note" aria-live="polite">'
            f"{escape(self.title)}</p>"
        )


Panel = Matrix | Bars | Histogram | Note


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
) -> Matrix:
    """A table of numbers coloured by value.

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
        labels(title, rows, n_rows, "rows"),
        labels(title, columns, n_columns, "columns"),
        digits,
        colour,
        tuple(i * n_columns + j for i, j in cells),
        flat_groups,
        largest(array) if maximum is None else float(maximum),
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
    digits: int = 0,
    maximum: float | None = None,
) -> Histogram:
    """Upright bars over equal bins, as `np.histogram` returns them.

    Args:
        counts: (n,), counts or shares.
        edges: (n + 1,), rising.
        title: the caption.
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
    return Histogram(title, tuple(rounded(array, digits)), low, high, top)


def note(words: str) -> Note:
    """A sentence that belongs to a state and changes with it."""
    return Note(words)


def largest(array: npt.NDArray[np.generic]) -> float:
    """The largest finite size in an array, 0 if there is none."""
    sizes = np.abs(array.astype(float))
    finite = sizes[np.isfinite(sizes)]
    return float(f"{finite.max():.6g}") if finite.size else 0.0


def _share(value: Number, maximum: float) -> float:
    """The length of a bar in per cent; what is no finite number has none."""
    if isinstance(value, str) or maximum <= 0:
        return 0.0
    return min(100.0, max(0.0, 100.0 * value / maximum))
