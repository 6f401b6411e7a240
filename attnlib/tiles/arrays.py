"""Arrays that know where they lie: in HBM, where nothing is computed, or on the chip.

Both refuse what would get past the meters of the chip, in one sentence each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from attnlib.shapes import ShapeError

if TYPE_CHECKING:
    from attnlib.tiles.chip import Chip, Room

Rows = range | slice
Region = Rows | tuple[Rows, ...] | None


class ChipError(TypeError):
    """A number was to be used where it does not lie."""


class InHBM(NDArrayOperatorsMixin):
    """An array that lies in HBM. It has a shape, and `Chip.load` reads it."""

    def __init__(self, chip: Chip, array: npt.NDArray[Any], name: str) -> None:
        self.chip, self._array, self.name = chip, array, name
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim

    def __len__(self) -> int:
        return int(self.shape[0])

    def __repr__(self) -> str:
        return f"InHBM({self.name}, shape={self.shape}, dtype={self.dtype})"

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise ChipError(
            f"{self.name} lies in HBM, where nothing is computed; chip.load copies "
            "rows of it to the chip."
        )

    __array__ = __array_ufunc__ = __array_function__ = _refuse
    __getitem__ = __iter__ = __float__ = __bool__ = _refuse
    T = property(_refuse)

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise ChipError(
            f"{self.name} lies in HBM; chip.store copies a tile from the chip into "
            "rows of it."
        )


class Tile(NDArrayOperatorsMixin):
    """An array on the chip. What is computed from it lies on the chip, too."""

    def __init__(self, chip: Chip, array: npt.NDArray[Any], room: Room) -> None:
        self.chip, self._array, self.room = chip, array, room

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of its axes."""
        return self._array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its numbers."""
        return self._array.dtype

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return self._array.ndim

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return self._array.size

    @property
    def nbytes(self) -> int:
        """How many bytes its numbers take."""
        return self._array.nbytes

    @property
    def T(self) -> Tile:
        """The same numbers with the axes turned round."""
        return self.chip._tile(self._array.T)

    def __len__(self) -> int:
        return len(self._array)

    def __repr__(self) -> str:
        return f"Tile({np.array2string(self._array, separator=', ')})"

    def __bool__(self) -> bool:
        return bool(self._array)

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise ChipError(
            "a tile lies on the chip and leaves it only through chip.store; chip.new "
            "makes room for numbers on the chip."
        )

    __float__ = __int__ = __index__ = __array__

    def __array_ufunc__(
        self,
        ufunc: np.ufunc,
        method: str,
        *inputs: Any,
        out: tuple[Any, ...] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Compute with np.exp, +, @ and their like, on the chip."""
        arrays = [self._unwrap(x) for x in inputs]
        kwargs = {name: self._unwrap(x) for name, x in kwargs.items()}
        if out is not None:
            kwargs["out"] = tuple(self._unwrap(x) for x in out)
        elif method == "__call__" and self.chip.sram_bytes is not None:
            # Before it is computed: a product can be far larger than its factors.
            self.chip._check_room(*_result(ufunc, arrays))
        result = getattr(ufunc, method)(*arrays, **kwargs)
        if ufunc is np.matmul:
            self.chip.flops += 2 * np.size(result) * np.shape(arrays[0])[-1]
        if out is not None:
            return out[0] if len(out) == 1 else out
        return self._wrap(result)

    def __array_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any],
        kwargs: dict[str, Any],
    ) -> Any:
        """Compute with np.where, np.max and their like, on the chip."""
        return self._wrap(func(*self._unwrap(tuple(args)), **self._unwrap(kwargs)))

    def __getitem__(self, key: Any) -> Any:
        return self._wrap(self._array[self._unwrap(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._array[self._unwrap(key)] = self._unwrap(value)

    def max(self, axis: Any = None, keepdims: bool = False) -> Tile:
        """The largest number along an axis; -inf, if there is none."""
        low = {"initial": -np.inf} if self.dtype.kind == "f" else {}
        found = np.max(self._array, axis=axis, keepdims=keepdims, **low)  # type: ignore[call-overload]
        return self.chip._tile(np.asarray(found))

    def min(self, axis: Any = None, keepdims: bool = False) -> Tile:
        """The smallest number along an axis."""
        return self.chip._tile(np.asarray(self._array.min(axis, keepdims=keepdims)))

    def sum(self, axis: Any = None, keepdims: bool = False) -> Tile:
        """The sum along an axis."""
        return self.chip._tile(np.asarray(self._array.sum(axis, keepdims=keepdims)))

    def mean(self, axis: Any = None, keepdims: bool = False) -> Tile:
        """The mean along an axis."""
        return self.chip._tile(np.asarray(self._array.mean(axis, keepdims=keepdims)))

    def any(self, axis: Any = None, keepdims: bool = False) -> Tile:
        """Whether one is true along an axis."""
        return self.chip._tile(np.asarray(self._array.any(axis, keepdims=keepdims)))

    def all(self, axis: Any = None, keepdims: bool = False) -> Tile:
        """Whether all are true along an axis."""
        return self.chip._tile(np.asarray(self._array.all(axis, keepdims=keepdims)))

    def reshape(self, *shape: Any) -> Tile:
        """The same numbers in another shape."""
        return self.chip._tile(self._array.reshape(*shape))

    def transpose(self, *axes: Any) -> Tile:
        """The same numbers with the axes in another order."""
        return self.chip._tile(self._array.transpose(*axes))

    def swapaxes(self, one: int, other: int) -> Tile:
        """The same numbers with two axes exchanged."""
        return self.chip._tile(self._array.swapaxes(one, other))

    def astype(self, dtype: npt.DTypeLike) -> Tile:
        """The same numbers in another type, in room of their own."""
        return self.chip._tile(self._array.astype(dtype))

    def copy(self) -> Tile:
        """The same numbers in room of their own."""
        return self.chip._tile(self._array.copy())

    def _unwrap(self, x: Any) -> Any:
        if isinstance(x, Tile):
            if x.chip is not self.chip:
                raise ChipError("two tiles of different chips do not meet.")
            return x._array
        if isinstance(x, InHBM):
            x._refuse()
        if isinstance(x, np.ndarray) and x.ndim:
            raise ChipError(
                f"an array of shape {x.shape} comes from neither HBM nor the chip; "
                "chip.new, chip.arange and chip.load make what a tile can be used with."
            )
        if isinstance(x, (tuple, list)):
            return type(x)(self._unwrap(part) for part in x)
        if isinstance(x, dict):
            return {name: self._unwrap(part) for name, part in x.items()}
        if callable(x) and not isinstance(x, type):  # as of np.apply_along_axis
            return lambda *parts: self._unwrap(x(*self._wrap(parts)))
        return x

    def _wrap(self, x: Any) -> Any:
        if isinstance(x, (np.ndarray, np.generic)):
            return self.chip._tile(np.asarray(x))
        if isinstance(x, (tuple, list)):
            return type(x)(self._wrap(part) for part in x)
        return x


def region(verb: str, array: InHBM, rows: Region) -> tuple[Any, ...]:
    """Turn ranges and slices into the index of a block of an array in HBM."""
    if rows is None:
        return (...,)
    parts = rows if isinstance(rows, tuple) else (rows,)
    if len(parts) > array.ndim:
        raise ShapeError(
            f"{verb} was asked for {len(parts)} axes of {array.name}, whose shape is "
            f"{array.shape}."
        )
    sizes = zip(parts, array.shape, strict=False)
    # The dots at the end make it a view always, of an array without axes, too.
    return (*(_slice(verb, array.name, part, n) for part, n in sizes), ...)


def _slice(verb: str, name: str, rows: Rows, n: int) -> slice:
    if isinstance(rows, slice):  # ends where the array ends, as everywhere in NumPy
        return rows
    if not isinstance(rows, range):
        raise TypeError(
            f"{verb} takes rows as a range or a slice, but it was handed {rows!r}."
        )
    if rows.step != 1:
        raise ShapeError(f"{verb} takes rows that lie side by side, but not {rows}.")
    if rows and (rows.start < 0 or rows.stop > n):
        raise ShapeError(
            f"{verb} was asked for rows {rows.start} to {rows.stop - 1} of {name}, "
            f"which has {n} rows, the last of them row {n - 1}."
        )
    return slice(rows.start, max(rows.start, rows.stop))


def _result(
    ufunc: np.ufunc, arrays: Sequence[Any]
) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and type of a result; of nothing, where NumPy will object."""
    truth = any(kinds[0] == "d" and kinds[-1] == "?" for kinds in ufunc.types)
    dtype = np.dtype(bool) if truth else np.result_type(*arrays)
    shapes = [np.shape(array) for array in arrays]
    try:
        if ufunc is not np.matmul:
            return np.broadcast_shapes(*shapes), dtype
        left, right = shapes
        batch = np.broadcast_shapes(left[:-2], right[:-2])
        return (*batch, left[-2], right[-1]), dtype
    except (ValueError, IndexError):
        return (), dtype
