"""The dashboard of the clinic: vital signs while patients train, and to look at after.

`Board` is a progress bar with the charts of the patient that is training under it;
when the cell is done, one line stands there, as with `progress`. `dashboard` makes of
all charts one figure, with a choice of the patient and a slider over the steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from attnlib.explorers.explorer import Explorer, asset
from attnlib.explorers.vitals import Sign, read_curve, tiles, top, vitals
from attnlib.widgets.progress import Progress

# What is measured (a field of attnlib.nn.charts.Signs), its title, and its decimals.
SHOWN = {
    "loss": ("loss", 2),
    "keys": ("keys that a query uses", 1),
    "saturated": ("rows above 0.99", 2),
    "sink": ("weight on the first token", 2),
    "loudness": ("loudness of a head", 2),
    "gradient": ("gradient of W_q and W_k", 2),
    "nan_weights": ("weights that are NaN", 2),
    "nan_gradient": ("gradients that are NaN", 2),
}


class Charted(Protocol):
    """A chart as `attnlib.nn.charts.watch` keeps it."""

    @property
    def name(self) -> str: ...
    @property
    def steps(self) -> Sequence[int]: ...
    def curve(self, name: str) -> npt.NDArray[np.floating]: ...


class Board(Progress):
    """A progress bar with the vital signs of the patient that is training.

        with Board(6 * 90, "6 patients") as board:
            for letter in "ABCDEF":
                watch(admit(letter), report=board)

    Args:
        total: how many steps there will be, in all trainings together.
        label: what is being done, in a word or two.
        entries: how many entries a chart will have.

    >>> board = Board(2, "2 patients")
    2 patients, 2 steps.
    """

    def __init__(self, total: int, label: str, entries: int = 16) -> None:
        self._entries = entries
        self._chart: Charted | None = None
        self._tops = [0.0] * len(SHOWN)
        super().__init__(total, label)

    def see(self, chart: Charted) -> None:
        """Take a chart that has grown; it is drawn with the next picture of the bar."""
        self._chart = chart

    def bar(self, step: int, more: str = "") -> str:
        """The bar, and under it the charts of the patient that trains now."""
        drawn = super().bar(step, more)
        if self._chart is None:
            return drawn
        signs, chart = _signs({}), self._chart
        curves = [
            read_curve(chart.name, sign, {sign.title: chart.curve(name)}, n, 4)
            for name, sign, n in (
                (name, sign, len(chart.steps))
                for name, sign in zip(SHOWN, signs, strict=True)
            )
        ]
        self._tops = [
            max(before, top(sign, [curve]))
            for before, sign, curve in zip(self._tops, signs, curves, strict=True)
        ]
        last = len(chart.steps) - 1
        charts = tiles(curves, signs, self._tops, last, self._entries)
        style = asset("style.css") + asset("vitals.css")
        return (
            f'{drawn}<div class="attn"><style>{style}</style><p class="attn-title">'
            f"<b>Patient {chart.name}</b></p>{charts}</div>"
        )


def dashboard(
    charts: Sequence[Charted],
    *,
    title: str,
    sentence: str,
    compare: Mapping[str, float] | None = None,
    start: int = 0,
) -> Explorer:
    """Make one figure of several charts: choose a patient, move over the steps.

    Args:
        charts: all with the same steps.
        title: stands above the figure.
        sentence: what the figure shows, in one line; it holds without the picture.
        compare: name of a sign -> a number to compare it with, a dotted line.
        start: the place of the patient shown first.

    Raises:
        ValueError: charts of different steps, none, or nothing of that name.

    >>> dashboard([], title="T", sentence="S.")
    Traceback (most recent call last):
        ...
    ValueError: T has no chart to show.
    """
    if not charts:
        raise ValueError(f"{title} has no chart to show.")
    steps = charts[0].steps
    for chart in charts:
        if tuple(chart.steps) != tuple(steps):
            raise ValueError(
                f"patients {charts[0].name} and {chart.name} were measured at "
                f"different steps, up to {steps[-1]} and {chart.steps[-1]}; was one "
                "interrupted?"
            )
    if unknown := set(compare or {}) - set(SHOWN):
        raise ValueError(f"no sign is called {min(unknown)!r}.")
    signs = _signs(compare or {})
    patients = {
        chart.name: {
            sign.title: chart.curve(name)
            for name, sign in zip(SHOWN, signs, strict=True)
        }
        for chart in charts
    }
    return vitals(
        patients,
        signs,
        list(steps),
        lines=[f"head {i}" for i in range(4)],
        control="patient",
        title=title,
        sentence=sentence,
        start=start,
    )


def _signs(compare: Mapping[str, float]) -> list[Sign]:
    return [
        Sign(title, digits, compare.get(name))
        for name, (title, digits) in SHOWN.items()
    ]
