"""What stands in the grader for an object of a student's process: made here, of names.

The judge tells a generator from a tensor and a class from a function, and says so. It
gets objects of the same kind, that hold nothing of the student's but names and numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

LONGEST_NAME = 80  # characters of the name of a type


class StandIn:
    """An object that can do nothing. The name of its class is that of the original."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class Numbers(StandIn):
    """What NumPy can read numbers from: a tensor, a series, a range."""

    def __init__(self, array: npt.NDArray[Any], dtype: str = "") -> None:
        self._array = array
        self.shape, self.dtype = array.shape, dtype or str(array.dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self._array, dtype=dtype)

    def __bool__(self) -> bool:
        return bool(self._array)

    def __int__(self) -> int:
        return int(self._array)

    def __float__(self) -> float:
        return float(self._array)

    def __complex__(self) -> complex:
        return complex(self._array)


class Rows(Numbers):
    """The same with axes: one can go through it, and not through a single number."""

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._array)


def name_of(given: object) -> str:
    """A name that is safe to be that of a type, and to stand in a sentence."""
    if type(given) is not str or not given.isidentifier():
        return "object"
    return given[:LONGEST_NAME]


def numbers(name: object, array: npt.NDArray[Any], dtype: str) -> Numbers:
    """What holds these numbers, of a type of that name."""
    base = Rows if array.ndim else Numbers
    made: Numbers = type(name_of(name), (base,), {})(array, dtype)
    return made


def stand_in(name: object, mark: object, told: Mapping[str, Any]) -> object:
    """An object of a type of that name, and of the kind that `mark` tells."""
    made = MARKS.get(mark) if type(mark) is str else None
    if made is not None:
        return made()
    if mark == "class":
        return type(name_of(name), (), {})
    inside: dict[str, Any] = {}
    fields = told.get("fields")
    if type(fields) is list:  # as of a dataclass
        names = [f for f in fields if type(f) is str]
        inside["__dataclass_fields__"] = dict.fromkeys(names)
    if mark == "callable":
        inside["__call__"] = _refuse
        inside["__name__"] = name_of(told.get("called"))
    return type(name_of(name), (StandIn,), inside)()


def holding(kind: type, name: object, module: object, value: Any) -> Any:
    """A tuple, list or text of a type of that name: of a NamedTuple, for example."""
    inside = {"__module__": module} if type(module) is str else {}
    return type(name_of(name), (kind,), inside)(value)


def _refuse(self: StandIn, *_: object, **__: object) -> NoReturn:
    raise TypeError(f"a {type(self).__name__} of a student's is not called here")


def _generator() -> Any:
    yield None


async def _coroutine() -> None: ...


def _closed_coroutine() -> object:
    made = _coroutine()
    made.close()  # else Python would say that nobody waited for it
    return made


async def _asynchronous() -> Any:
    yield None


# Objects that the judge knows by their type alone: real ones, with nothing in them.
MARKS: dict[str, Callable[[], object]] = {
    "generator": _generator,
    "expression": lambda: (x for x in range(0)),
    "map": lambda: map(int, ()),
    "filter": lambda: filter(int, ()),
    "zip": lambda: zip(()),
    "coroutine": _closed_coroutine,
    "asynchronous": _asynchronous,
    "not implemented": lambda: NotImplemented,
    "masked": lambda: np.ma.masked_array(np.zeros(1)),
}
