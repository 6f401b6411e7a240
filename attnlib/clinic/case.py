"""One question put to a function, and what came back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Result = npt.NDArray[np.generic]
Faults = frozenset[str]
RIGHT: Faults = frozenset()


@dataclass(frozen=True)
class Case:
    """The arguments of one call, with a name that can stand in a sentence."""

    name: str
    args: tuple[object, ...]


@dataclass(frozen=True)
class Outcome:
    """What one call gave: its arrays, or the class name of the error it raised."""

    arrays: tuple[Result, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class View:
    """What one call lets us see of the attention inside it.

    `weights` is read from the answer itself; the other fields are computed from the
    arguments. An array that this call does not show is None.
    """

    weights: Result | None = None  #    (..., n_q, n_k)
    raw_scores: Result | None = None  # (..., n_q, n_k)  q @ k.T
    q: Result | None = None  #           (..., n_q, d_k)
    k: Result | None = None  #           (..., n_k, d_k)
    allowed: Result | None = None  #    (..., n_q, n_k)  the mask, broadcast
    sizes: Mapping[str, int] = field(default_factory=dict)


def see_nothing(case: Case, arrays: tuple[Result, ...]) -> View:
    """The view of a function that has no attention weights in it."""
    return View()


@dataclass(frozen=True)
class Family:
    """One function in all its wrong versions.

    `implementation(*args, faults=...)` is right for the empty set. `slots` groups the
    faults: two faults of one slot exclude each other, so a pair takes two slots.
    Earlier names win where two faults cannot be told apart.
    """

    name: str
    implementation: Callable[..., object]
    slots: Mapping[str, tuple[str, ...]]
    see: Callable[[Case, tuple[Result, ...]], View] = see_nothing
    pairs: bool = True

    @property
    def faults(self) -> tuple[str, ...]:
        """All keys of single mistakes, in their order."""
        return tuple(key for keys in self.slots.values() for key in keys)


def call(family: Family, case: Case, faults: Faults = RIGHT) -> Outcome:
    """Run one variant on one case. Errors are outcomes; warnings are silenced."""
    with np.errstate(all="ignore"):
        try:
            value = family.implementation(*case.args, faults=faults)
        except Exception as error:
            return Outcome(error=error_name(error))
    return Outcome(as_arrays(value))


def error_name(error: BaseException) -> str:
    """The class of an error, for comparing: the library's own says what NumPy's does.

    An answer that uses `attnlib.attention` meets a ShapeError where one in plain NumPy
    meets a ValueError. It is the same mistake.
    """
    kind = type(error).__name__
    return "ValueError" if kind == "ShapeError" else kind


def as_arrays(value: object) -> tuple[Result, ...]:
    """A tuple of results, also where a function returns one array."""
    parts = value if isinstance(value, tuple) else (value,)
    return tuple(np.asarray(part) for part in parts)
