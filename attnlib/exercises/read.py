"""Read what a learner's function returned: arrays of numbers, or one sentence.

Nothing of the learner's object is asked to compare itself: an object that claims to
equal everything is turned into a plain array first, or refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnlib.clinic.case import Result
from attnlib.exercises import text
from attnlib.exercises.exercise import Part

NUMERIC = "biuf"


@dataclass(frozen=True)
class Read:
    """Plain arrays, or the sentence that says why there are none."""

    arrays: tuple[Result, ...] = ()
    sentence: str = ""


def read(value: object, parts: Sequence[Part]) -> Read:
    """Turn a returned value into one plain array for each part."""
    special = _special(value)
    if special:
        return Read(sentence=special)
    if len(parts) == 1:
        if type(value) is tuple:
            return Read(sentence=text.tuple_for_one(len(value), parts[0].name))
        values: Sequence[object] = (value,)
    else:
        names = tuple(part.name for part in parts)
        if not isinstance(value, (tuple, list)):
            return Read(sentence=text.one_for_many(_kind(value), names))
        if len(value) != len(parts):
            return Read(sentence=text.wrong_count(len(value), names))
        values = value
    arrays: list[Result] = []
    for part, piece in zip(parts, values, strict=True):
        array = plain(piece)
        if isinstance(array, str):
            return Read(sentence=text.not_an_array(part.name, array))
        arrays.append(array)
    return Read(tuple(arrays))


def plain(value: object) -> Result | str:
    """A plain NumPy copy of anything numeric, or words for what it is instead."""
    special = _special(value)
    if special:
        return _kind(value)
    if isinstance(value, np.ma.MaskedArray):
        return text.MASKED
    try:
        if type(value).__module__.split(".")[0] == "torch":
            value = value.detach().cpu().numpy()  # type: ignore[attr-defined]
        array = np.array(value, copy=True, subok=False)
    except Exception:
        return text.RAGGED if isinstance(value, (list, tuple)) else _kind(value)
    if array.dtype.kind == "c":
        return text.COMPLEX
    if array.dtype.kind not in NUMERIC:
        if isinstance(value, (list, tuple)):
            return text.LIST_OF_OTHERS
        return text.OBJECTS if isinstance(value, np.ndarray) else _kind(value)
    return array


def _special(value: object) -> str:
    """A sentence for values that are the sign of one particular slip."""
    if value is None:
        return text.RETURNS_NONE
    if value is Ellipsis or value is NotImplemented:
        return text.RETURNS_ELLIPSIS
    if inspect.isgenerator(value):
        return text.GENERATOR
    if inspect.iscoroutine(value):
        value.close()
        return text.COROUTINE
    if callable(value):
        return text.RETURNS_CALLABLE
    return ""


def _kind(value: object) -> str:
    return text.a(type(value).__name__)
