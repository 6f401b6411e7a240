"""Put a plain layer where a copy has one that makes something of its own of a weight.

A layer may divide its weight by a norm, or serve all heads with one small matrix. Then
not every W can be put there, and weights are what an examination has to choose. The
attention around the layer is the same with a plain one.
"""

from __future__ import annotations

import functools
from typing import Any

from attnlib.clinic.find_weights import Matrix
from attnlib.clinic.tensors import torch
from attnlib.clinic.weight_slots import Piece, Slot


def swap(module: Any, old: Any, new: Any) -> None:
    """Put `new` wherever `old` is in a module."""
    for parent in list(module.modules()):
        for name, part in list(parent._modules.items()):
            if part is old:
                parent._modules[name] = new


def make_plain(module: Any, weights: dict[str, Slot], biases: dict[str, Slot]) -> None:
    """Put nn.Linear in the place of layers that act as another matrix than theirs."""
    for slot in weights.values():
        for i, piece in enumerate(slot.pieces):
            owner = piece.owner
            applied = piece.acts_as()
            if applied is None:
                continue
            weight = applied.T if piece.flipped else applied
            bias = getattr(owner, "bias", None)
            new = torch.nn.Linear(1, 1, bias=bias is not None)
            if not piece.flipped:
                new = _Upright()(bias)
            new.weight = torch.nn.Parameter(weight.detach().clone())
            if bias is not None:
                new.bias = torch.nn.Parameter(bias.detach().clone())
            swap(module, owner, new)
            slot.pieces[i] = Piece(new, piece.name, piece.cut, piece.flipped)
            for other in [*weights.values(), *biases.values()]:
                other.pieces = [
                    Piece(new, p.name, p.cut, p.flipped) if p.owner is owner else p
                    for p in other.pieces
                ]


def widen(module: Any, matrix: Matrix, heads: int, d_model: int) -> bool:
    """Put one matrix for all features where all heads share a small one.

    The layer is given (..., n_heads, d_k): the new one joins the heads, multiplies, and
    cuts the result again.
    """
    if matrix.kind != "linear" or len(matrix.shape) != 2:
        return False
    n_in, n_out = matrix.shape
    if n_in == d_model or n_in * heads != d_model:
        return False
    old = matrix.owner
    new = _Joined()(heads, n_in, n_out, old.bias is not None).to(old.weight)
    swap(module, old, new)
    matrix.owner = new
    matrix.bias = (new, "bias") if new.bias is not None else None
    return True


def one_by_one(module: Any) -> Any:
    """A module for (batch, n, d) around one for (n, d)."""
    return _OneByOne()(module)


@functools.cache
def _OneByOne() -> Any:
    """The class of a module that hands on one item at a time."""

    class OneByOne(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, module: Any) -> None:
            super().__init__()
            self.module = module

        def forward(self, *args: Any, **named: Any) -> Any:
            given = [*args, *named.values()]
            batch = next(len(a) for a in given if _items(a))
            return _stack(
                [
                    self.module(
                        *(a[i] if _items(a) else a for a in args),
                        **{k: a[i] if _items(a) else a for k, a in named.items()},
                    )
                    for i in range(batch)
                ]
            )

    return OneByOne


def _items(thing: Any) -> bool:
    return isinstance(thing, torch.Tensor) and thing.ndim == 3


def _stack(results: list[Any]) -> Any:
    first = results[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(results)
    if isinstance(first, (tuple, list)):
        return [_stack(list(one)) for one in zip(*results, strict=True)]
    if isinstance(first, dict):
        return {key: _stack([one[key] for one in results]) for key in first}
    return first


@functools.cache
def _Joined() -> Any:
    """The class of a Linear over joined heads; made late, as torch is imported late."""

    class Joined(torch.nn.Linear):  # type: ignore[misc, name-defined]
        def __init__(self, heads: int, n_in: int, n_out: int, bias: bool) -> None:
            super().__init__(heads * n_in, heads * n_out, bias=bias)
            self.front = (heads, n_in)

        def forward(self, x: Any) -> Any:
            if tuple(x.shape[-2:]) != self.front:
                raise ValueError("a matrix for each head is given something else")
            return super().forward(x.flatten(-2)).unflatten(-1, (self.front[0], -1))

    return Joined


@functools.cache
def _Upright() -> Any:
    """The class of a layer that keeps its weight as (n_in, n_out)."""

    class Upright(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, bias: Any) -> None:
            super().__init__()
            self.bias = bias

        def forward(self, x: Any) -> Any:
            out = x @ self.weight
            return out if self.bias is None else out + self.bias

    return Upright
