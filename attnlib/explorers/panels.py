"""The panels of a figure: `Matrix`, `Bars`, `Histogram`, `Note`; `parts` makes them.

Each holds rounded numbers, draws itself once as a plain HTML table (`html`), and
hands its numbers over as data (`data`). The script of the page repaints the same
table from other numbers; it never builds one.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from attnlib.explorers.cells import Colour, td, text
from attnlib.explorers.numbers import Number


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
            f"<i> to </i><span>{escape(self.high)}</span></div></figure>"
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


def _share(value: Number, maximum: float) -> float:
    """The length of a bar in per cent; what is no finite number has none."""
    if isinstance(value, str) or maximum <= 0:
        return 0.0
    return min(100.0, max(0.0, 100.0 * value / maximum))
