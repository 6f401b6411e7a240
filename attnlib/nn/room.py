"""Room for keys and values that grow: reserved at once, filled from the front."""

from __future__ import annotations

import torch
from torch import Tensor

from attnlib.shapes import ShapeError


class Room:
    """Two tensors with space behind their last tokens, filled once and for all.

    What was written is never written over, so that views of it stay what they are. A
    cache may go on writing only where its own tokens are the last ones (`find`); a
    copy of it that went on before has taken the place, and this one needs new room.
    """

    def __init__(self, k: Tensor, v: Tensor, capacity: int) -> None:
        self.k, self.v = _larger(k, capacity), _larger(v, capacity)
        self.filled = k.shape[-2]

    def find(self, k: Tensor, v: Tensor, n: int) -> int | None:
        """Where these tokens begin, if they are the last here and n more fit in."""
        if self.k.is_inference() and not torch.is_inference_mode_enabled():
            return None  # torch lets no one write into it any more
        start = _start(self.k, k)
        if start is None or start != _start(self.v, v):
            return None
        if start + k.shape[-2] != self.filled:
            return None
        return start if self.filled + n <= self.k.shape[-2] else None

    def add(self, k: Tensor, v: Tensor, start: int) -> tuple[Tensor, Tensor]:
        """Write new tokens behind the last ones; all from `start` on."""
        end = self.filled + k.shape[-2]
        self.k[..., self.filled : end, :] = k
        self.v[..., self.filled : end, :] = v
        self.filled = end
        return self.k[..., start:end, :], self.v[..., start:end, :]


def _larger(x: Tensor, capacity: int) -> Tensor:
    """A copy of x with room for so many tokens."""
    n = x.shape[-2]
    room = x.new_empty(*x.shape[:-2], max(capacity, n), x.shape[-1])
    room[..., :n, :] = x
    return room


def _start(room: Tensor, x: Tensor) -> int | None:
    """At which token of the room x begins; None where x is no part of it."""
    if x.untyped_storage().data_ptr() != room.untyped_storage().data_ptr():
        return None
    offset = int(x.storage_offset() - room.storage_offset())
    start, rest = divmod(offset, x.shape[-1] or 1)
    inside = room[..., start : start + x.shape[-2], :]
    same = inside.shape == x.shape and inside.stride() == x.stride()
    return start if same and rest == 0 and start >= 0 else None


def check_fit(name: str, new: Tensor, kept: Tensor) -> None:
    """Raise unless new tokens can stand behind those that were kept."""
    if new.dtype != kept.dtype:
        raise TypeError(
            f"the cache holds {name} in {kept.dtype}, but {new.dtype} was appended."
        )
    before, after = tuple(kept.shape), tuple(new.shape)
    if before[:-2] != after[:-2] or before[-1] != after[-1]:
        raise ShapeError(
            f"the cache holds {name} with shape {before}, but {after} was appended; "
            "only the axis of the tokens, the last but one, may differ."
        )
