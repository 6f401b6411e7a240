"""The report as HTML: the same text, and the weights beside the right ones.

GitHub drops every style, and JupyterLab keeps only those written in the elements of a
notebook it does not trust. So there is no style sheet and no script; the colours are
half transparent and read on white and on black; and whatever a colour says, a sign or
a number says, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

import numpy as np
import numpy.typing as npt

from attnlib.clinic.report import Finding, Report, Unknown, title

Table = npt.NDArray[np.float64]

MOST = 12  # rows and columns of a table
VISIBLE = 0.005  # weights are shown with two decimals
BLUE, ORANGE, FRAME = "86,140,220", "213,120,40", "#d55e00"
CELL = "padding:.25em .5em;text-align:right;border:1px solid rgba(128,128,128,.35)"
HEAD = "padding:.25em .5em;text-align:right;font-weight:400;opacity:.8"
NUMERIC = (
    "font-size:13px;font-variant-numeric:tabular-nums;border-collapse:collapse;margin:0"
)
BESIDE = "display:flex;flex-wrap:wrap;gap:.8em 2.5em;align-items:flex-start"


def html_of(report: Report) -> str:
    """The report as one self-contained piece of HTML."""
    parts = "".join(_parts(report))
    return f'<div style="max-width:62em;line-height:1.45">{parts}</div>'


def _parts(report: Report) -> Iterator[str]:
    yield f"<p><strong>{escape(report.verdict)}</strong></p>"
    if report.reason:
        yield f"<p>{_prose(report.reason)}</p>"
    several = len(report.mistakes) > 1
    for number, mistake in enumerate(report.mistakes, start=1):
        yield _finding(mistake, f"{number}. " if several else "")
    if report.unknown is not None:
        yield _unknown(report.unknown)
    yield from _weights(report)
    for caution in report.cautions:
        yield _finding(caution, "Caution, no mistake: ")
    if report.meant:
        yield f"<p>Meant to be: {_prose('; '.join(report.meant))}.</p>"
    if report.features:
        yield f"<p>Found out: {_prose('; '.join(report.features))}.</p>"
    if report.untested:
        items = "".join(f"<li>{_prose(report.begun(s))}</li>" for s in report.untested)
        yield f"<p>Not tested:</p><ul>{items}</ul>"


def _finding(finding: Finding, before: str) -> str:
    lines = [f"<strong>{_prose(before + title(finding))}</strong>"]
    lines.append(_prose(finding.sentence))
    if finding.evidence:
        lines.append(f"<em>What gave it away:</em> {_prose(finding.evidence)}")
    lines += [_prose(finding.mend), _prose(finding.seen)]
    return f"<p>{'<br>'.join(line for line in lines if line)}</p>"


def _unknown(unknown: Unknown) -> str:
    law = f"Wrong, but no mistake that is known here: {unknown.law.rstrip('.')}."
    said = f"<p><strong>{_prose(law)}</strong><br>{_prose(unknown.sentence)}</p>"
    if unknown.example:
        example = escape(unknown.example)
        said += f"<p>The smallest example:</p><pre>{example}</pre>"
    return said


def _prose(sentence: str) -> str:
    """A sentence, escaped; what stands in backticks is code."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(sentence))


def _weights(report: Report) -> Iterator[str]:
    """Two tables, if something is wrong and both are there."""
    yours, right = _table(report.weights), _table(report.right_weights)
    if report.healthy or yours is None or right is None or yours.shape != right.shape:
        return
    with np.errstate(all="ignore"):
        same = np.isclose(yours, right, rtol=0, atol=VISIBLE, equal_nan=True)
    rows, columns = yours.shape
    cut = slice(0, MOST)
    tables = [
        _html("Its weights", yours[cut, cut], ~same[cut, cut], yours[cut].sum(-1)),
        _html("Right weights", right[cut, cut], None, right[cut].sum(-1)),
    ]
    yield f'<div style="{BESIDE}">{"".join(tables)}</div>'
    said = "A row is a query, a column a key."
    if rows > MOST or columns > MOST:
        said += f" Shown are the first {min(rows, MOST)} of {rows} queries and the "
        said += f"first {min(columns, MOST)} of {columns} keys."
    if not same.all():
        n = int((~same).sum())
        cells = "cell differs" if n == 1 else "cells differ"
        said += f" {n} of {same.size} {cells} (≠, framed)."
    yield f"<p>{said}</p>"


def _table(weights: npt.NDArray[np.floating] | None) -> Table | None:
    if weights is None:
        return None
    table = np.asarray(weights, np.float64)
    while table.ndim > 2:  # the first head of the first item
        table = table[0]
    return table if table.ndim == 2 and table.size else None


def _html(
    caption: str,
    table: Table,
    differs: npt.NDArray[np.bool_] | None,
    sums: Table,
) -> str:
    head = "".join(
        f'<th scope="col" style="{HEAD}">{j}</th>' for j in range(len(table[0]))
    )
    lines = [f'<th style="{HEAD}"></th>{head}<th scope="col" style="{HEAD}">sum</th>']
    for i, row in enumerate(table):
        cells = "".join(
            _cell(float(value), differs is not None and bool(differs[i, j]))
            for j, value in enumerate(row)
        )
        total = f'<td style="{HEAD}">{_number(float(sums[i]))}</td>'
        lines.append(f'<th scope="row" style="{HEAD}">{i}</th>{cells}{total}')
    body = "".join(f"<tr>{line}</tr>" for line in lines[1:])
    return (
        f'<table style="{NUMERIC}"><caption style="text-align:left;caption-side:top">'
        f"<strong>{caption}</strong></caption><thead><tr>{lines[0]}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def _cell(value: float, marked: bool) -> str:
    strength = min(1.0, abs(value)) if np.isfinite(value) else 0.0
    colour = ORANGE if value < 0 else BLUE
    style = CELL
    if strength > VISIBLE:
        style += f";background-color:rgba({colour},{0.6 * strength:.2f})"
    text = _number(value)
    if marked:
        style += f";border:2px solid {FRAME}"
        text = f"<strong>≠ {text}</strong>"
    return f'<td style="{style}">{text}</td>'


def _number(value: float) -> str:
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "∞" if value > 0 else "-∞"
    text = f"{value:.2f}" if abs(value) < 1000 else f"{value:.1e}"
    return text.removeprefix("-") if float(text) == 0 else text
