"""Numbers that are computed, counted: in NumPy by its arrays, in torch by each call."""

from __future__ import annotations

import contextlib
import importlib
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

# What makes an array of something else: meanwhile, an array that counts.
MAKERS = (
    *("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray"),
    *("zeros", "ones", "empty", "full", "arange", "linspace", "eye", "identity", "tri"),
    *("frombuffer", "fromiter", "fromfunction", "require", "indices"),
)
# Their results can be far smaller than what they went through.
READERS = {
    *(np.dot, np.inner, np.vdot, np.einsum, np.tensordot),
    *(np.sum, np.mean, np.max, np.min, np.prod, np.argmax, np.any, np.all),
}
TORCH_READERS = {
    *("mm", "bmm", "addmm", "baddbmm", "mv", "addmv", "dot", "vdot"),
    *("sum", "mean", "amax", "max", "logsumexp"),
}


@dataclass
class Tally:
    """What was counted so far; bytes are those of torch, which NumPy does not see."""

    numbers: int = 0
    made: int = 0
    largest: int = 0


class Counted(np.ndarray[Any, Any]):
    """An array that counts the numbers that are computed from it."""

    tally: Tally

    def __array_finalize__(self, source: object) -> None:
        self.tally = getattr(source, "tally", None) or Tally()

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        if "out" in kwargs:
            kwargs["out"] = tuple(_plain(kwargs["out"]))
        made = getattr(ufunc, method)(*_plain(inputs), **_plain(kwargs))
        # `at` goes through no more than what it is given to put there.
        return self._count(made, inputs[1:] if method == "at" else inputs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        made = func(*_plain(args), **_plain(kwargs))
        return self._count(made, args if func in READERS else ())

    def view(self, *args: Any, **kwargs: Any) -> Any:
        """Another look at the same numbers, counted as well."""
        return array(np.ndarray.view(self, *args, **kwargs), self.tally)

    def dot(self, other: Any, out: Any = None) -> Any:
        """The method, which NumPy does not announce as it does np.dot."""
        return np.dot(self, other)

    def _count(self, made: Any, read: Any) -> Any:
        sizes = [x.size for x in (*read, made) if isinstance(x, np.ndarray)]
        self.tally.numbers += max(sizes, default=0)
        if isinstance(made, (list, tuple)):
            return type(made)([self._count(one, ()) for one in made])
        return array(made, self.tally)


def array(made: Any, tally: Tally) -> Any:
    """The same array, as one that counts; anything else as it is."""
    if not isinstance(made, np.ndarray):
        return made
    found = np.ndarray.view(made, Counted)
    found.tally = tally
    return found


def _plain(value: Any) -> Any:
    """The same without counters, at any depth."""
    if isinstance(value, Counted):
        return np.ndarray.view(value, np.ndarray)
    if type(value) in (list, tuple):
        return type(value)(_plain(one) for one in value)
    if type(value) is dict:
        return {key: _plain(one) for key, one in value.items()}
    return value


@contextlib.contextmanager
def everywhere(tally: Tally) -> Iterator[None]:
    """Meanwhile, NumPy makes arrays that count, and torch counts."""
    before = {name: getattr(np, name) for name in MAKERS}

    def counting(make: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: array(make(*args, **kwargs), tally)

    try:
        for name, make in before.items():
            setattr(np, name, counting(make))
        with _torch(tally):
            yield
    finally:
        for name, make in before.items():
            setattr(np, name, make)


def _torch(tally: Tally) -> contextlib.AbstractContextManager[object]:
    """A mode that sees each operation of torch, whatever asked for it."""
    if "torch" not in sys.modules:
        return contextlib.nullcontext()
    tensor = sys.modules["torch"].Tensor
    mode: Any = importlib.import_module("torch.utils._python_dispatch")

    class Counting(mode.TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            made = func(*args, **(kwargs or {}))
            if func.is_view:
                return made
            name = func.overloadpacket.__name__
            parts = made if isinstance(made, (tuple, list)) else [made]
            parts = [one for one in parts if isinstance(one, tensor)]
            sizes = [one.numel() for one in parts]
            if name in TORCH_READERS:
                sizes += [one.numel() for one in args if isinstance(one, tensor)]
            if "dot_product" in name:  # attention in one: its scores are never seen
                sizes.append(math.prod(args[0].shape[:-1]) * args[1].shape[-2])
            tally.numbers += max(sizes, default=0)
            for one in parts:
                tally.made += one.nbytes
                tally.largest = max(tally.largest, one.nbytes)
            return made

    return Counting()
