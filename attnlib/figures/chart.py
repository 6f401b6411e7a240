"""`Figure`: a plotly chart as plain, rounded data, with its sentence.

A chart is a dictionary in plotly's own words. plotly itself is needed only to draw
it: JupyterLab's plotly extension does that, and `to_plotly` for whoever wants more.
So the stored output does not change with the version of plotly, and a lesson does
not wait for its import. The tests hand every kind of chart to plotly to be checked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from attnlib.shapes import ShapeError

if TYPE_CHECKING:
    import plotly.graph_objects as go

MIME = "application/vnd.plotly.v1+json"
MAX_BYTES = 100_000

# Okabe and Ito's colours: told apart by readers with any kind of colour vision. The
# black of the set is left out; it would vanish on a dark page.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x")
# Grey that reads on white and on black: the page behind a chart may be either.
INK, LINE = "#767676", "rgba(128,128,128,0.3)"

# A legend under the chart; plotly makes room for as many lines as it takes.
BELOW = {
    "orientation": "h",
    "yref": "container",
    "y": 0.01,
    "yanchor": "bottom",
    "x": 0,
}

# Cividis: rises evenly in lightness, the same for colour-blind readers.
SEQUENTIAL = (
    (0.0, "#00204d"),
    (0.25, "#414d6b"),
    (0.5, "#7c7b78"),
    (0.75, "#bcae6c"),
    (1.0, "#ffea46"),
)
# Blue over light grey to orange.
SIGNED = (
    (0.0, "#b35806"),
    (0.25, "#f1a340"),
    (0.5, "#e8e8e8"),
    (0.75, "#67a9cf"),
    (1.0, "#084a91"),
)


@dataclass(frozen=True)
class Figure:
    """A chart with the sentence that says what it shows."""

    sentence: str
    traces: tuple[dict[str, Any], ...]
    layout: dict[str, Any]

    def __repr__(self) -> str:
        return self.sentence

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> dict[str, object]:
        chart = {
            "data": list(self.traces),
            "layout": self.layout,
            "config": {"responsive": True, "displayModeBar": False},
        }
        size = len(json.dumps(chart))
        if size > MAX_BYTES:
            raise ValueError(
                f"this chart would take {size} bytes, more than {MAX_BYTES}; show "
                "fewer points."
            )
        return {"text/plain": self.sentence, MIME: chart}

    def to_plotly(self) -> go.Figure:
        """The same chart as a `plotly.graph_objects.Figure`, to change it further."""
        import plotly.graph_objects as go

        return go.Figure({"data": list(self.traces), "layout": self.layout})


def layout(
    title: str,
    *,
    x: str = "",
    y: str = "",
    x_axis: Mapping[str, object] | None = None,
    y_axis: Mapping[str, object] | None = None,
    height: int = 360,
    **more: object,
) -> dict[str, Any]:
    """The one look of all charts: a few lines instead of plotly's 7 kB template."""
    axis = {
        "gridcolor": LINE,
        "zeroline": False,
        "linecolor": INK,
        "ticks": "outside",
        "tickcolor": LINE,
        "automargin": True,
    }
    return {
        "title": {"text": title, "x": 0, "xref": "paper", "font": {"size": 16}},
        "font": {"color": INK, "size": 13},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "colorway": list(COLOURS),
        "height": height,
        "margin": {"l": 60, "r": 20, "t": 50, "b": 80 if "legend" in more else 50},
        "xaxis": axis | {"title": {"text": x}} | dict(x_axis or {}),
        "yaxis": axis | {"title": {"text": y}} | dict(y_axis or {}),
        **more,
    }


def plain(values: npt.ArrayLike, digits: int = 4) -> list[Any]:
    """Numbers with at most `digits` significant digits, as lists; NaN becomes None.

    Lists, because plotly turns arrays into base64, which nobody can read in a diff.

    >>> plain([1.23456, float("nan"), 20000.0])
    [1.235, None, 20000.0]
    """
    array = np.asarray(values)
    if array.ndim > 1:
        return [plain(row, digits) for row in array]
    if array.dtype.kind not in "biuf":
        return [str(value) for value in array]
    if array.dtype.kind != "f":
        return [int(value) for value in array]
    return [
        float(f"{value:.{digits}g}") + 0.0 if np.isfinite(value) else None
        for value in array.tolist()
    ]


def span(*arrays: Sequence[float | None], room: float = 0.05) -> list[float]:
    """The range of an axis: from the data, with a little room at both ends.

    >>> span([0.0, 1.0])
    [-0.05, 1.05]
    """
    numbers = [value for array in arrays for value in array if value is not None]
    low, high = (min(numbers), max(numbers)) if numbers else (0.0, 1.0)
    extra = room * (high - low) or 0.5
    return [float(f"{low - extra:.6g}"), float(f"{high + extra:.6g}")]


def as_long(
    name: str, values: npt.ArrayLike, other: Sequence[object], digits: int = 4
) -> list[Any]:
    """Return `values` as a list, as long as another one."""
    array = np.asarray(values)
    if array.shape != (len(other),):
        raise ShapeError(
            f"{name} has shape {array.shape}, but {len(other)} values are needed."
        )
    return plain(array, digits)


def faint(colour: str) -> str:
    """A colour that lets the lines behind it through."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.18)"
