"""What there is to see of a student's answer and of its errors, as plain text.

The judge of the notebooks looks at a function before it calls it, and at the line where
an error arose. Here is where both are, so here it is looked at, and told.
"""

from __future__ import annotations

import inspect
import linecache
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from attnlib.exercises import frames, stubs
from attnlib.grading.inside import errors
from attnlib.grading.values import pack

LONGEST = 300  # characters of a line or an expression
MOST_NAMES = 50
Piece = dict[str, Any]


def file_of(cell: int) -> str:
    """What stands as the file name in tracebacks of a cell."""
    return f"<cell {cell}>"


def padded(piece: Piece) -> str:
    """The source of a statement, on the lines where it stands in its cell."""
    return "\n" * (int(piece["line"]) - 1) + str(piece["source"])


def remember(pieces: Sequence[Piece]) -> None:
    """Let Python find the lines of all cells, for tracebacks and `inspect`."""
    cells: dict[int, list[str]] = {}
    for piece in pieces:
        lines = cells.setdefault(piece["cell"], [])
        own = str(piece["source"]).split("\n")
        first = int(piece["line"]) - 1
        lines += [""] * (first + len(own) - len(lines))
        lines[first : first + len(own)] = own
    for cell, lines in cells.items():
        name = file_of(cell)
        whole = [line + "\n" for line in lines]
        linecache.cache[name] = (sum(map(len, whole)), None, whole, name)


def told(answer: Callable[..., Any]) -> dict[str, Any]:
    """What can be seen of a function without calling it."""
    return {
        "name": stubs.name_of(answer)[:LONGEST],
        "stub": stubs.is_stub(answer),
        "signature": _signature(answer),
        "stub_called": frames.stub_called(answer),
        "outer_numbers": frames.outer_numbers(answer)[:MOST_NAMES],
        "returns_something": frames.returns_something(answer),
        "multiplies_infinity": frames.multiplies_infinity(answer),
    }


def _signature(answer: Callable[..., Any]) -> list[Any] | None:
    try:
        parameters = list(inspect.signature(answer).parameters.values())
    except Exception:  # some built-in functions do not say what they take
        return None
    return [[p.name, int(p.kind), *_default(p)] for p in parameters[:MOST_NAMES]]


def _default(parameter: inspect.Parameter) -> list[Any]:
    """What is taken if nothing is given: as data, or as text if it is none."""
    default = parameter.default
    if default is inspect.Parameter.empty:
        return []
    if type(default) in (type(None), bool, int, float, str):
        return ["value", pack(default)[0]]
    try:
        return ["text", repr(default)[:LONGEST]]
    except Exception:
        return ["text", "..."]


def error(raised: BaseException, answer: Callable[..., Any]) -> dict[str, Any]:
    """An error, and where in the student's own code it arose."""
    try:
        place = frames.find(raised, answer)
        where = None if place is None else frames.outline(place)
    except Exception:  # nothing of a student's can be trusted to be looked at
        where = None
    if where is not None:
        for key in ("source", "expression", "function"):
            where[key] = str(where[key])[:LONGEST]
    return errors.told(raised) | {"place": where}


def top_error(raised: BaseException, piece: Piece) -> dict[str, Any]:
    """An error of a statement at the top level: its cell, and its line there."""
    file = file_of(piece["cell"])
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(raised.__traceback__)
        if frame.filename == file
    ]
    if isinstance(raised, SyntaxError):
        lines = [raised.lineno]
    line = lines[0] if lines and lines[0] else piece["line"]
    return errors.told(raised) | {"cell": piece["cell"], "line": line}
