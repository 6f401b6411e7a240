"""Curves and bars.

They draw what they are given and compute nothing. Ranges and legends come from the
data; lines differ in colour, dash and marker, so that no reader needs the colours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from attnlib.explorers.numbers import one_line
from attnlib.figures.chart import (
    BELOW,
    COLOURS,
    DASHES,
    LINE,
    SYMBOLS,
    Figure,
    as_long,
    faint,
    layout,
    plain,
    span,
)

MAX_TICKS = 12


def curves(
    x: npt.ArrayLike,
    lines: Mapping[str, npt.ArrayLike],
    *,
    bands: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]] | None = None,
    title: str,
    x_title: str,
    y_title: str,
    sentence: str,
    log_x: bool = False,
    log_y: bool = False,
) -> Figure:
    """One curve a name, with an error band where one is given.

    Args:
        x: (n,).
        lines: name -> (n,).
        bands: name of a line -> its lower and upper end, (n,) each.
        title: stands above the chart.
        x_title, y_title: names of the axes.
        sentence: what the chart shows, in one line; it holds without the picture.
        log_x, log_y: a logarithmic axis.

    Raises:
        ShapeError: a line or a band that is not as long as x.
        ValueError: a band without a line, or a logarithm of nothing positive.
    """
    sentence, steps = one_line(sentence), plain(x)
    traces: list[dict[str, Any]] = []
    for index, (name, y) in enumerate(lines.items()):
        colour = COLOURS[index % len(COLOURS)]
        if bands and name in bands:
            low, high = (as_long(f"band of {name}", b, steps) for b in bands[name])
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "x": steps + steps[::-1],
                    "y": high + low[::-1],
                    "fill": "toself",
                    "fillcolor": faint(colour),
                    "line": {"width": 0},
                    "hoverinfo": "skip",
                    "showlegend": False,
                    "legendgroup": name,
                }
            )
        traces.append(
            {
                "type": "scatter",
                "name": name,
                "mode": "lines+markers" if len(steps) <= 40 else "lines",
                "x": steps,
                "y": as_long(name, y, steps),
                "line": {"color": colour, "width": 2.5, "dash": DASHES[index % 6]},
                "marker": {"symbol": SYMBOLS[index % 6], "size": 7},
                "legendgroup": name,
            }
        )
    if unknown := set(bands or {}) - set(lines):
        raise ValueError(f"a band was given for {min(unknown)!r}, which is no line.")
    return Figure(
        sentence,
        tuple(traces),
        layout(
            title,
            x=x_title,
            y=y_title,
            x_axis=_axis("x", [steps], log_x),
            y_axis=_axis("y", [t["y"] for t in traces], log_y),
            showlegend=len(lines) > 1,
            legend=BELOW,
        ),
    )


def bars(
    names: Sequence[object],
    groups: Mapping[str, npt.ArrayLike],
    *,
    title: str,
    y_title: str,
    sentence: str,
    digits: int = 3,
) -> Figure:
    """Upright bars with their numbers as text; one colour a group.

    Args:
        names: n texts under the bars.
        groups: name of a group -> (n,).
        title: stands above the chart.
        y_title: name of the upright axis.
        sentence: what the chart shows, in one line; it holds without the picture.
        digits: significant digits of the numbers.

    Raises:
        ShapeError: a group that is not as long as `names`.
    """
    sentence, under = one_line(sentence), [str(name) for name in names]
    traces = []
    for index, (name, values) in enumerate(groups.items()):
        heights = as_long(name, values, under, digits)
        traces.append(
            {
                "type": "bar",
                "name": name,
                "x": under,
                "y": heights,
                "text": [f"{h:g}" if h is not None else "NaN" for h in heights],
                "textposition": "outside",
                "cliponaxis": False,
                "marker": {
                    "color": COLOURS[index % 6],
                    "pattern": {"shape": ["", "/", ".", "x", "-", "|"][index % 6]},
                },
            }
        )
    ends = span([0.0], *[t["y"] for t in traces])  # type: ignore[arg-type]
    low, high = (0.0 if ends[0] > -ends[1] * 0.06 else ends[0]), ends[1]
    return Figure(
        sentence,
        tuple(traces),
        layout(
            title,
            y=y_title,
            x_axis={"type": "category", "showgrid": False},
            y_axis={"range": [low, high], "zeroline": True, "zerolinecolor": LINE},
            showlegend=len(groups) > 1,
            legend=BELOW,
            bargap=0.25,
        ),
    )


def _axis(name: str, arrays: Sequence[list[Any]], log: bool) -> dict[str, Any]:
    values = [value for array in arrays for value in array if value is not None]
    if not log:
        return {"range": span(values)}
    if not values or min(values) <= 0:
        raise ValueError(f"log_{name} needs values above 0, but found {min(values)}.")
    low, high = span(np.log10(values).tolist())
    if name == "x" and len(values) <= MAX_TICKS:  # 1, 2, 4, 8 rather than 1, 10
        ticks = values
    else:  # plotly writes 2 for 20, and all digits from 2 to 9 over one another
        powers = range(int(np.floor(low)), int(np.ceil(high)) + 1)
        steps = (1, 2, 5) if high - low < 3 else (1,)
        ticks = [digit * 10.0**power for power in powers for digit in steps]
        ticks = [tick for tick in ticks if low <= np.log10(tick) <= high]
    text = [f"{tick:g}" for tick in ticks]
    return {"type": "log", "range": [low, high], "tickvals": ticks, "ticktext": text}
