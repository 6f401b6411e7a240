"""Values as plain data, on the way out: see `values` for the way back."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from attnlib.grading import stand_ins

Node = Any  # what JSON can hold
Array = npt.NDArray[Any]

LARGEST = 10**6  # numbers in an array: of a larger one only the shape is sent
MOST_NODES = 80_000  # they find place in a header of the channel
MOST_ARRAYS, MOST_AXES = 4000, 32  # the channel's, and a little less
DEEPEST = 70  # lists in lists; NumPy knows 64 axes
LONGEST = 20_000  # characters of a text
MOST_TEXTS = 100  # in an array of texts
WIDEST = 4096  # hexadecimal digits of a whole number
EXACT = 2**53  # whole numbers up to here are the same in every JSON
NUMERIC = "biufc"


class TooMuch(ValueError):
    """A value has more parts than are sent."""


Extra = Callable[[object], Node | None]


def pack(
    value: object, extra: Extra | None = None, most: int = MOST_NODES
) -> tuple[Node, list[Array]]:
    """One node of JSON, and the arrays that it points to by their numbers.

    `extra` is asked for each value that is no plain data: its node, or None. A value
    of more than `most` parts goes by its type only.
    """
    packer = _Packer(extra, most)
    try:
        return packer.node(value, 0), packer.arrays
    except TooMuch:
        return {"is": "stand-in", "type": _type_name(type(value))}, []


class _Packer:
    def __init__(self, extra: Extra | None, most: int) -> None:
        self.arrays: list[Array] = []
        self._extra, self._most = extra, most
        self._kept: dict[int, tuple[object, Node]] = {}  # arrays, by identity
        self._nodes = 0
        self._numbers = 0

    def node(self, value: object, depth: int) -> Node:
        self._nodes += 1
        if self._nodes > self._most or depth > DEEPEST:
            raise TooMuch
        kind = type(value)
        if value is None or value is True or value is False:
            return value
        if value is Ellipsis:
            return {"is": "..."}
        plain = PLAIN.get(kind)
        if plain is not None:
            return plain(value)
        if kind is tuple or kind is list:
            return self._sequence(value, kind.__name__, depth)  # type: ignore[arg-type]
        if kind is dict:
            pairs: Any = list(dict.items(value))  # type: ignore[arg-type]
            parts = [[self.node(part, depth + 1) for part in pair] for pair in pairs]
            return {"is": "dict", "pairs": parts}
        if kind is slice:
            ends = (value.start, value.stop, value.step)  # type: ignore[attr-defined]
            return {"is": "slice", "ends": [self.node(e, depth + 1) for e in ends]}
        special = None if self._extra is None else self._extra(value)
        return self._object(value, kind, depth) if special is None else special

    def _sequence(self, value: Sequence[object], kind: str, depth: int) -> Node:
        only = {type(part) for part in value}
        if len(value) > 8 and only == {float}:  # far fewer bytes as an array
            return {"is": kind, "all": self._keep(np.array(value, np.float64))}
        parts = [self.node(part, depth + 1) for part in value]
        return {"is": kind, "parts": parts}

    def _object(self, value: Any, kind: type, depth: int) -> Node:
        known = self._kept.get(id(value))
        if known is not None:
            return known[1]
        try:
            node = self._numeric(value, kind) or self._other(value, kind, depth)
        except TooMuch:
            raise
        except Exception:  # it raises, whatever it is asked
            node = {"is": "stand-in", "type": _type_name(kind)}
        self._kept[id(value)] = value, node
        return node

    def _numeric(self, value: Any, kind: type) -> Node | None:
        """What NumPy reads as numbers, and words for arrays of anything else."""
        name = _type_name(kind)
        if issubclass(kind, (np.ma.MaskedArray, type, *LAZY)):
            return None
        if issubclass(kind, np.ndarray):
            if np.ndarray.size.__get__(value) > LARGEST:
                return _large(np.ndarray.shape.__get__(value))
            array = np.array(value, copy=True, subok=False)
            if array.dtype.kind == "U" and array.size <= MOST_TEXTS:
                return _texts(array)
            if array.dtype.kind not in NUMERIC:
                return {"is": "odd", "dtype": array.dtype.str[:LONGEST]}
            order = "F" if array.flags.f_contiguous and array.ndim > 1 else "C"
            return {"is": "array", "number": self._keep(array), "order": order}
        tensor = getattr(sys.modules.get("torch"), "Tensor", None)
        if tensor is not None and issubclass(kind, tensor):
            if tensor.numel(value) > LARGEST:
                return _large(tuple(tensor.size(value)))
            array, dtype = _of_tensor(value)
            number = self._keep(array)
            return {"is": "numbers", "number": number, "type": name, "dtype": dtype}
        if issubclass(kind, (str, tuple, list, dict)) or callable(value):
            return None
        array = np.array(value, copy=True, subok=False)
        if array.dtype.kind not in NUMERIC or array.size > LARGEST:
            return None
        number = self._keep(array)
        if kind in SCALARS:
            return {"is": "scalar", "number": number}
        return {"is": "numbers", "number": number, "type": name, "dtype": ""}

    def _other(self, value: Any, kind: type, depth: int) -> Node:
        """What is no numbers: of which kind it is, and how its type is called."""
        node: Node
        node = {"is": "stand-in", "type": _type_name(kind), "mark": _mark(value, kind)}
        for base in (tuple, list):
            if issubclass(kind, base):
                parts = base.__getitem__(value, slice(None))
                node["module"] = str(kind.__module__)[: stand_ins.LONGEST_NAME]
                return node | self._sequence(parts, base.__name__, depth)
        if issubclass(kind, str):
            return node | {"is": "text", "text": str.__str__(value)[:LONGEST]}
        fields = getattr(kind, "__dataclass_fields__", None)
        if type(fields) is dict:
            node["fields"] = [f for f in fields if type(f) is str][:20]
        if node["mark"] == "callable":
            node["called"] = getattr(value, "__name__", "")
            node["called"] = stand_ins.name_of(node["called"])
        return node

    def _keep(self, array: Array) -> int:
        self._numbers += array.size
        if self._numbers > 4 * LARGEST or len(self.arrays) >= MOST_ARRAYS:
            raise TooMuch
        if array.ndim > MOST_AXES:
            raise TooMuch
        self.arrays.append(array)
        return len(self.arrays) - 1


def _large(shape: Iterable[int]) -> Node:
    return {"is": "large", "shape": [int(n) for n in shape]}


def _texts(array: Array) -> Node:
    texts = [text[:LONGEST] for text in array.ravel().tolist()]
    shape = list(array.shape)
    return {"is": "texts", "dtype": array.dtype.str, "shape": shape, "texts": texts}


def _of_tensor(value: Any) -> tuple[Array, str]:
    found = value.detach().cpu().to_dense()  # a class of its own may refuse
    dtype = str(found.dtype)
    # NumPy has no bfloat16; float32 holds each of its numbers.
    found = found.float() if dtype == "torch.bfloat16" else found
    array = found.numpy()
    if array.dtype.kind not in NUMERIC:
        raise TypeError(dtype)
    return np.array(array), dtype


def _type_name(kind: type) -> str:
    return stand_ins.name_of(type.__dict__["__name__"].__get__(kind))


LAZY: tuple[type, ...] = (types.GeneratorType, types.AsyncGeneratorType)
LAZY = (*LAZY, types.CoroutineType, map, filter, zip)


def _mark(value: Any, kind: type) -> str:
    if issubclass(kind, types.GeneratorType):
        return "expression" if value.gi_code.co_name == "<genexpr>" else "generator"
    for lazy in (map, filter, zip):
        if issubclass(kind, lazy):
            return lazy.__name__
    if issubclass(kind, types.CoroutineType):
        value.close()
        return "coroutine"
    if issubclass(kind, types.AsyncGeneratorType):
        return "asynchronous"
    if value is NotImplemented:
        return "not implemented"
    if issubclass(kind, np.ma.MaskedArray):
        return "masked"
    if issubclass(kind, type):
        return "class"
    return "callable" if callable(value) else ""


def _text(value: Any) -> Node:
    return value if len(value) <= LONGEST else value[:LONGEST]


def _whole(value: Any) -> Node:
    if abs(value) <= EXACT:
        return value
    digits = hex(value)
    if len(digits) <= WIDEST:
        return {"is": "int", "hex": digits}
    return {"is": "stand-in", "type": "int"}


PLAIN: Mapping[type, Callable[[Any], Node]] = {
    str: _text,
    int: _whole,
    float: lambda value: {"is": "float", "hex": float.hex(value)},
    np.str_: lambda value: {"is": "np.str_", "text": str(value)[:LONGEST]},
}
SCALARS = frozenset(
    kind for kind in np.sctypeDict.values() if np.dtype(kind).kind in NUMERIC
)
