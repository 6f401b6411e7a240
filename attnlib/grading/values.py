"""Values as plain data: what goes between the grader and a student's process.

`pack` makes of a value one node of JSON and a list of arrays; `unpack` makes a value of
them again. Types are looked at exactly: a subclass, a lying `__class__` and an object
that equals everything arrive as plain numbers, or as an object that can do nothing and
has the name of their type. `pack` runs beside the student's code. `unpack` believes
nothing that it reads, and never runs anything that came.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from attnlib.grading import stand_ins
from attnlib.grading.packing import (
    DEEPEST,
    LARGEST,
    LONGEST,
    MOST_NODES,
    MOST_TEXTS,
    NUMERIC,
    WIDEST,
    Array,
    Node,
    pack,
)

ODD = re.compile(r"[<>|=]?[OSUVMm]\d{0,9}(\[\w+\])?")  # dtypes that are told by name

TEXTS = re.compile(r"[<>]U\d{1,5}")


class Odd(ValueError):
    """What came is no value: not every process at the other end is ours."""


def unpack(
    node: Node,
    arrays: Sequence[Array],
    extra: Callable[[Node], object] | None = None,
    most: int = MOST_NODES,
) -> Any:
    """The value again. `extra` reads the nodes that `pack` has from its own `extra`.

    Raises Odd where the node is none that `pack` makes.
    """
    try:
        return _Unpacker(arrays, extra, most).value(node, 0)
    except Odd:
        raise
    except Exception as error:
        raise Odd(f"no value: {type(error).__name__}") from None


class _Unpacker:
    def __init__(
        self,
        arrays: Sequence[Array],
        extra: Callable[[Node], object] | None,
        most: int,
    ) -> None:
        self._extra, self._most = extra, 2 * most
        self._nodes = 0
        self._arrays = [_sound(array) for array in arrays]

    def value(self, node: Node, depth: int) -> Any:
        self._nodes += 1
        if self._nodes > self._most or depth > 2 * DEEPEST:
            raise Odd("a value has too many parts")
        if node is None or type(node) in (bool, int):
            return node
        if type(node) is str:
            return clean(node)
        if type(node) is not dict or type(node.get("is")) is not str:
            raise Odd(f"a value cannot be a {type(node).__name__}")
        read = READS.get(node["is"])
        if read is not None:
            return getattr(self, read)(node, depth)
        if self._extra is None:
            raise Odd("a value of a kind that there is not")
        return self._extra(node)

    def _array(self, node: Node, depth: int) -> Array:
        array = self._arrays[_number(node)]
        return np.asfortranarray(array) if node.get("order") == "F" else array

    def _scalar(self, node: Node, depth: int) -> Any:
        array = self._arrays[_number(node)]
        if array.ndim:
            raise Odd("a scalar has axes")
        return array[()]

    def _numbers(self, node: Node, depth: int) -> Any:
        array, dtype = self._arrays[_number(node)], clean(node["dtype"], 40)
        return stand_ins.numbers(node["type"], array, dtype)

    def _large(self, node: Node, depth: int) -> Array:
        shape = tuple(int(n) for n in node["shape"])
        found = np.broadcast_to(np.zeros(()), shape)  # takes no room at all
        if found.size <= LARGEST:
            raise Odd("a large array is none")
        return found

    def _odd(self, node: Node, depth: int) -> Array:
        dtype = node["dtype"]
        named = dtype if ODD.fullmatch(dtype) else "object"
        return np.empty((0,), dtype=named)

    def _texts(self, node: Node, depth: int) -> Array:
        texts, dtype = list(map(clean, node["texts"])), node["dtype"]
        if len(texts) > MOST_TEXTS or not TEXTS.fullmatch(dtype):
            raise Odd("no array of texts")
        return np.array(texts, dtype).reshape([int(n) for n in node["shape"]])

    def _sequence(self, node: Node, depth: int) -> Any:
        kind = tuple if node["is"] == "tuple" else list
        if "all" in node:
            parts = self._arrays[_number(node, "all")].ravel().tolist()
        else:
            parts = [self.value(part, depth + 1) for part in node["parts"]]
        if "type" in node:
            return stand_ins.holding(kind, node["type"], node.get("module"), parts)
        return kind(parts)

    def _dict(self, node: Node, depth: int) -> Any:
        found: dict[Any, Any] = {}
        for key, value in node["pairs"]:
            found[_key(self.value(key, depth + 1))] = self.value(value, depth + 1)
        return found

    def _slice(self, node: Node, depth: int) -> slice:
        start, stop, step = (self.value(end, depth + 1) for end in node["ends"])
        return slice(start, stop, step)

    def _named_text(self, node: Node, depth: int) -> str:
        found: str = stand_ins.holding(str, node["type"], None, clean(node["text"]))
        return found

    def _text_of_numpy(self, node: Node, depth: int) -> np.str_:
        return np.str_(clean(node["text"]))

    def _int(self, node: Node, depth: int) -> int:
        if len(node["hex"]) > WIDEST:
            raise Odd("a whole number is too long")
        return int(node["hex"], 16)

    def _float(self, node: Node, depth: int) -> float:
        return float.fromhex(node["hex"])

    def _dots(self, node: Node, depth: int) -> Any:
        return ...

    def _stand_in(self, node: Node, depth: int) -> object:
        return stand_ins.stand_in(node["type"], node.get("mark"), node)


READS = {
    "array": "_array",
    "scalar": "_scalar",
    "numbers": "_numbers",
    "large": "_large",
    "odd": "_odd",
    "texts": "_texts",
    "tuple": "_sequence",
    "list": "_sequence",
    "dict": "_dict",
    "slice": "_slice",
    "text": "_named_text",
    "np.str_": "_text_of_numpy",
    "int": "_int",
    "float": "_float",
    "...": "_dots",
    "stand-in": "_stand_in",
}


def _number(node: Node, name: str = "number") -> int:
    number = node[name]
    if type(number) is not int or number < 0:
        raise Odd("an array without a number")
    return number


def _sound(array: Array) -> Array:
    """A plain array; a truth value made of any other byte is True."""
    if type(array) is not np.ndarray or array.dtype.kind not in NUMERIC:
        raise Odd("no plain array")
    truth = array.dtype.kind == "b"
    return np.asarray(array.view(np.uint8) != 0) if truth else array


def _key(key: Any) -> Any:
    """A key that can be looked up; what cannot is told by its type."""
    try:
        hash(key)
    except TypeError:
        return stand_ins.stand_in(type(key).__name__, "", {})
    return key


def clean(text: Any, longest: int = LONGEST) -> str:
    """Text that is not too long, and can be printed and written to any file.

    Raises Odd where it is none.
    """
    if type(text) is not str:
        raise Odd("no text")
    return text[:longest].encode("utf-8", "replace").decode("utf-8")


__all__ = ["Odd", "clean", "pack", "unpack"]
