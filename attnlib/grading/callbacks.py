"""Answers the questions of a student's code: calls of functions that stay here.

A check of lesson 17 is handed an attention, and others a model or a loss. The function
runs here, on plain arrays, and never takes more than a small input can cost.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from attnlib.grading import stand_ins
from attnlib.grading.channel import Arrays, Header, Lost
from attnlib.grading.inside import errors
from attnlib.grading.values import pack, unpack

PAIRS = 4_000_000  # of rows of two arguments: a table of scores takes 32 MB
LONGEST = 120.0  # seconds for all questions of one call


class Callbacks:
    """The functions among the arguments of one call, and how they are called."""

    def __init__(self, texts: dict[str, str] | None = None) -> None:
        self._texts = texts or {}  # a text that comes back is the one that went out
        self._functions: list[Callable[..., object]] = []
        self.seconds = 0.0

    def node(self, value: object) -> Any:
        """For `pack`: what goes over the wire in place of a function."""
        if not callable(value) or isinstance(value, type):
            return None
        self._functions.append(value)
        name = stand_ins.name_of(getattr(value, "__name__", ""))
        if name == "object":  # as its own repr says it: <function attend>
            name = stand_ins.name_of(repr(value).strip("<>").split(" ")[-1])
        number = len(self._functions) - 1
        return {"is": "function", "number": number, "name": name}

    def __call__(
        self, question: Header, arrays: Arrays
    ) -> tuple[Header, Sequence[npt.NDArray[Any]]]:
        """Answer one question."""
        before = time.monotonic()
        try:
            return self._answer(question, arrays)
        finally:
            self.seconds += time.monotonic() - before
            if self.seconds > LONGEST:
                raise Lost("timeout", "it asked too much")

    def _answer(
        self, question: Header, arrays: Arrays
    ) -> tuple[Header, Sequence[npt.NDArray[Any]]]:
        try:
            number = question["function"]
            args, kwargs = unpack(question["args"], arrays)
            function = self._functions[number] if type(number) is int else None
            if function is None or type(args) is not tuple or type(kwargs) is not dict:
                raise ValueError
        except Exception:
            raise Lost("broke", "it asked what is no question") from None
        args = tuple(self._own(value) for value in args)
        kwargs = {name: self._own(value) for name, value in kwargs.items()}
        places = {**dict(enumerate(args)), **kwargs}
        own = {
            place: (value, value.copy())
            for place, value in places.items()
            if type(value) is np.ndarray and value.size <= PAIRS
        }
        reply: Header = {"what": "reply", "error": None, "value": None, "changed": []}
        back: Arrays = []
        try:
            _small([v for v in places.values() if isinstance(v, np.ndarray)])
            with np.errstate(all="ignore"):
                found = function(*args, **kwargs)
            reply["value"], back = pack(found)
        except Exception as error:
            reply["error"] = errors.told(error)
        for place, (value, copy) in own.items():
            if value.tobytes() != copy.tobytes():
                reply["changed"].append([place, len(back)])
                back = [*back, value]
        return reply, back

    def _own(self, value: Any) -> Any:
        return self._texts.get(value, value) if type(value) is str else value


def _small(given: Sequence[Any]) -> None:
    """Refuse what would take much memory here, such as a large table of scores."""
    shapes = [(1, *v.shape) if v.ndim == 1 else v.shape for v in given if v.ndim]
    try:
        lead = math.prod(np.broadcast_shapes(*(s[:-2] for s in shapes)))
    except ValueError:  # the function itself will object
        return
    rows = sorted((s[-2] for s in shapes), reverse=True)
    wide = max((s[-1] for s in shapes), default=0)
    table = math.prod((rows * 2)[:2]) if len(rows) == 1 else math.prod(rows[:2])
    most = max(table, max(rows, default=0) * wide)
    if lead * most > PAIRS or sum(map(math.prod, shapes)) > PAIRS:
        raise MemoryError(f"inputs of shapes {shapes} are too large")
