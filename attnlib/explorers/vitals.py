"""`vitals`: many small charts of one patient at a time, with a slider over the steps.

Every chart is an SVG that is drawn here, once; the script shows one patient, moves the
line that marks the step, and writes the numbers under the charts. So the same drawing
serves while a training runs, in the page that is stored, and where scripts are off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import numpy.typing as npt

from attnlib.explorers.explorer import Explorer, page
from attnlib.explorers.numbers import Number, rounded
from attnlib.explorers.panels import FLOW, UNSEEN
from attnlib.shapes import ShapeError

WIDTH, HEIGHT, EDGE, LABEL = 200, 70, 3, 11  # LABEL: room for the top of the scale
# Okabe and Ito's colours, as in attnlib.figures; and dashes, for who does not see them.
LINES = (
    ("#0072b2", ""),
    ("#d55e00", "6 2"),
    ("#009e73", "2 2"),
    ("#cc79a7", "8 2 2 2"),
)
TILES = "attn-tiles"
TILE = 'style="margin:0;flex:0 1 210px"'


@dataclass(frozen=True)
class Sign:
    """One chart of every patient: a title, and how its numbers are written."""

    title: str
    digits: int = 2
    reference: float | None = None  # a dotted line: what to compare with


Curves = Mapping[str, npt.ArrayLike]  # title -> (n_steps,) or (n_steps, n_lines)


def vitals(
    patients: Mapping[str, Curves],
    signs: Sequence[Sign],
    steps: Sequence[int],
    *,
    lines: Sequence[object],
    control: str,
    title: str,
    sentence: str,
    start: int = 0,
) -> Explorer:
    """Small charts of one patient, who is chosen, at one step, which is slid over.

    All patients have the same signs, and each sign one scale for all of them.

    Args:
        patients: name -> curves, title of a sign -> (n_steps,) or (n_steps, n_lines).
        signs: the charts, in their order.
        steps: the steps at which the curves were measured, (n_steps,).
        lines: what the lines of a sign are called, such as head 0, head 1.
        control: what is chosen, such as "patient".
        title: stands above the figure.
        sentence: what the figure shows, in one line; it holds without the picture.
        start: the place of the patient shown first.

    Raises:
        ShapeError: a curve that does not fit the steps or the lines.
        ValueError: no patient, no such start, a sentence that is none, or too much.

    >>> from attnlib.explorers.vitals import Sign, vitals
    >>> curves = {"A": {"loss": [2.0, 1.0]}, "B": {"loss": [2.0, np.nan]}}
    >>> vitals(curves, [Sign("loss")], [0, 6], lines=["head 0"], control="patient",
    ...        title="T", sentence="B has no loss after six steps.")
    B has no loss after six steps.
    """
    if not patients:
        raise ValueError(f"{title} has no patient to show.")
    if not 0 <= start < len(patients):
        raise ValueError(
            f"start={start} is none of the {len(patients)} patients of {title}."
        )
    read = {
        name: [read_curve(name, sign, curves, len(steps), len(lines)) for sign in signs]
        for name, curves in patients.items()
    }
    tops = [
        top(sign, [own[i] for own in read.values()]) for i, sign in enumerate(signs)
    ]
    last = len(steps) - 1
    wards = "".join(
        f'<div class="attn-ward" aria-label="{escape(f"{control} {name}")}" '
        f'role="group"{"" if i == start else " hidden"}>'
        f'<b style="{UNSEEN}">{escape(f"{control} {name}")} </b>'
        f"{tiles(own, signs, tops, last)}</div>"
        for i, (name, own) in enumerate(read.items())
    )
    options = "".join(
        f"<option{' selected' if i == start else ''}>{escape(str(name))}</option>"
        for i, name in enumerate(read)
    )
    off = 'data-lm-suppress-shortcuts="true" disabled'
    controls = (
        f'<label class="attn-control"><span>{escape(control)}</span>'
        f"<select {off}>{options}</select></label>"
        '<label class="attn-control"><span>step</span>'
        f'<input type="range" min="0" max="{last}" step="1" value="{last}" '
        f'aria-valuetext="{steps[-1]}" {off}><output>{steps[-1]}</output></label>'
    )
    data = {
        "steps": [int(step) for step in steps],
        "digits": [sign.digits for sign in signs],
        "values": [
            [
                [rounded(row, sign.digits) for row in curve]
                for sign, curve in zip(signs, own, strict=True)
            ]
            for own in read.values()
        ],
    }
    body = (
        f"{controls}{wards}{legend(lines)}"
        '<p class="attn-off">Run this cell to choose a patient and a step.</p>'
    )
    return page(title, sentence, body, data, "vitals.js")


def tiles(
    curves: Sequence[npt.NDArray[np.float64]],
    signs: Sequence[Sign],
    tops: Sequence[float],
    at: int,
    wide: int = 0,
) -> str:
    """The charts of one patient, (n_steps, n_lines) each, marked at one step.

    `wide`: how many steps a chart has room for, if some are still to come.
    """
    drawn = "".join(
        f"<figure {TILE}><figcaption>{escape(sign.title)}</figcaption>"
        f"{_svg(curve, sign, top, at, max(wide, len(curve)))}"
        f'<p class="attn-now">{_now(curve[at], sign.digits)}</p></figure>'
        for sign, curve, top in zip(signs, curves, tops, strict=True)
    )
    return f'<div class="{TILES}" style="{FLOW}">{drawn}</div>'


def legend(lines: Sequence[object]) -> str:
    """Which line is which."""
    samples = "".join(
        f'<span><svg width="34" height="8" aria-hidden="true"><line x1="1" x2="33" '
        f'y1="4" y2="4" {_look(i)}/></svg> {escape(str(line))}</span> '
        for i, line in enumerate(lines)
    )
    dotted = (
        '<span><svg width="34" height="8" aria-hidden="true"><line x1="1" x2="33" '
        'y1="4" y2="4" stroke="currentColor" stroke-dasharray="1 3"/></svg> '
        "to compare with</span>"
    )
    return f'<p class="attn-lines-legend">{samples}{dotted}</p>'


def read_curve(
    name: str, sign: Sign, curves: Curves, n_steps: int, n_lines: int
) -> npt.NDArray[np.float64]:
    """One curve as (n_steps, 1) or (n_steps, n_lines)."""
    curve = np.asarray(curves[sign.title], dtype=float)
    if curve.ndim == 1:
        curve = curve[:, None]
    if curve.shape not in ((n_steps, 1), (n_steps, n_lines)):
        raise ShapeError(
            f"{sign.title} of {name} has shape {curve.shape}, but there are {n_steps} "
            f"steps and {n_lines} lines."
        )
    return curve


def top(sign: Sign, curves: Sequence[npt.NDArray[np.float64]]) -> float:
    """The upper end of a scale: the largest number of all patients."""
    found = [value for curve in curves for value in curve.ravel().tolist()]
    finite = [value for value in found if np.isfinite(value)]
    return max([*finite, sign.reference or 0.0]) or 1.0


def _svg(
    curve: npt.NDArray[np.float64], sign: Sign, top: float, at: int, wide: int
) -> str:
    across = WIDTH / max(wide - 1, 1)
    up = (HEIGHT - EDGE - LABEL) / top
    parts = []
    lost = ~np.isfinite(curve).all(1)
    if lost.any():
        first = int(lost.argmax())
        left = max(first - 0.5, 0) * across
        parts.append(
            f'<rect class="attn-lost" x="{left:.0f}" y="0" '
            f'width="{WIDTH - left:.0f}" height="{HEIGHT}" fill="#888" '
            f'fill-opacity="0.25"/><text x="{(left + WIDTH) / 2:.0f}" '
            f'y="{HEIGHT / 2 + 4:.0f}" text-anchor="middle" fill="currentColor">NaN'
            "</text>"
        )
    if sign.reference is not None:
        y = HEIGHT - EDGE - up * sign.reference
        parts.append(
            f'<line x1="0" x2="{WIDTH}" y1="{y:.0f}" y2="{y:.0f}" '
            'stroke="currentColor" stroke-dasharray="1 3"/>'
        )
    for i, line in enumerate(curve.T):
        points = [
            f"{step * across:.0f},{HEIGHT - EDGE - up * value:.0f}"
            for step, value in enumerate(line.tolist())
            if np.isfinite(value)
        ]
        if len(points) == 1:  # a line needs two; this one is as short as a dash
            place, height = points[0].split(",")
            points.append(f"{int(place) + 4},{height}")
        parts.append(f'<polyline points="{" ".join(points)}" fill="none" {_look(i)}/>')
    x = f"{at * across:.0f}"
    parts.append(
        f'<line class="attn-at" x1="{x}" x2="{x}" y1="0" y2="{HEIGHT}" '
        'stroke="currentColor" stroke-opacity="0.6"/>'
    )
    return (
        f'<svg viewBox="-1 -1 {WIDTH + 2} {HEIGHT + 2}" width="100%" role="img" '
        f'aria-label="{escape(sign.title)}, from 0 to {top:.3g}">{"".join(parts)}'
        f'<text x="2" y="10" fill="currentColor">{top:.{_few(top)}f}</text></svg>'
    )


def _few(top: float) -> int:
    return 0 if top >= 10 else 1 if top >= 1 else 2


def _look(i: int) -> str:
    colour, dash = LINES[i % len(LINES)]
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'stroke="{colour}" stroke-width="2"{dashed}'


def _now(values: npt.NDArray[np.float64], digits: int) -> str:
    return "".join(
        f"<span>{_text(value, digits)}</span> " for value in rounded(values, digits)
    )


def _text(value: Number, digits: int) -> str:
    if isinstance(value, str):
        return "NaN" if value == "nan" else value.replace("inf", "∞")
    return f"{value:.{digits}f}"
