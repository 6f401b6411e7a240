"""Go back from what a call gave to the gradients of what it was given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attnlib.clinic.tensors import torch
from attnlib.shapes import Array

DEEP = 3  # containers within containers


def with_gradients(
    call: Callable[[], object], leaves: list[Any]
) -> tuple[object, tuple[Array, ...]]:
    """What a call gives, and the gradients of the sum of all that it gives."""
    with torch.enable_grad():
        for leaf in leaves:
            leaf.requires_grad_()
        value = call()
        given = [tensor for tensor in _tensors(value, DEEP) if tensor.requires_grad]
        if not given:
            return value, ()
        total = sum(tensor.sum() for tensor in given)
        found = torch.autograd.grad(total, leaves, allow_unused=True)
    return value, tuple(g.double().cpu().numpy() for g in found if g is not None)


def _tensors(value: object, depth: int) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        if value.is_floating_point():
            yield value
    elif depth and isinstance(value, Mapping):
        for part in value.values():
            yield from _tensors(part, depth - 1)
    elif depth and isinstance(value, (tuple, list)):
        for part in value:
            yield from _tensors(part, depth - 1)
    elif depth and hasattr(value, "__dict__"):
        for part in vars(value).values():
            yield from _tensors(part, depth - 1)
