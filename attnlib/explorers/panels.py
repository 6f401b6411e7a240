"""The panels of a figure: `Matrix`, `Bars`, `Histogram`, `Note`; `parts` makes them.

Each holds rounded numbers, draws itself once as a plain HTML table (`html`), and
hands its numbers over as data (`data`). The script of the page repaints the same
table from other numbers; it never builds one.

Style attributes say once more, and more plainly, what `style.css` says: they are all
that JupyterLab leaves of a figure in a notebook that is not trusted. Without them, on
GitHub, the numbers remain as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice

from attnlib.explorers.cells import (
    PLAIN_BAR,
    PLAIN_BLUE,
    PLAIN_ORANGE,
    Colour,
    td,
    text,
)
from attnlib.explorers.numbers import Number
from attnlib.shapes import ShapeError

CAPTION = 'style="text-align:left;font-weight:bold"'
TR = '<tr style="background-color:transparent">'  # JupyterLab would stripe the rows
TABLE = 'style="margin:0"'
FIGURE = 'style="margin:0;flex:1 1 220px;max-width:370px"'
BINS = 'style="display:flex;align-items:flex-end;height:120px;border-bottom:1px solid"'
ENDS = 'style="display:flex;justify-content:space-between"'
TOP = 'style="border-bottom:1px dashed #888"'
FLOW = "display:flex;flex-wrap:wrap;gap:16px 28px;align-items:flex-start"
ROW, LINE = f'style="{FLOW}"', f'style="{FLOW};margin-bottom:16px"'
UNSEEN = "font-size:0"  # text of a bar, for pages without style attributes
PIXELS, PIXEL = "attn-pixels", ";width:14px;height:14px"  # a table without numbers


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
    numbers: bool = True

    def layout(self) -> tuple[object, ...]:
        """What has to be the same in every state of an explorer."""
        shape = (len(self.rows), len(self.columns))
        kind = "matrix" if self.numbers else "pixels"
        return (kind, *shape, self.digits, self.colour)

    def names(self) -> tuple[object, ...]:
        """What is drawn once, and not painted again when a slider moves."""
        return (self.rows, self.columns, self.groups)

    def data(self) -> dict[str, object]:
        """What may differ between states."""
        data: dict[str, object] = {"t": self.title, "v": list(self.values)}
        if self.marked:
            data["m"] = list(self.marked)
        return data

    def html(self, maximum: float | None = None) -> str:
        """The table, with each number as text; as pixels, with text nobody sees."""
        maximum = self.maximum if maximum is None else maximum
        n = len(self.columns)
        look, body_look, extra = "attn-m", "", ""
        if not self.numbers:
            look, body_look = f"attn-m {PIXELS}", f' style="{UNSEEN}"'
            extra = PIXEL
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
                    extra=extra,
                )
                for at in range(i * n, (i + 1) * n)
            )
            name = f'<th scope="row">{escape(row)}</th>' if self.numbers else ""
            body.append(f"{TR}{name}{cells}</tr>")
        top = f"<thead><tr><td></td>{head}</tr></thead>" if self.numbers else ""
        return (
            f'<table class="{look}" data-kind="matrix" data-digits="{self.digits}" '
            f'data-colour="{self.colour}" data-maximum="{maximum:g}" {TABLE}>'
            f"{caption(self.title)}"
            f"{top}<tbody{body_look}>{''.join(body)}</tbody></table>"
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

    def names(self) -> tuple[object, ...]:
        """What is drawn once, and not painted again when a slider moves."""
        return self.labels

    def data(self) -> dict[str, object]:
        """What may differ between states."""
        return {"t": self.title, "v": list(self.values)}

    def html(self, maximum: float | None = None) -> str:
        """A table of two columns, a bar and its number, and the scale below."""
        maximum = self.maximum if maximum is None else maximum
        bar = f"display:block;height:14px;background-color:{PLAIN_BAR}"
        rows = "".join(
            f'{TR}<th scope="row">{escape(label)}</th>'
            '<td class="attn-bar" style="width:150px">'
            f'<span style="{bar};width:{_share(value, maximum):.1f}%"></span></td>'
            f'<td class="attn-num">{text(value, self.digits)}</td></tr>'
            for label, value in zip(self.labels, self.values, strict=True)
        )
        return (
            f'<table class="attn-b" data-kind="bars" data-digits="{self.digits}" '
            f'data-maximum="{maximum:g}" {TABLE}>'
            f"{caption(self.title)}<tbody>{rows}</tbody>"
            f'<tfoot><tr><td></td><td class="attn-bar"><div class="attn-ends" {ENDS}>'
            f'<span>0</span><i style="{UNSEEN}"> to </i>'
            f"<span>{text(maximum, self.digits)}</span></div></td>"
            "<td></td></tr></tfoot></table>"
        )


@dataclass(frozen=True)
class Histogram:
    """Counts over equal bins, with the ends of the axis as text."""

    title: str
    values: tuple[Number, ...]
    low: str
    high: str
    maximum: float
    axis: str = ""

    def layout(self) -> tuple[object, ...]:
        """What has to be the same in every state of an explorer."""
        return ("histogram", len(self.values), self.axis)

    def data(self) -> dict[str, object]:
        """What may differ between states."""
        return {"t": self.title, "v": list(self.values), "x": [self.low, self.high]}

    def html(self, maximum: float | None = None) -> str:
        """Upright bars that hold their numbers as text nobody sees.

        The text shows where style attributes are dropped, as on GitHub. A screen
        reader gets the numbers from the label.
        """
        maximum = self.maximum if maximum is None else maximum
        look = f"flex:1;background-color:{PLAIN_BAR};{UNSEEN}"
        bars = "".join(
            f'<span style="{look};height:{_share(v, maximum):.1f}%">{v} </span>'
            for v in self.values
        )
        heard = escape(f"{self.title}: from {self.low} to {self.high}, ")
        counts = " ".join(str(v) for v in self.values)
        between = f'<i style="{UNSEEN}"> to </i>'
        if self.axis:
            between = f"<i> ← {escape(self.axis)} → </i>"
        return (
            f'<figure class="attn-h" data-kind="histogram" data-maximum="{maximum:g}" '
            f"{FIGURE}><figcaption {CAPTION}>{escape(self.title)}</figcaption>"
            f'<div class="attn-top" {TOP}>full height: {maximum:.4g}</div>'
            f'<div class="attn-bins" role="img" aria-label="{heard}bins {counts}" '
            f'{BINS}><b style="{UNSEEN}">{len(self.values)} bins: </b>{bars}</div>'
            f'<div class="attn-ends" {ENDS}><span>{escape(self.low)}</span>'
            f"{between}<span>{escape(self.high)}</span></div></figure>"
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


def caption(title: str) -> str:
    """The name of a table."""
    return f"<caption {CAPTION}>{escape(title)}</caption>"


def legend(panels: Iterable[Panel]) -> str:
    """What the colours mean, where a table has numbers on both sides of zero."""
    if not any(isinstance(p, Matrix) and p.colour == "signed" for p in panels):
        return ""
    plus, minus = (
        f'<b class="{name}" style="padding:0 8px;background-color:rgba({rgb},0.55)">'
        f"{sign}</b>"
        for name, rgb, sign in (("p", PLAIN_BLUE, "+"), ("n", PLAIN_ORANGE, "−"))
    )
    return (
        f'<p class="attn-legend">{plus} above zero {minus} below zero; '
        "the stronger the colour, the farther from zero.</p>"
    )


def in_rows(panels: Sequence[str], per_row: Sequence[int] | None, title: str) -> str:
    """The panels, as many in each row as `per_row` says, else as many as fit."""
    if per_row is None:
        return f'<div class="attn-panels" {ROW}>{"".join(panels)}</div>'
    if sum(per_row) != len(panels) or min(per_row, default=0) < 1:
        raise ShapeError(
            f"{title} has {len(panels)} panels, but per_row={tuple(per_row)} places "
            f"{sum(per_row)}; each row takes one or more."
        )
    left = iter(panels)
    rows = (
        f'<div class="attn-line" {LINE}>{"".join(islice(left, n))}</div>'
        for n in per_row
    )
    return f'<div class="attn-panels attn-lines">{"".join(rows)}</div>'


def _share(value: Number, maximum: float) -> float:
    """The length of a bar in per cent; what is no finite number has none."""
    if isinstance(value, str) or maximum <= 0:
        return 0.0
    return min(100.0, max(0.0, 100.0 * value / maximum))
