"""Read what a student's process tells of a function and of its errors.

It is text of a stranger. Names are cut, sizes are whole numbers, and nothing is kept
but what the judge's sentences need.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from attnlib.exercises.afar import FarPlace, Told
from attnlib.exercises.frames import Builtin
from attnlib.grading import letters
from attnlib.grading.values import clean, unpack

LONGEST = 300  # characters of a line
MOST_NAMES = 50
KINDS = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.KEYWORD_ONLY,
    inspect.Parameter.VAR_KEYWORD,
)


def told_of(told: Any) -> Told:
    """What there is to see of a function."""
    return Told(
        name=text_of(told["name"]),
        stub=told["stub"] is True,
        signature=_signature(told["signature"]),
        stub_called=text_of(told["stub_called"]),
        outer_numbers=tuple(map(text_of, list(told["outer_numbers"])[:MOST_NAMES])),
        returns_something=told["returns_something"] is not False,
        multiplies_infinity=told["multiplies_infinity"] is True,
    )


def _signature(told: Any) -> inspect.Signature | None:
    if told is None:
        return None
    parameters = []
    for name, kind, *default in told[:MOST_NAMES]:
        value: object = inspect.Parameter.empty
        if default:
            value = default[1]
            value = (
                unpack(value, []) if default[0] == "value" else _Text(text_of(value))
            )
        kinds = KINDS[kind]
        parameters.append(inspect.Parameter(text_of(name), kinds, default=value))
    return inspect.Signature(parameters)


class _Text(str):
    """A default that is shown as it was written."""

    def __repr__(self) -> str:
        return str(self)


def place_of(told: Any) -> FarPlace | None:
    """Where an error arose; None if that is not in the student's own code."""
    if told is None:
        return None
    values: dict[str, object] = {}
    for name in list(told["none"])[:MOST_NAMES]:
        values[text_of(name)] = None
    for name in list(told["whole"])[:MOST_NAMES]:
        values[text_of(name)] = 0
    for name, shape in list(told["shapes"].items())[:MOST_NAMES]:
        sizes = tuple(max(0, int(n)) for n in shape)
        values[text_of(name)] = np.broadcast_to(np.zeros(()), sizes)
    for name, builtin in list(told["builtins"].items())[:MOST_NAMES]:
        values[text_of(name)] = Builtin(text_of(builtin))
    return FarPlace(
        line=int(told["line"]),
        function=text_of(told["function"]),
        source=text_of(told["source"]),
        expression=text_of(told["expression"]),
        values=values,
        arguments=tuple(map(text_of, list(told["arguments"])[:MOST_NAMES])),
    )


def top_error(told: Any, pieces: Sequence[Any]) -> str:
    """A sentence on a statement at the top level that raised.

    Args:
        told: by the student's process.
        pieces: what it was given to run; the line is shown from there.
    """
    kind, message = text_of(told["kind"]), text_of(told["message"])
    cell, line = int(told["cell"]), int(told["line"])
    rows = (
        row
        for piece in pieces
        for number, row in enumerate(piece.source.split("\n"), piece.line)
        if (piece.cell, number) == (cell, line)
    )
    where = f"Cell {cell}, line {line}{letters.quoted(next(rows, ''))}"
    return f"{where} raised {kind}{f': {message}' if message else ''}".rstrip(".") + "."


def text_of(given: object) -> str:
    """A name, a line or a message, cut."""
    return clean(given, LONGEST)
