"""What a kernel had its chip do, noted down, and done again with other numbers.

A kernel runs in our own process, so it can reach whatever we hide: an array behind a
private name, our arguments, what an earlier call left. So nothing is hidden, and what
the kernel computed is not judged. What is judged is its program: each call that it
made of its chip and tiles, in order, with tiles by number, and each tile that it let
go. The program runs again on a new chip and on numbers that were drawn when the kernel
had ended. No code of the kernel runs then. A number that went round the meters stands
in the program as it was, if at all, and is wrong now.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from attnlib.tiles.arrays import ChipError, InHBM, Tile
from attnlib.tiles.chip import Chip

LET_GO = "let go"
OF_CHIP = "hbm", "load", "store", "new", "arange"
OF_TILE = (
    *("__array_ufunc__", "__array_function__", "__getitem__", "__setitem__"),
    *("max", "min", "sum", "mean", "any", "all"),
    *("reshape", "transpose", "swapaxes", "astype", "copy"),
)
METHODS: dict[str, Callable[..., Any]] = {
    **{name: getattr(Chip, name) for name in OF_CHIP},
    **{name: getattr(Tile, name) for name in OF_TILE},
    "T": lambda tile: Tile.T.__get__(tile),
}
# Of anything else, no one knows what runs when NumPy uses it.
KINDS = {int, float, bool, str, type(None), type(...), range, *np.sctypeDict.values()}
OF_NUMPY = [
    one
    for module in (np, np.linalg, np.lib.stride_tricks)
    for one in vars(module).values()
    if callable(one)
]
KIND_IDS = {id(one) for one in KINDS}
KNOWN_IDS = {id(one) for one in (*OF_NUMPY, *KINDS)}


class Ref:
    """Stands in a program for a tile, for an array in HBM, or for the chip."""


NOWHERE = Ref()  # for a tile that no step has made
Step = tuple[str, tuple[Any, ...], dict[str, Any], tuple[Ref, ...]]


class Metered(Protocol):
    """What a chip says when all is done."""

    @property
    def traffic(self) -> int:
        """Bytes that went to and fro."""

    @property
    def written(self) -> int:
        """Bytes that went to HBM."""

    @property
    def peak(self) -> int:
        """The most bytes on the chip at once."""


Elsewhere = Callable[[Mapping[str, npt.NDArray[Any]]], Metered]


class Program:
    """The calls of one run. It is never copied: a guarded call hands it through."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.chip = Ref()
        self.placed: dict[str, Ref] = {}
        self.elsewhere: Elsewhere | None = None  # who does it again, if not we

    def __deepcopy__(self, memo: object) -> Program:
        return self

    def note(self, name: str, args: Any, kwargs: Any, made: object) -> None:
        """Write down one call, and what stands for all that it made."""
        refs = tuple(_ref(one) for one in _in_memory(made))
        self.steps.append((name, _as_data(args), _as_data(kwargs), refs))

    def again(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Metered:
        """Do it all on a new chip, with these arrays in HBM; its meters tell.

        Raises ChipError where it cannot be done: a tile was not made by the chip.
        """
        if self.elsewhere is not None:
            return self.elsewhere(arrays)
        chip = Chip()
        live: dict[object, Any] = {self.chip: chip}
        for name, ref in self.placed.items():
            live[ref] = chip.hbm(arrays[name], name)
        for name, args, kwargs, refs in self.steps:
            if name == LET_GO:
                live.pop(refs[0], None)
                continue
            try:
                made = METHODS[name](*_value(args, live), **_value(kwargs, live))
                live.update(zip(refs, _in_memory(made), strict=True))
            except Exception as error:
                raise ChipError(f"{name} cannot be done again: {error}") from None
            del made  # else this name would hold what the kernel had let go
        return chip


class Noting(Chip):
    """A chip that keeps the program of what is done on it."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program

    def place(self, array: npt.NDArray[Any], name: str) -> InHBM:
        """Put an array into HBM before the program begins, under a name."""
        placed = Chip.hbm(self, array, name)
        self.program.placed[name] = _ref(placed)
        return placed

    def _tile(self, array: npt.NDArray[Any]) -> Tile:
        return NotedTile(self, array, super()._tile(array).room)


class NotedTile(Tile):
    """A tile whose every use is noted, and its end."""

    def __del__(self) -> None:
        ref = self.__dict__.get("ref")
        if ref is not None:  # else no step has made it
            step: Step = (LET_GO, (), {}, (ref,))
            self.chip.program.steps.append(step)  # type: ignore[attr-defined]


def _noted(name: str) -> Callable[..., Any]:
    method = METHODS[name]

    @functools.wraps(method)
    def noting(self: Any, *args: Any, **kwargs: Any) -> Any:
        if name == "__array_function__":
            if args[0] is np.apply_along_axis:
                return _along(*args[2], **args[3])
            args = (args[0], (), *args[2:])  # our own classes are of no use again
        made = method(self, *args, **kwargs)
        chip: Any = self if isinstance(self, Chip) else self.chip
        chip.program.note(name, (self, *args), kwargs, made)
        return made

    return noting


for _name in OF_CHIP:
    setattr(Noting, _name, _noted(_name))
for _name in OF_TILE:
    setattr(NotedTile, _name, _noted(_name))
NotedTile.T = property(_noted("T"))  # type: ignore[assignment]


def _along(
    func1d: Callable[..., Any], axis: int, arr: Any, *more: Any, **by: Any
) -> Any:
    """np.apply_along_axis in steps that can be noted: a function cannot."""

    def over(part: Any) -> Any:
        if part.ndim == 1:
            return func1d(part, *more, **by)
        return np.stack([over(part[i]) for i in range(len(part))])

    found = over(np.moveaxis(arr, axis, -1))
    return np.moveaxis(found, -1, axis) if found.ndim == arr.ndim else found


def _in_memory(made: object) -> list[Any]:
    """All tiles and arrays in HBM of what a call gave."""
    if isinstance(made, (Tile, InHBM)):
        return [made]
    if isinstance(made, (tuple, list)):
        return [one for part in made for one in _in_memory(part)]
    return []


def _ref(one: Any) -> Ref:
    """What stands for a tile: always the same."""
    ref: Ref = one.__dict__.setdefault("ref", Ref())
    return ref


def _as_data(x: Any) -> Any:
    """A call's arguments, with what stands for tiles, and copies of what may change."""
    kind = type(x)
    if kind in KINDS or kind is slice or kind is np.ufunc:
        return x
    if isinstance(x, (Tile, InHBM)):
        return x.__dict__.get("ref", NOWHERE)
    if isinstance(x, Chip):
        return x.__dict__["program"].chip
    if isinstance(x, np.ndarray):
        return x.copy()
    if kind is tuple or kind is list:
        return kind(map(_as_data, x))
    if kind is dict:
        return {name: _as_data(one) for name, one in x.items()}
    return x


def _value(x: Any, live: Mapping[object, Any]) -> Any:
    """What stands in a program, as an argument; refused is all that could run code."""
    kind = type(x)
    if id(kind) in KIND_IDS:
        return x
    if kind is Ref:
        return live[x]
    if kind is tuple:
        return tuple(_value(one, live) for one in x)
    if kind is list:
        return [_value(one, live) for one in x]
    if kind is dict:
        return {name: _value(one, live) for name, one in x.items()}
    if kind is slice:
        return slice(*(_value(one, live) for one in (x.start, x.stop, x.step)))
    if id(x) in KNOWN_IDS or issubclass(kind, np.dtype):
        return x
    if kind is np.ndarray and not x.dtype.hasobject:
        return x
    if kind is np.ufunc and any("O" not in types for types in x.types):
        return x
    raise ChipError(f"it is not known what a {kind.__name__} does.")
