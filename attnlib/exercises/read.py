"""Read what a learner's function returned: arrays of numbers, or one sentence.

Nothing of the learner's object is asked to compare itself: an object that claims to
equal everything is turned into a plain array first, or refused.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

import numpy as np

from attnlib.clinic.case import Result
from attnlib.exercises import text

if TYPE_CHECKING:  # else this file could not be where no answers may be
    from attnlib.exercises.exercise import Part

NUMERIC = "biuf"
LARGEST = 10**6  # numbers; a copy of more takes time and memory, and none is asked for
Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Read:
    """Plain arrays, or the sentence that says why there are none."""

    arrays: tuple[Result, ...] = ()
    sentence: str = ""


def read(value: object, parts: Sequence[Part], wanted: Sequence[str] = ()) -> Read:
    """Turn a returned value into one plain array for each part.

    `wanted` says in words what each part should be, for the sentence.
    """
    wanted = wanted or ["an array of numbers"] * len(parts)
    try:
        return _read(value, parts, wanted)
    except Exception:  # an object that raises whatever it is asked
        sentence = text.not_an_array(parts[0].name, wanted[0], _kind(value))
        return Read(sentence=sentence)


def _read(value: object, parts: Sequence[Part], wanted: Sequence[str]) -> Read:
    special = _special(value)
    if special:
        many = len(parts) > 1 and is_a(value, types.GeneratorType, map)
        return Read(sentence=text.LAZY_MANY if many else special)
    if len(parts) == 1:
        pair = type(value).__module__ == "torch.return_types"  # of max, sort, ...
        if is_a(value, tuple) and (pair or type(value) is tuple):
            numbers = all(is_a(v, int, float, np.number) for v in value)
            if numbers and value and len(parts[0].axes.split()) == 1:
                return _read(list(value), parts, wanted)
            return Read(sentence=text.tuple_for_one(len(value), parts[0].name))
        values: Sequence[object] = (value,)
    else:
        names = tuple(part.name for part in parts)
        if not any(part.axes for part in parts) and not is_a(value, tuple, list):
            row = plain(value)  # numbers may come in one array, in their order
            value = value if isinstance(row, str) or row.ndim != 1 else list(row)
        if not is_a(value, tuple, list):
            return Read(sentence=text.one_for_many(_kind(value), names))
        if len(value) != len(parts):
            return Read(sentence=text.wrong_count(len(value), names))
        values = value
    arrays: list[Result] = []
    for part, piece, words in zip(parts, values, wanted, strict=True):
        array = plain(piece)
        if isinstance(array, str):
            said = text.not_an_array(part.name, words, array)
            if part.name in getattr(type(piece), "__dataclass_fields__", ()):
                said += text.take_its(part.name)
            return Read(sentence=said)
        arrays.append(array)
    return Read(tuple(arrays))


def plain(value: object) -> Result | str:
    """A plain NumPy copy of anything numeric, or words for what it is instead."""
    special = _special(value)
    if special:
        return _kind(value)
    if is_a(value, np.ma.MaskedArray):
        return text.MASKED
    if is_a(value, np.ndarray) and np.ndarray.__dict__["size"].__get__(value) > LARGEST:
        return text.TOO_LARGE.format(shape=np.ndarray.__dict__["shape"].__get__(value))
    try:
        if _is_tensor(value):
            if _of_torch("numel", value) > LARGEST:
                shape = tuple(_of_torch("size", value))
                return text.TOO_LARGE.format(shape=shape)
            value = _of_tensor(value)
        elif is_a(value, list, tuple) and any(map(_is_tensor, value)):
            parts = [plain(part) for part in value]
            value = [p for p in parts if not isinstance(p, str)]
            if len(value) < len(parts):
                return text.LIST_OF_OTHERS
        array = np.array(value, copy=True, subok=False)
    except Exception:
        return text.RAGGED if is_a(value, list, tuple) else _kind(value)
    if array.dtype.kind == "c":
        return text.COMPLEX
    if array.dtype.kind not in NUMERIC:
        if is_a(value, list, tuple):
            return text.LIST_OF_OTHERS
        is_array = is_a(value, np.ndarray)
        return text.OBJECTS.format(dtype=array.dtype) if is_array else _kind(value)
    return array


def _is_tensor(value: object) -> bool:
    """Whether it is a tensor of PyTorch, or of a class made from it."""
    torch = sys.modules.get("torch")
    return torch is not None and issubclass(type(value), torch.Tensor)


def _of_torch(method: str, value: object) -> Any:
    """What torch.Tensor itself says, and not a class made from it."""
    return getattr(sys.modules["torch"].Tensor, method)(value)


def _of_tensor(value: Any) -> object:
    value = value.detach().cpu().to_dense()
    # NumPy has no bfloat16; float32 holds each of its numbers.
    return (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()


def is_a(value: object, *kinds: type[Kind]) -> TypeGuard[Kind]:
    """isinstance, asked of the type alone: the object itself may lie or raise."""
    return issubclass(type(value), kinds)


def _special(value: object) -> str:
    """A sentence for values that are the sign of one particular slip."""
    if value is None:
        return text.RETURNS_NONE
    if value is Ellipsis or value is NotImplemented:
        return text.RETURNS_ELLIPSIS
    if is_a(value, types.GeneratorType):
        expression = value.gi_code.co_name == "<genexpr>"
        return text.LAZY.format(kind="a generator") if expression else text.GENERATOR
    if is_a(value, map, filter, zip):
        return text.LAZY.format(kind=_kind(value))
    if is_a(value, types.CoroutineType):
        value.close()
        return text.COROUTINE
    if is_a(value, types.AsyncGeneratorType):
        return text.COROUTINE
    if callable(value):
        return text.RETURNS_CALLABLE
    return ""


def _kind(value: object) -> str:
    if is_a(value, np.ndarray):
        return "one array"
    name = type(value).__name__
    return text.KINDS.get(name) or text.a(name)
