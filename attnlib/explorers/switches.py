"""`switches`: a few things that are on or off, and what each set of them gives.

All 2^n states were computed beforehand, so that it needs no kernel. The switches are
native checkboxes: Tab goes from one to the next, Space turns it.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from attnlib.explorers.explorer import Explorer, page, shared_scale
from attnlib.explorers.panels import Panel, in_rows, legend
from attnlib.shapes import ShapeError

MOST = 8  # 256 states
FLEX = "display:flex;flex-wrap:wrap;align-items:center;gap:6px 16px"
ROW = f'style="{FLEX};border:0;padding:0;margin:0 0 14px"'
LABEL = 'style="display:inline-flex;align-items:center"'
BOX = 'style="width:auto;margin:0 5px 0 0"'


def switches(
    states: Sequence[Sequence[Panel]],
    names: Sequence[object],
    *,
    control: str,
    labels: Sequence[object],
    title: str,
    sentence: str,
    start: int | None = None,
    per_row: Sequence[int] | None = None,
) -> Explorer:
    """Switches for n things, over 2^n states that were computed beforehand.

    State s is the one in which thing i is on if bit i of s is 1: state 0 has all off,
    state 5 has things 0 and 2 on. Panels are as for `explore`.

    Args:
        states: one list of panels for each of the 2^n sets.
        names: of the n things, at most 8.
        control: what they are, such as "heads".
        labels: one text a state, shown beside the switches.
        title: stands above the figure.
        sentence: what the figure shows, in one line; it holds without the picture.
        start: the state shown first; all on, if left out.
        per_row: how many panels stand in each row; left out, as many as fit.

    Raises:
        ShapeError: another number of states or labels than 2^n, or states that differ
            in their panels.
        ValueError: no thing or more than 8, no such start, a sentence that is none, or
            more than 100 kB of HTML.

    >>> from attnlib.explorers import bars, switches
    >>> states = [[bars([n], ["on"], "how many", maximum=2)] for n in (0, 1, 1, 2)]
    >>> switches(states, ["a", "b"], control="things", labels=["0", "a", "b", "ab"],
    ...          title="T", sentence="Each thing counts 1.")
    Each thing counts 1.
    """
    n = len(names)
    if not 1 <= n <= MOST:
        raise ValueError(f"{title} has {n} switches; it takes 1 to {MOST}.")
    for what, found in (("states", states), ("labels", labels)):
        if len(found) != 2**n:
            raise ShapeError(
                f"{title} has {len(found)} {what}, but {n} switches have {2**n} sets."
            )
    shown = 2**n - 1 if start is None else start
    if not 0 <= shown < 2**n:
        raise ValueError(f"start={start} is none of the {2**n} states of {title}.")
    first = [panel.layout() for panel in states[shown]]
    for index, state in enumerate(states):
        if (found := [panel.layout() for panel in state]) != first:
            raise ShapeError(
                f"state {index} of {title} has the panels {found}, but state {shown} "
                f"has {first}; switches change numbers, not shapes."
            )
    tops = [shared_scale(list(column)) for column in zip(*states, strict=True)]
    drawn = [panel.html(top) for panel, top in zip(states[shown], tops, strict=True)]
    boxes = "".join(
        f'<label {LABEL}><input type="checkbox" {BOX} '
        f'data-lm-suppress-shortcuts="true"{" checked" if shown >> i & 1 else ""} '
        f"disabled>{escape(str(name))}</label>"
        for i, name in enumerate(names)
    )
    texts = [str(label) for label in labels]
    control_html = (
        f'<fieldset class="attn-control" {ROW}><legend style="float:left;'
        f"font-weight:600;margin:0 12px 0 0;padding:0;width:auto;font-size:inherit;"
        f'border:0">{escape(control)}</legend>{boxes}'
        f'<output aria-live="polite">{escape(texts[shown])}</output></fieldset>'
    )
    data = {
        "labels": texts,
        "states": [[panel.data() for panel in state] for state in states],
    }
    off = '<p class="attn-off">Run this cell to turn the switches.</p>'
    body = f"{control_html}{in_rows(drawn, per_row, title)}{legend(states[shown])}{off}"
    return page(title, sentence, body, data, "switches.js")
