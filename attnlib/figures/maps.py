"""Heat maps and histograms. They draw what they are given and compute nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from attnlib.explorers.numbers import labels, one_line, table
from attnlib.figures.chart import (
    BELOW,
    COLOURS,
    DASHES,
    SEQUENTIAL,
    SIGNED,
    Figure,
    as_long,
    faint,
    layout,
    plain,
    span,
)

MAX_TEXT = 12  # cell text beyond 12 x 12 takes a second to draw


def heat(
    values: npt.ArrayLike,
    *,
    rows: Sequence[object] | None = None,
    columns: Sequence[object] | None = None,
    title: str,
    x_title: str = "key",
    y_title: str = "query",
    sentence: str,
    signed: bool = False,
    digits: int = 2,
) -> Figure:
    """A heat map; up to 12 x 12 each cell also shows its number.

    Args:
        values: (n_rows, n_columns); row 0 is drawn at the top.
        rows, columns: labels; 0, 1, 2, ... if left out.
        title: stands above the chart.
        x_title, y_title: names of the axes.
        sentence: what the chart shows, in one line; it holds without the picture.
        signed: colours around 0, as far down as up.
        digits: decimals kept.

    Raises:
        ShapeError: no two axes, or labels that do not fit.
    """
    sentence, array = one_line(sentence), table(title, values).astype(float)
    n_rows, n_columns = array.shape
    z = [[_or_none(value, digits) for value in row] for row in array.tolist()]
    found = [value for row in z for value in row if value is not None] or [0.0]
    top = max(map(abs, found)) or 1.0
    low, high = (-top, top) if signed else (min(0.0, min(found)), max(found) or 1.0)
    trace: dict[str, Any] = {
        "type": "heatmap",
        "z": z,
        "x": list(labels(title, columns, n_columns, "columns")),
        "y": list(labels(title, rows, n_rows, "rows")),
        "zmin": low,
        "zmax": high,
        "colorscale": [list(stop) for stop in (SIGNED if signed else SEQUENTIAL)],
        "colorbar": {"outlinewidth": 0, "thickness": 14},
        "xgap": 1,
        "ygap": 1,
        "hovertemplate": "query %{y}, key %{x}: %{z}<extra></extra>".replace(
            "query", y_title
        ).replace("key", x_title),
    }
    traces = [trace]
    if max(n_rows, n_columns) <= MAX_TEXT:
        traces += _texts(trace, digits)
    axis = {"type": "category", "showgrid": False}
    return Figure(
        sentence,
        tuple(traces),
        layout(
            title,
            x=x_title,
            y=y_title,
            x_axis=axis,
            y_axis=axis | {"autorange": "reversed"},
            height=int(min(560, max(260, 130 + 34 * n_rows))),
            showlegend=False,
        ),
    )


def histograms(
    edges: npt.ArrayLike,
    counts: Mapping[str, npt.ArrayLike],
    *,
    title: str,
    x_title: str,
    y_title: str = "count",
    sentence: str,
) -> Figure:
    """Histograms over the same bins, as steps on top of each other.

    Args:
        edges: (n + 1,), rising, as `np.histogram` returns them.
        counts: name -> (n,), counts or shares.
        title: stands above the chart.
        x_title, y_title: names of the axes.
        sentence: what the chart shows, in one line; it holds without the picture.

    Raises:
        ShapeError: counts that do not fit the edges.
    """
    sentence, ends = one_line(sentence), plain(edges)
    traces = []
    for index, (name, values) in enumerate(counts.items()):
        heights = as_long(name, values, ends[1:])
        traces.append(
            {
                "type": "scatter",
                "name": name,
                "mode": "lines",
                "x": ends,
                "y": [*heights, heights[-1]],
                "line": {
                    "shape": "hv",
                    "color": COLOURS[index % 6],
                    "width": 2.5,
                    "dash": DASHES[index % 6],
                },
                "fill": "tozeroy",
                "fillcolor": faint(COLOURS[index % 6]),
            }
        )
    top = span([0.0], *[t["y"] for t in traces])[1]  # type: ignore[arg-type]
    return Figure(
        sentence,
        tuple(traces),
        layout(
            title,
            x=x_title,
            y=y_title,
            x_axis={"range": [ends[0], ends[-1]]},
            y_axis={"range": [0.0, top]},
            showlegend=len(counts) > 1,
            legend=BELOW,
        ),
    )


def _texts(trace: dict[str, Any], digits: int) -> list[dict[str, Any]]:
    """The numbers of the cells: black on light cells, white on dark ones.

    plotly's own cell text is grey on the middle colours, too faint to read.
    """
    low, high = trace["zmin"], trace["zmax"]
    found: dict[str, list[tuple[str, str, str]]] = {"#000000": [], "#ffffff": []}
    for row, values in zip(trace["y"], trace["z"], strict=True):
        for column, value in zip(trace["x"], values, strict=True):
            if value is None:
                continue
            at = (value - low) / (high - low) if high > low else 0.0
            # Black and white are equally far from a luminance of 0.179.
            ink = (
                "#000000" if _luminance(trace["colorscale"], at) > 0.179 else "#ffffff"
            )
            found[ink].append((column, row, f"{value:.{digits}f}"))
    return [
        {
            "type": "scatter",
            "mode": "text",
            "x": [column for column, _, _ in cells],
            "y": [row for _, row, _ in cells],
            "text": [text for _, _, text in cells],
            "textfont": {"color": ink, "size": 12},
            "hoverinfo": "skip",
        }
        for ink, cells in found.items()
        if cells
    ]


def _luminance(scale: Sequence[Sequence[Any]], at: float) -> float:
    """How bright (WCAG) a colour scale is at a place from 0 to 1."""
    places = [stop[0] for stop in scale]
    linear = []
    for start in (1, 3, 5):
        parts = [int(stop[1][start : start + 2], 16) / 255 for stop in scale]
        part = float(np.interp(at, places, parts))
        linear.append(
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        )
    red, green, blue = linear
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _or_none(value: float, digits: int) -> float | None:
    return round(value, digits) + 0.0 if np.isfinite(value) else None
