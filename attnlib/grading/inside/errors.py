"""Errors on the wire: their class by name, and their text."""

from __future__ import annotations

import builtins
import importlib
from typing import Any

from attnlib.grading import stand_ins

LONGEST = 2000  # characters of a message
# Errors that are told apart by their class, and where it lives.
HOMES = {"ShapeError": "attnlib.shapes", "ChipError": "attnlib.tiles.arrays"}
HOMES |= {"AxisError": "numpy.exceptions", "LinAlgError": "numpy.linalg"}


def told(error: BaseException) -> dict[str, str]:
    """An error as text: its class, the nearest of Python's own, its message."""
    kind = type(error)
    own = next(k for k in kind.__mro__ if vars(builtins).get(k.__name__) is k)
    try:
        message = str(error)[:LONGEST]
    except BaseException:  # a class of the student's own may do anything here
        message = ""
    return {"kind": kind.__name__[:80], "base": own.__name__, "message": message}


def rebuilt(told: Any) -> BaseException:
    """An error of the same class and text; a class of the same name, if need be."""
    kind, base, message = (_text(told.get(key)) for key in ("kind", "base", "message"))
    found: Any = vars(builtins).get(base)
    if not (isinstance(found, type) and issubclass(found, BaseException)):
        found = Exception
    if kind in HOMES:
        known = getattr(importlib.import_module(HOMES[kind]), kind)
        found = known if issubclass(known, found) else found

    def say(self: BaseException) -> str:
        return message

    name = kind if kind.isidentifier() else stand_ins.name_of(kind)
    inside = {"__str__": say, "__init__": lambda self: None, "__module__": "student"}
    try:
        made: BaseException = type(name, (found,), inside)()
    except TypeError:  # a group of errors is made of others
        made = type(name, (Exception,), inside)()
    return made


def _text(given: object) -> str:
    return given[:LONGEST] if type(given) is str else ""
