"""A table of traffic lights: what is well, what is missing, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from attnlib.explorers.explorer import Explorer, asset
from attnlib.explorers.numbers import one_line
from attnlib.explorers.panels import TABLE, TR, caption

# A shape and a word for each state, so that nobody needs to see the colour.
LEFT = 'style="text-align:left"'
SIGNS = {"ok": "●", "old": "▲", "missing": "■"}


def lights(
    rows: Iterable[Sequence[str]],
    *,
    title: str = "What this environment has",
    sentence: str | None = None,
) -> Explorer:
    """One row a thing: its name, a light, and what to do.

    Args:
        rows: (name, state, what to do) with state "ok", "old" or "missing".
        title: the caption.
        sentence: what the table shows, in one line; counted from the rows if left out.

    Raises:
        ValueError: a state that is none of the three.

    >>> from attnlib.explorers import lights
    >>> lights([("NumPy", "ok", ""), ("torch", "missing", "pip install torch")])
    1 of 2 things are in order; to do: torch.
    """
    cells, todo, count = [], [], 0
    for name, state, advice in rows:
        if state not in SIGNS:
            known = ", ".join(map(repr, SIGNS))
            raise ValueError(
                f"{name} has the state {state!r}, which is none of {known}."
            )
        count += 1
        if state != "ok":
            todo.append(name)
        cells.append(
            f'{TR}<th scope="row" {LEFT}>{escape(name)}</th>'
            f'<td class="attn-{state}" {LEFT}><b>{SIGNS[state]}</b> {state}</td>'
            f"<td {LEFT}>{escape(advice)}</td></tr>"
        )
    if sentence is None:
        done = count - len(todo)
        rest = f"to do: {', '.join(todo)}." if todo else "nothing to do."
        sentence = f"{done} of {count} things are in order; {rest}"
    html = (
        f'<div class="attn attnlib-explorer"><style>{asset("style.css")}</style>'
        f'<table class="attn-l" {TABLE}>{caption(title)}<thead><tr>'
        f'<th scope="col" {LEFT}>what</th><th scope="col" {LEFT}>state</th>'
        f'<th scope="col" {LEFT}>what to do</th></tr></thead>'
        f"<tbody>{''.join(cells)}</tbody></table></div>"
    )
    return Explorer(one_line(sentence), html)
