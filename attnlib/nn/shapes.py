"""The checks of `attnlib.shapes` for tensors: the same sentences where sizes differ.

Where all is well they are plain Python on shapes, so that `torch.compile` can follow
a whole model without a break.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest

import numpy as np
import torch
from torch import Tensor

from attnlib.shapes import ShapeError, check_shapes


def check_tensors(
    tensors: Mapping[str, tuple[Tensor, str]], **known: int
) -> dict[str, int]:
    """Read the sizes of named axes off floating tensors, as `check_shapes` does."""
    sizes, fit = dict(known), True
    for name, (tensor, axes) in tensors.items():
        check_tensor(name, tensor)
        names = axes.split()
        fit = fit and tensor.ndim >= len(names)
        for axis, found in zip(reversed(names), reversed(tensor.shape), strict=False):
            fit = fit and sizes.setdefault(axis, found) == found
    if not fit:  # check_shapes finds the words; arrays of the same shapes will do
        check_shapes(
            {
                name: (np.broadcast_to(np.float64(0), tuple(tensor.shape)), axes)
                for name, (tensor, axes) in tensors.items()
            },
            **known,
        )
    return sizes


def check_tensor(name: str, value: object) -> None:
    """Raise unless the value is a floating tensor."""
    if not isinstance(value, Tensor):
        kind = type(value).__name__
        hint = f"; torch.from_numpy({name}) makes one" if kind == "ndarray" else ""
        raise TypeError(f"{name} must be a torch.Tensor, but it is a {kind}{hint}.")
    if not value.dtype.is_floating_point:
        raise TypeError(
            f"{name} must be a floating tensor, but its dtype is {short(value)}."
        )


def check_batch(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Raise unless the batch axes, with the heads, broadcast."""
    of_q, of_k, of_v = (tuple(tensor.shape[:-2]) for tensor in (q, k, v))
    backwards = (reversed(shape) for shape in (of_q, of_k, of_v))
    for sizes in zip_longest(*backwards, fillvalue=1):
        if len({n for n in sizes if n != 1}) > 1:
            raise ShapeError(
                f"the batch axes of q {of_q}, k {of_k} and v {of_v} do not broadcast."
            )


def fits(shape: Sequence[int], wanted: Sequence[int]) -> bool:
    """Whether something of this shape broadcasts to exactly the wanted one."""
    pairs = zip(reversed(shape), reversed(wanted), strict=False)
    return len(shape) <= len(wanted) and all(a in (1, b) for a, b in pairs)


def unchanged(function: str, name: str, given: Tensor, made: Tensor) -> Tensor:
    """Raise unless a function left the shape alone; give its result the old dtype."""
    if made.shape != given.shape:
        raise ShapeError(
            f"{function} was given {name} with shape {tuple(given.shape)} and returned "
            f"{tuple(made.shape)}; the shape must stay."
        )
    return made.to(given.dtype)  # float32 inside must not widen float16 heads


def counted_rows(rows: Tensor | None, like: Tensor, ends: str) -> Tensor:
    """Which rows count, as truth values in the shape of `like`, which ends in `ends`.

    All of them, if none are named. A sentence says it when rows do not fit.
    """
    if rows is None:
        return torch.ones(like.shape, dtype=torch.bool, device=like.device)
    if rows.dtype != torch.bool:
        raise TypeError(
            f"rows must be boolean (True = counts), but their dtype is {short(rows)}."
        )
    if not fits(rows.shape, like.shape):
        raise ShapeError(
            f"rows with shape {tuple(rows.shape)} do not broadcast to "
            f"{tuple(like.shape)}, which ends in {ends}."
        )
    return rows.broadcast_to(like.shape)


def wide(tensor: Tensor) -> Tensor:
    """float32 at least: a sum of squares in float16 has three digits."""
    return tensor.float() if tensor.element_size() < 4 else tensor


def short(tensor: Tensor) -> str:
    """The name of the tensor's dtype without the word torch."""
    return str(tensor.dtype).removeprefix("torch.")
