"""A chip with little memory of its own, which counts every byte it moves.

There are two memories, as on a GPU. **HBM** is large and slow: q, k, v and the result
lie there, and nothing is computed there. **SRAM** is small and fast: everything that is
computed lies there, and it has room for `sram_bytes` bytes.

    chip = Chip(sram_bytes=4096)
    q = chip.hbm(q)                    an array that lies in HBM
    tile = chip.load(q, range(0, 16))  rows of it, copied to the chip: bytes read
    m = chip.new((16,), -np.inf)       room on the chip, nothing read
    chip.store(out, range(0, 16), x)   rows written back: bytes written

What `load` and `new` hand out are tiles: they compute like arrays, and what is computed
from a tile is a tile, too. A tile takes its bytes of SRAM until no name holds it any
more. What lies in HBM, and any array from elsewhere, refuses to be computed with: so
no number gets past the meters by accident.
"""

from __future__ import annotations

import math
from typing import Any, SupportsIndex
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from attnlib.shapes import ShapeError, size
from attnlib.tiles.arrays import ChipError, InHBM, Region, Tile, region


class ChipFull(MemoryError):
    """What is asked for does not fit into the SRAM that is free."""


class Chip:
    """So many bytes of SRAM, an HBM without end, and a meter on the way between.

    Take a new one for every run: after an error, Python itself may hold tiles of the
    call that failed, and a notebook holds what a cell ended in.

    Args:
        sram_bytes: how many bytes of SRAM there are; without end, if left out.

    Raises:
        ShapeError, TypeError: sram_bytes is no number of bytes.

    >>> chip = Chip(sram_bytes=100)
    >>> x = chip.hbm(np.ones((5, 3)))
    >>> tile = chip.load(x, range(0, 2))
    >>> chip.store(x, range(2, 4), 2 * tile)
    >>> chip.read, chip.written, chip.in_use
    (48, 48, 48)
    >>> chip.load(x)
    Traceback (most recent call last):
        ...
    attnlib.tiles.chip.ChipFull: an array of shape (5, 3) in float64 takes 120 bytes, \
but of the chip's 100 bytes of SRAM 52 are free.
    """

    def __init__(self, sram_bytes: int | None = None) -> None:
        if sram_bytes is not None:
            sram_bytes = size("sram_bytes", sram_bytes, least=1)
        self.sram_bytes = sram_bytes
        self.read = 0  #     bytes from HBM to the chip
        self.written = 0  #  bytes from the chip to HBM
        self.in_use = 0  #   bytes of SRAM that tiles take now
        self.peak = 0  #     the most that it was
        self.flops = 0  #    of matrix products with @, 2 for a multiplication and a sum
        self._dtype = np.dtype(np.float64)
        self._seen_float = False
        self._rooms: WeakValueDictionary[int, Room] = WeakValueDictionary()

    @property
    def traffic(self) -> int:
        """Bytes moved between HBM and the chip, in both directions."""
        return self.read + self.written

    def __repr__(self) -> str:
        return (
            f"Chip(sram_bytes={self.sram_bytes}, read={self.read}, "
            f"written={self.written}, in_use={self.in_use}, peak={self.peak})"
        )

    def hbm(self, array: npt.ArrayLike, name: str = "an array") -> InHBM:
        """Say that an array lies in HBM. Nothing is copied and nothing is counted.

        What is stored into it stands in the array that was handed in.
        """
        placed = InHBM(self, np.asarray(array), name)
        if placed.dtype.kind == "f":
            known = self._dtype if self._seen_float else np.dtype(np.float32)
            self._dtype = np.result_type(known, placed.dtype)
            self._seen_float = True
        return placed

    def load(
        self, array: InHBM, rows: Region = None, dtype: npt.DTypeLike | None = None
    ) -> Tile:
        """Copy rows from HBM to the chip; count the bytes read.

        Args:
            array: what `hbm` gave.
            rows: a range or a slice; the pair (rows, columns) for a block; all rows if
                left out.
            dtype: what the tile's numbers become on the chip; as in HBM if left out.
        """
        _check_hbm("load", array, self)
        where = region("load", array, rows)
        source = array._array[where]
        wanted = np.dtype(dtype or array.dtype)
        self._check_room(source.shape, wanted)
        self.read += source.nbytes
        return self._tile(np.array(source, dtype=wanted))

    def store(self, array: InHBM, rows: Region, tile: Tile) -> None:
        """Copy a tile from the chip into rows in HBM; count the bytes written."""
        _check_hbm("store", array, self)
        if not isinstance(tile, Tile):
            raise ChipError(
                f"store writes a tile, but what it was handed, {type(tile).__name__}, "
                "is not on the chip."
            )
        target = array._array[region("store", array, rows)]
        if target.shape != tile.shape:
            raise ShapeError(
                f"store writes a tile of shape {tile.shape} to a place of shape "
                f"{target.shape} in {array.name} with shape {array.shape}."
            )
        target[...] = tile._array
        self.written += target.nbytes

    def new(
        self,
        shape: int | tuple[int, ...],
        value: float = 0.0,
        dtype: npt.DTypeLike | None = None,
    ) -> Tile:
        """Make a tile filled with one value, with no byte moved.

        Its dtype is the widest float that lies in HBM, and float32 at least.
        """
        wanted = np.dtype(dtype or self._dtype)
        sizes = shape if isinstance(shape, tuple) else (shape,)
        self._check_room(sizes, wanted)
        return self._tile(np.full(sizes, value, wanted))

    def arange(self, rows: range | slice | SupportsIndex) -> Tile:
        """Count on the chip: the row numbers of a block, for masks by position."""
        if isinstance(rows, slice):
            rows = range(rows.start or 0, rows.stop)
        if not isinstance(rows, range):
            rows = range(rows.__index__())
        self._check_room((len(rows),), np.dtype(np.int64))
        return self._tile(np.arange(rows.start, rows.stop, rows.step))

    def _tile(self, array: npt.NDArray[Any]) -> Tile:
        """Wrap what was computed; a view takes no room beside what it looks at."""
        if array.dtype.hasobject:
            raise ChipError(
                "what lies on the chip are numbers of a fixed width; of Python's own "
                "objects no bytes can be counted."
            )
        root = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        room = self._rooms.get(id(root))
        if room is None:
            room = self._rooms[id(root)] = Room(self, root)
        return Tile(self, array, room)

    def _check_room(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        needed = math.prod(shape) * dtype.itemsize
        if self.sram_bytes is None or self.in_use + needed <= self.sram_bytes:
            return
        raise ChipFull(
            f"an array of shape {shape} in {dtype} takes {needed} bytes, but of the "
            f"chip's {self.sram_bytes} bytes of SRAM {self.sram_bytes - self.in_use} "
            "are free."
        )


class Room:
    """The bytes of one array on the chip, given back when the last tile is gone."""

    def __init__(self, chip: Chip, root: npt.NDArray[Any]) -> None:
        self.n_bytes = 0
        chip._check_room(root.shape, root.dtype)
        self.chip, self.root, self.n_bytes = chip, root, root.nbytes
        chip.in_use += root.nbytes
        chip.peak = max(chip.peak, chip.in_use)

    def __del__(self) -> None:
        if self.n_bytes:
            self.chip.in_use -= self.n_bytes


def _check_hbm(verb: str, array: object, chip: Chip) -> None:
    if isinstance(array, InHBM) and array.chip is chip:
        return
    if isinstance(array, InHBM):
        raise ChipError(f"{array.name} lies in the HBM of another chip.")
    place = "is on the chip already" if isinstance(array, Tile) else "lies in no HBM"
    raise ChipError(
        f"{verb} needs an array that lies in HBM, as chip.hbm(array) gives it, but "
        f"what it was handed, {type(array).__name__}, {place}."
    )
