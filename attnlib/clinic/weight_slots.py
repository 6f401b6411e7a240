"""Read and write a weight of a module as (n_in, n_out), however the module keeps it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attnlib.clinic.tensors import torch
from attnlib.shapes import Array


@dataclass(frozen=True)
class Piece:
    """A view of a parameter whose first axis are the inputs; a bias has none."""

    owner: Any
    name: str
    cut: Callable[[Any], Any]
    flipped: bool = False  # the parameter is (n_out, n_in)

    def acts_as(self) -> Any:
        """The matrix that the owner applies, (n_in, n_out), if it is not this one.

        None for a layer that does x @ W + b with its weight, or with W transposed: that
        is a mistake, and has to stay.
        """
        weight = getattr(self.owner, self.name).detach()
        of_torch = type(self.owner).__module__.startswith("torch.")
        if of_torch or self.name != "weight" or weight.ndim != 2:
            return None
        plain = weight.T if self.flipped else weight
        try:
            with torch.no_grad():
                unit = torch.eye(len(plain), dtype=weight.dtype, device=weight.device)
                rows = self.owner(unit) - self.owner(torch.zeros_like(unit[:1]))
        except Exception:  # a layer that takes something else
            return None
        if rows.shape != plain.shape:
            return None
        likes = [plain, plain.T] if plain.shape[0] == plain.shape[1] else [plain]
        if any(torch.allclose(rows, like, atol=1e-6, rtol=1e-6) for like in likes):
            return None
        return rows

    def view(self) -> Any:
        """The view as it is now: it shares the parameter's memory."""
        return self.cut(getattr(self.owner, self.name).detach())


@dataclass
class Slot:
    """A weight made of one piece, or of one for each head.

    side: how pieces join, -1 side by side (columns), 0 one below the other (rows).
    """

    pieces: list[Piece] = field(default_factory=list)
    side: int = -1
    vector: bool = False  # a bias

    def _flat(self, view: Any) -> Any:
        if self.vector:
            return view.reshape(-1)
        if self.side == 0:
            return view.reshape(-1, view.shape[-1])
        return view.reshape(view.shape[0], -1)

    @property
    def shape(self) -> tuple[int, ...]:
        """(n_in, n_out), or (n_out,) of a bias."""
        shapes = [tuple(self._flat(piece.view()).shape) for piece in self.pieces]
        if self.vector:
            return (sum(shape[0] for shape in shapes),)
        if self.side == 0:
            return (sum(shape[0] for shape in shapes), shapes[0][1])
        return (shapes[0][0], sum(shape[1] for shape in shapes))

    def read(self) -> Array:
        """The numbers as they are now, in float64."""
        arrays = [
            self._flat(piece.view()).to("cpu", torch.float64).numpy()
            for piece in self.pieces
        ]
        axis = 0 if self.vector else self.side
        return np.concatenate(arrays, axis=axis)  # also of one: a copy

    def write(self, array: Array) -> None:
        """Put other numbers there."""
        array = np.asarray(array, dtype=np.float64)
        if array.shape != self.shape:
            raise ValueError(f"The weight is {self.shape}, and not {array.shape}.")
        start = 0
        axis = 0 if self.vector or self.side == 0 else 1
        with torch.no_grad():
            for piece in self.pieces:
                view = piece.view()
                size = self._flat(view).shape[axis]
                index = [slice(None)] * array.ndim
                index[axis] = slice(start, start + size)
                part = np.ascontiguousarray(array[tuple(index)])
                view.copy_(torch.from_numpy(part).reshape(view.shape).to(view))
                start += size
