"""One cell of a table: its text, and how strongly it is coloured.

`paint.js` does the same in the browser, and a browser test compares the two. The
colours themselves stand in `style.css`, once for a light page and once for a dark
one: a cell only says how far it is from zero, as the CSS variable `--a`.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal, localcontext
from html import escape
from typing import Literal

from attnlib.explorers.numbers import Number

Colour = Literal["weights", "signed", "mask", "groups", "none"]

LARGE = 1e5  # from here up a number is shown as 1.00e+5; its digits help nobody
WORDS = {"nan": "NaN", "inf": "∞", "-inf": "-∞"}
# A notebook that is not trusted loses our style sheet and scripts in JupyterLab, but
# keeps plain style attributes. These colours are half transparent there: the text
# stays readable on white and on black. Where the sheet is, it overrules them.
PLAIN_BLUE, PLAIN_ORANGE = "86,140,220", "213,120,40"
PLAIN_GROUPS = (
    "86,180,233",
    "230,159,0",
    "0,158,115",
    "204,121,167",
    "240,228,66",
    "0,114,178",
    "213,94,0",
    "153,153,153",
)
PLAIN_BAR, PLAIN_FRAME = "#2f86c5", "#d55e00"


def text(value: Number, digits: int) -> str:
    """A number as the reader sees it.

    >>> text(0.5, 2), text("-inf", 2), text(2e307, 2)
    ('0.50', '-∞', '2.00e+307')
    """
    if isinstance(value, str):
        return WORDS[value]
    if abs(value) >= LARGE:
        with localcontext(rounding=ROUND_HALF_UP):  # as toExponential rounds
            return f"{Decimal(value):.2e}"
    shown = f"{value:.{digits}f}"
    return shown.removeprefix("-") if float(shown) == 0 else shown


def strength(value: Number, maximum: float) -> float:
    """How strongly a cell is coloured, from 0 to 1.

    >>> strength(-0.5, 2.0)
    0.25
    """
    if isinstance(value, str) or maximum <= 0:
        return 0.0
    return round(min(1.0, abs(value) / maximum), 3)


def td(
    value: Number,
    digits: int,
    colour: Colour,
    maximum: float,
    *,
    marked: bool = False,
    group: int | None = None,
    extra: str = "",
) -> str:
    """One cell as HTML; `extra` is added to its style."""
    shown, a, kind = text(value, digits), strength(value, maximum), "p"
    if colour == "mask":
        shown, kind = ("✓", "p") if value else ("×", "o")
        a = 0.5 if value else 0.0
    elif isinstance(value, str):
        kind = "o"
    elif colour == "signed" and value < 0:
        kind = "n"
    elif colour == "none":
        a = 0.0
    names = [kind]
    style = f"--a:{a:g}"
    if colour == "groups" and group is not None:
        names = [f"g{group}"]
        style += f";background-color:rgba({PLAIN_GROUPS[group]},0.40)"
    elif a:
        rgb = PLAIN_ORANGE if kind == "n" else PLAIN_BLUE
        style += f";background-color:rgba({rgb},{0.55 * a:.2f})"
    if marked:
        names.append("k")
        style += f";border:2px solid {PLAIN_FRAME}"
    style += extra
    return f'<td class="{" ".join(names)}" style="{style}">{escape(shown)}</td>'
