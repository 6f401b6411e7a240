"""`budget`: things drawn by what they cost and what they are worth, and a budget.

The slider sets the budget. What costs more turns grey and hollow, and a note says which
of the others is worth most. Everything was measured before, so no kernel is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import log10

from attnlib.explorers.cells import PLAIN_BAR
from attnlib.explorers.explorer import Explorer, page
from attnlib.explorers.panels import TABLE, TR, UNSEEN, caption

WIDTH, HEIGHT = 520, 260
LEFT, RIGHT, TOP, BOTTOM = 44, 96, 10, 40  # RIGHT: room for the last name
APART, LETTER = 13, 7.5  # pixels between two names, and of a letter
GREY = "#8c8c8c"


def budget(
    things: Mapping[str, tuple[float, float, float]],
    budgets: Sequence[float],
    *,
    cost: str,
    worth: str,
    title: str,
    sentence: str,
    unit: str = "",
    digits: int = 2,
    start: int = 0,
) -> Explorer:
    """Draw each thing at its cost and its worth, under a budget that a slider sets.

    Args:
        things: name -> its cost, its worth, and the spread of the worth.
        budgets: what the slider can be set to, rising.
        cost, worth: names of the two axes; cost has a logarithmic one.
        title: stands above the figure.
        sentence: what the figure shows, in one line; it holds without the picture.
        unit: of cost and budget, such as "ms".
        digits: decimals of a worth.
        start: the place of the budget shown first.

    Raises:
        ValueError: nothing to draw, a cost that is not above 0, budgets that do not
            rise, no such start, or a sentence that is none.

    >>> budget({"slow": (4.0, 0.9, 0.0), "fast": (1.0, 0.5, 0.1)}, [2, 5], cost="time",
    ...        worth="accuracy", title="T", sentence="Slow is better.", unit="ms")
    Slow is better.
    """
    limits = [float(limit) for limit in budgets]
    costs = [thing[0] for thing in things.values()]
    if not things or not limits:
        raise ValueError(f"{title} has no thing or no budget to show.")
    if min(*costs, *limits) <= 0:
        raise ValueError(f"{title} has a cost or a budget that is not above 0.")
    if limits != sorted(set(limits)):
        raise ValueError(f"the budgets of {title} do not rise: {limits}.")
    if not 0 <= start < len(limits):
        raise ValueError(f"start={start} is none of the {len(limits)} budgets.")
    labels = [f"{limit:g} {unit}".strip() for limit in limits]
    notes = [
        _note(things, limit, label, worth, digits)
        for limit, label in zip(limits, labels, strict=True)
    ]
    over = [[int(c > limit) for c in costs] for limit in limits]
    axis = _Axis(things, limits)
    body = (
        f'<label class="attn-control"><span>budget</span>'
        f'<input type="range" min="0" max="{len(limits) - 1}" step="1" '
        f'value="{start}" aria-valuetext="{escape(labels[start])}" '
        'data-lm-suppress-shortcuts="true" disabled>'
        f"<output>{escape(labels[start])}</output></label>"
        f'<div class="attn-panels attn-budget">'
        f"{axis.svg(limits[start], cost, worth, digits)}"
        f"{_table(things, over[start], cost, worth, unit, digits)}"
        f'<p class="attn-note" data-kind="note" aria-live="polite">'
        f"{escape(notes[start])}</p></div>"
        '<p class="attn-off">Run this cell to move the slider.</p>'
    )
    data = {
        "labels": labels,
        "states": [[{"t": note}] for note in notes],
        "x": [axis.x(limit) for limit in limits],
        "over": over,
    }
    return page(title, sentence, body, data, "budget.js")


def _note(
    things: Mapping[str, tuple[float, float, float]],
    limit: float,
    label: str,
    worth: str,
    digits: int,
) -> str:
    kept = {name: thing for name, thing in things.items() if thing[0] <= limit}
    if not kept:
        return f"Within {label}: nothing."
    best = max(kept, key=lambda name: kept[name][1])
    return (
        f"Within {label}: {', '.join(kept)}. The highest {worth} of these: {best}, "
        f"{kept[best][1]:.{digits}f} ± {kept[best][2]:.{digits}f}."
    )


def _table(
    things: Mapping[str, tuple[float, float, float]],
    over: Sequence[int],
    cost: str,
    worth: str,
    unit: str,
    digits: int,
) -> str:
    rows = "".join(
        f'{TR}<th scope="row">{escape(name)}</th><td>{value:.{digits}f} ± '
        f"{spread:.{digits}f}</td><td>{spent:.3g} {escape(unit)}</td>"
        f"<td>{'over' if grey else 'within'}</td></tr>"
        for (name, (spent, value, spread)), grey in zip(
            things.items(), over, strict=True
        )
    )
    head = "".join(
        f'<th scope="col">{escape(name)}</th>' for name in ("", worth, cost, "budget")
    )
    return (
        f'<table class="attn-costs" {TABLE}>{caption("the same in numbers")}'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )


class _Axis:
    """Where costs and worths lie in the picture."""

    def __init__(
        self,
        things: Mapping[str, tuple[float, float, float]],
        limits: Sequence[float],
    ) -> None:
        self.things = things
        spent = [log10(c) for c in (*limits, *(t[0] for t in things.values()))]
        self.left, self.across = min(spent), (max(spent) - min(spent)) or 1.0
        lows = [value - spread for _, value, spread in things.values()]
        highs = [value + spread for _, value, spread in things.values()]
        self.low, self.high = min(lows), max(highs)
        if self.low == self.high:
            self.low, self.high = self.low - 0.5, self.high + 0.5

    def x(self, cost: float) -> float:
        share = (log10(cost) - self.left) / self.across
        return round(LEFT + 12 + share * (WIDTH - LEFT - RIGHT - 12), 1)

    def y(self, worth: float) -> float:
        share = (worth - self.low) / (self.high - self.low)
        return round(HEIGHT - BOTTOM - 8 - share * (HEIGHT - TOP - BOTTOM - 16), 1)

    def svg(self, limit: float, cost: str, worth: str, digits: int) -> str:
        floor, x = HEIGHT - BOTTOM, self.x(limit)
        parts = [
            f'<path d="M{LEFT} {TOP}V{floor}H{WIDTH - 4}" fill="none" '
            'stroke="currentColor" stroke-opacity="0.6"/>',
            *(self._tick_below(power) for power in self._ticks()),
            *(
                self._tick_beside(value, digits)
                for value in (self.low, (self.low + self.high) / 2, self.high)
            ),
            f'<text x="{WIDTH - 4}" y="{HEIGHT - 4}" text-anchor="end" '
            f'fill="currentColor">{escape(cost)} → </text>',
            f'<line class="attn-limit" x1="{x}" x2="{x}" y1="{TOP}" y2="{floor}" '
            'stroke="#d55e00" stroke-width="2" stroke-dasharray="6 3"/>',
            *self._points(limit),
        ]
        heard = escape(f"{worth} against {cost}")
        return (
            f'<figure style="margin:0;flex:1 1 420px;max-width:620px"><figcaption '
            f'style="text-align:left;font-weight:bold">{escape(worth)} ↑</figcaption>'
            # Where the drawing is stripped its texts remain, and should not be seen.
            f'<div style="{UNSEEN}"><svg viewBox="0 0 {WIDTH} {HEIGHT}" width="100%" '
            f'role="img" aria-label="{heard}; the numbers stand in the table">'
            f"{''.join(parts)}</svg></div></figure>"
        )

    def _ticks(self) -> list[float]:
        first, last = self.left, self.left + self.across
        ticks = [d * 10.0**p for p in range(-4, 7) for d in (1, 2, 5)]
        inside = [t for t in ticks if first <= log10(t) <= last]
        return inside if len(inside) <= 8 else [t for t in inside if f"{t:e}"[0] == "1"]

    def _tick_below(self, value: float) -> str:
        return (
            f'<text x="{self.x(value)}" y="{HEIGHT - BOTTOM + 15}" '
            f'text-anchor="middle" fill="currentColor">{value:g} </text>'
        )

    def _tick_beside(self, value: float, digits: int) -> str:
        return (
            f'<text x="{LEFT - 5}" y="{self.y(value) + 4}" text-anchor="end" '
            f'fill="currentColor">{value:.{digits}f} </text>'
        )

    def _points(self, limit: float) -> list[str]:
        drawn: list[str] = []
        points = [(self.x(c), self.y(w)) for c, w, _ in self.things.values()]
        taken: list[tuple[float, float, float]] = []
        for name, (cost, worth, spread) in sorted(
            self.things.items(), key=lambda item: -item[1][1]
        ):
            x, y = self.x(cost), self.y(worth)
            left, place = _free(x, y, name, points, taken)
            grey = cost > limit
            look = (
                f'fill="none" stroke="{GREY}"'
                if grey
                else f'fill="{PLAIN_BAR}" stroke="{PLAIN_BAR}"'
            )
            at = list(self.things).index(name)
            high, low = self.y(worth + spread), self.y(worth - spread)
            drawn.append(
                f'<g data-at="{at}" class="{"attn-over" if grey else ""}">'
                f'<path d="M{x} {high}V{low}" stroke="{GREY}"/>'
                f'<circle cx="{x}" cy="{y}" r="5" stroke-width="2" {look}/>'
                f'<text x="{x - 10 if left else x + 10:.1f}" y="{place:.1f}" '
                f'text-anchor="{"end" if left else "start"}" fill="currentColor">'
                f"{escape(name)} </text></g>"
            )
        return drawn


def _free(
    x: float,
    y: float,
    name: str,
    points: Sequence[tuple[float, float]],
    taken: list[tuple[float, float, float]],
) -> tuple[bool, float]:
    """The nearest place for a name that covers no point and no other name.

    Gives whether it stands left of its point, and the height of its line. `taken` holds
    the ends and the heights of the names that stand already.
    """
    wide = LETTER * len(name)
    for down in sorted(range(-HEIGHT, HEIGHT), key=lambda d: (abs(d), d < 0)):
        place = y + 4 + down
        for left in (False, True):
            first = x - 10 - wide if left else x + 10
            last = first + wide
            free = (
                first > LEFT
                and TOP + 8 < place < HEIGHT - BOTTOM - 3
                and not any(
                    abs(place - b) < APART and first < e and a < last
                    for a, e, b in taken
                )
                and not any(
                    abs(place - 4 - v) < 9 and first - 5 < u < last + 5
                    for u, v in points
                )
            )
            if free:
                taken.append((first, last, place))
                return left, place
    return False, y + 4
