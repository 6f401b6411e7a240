"""`explore` and `follow`: small tables that answer to the hand, without a kernel.

Everything is computed beforehand. The page holds the first state as a plain table;
a script, where scripts run, enables a native slider and repaints the table. It works
in JupyterLab, in an exported page and offline, and it is a readable table elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from attnlib.explorers.numbers import compact, one_line
from attnlib.explorers.panels import (
    PIXELS,
    Bars,
    Histogram,
    Matrix,
    Panel,
    in_rows,
    legend,
)
from attnlib.shapes import ShapeError

MAX_BYTES = 100_000


@dataclass(frozen=True)
class Explorer:
    """A figure as one self-contained piece of HTML."""

    sentence: str
    html: str

    def __repr__(self) -> str:
        return self.sentence

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> dict[str, object]:
        return {"text/plain": self.sentence, "text/html": self.html}


def explore(
    states: Sequence[Sequence[Panel]],
    *,
    control: str,
    labels: Sequence[object],
    title: str,
    sentence: str,
    start: int = 0,
    per_row: Sequence[int] | None = None,
) -> Explorer:
    """A slider over states that were computed beforehand.

    All states hold the same panels in the same order; numbers, titles, the ends of a
    histogram and marks may differ; shapes, names of rows and columns, and groups may
    not. What changes its name with the state goes into the title.

    Args:
        states: one list of panels a state.
        control: what the slider changes, such as "d_k".
        labels: one text a state, such as 1, 2, 4, 8.
        title: stands above the figure.
        sentence: what the figure shows, in one line; it holds without the picture.
        start: the state shown first.
        per_row: how many panels stand in each row, such as (2, 4); left out, as many
            as fit.

    Raises:
        ShapeError: states that differ in their panels or in names, labels or rows that
            do not fit.
        ValueError: no state, a sentence that is none, or more than 100 kB of HTML.

    >>> from attnlib.explorers import explore, matrix
    >>> states = [[matrix([[t, 1 - t]], title="w")] for t in (0.0, 0.5)]
    >>> explore(states, control="t", labels=[0, 0.5], title="T", sentence="Both move.")
    Both move.
    """
    if not states:
        raise ValueError(f"{title} has no state to show.")
    if len(labels) != len(states):
        raise ShapeError(
            f"{title} has {len(states)} states, but {len(labels)} labels for them."
        )
    if not 0 <= start < len(states):
        raise ValueError(
            f"start={start} is none of the {len(states)} states of {title}."
        )
    first = [panel.layout() for panel in states[start]]
    for index, state in enumerate(states):
        found = [panel.layout() for panel in state]
        if found != first:
            raise ShapeError(
                f"state {index} of {title} has the panels {found}, but state {start} "
                f"has {first}; a slider changes numbers, not shapes."
            )
        for panel, shown in zip(state, states[start], strict=True):
            if _names(panel) != _names(shown):
                raise ShapeError(
                    f"state {index} of {title} has other names or groups in "
                    f"{panel.title} than state {start}; a slider changes numbers and "
                    "titles, so put what changes into the title."
                )
    names = [str(label) for label in labels]
    tops = [shared_scale(list(column)) for column in zip(*states, strict=True)]
    drawn = [panel.html(top) for panel, top in zip(states[start], tops, strict=True)]
    control_html = (
        f'<label class="attn-control"><span>{escape(control)}</span>'
        f'<input type="range" min="0" max="{len(states) - 1}" step="1" '
        f'value="{start}" aria-valuetext="{escape(names[start])}" '
        'data-lm-suppress-shortcuts="true" disabled>'
        f"<output>{escape(names[start])}</output></label>"
    )
    data = {
        "labels": names,
        "states": [[panel.data() for panel in state] for state in states],
    }
    off = '<p class="attn-off">Run this cell to move the slider.</p>'
    panels = in_rows(drawn, per_row, title)
    body = f"{control_html}{panels}{legend(states[start])}{off}"
    return page(title, sentence, body, data, "explore.js")


def follow(
    panels: Sequence[Matrix],
    ids: Sequence[npt.ArrayLike],
    *,
    title: str,
    sentence: str,
    start: tuple[int, int] = (0, 0),
    per_row: Sequence[int] | None = None,
) -> Explorer:
    """Choose a cell of one table, and see where its element is in the others.

    Cells with the same id are the same element. To follow elements through a
    function, apply it to `np.arange(x.size).reshape(x.shape)`: the result holds,
    at each place, the number of the element that came there.

    Args:
        panels: tables made by `matrix`. Titles are used as names: element [1, 0] of
            the table "heads[2]" is called heads[2][1, 0].
        ids: for each panel whole numbers in its shape.
        title: stands above the figure.
        sentence: what the figure shows, in one line; it holds without the picture.
        start: the cell of the first panel chosen at first, (row, column).
        per_row: how many panels stand in each row, such as (1, 2, 1); left out, as
            many as fit.

    Raises:
        ShapeError: ids or rows that do not fit the panels, or a start outside.
        ValueError: a sentence that is none, or more than 100 kB of HTML.

    >>> import numpy as np
    >>> from attnlib.explorers import follow, matrix
    >>> ids = np.arange(6).reshape(2, 3)
    >>> x = matrix(ids, title="x", digits=0)
    >>> xt = matrix(ids.T, title="x.T", digits=0)
    >>> follow([x, xt], [ids, ids.T], title="T", sentence="Rows become columns.")
    Rows become columns.
    """
    if len(ids) != len(panels):
        raise ShapeError(
            f"{title} has {len(panels)} panels, but ids for {len(ids)} of them."
        )
    for panel, own in zip(panels, ids, strict=True):
        shape = (len(panel.rows), len(panel.columns))
        if np.shape(own) != shape:
            raise ShapeError(
                f"the ids of {panel.title} have shape {np.shape(own)}, but the panel "
                f"has {shape}."
            )
    rows, columns = len(panels[0].rows), len(panels[0].columns)
    if not (0 <= start[0] < rows and 0 <= start[1] < columns):
        raise ShapeError(
            f"start={start} lies outside {panels[0].title} with {rows} rows and "
            f"{columns} columns."
        )
    data = {
        "names": [panel.title for panel in panels],
        "ids": [[int(i) for i in np.asarray(own).ravel()] for own in ids],
        "start": start[0] * columns + start[1],
    }
    tables = in_rows([panel.html() for panel in panels], per_row, title)
    body = (
        f"{tables}{legend(panels)}"
        '<p class="attn-note" aria-live="polite"></p>'
        '<p class="attn-off">Run this cell to choose cells of the tables.</p>'
    )
    return page(title, sentence, body, data, "follow.js")


def _names(panel: Panel) -> tuple[object, ...]:
    """What the script of the page never paints again."""
    return panel.names() if isinstance(panel, Matrix | Bars) else ()


def shared_scale(panels: Sequence[Panel]) -> float | None:
    """The largest value of one panel over all states, so that colours compare."""
    sizes = [p.maximum for p in panels if isinstance(p, Matrix | Bars | Histogram)]
    return max(sizes) if sizes else None


def page(
    title: str, sentence: str, body: str, data: dict[str, object], script: str
) -> Explorer:
    """One self-contained piece of HTML: style, body, the data, and a script."""
    sentence = one_line(sentence)
    packed = compact(data)
    extra = {
        PIXELS: "pixels.css",
        "attn-tiles": "vitals.css",
        "attn-budget": "budget.css",
    }
    style = asset("style.css")
    style += "".join(asset(sheet) for mark, sheet in extra.items() if mark in body)
    name = "x" + sha256((title + body + packed).encode()).hexdigest()[:10]
    html = (
        f'<div class="attn attnlib-explorer" data-attn="{name}" role="group" '
        f'aria-label="{escape(title)}"><style>{style}</style>'
        f'<p class="attn-title"><b>{escape(title)}</b></p>{body}'
        f'<script type="application/json">{packed}</script>'
        f'<script>(() => {{const name = "{name}";\n{asset("paint.js")}'
        f"{asset(script)}{asset('start.js')}}})();</script></div>"
    )
    size = len(html.encode())
    if size > MAX_BYTES:
        raise ValueError(
            f"{title} would take {size} bytes of HTML, more than {MAX_BYTES}; "
            "show fewer states or fewer digits."
        )
    return Explorer(sentence, html)


@cache
def asset(name: str) -> str:
    """The text of a script or style sheet that lies beside this module."""
    return (files("attnlib.explorers") / name).read_text(encoding="utf-8")
