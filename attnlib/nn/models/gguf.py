"""The file format GGUF of llama.cpp, and how it keeps a weight in 4 or 8 bits.

    "GGUF", version, n tensors, n facts
    facts      name, type, value                    sizes of the model, its vocabulary
    tensors    name, n axes, sizes, type, place     sizes with the last axis first
    then the numbers, each tensor at its place, in blocks of 32:
        Q8_0   scale (2 bytes), 32 numbers from -128 to 127     w = scale number
        Q4_1   scale, least (2 bytes each), 32 numbers 0 to 15  w = scale number + least

So a weight takes 8.5 or 5 bits. Nothing is turned into ordinary numbers before it is
asked for: `tensor` does it for one tensor, or for some of its rows.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

# Types of facts: one number each, but 8 = text, 9 = list.
NUMBERS = dict(enumerate(["B", "b", "H", "h", "I", "i", "f", "?"])) | {
    10: "Q",
    11: "q",
    12: "d",
}
TEXT, LIST = 8, 9
F32, Q4_1, Q8_0 = 0, 3, 8  # types of tensors
BLOCK = 32  # weights
BYTES = {F32: 4 * BLOCK, Q4_1: 20, Q8_0: 34}  # a block


@dataclass(frozen=True)
class _Place:
    shape: tuple[int, ...]
    kind: int
    start: int


class GGUF:
    """An open file: its facts at once, its tensors when they are asked for.

    Args:
        path: the file.

    Raises:
        ValueError: it is no GGUF file of version 3.
    """

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._at = 8
        if self._data[:4] != b"GGUF" or self._data[4:8] != b"\3\0\0\0":
            raise ValueError(f"{path} is not a GGUF file of version 3.")
        n_tensors, n_facts = self._number("Q"), self._number("Q")
        self.facts = {self._text(): self._value() for _ in range(n_facts)}
        self._places: dict[str, _Place] = {}
        for _ in range(n_tensors):
            name = self._text()
            sizes = [self._number("Q") for _ in range(self._number("I"))]
            kind, start = self._number("I"), self._number("Q")
            self._places[name] = _Place(tuple(reversed(sizes)), kind, start)
        self._numbers_from = -(-self._at // BLOCK) * BLOCK  # the next multiple of 32

    def shape(self, name: str) -> tuple[int, ...]:
        """Say how large a tensor is; nothing is read."""
        return self._places[name].shape

    def tensor(self, name: str, rows: slice | Tensor | None = None) -> Tensor:
        """Turn a tensor, or some of its rows, into float32.

        Args:
            name: the tensor.
            rows: a slice or whole numbers; all rows if left out.

        Returns:
            The weights, with the sizes of the tensor; (n_out, n_in), as torch has them.

        Raises:
            KeyError: there is no such tensor.
            ValueError: it is kept in another way than those above.
        """
        place = self._places[name]
        if place.kind not in BYTES:
            raise ValueError(f"{name} is of type {place.kind}, which is not read here.")
        *rest, width = place.shape
        n_rows, n_bytes = int(np.prod(rest)), width // BLOCK * BYTES[place.kind]
        start = self._numbers_from + place.start
        stored = np.frombuffer(self._data, np.uint8, n_rows * n_bytes, start)
        blocks = stored.reshape(n_rows, -1, BYTES[place.kind])
        if rows is not None:
            blocks = blocks[rows if isinstance(rows, slice) else rows.numpy()]
        return torch.from_numpy(_numbers(blocks, place.kind)).reshape(
            *(blocks.shape[:-2] if rest else ()), width
        )

    def _number(self, kind: str) -> int:
        (value,) = struct.unpack_from(f"<{kind}", self._data, self._at)
        self._at += struct.calcsize(kind)
        return value  # type: ignore[no-any-return]

    def _text(self) -> str:
        length = self._number("Q")
        self._at += length
        return self._data[self._at - length : self._at].decode()

    def _value(self, kind: int | None = None) -> object:
        kind = self._number("I") if kind is None else kind
        if kind == TEXT:
            return self._text()
        if kind == LIST:
            inner, n = self._number("I"), self._number("Q")
            return [self._value(inner) for _ in range(n)]
        return self._number(NUMBERS[kind])


def _numbers(blocks: np.ndarray, kind: int) -> np.ndarray:
    """Blocks of bytes, (..., n_blocks, n_bytes), as float32, (..., n_blocks, 32)."""
    if kind == F32:
        return np.ascontiguousarray(blocks).view("<f4").copy()
    scale = np.ascontiguousarray(blocks[..., :2]).view("<f2").astype(np.float32)
    if kind == Q8_0:
        return scale * np.ascontiguousarray(blocks[..., 2:]).view(np.int8)
    least = np.ascontiguousarray(blocks[..., 2:4]).view("<f2").astype(np.float32)
    # A byte holds two numbers: the lower half of place i, the upper one of i + 16.
    pairs = blocks[..., 4:]
    whole = np.concatenate([pairs & 15, pairs >> 4], axis=-1)
    return np.asarray(scale * whole + least)
