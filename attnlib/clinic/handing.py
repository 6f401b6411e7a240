"""Hand arrays to an attention in the form it wants, and read what comes back.

Whatever it returns (an array, a tensor, a pair in either order, a dataclass, a dict),
its numbers come back as float64 arrays, and the result is told apart from the weights
by shape. In the trial call all sizes differ, so that the place is known afterwards.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from attnlib.clinic.signature import plain
from attnlib.clinic.tensors import torch
from attnlib.shapes import Array

AnyArray = npt.NDArray[Any]  # also of booleans
Path = tuple[int | str, ...]
DEEP = 3  # levels of tuples and dicts that are looked into
OUT = "out output outputs result results context attn_output values y z hidden_states "
OUT += "last_hidden_state attention_output attn_out x context_layer res"
WEIGHTS = "weights attn_weights attention attention_weights attn attentions probs "
WEIGHTS += "scores attn_probs attention_probs p_attn alpha a w"
KINDS = ("bool", "number", "int")
NO_BFLOAT16 = "NumPy has no bfloat16"


def is_tensor(thing: object) -> bool:
    """Whether it is a torch tensor, without importing torch."""
    loaded = sys.modules.get("torch")
    return loaded is not None and isinstance(thing, loaded.Tensor)


def hand_in(array: Array, dtype: str, tensors: bool, device: Any = None) -> Any:
    """A copy of `array` in the type and on the device where it is wanted."""
    if not tensors:
        if dtype == "bfloat16":
            raise TypeError(NO_BFLOAT16)
        return np.array(array, dtype=dtype, order="C")
    tensor = torch.from_numpy(np.array(array, dtype=np.float64, order="C"))
    return tensor.to(device=device, dtype=getattr(torch, dtype))


def hand_mask(
    allowed: AnyArray,
    kind: str,
    meaning: str,
    dtype: str,
    tensors: bool,
    dev: Any = None,
) -> Any:
    """A boolean mask, True = may look, in the words of the one who reads it."""
    if meaning == "added":
        with np.errstate(all="ignore"):
            added = np.where(allowed, 0.0, -np.inf)
        return hand_in(added, dtype, tensors, dev)
    said = ~allowed if meaning == "blocked" else allowed
    if kind == "number":
        return hand_in(said.astype(float), dtype, tensors, dev)
    plain_mask = np.array(said, dtype=bool if kind == "bool" else np.int64, order="C")
    if not tensors:
        return plain_mask
    tensor = torch.from_numpy(plain_mask)
    return tensor.to(device=dev) if dev is not None else tensor


def keep(thing: Any) -> Any:
    """A copy to compare with afterwards."""
    if is_tensor(thing):
        return thing.detach().clone()
    return thing.copy() if isinstance(thing, np.ndarray) else thing


def differs(now: Any, before: Any) -> bool:
    """Whether an array or a tensor was changed in place."""
    if is_tensor(before):
        same = now.shape == before.shape and now.dtype == before.dtype
        if not same:
            return True
        a, b = now.detach(), before
        return bool(((a != b) & ~((a != a) & (b != b))).any())
    if isinstance(before, np.ndarray):
        same = now.shape == before.shape and now.dtype == before.dtype
        return not same or now.tobytes() != before.tobytes()
    return False


def numbers(thing: object) -> Array | None:
    """The numbers of an array or a tensor as float64, or None."""
    try:
        if is_tensor(thing):
            tensor: Any = thing
            if tensor.is_complex() or tensor.is_nested:
                return None
            return np.array(tensor.detach().cpu().double().numpy(), dtype=np.float64)
        array = np.asarray(thing)
        if array.dtype.kind not in "biuf" or array.ndim == 0:
            return None
        return np.array(array, dtype=np.float64)
    except Exception:  # an object that raises whatever it is asked
        return None


def parts(value: object, path: Path = ()) -> Iterator[tuple[Path, Array]]:
    """Every array in what was returned, with the way to it."""
    if is_tensor(value) or isinstance(value, np.ndarray):
        found = numbers(value)
        if found is not None:
            yield path, found
        return
    if len(path) >= DEEP or value is None or isinstance(value, (str, bytes, type)):
        return
    for name, inner in _inside(value):
        yield from parts(inner, (*path, name))
    if not path and isinstance(value, list):  # a list of lists of numbers
        found = numbers(value)
        if found is not None and found.ndim > 1:
            yield path, found


def _inside(value: object) -> Sequence[tuple[int | str, object]]:
    try:
        if isinstance(value, Mapping):
            return [(str(n), inner) for n, inner in value.items()]
        names = getattr(value, "_fields", None)
        if isinstance(value, tuple) and names:
            return [(str(n), inner) for n, inner in zip(names, value, strict=False)]
        if isinstance(value, (tuple, list)):
            return list(enumerate(value[:16]))
        if dataclasses.is_dataclass(value):
            fields = dataclasses.fields(value)
            return [(f.name, getattr(value, f.name)) for f in fields]
        if hasattr(value, "__array__"):
            array = np.asarray(value)
            return [] if array.dtype == object else [("", array)]
        return list(vars(value).items())[:32]
    except Exception:  # an object that raises whatever it is asked
        return []


@dataclass(frozen=True)
class Places:
    """Where in the returned value the result and the weights stand."""

    out: Path
    weights: Path | None = None


def find_places(
    value: object, out_shape: tuple[int, ...], weights_tail: tuple[int, int]
) -> Places | None:
    """Tell the result from the weights by their shapes, then by their names."""
    found = list(parts(value))
    outs = [path for path, a in found if a.shape == out_shape]
    if not outs:
        return None
    out = min(outs, key=lambda path: _rank(path, OUT))
    others = [(p, a) for p, a in found if a.shape[-2:] == weights_tail and p != out]
    if out_shape[-2:] == weights_tail and len(others) == 1 and len(outs) == 2:
        # The result and the weights have one shape: rows of weights add up to one.
        (first, second) = outs
        sums = [_row_sums(dict(found)[path]) for path in outs]
        if sums[0] and not sums[1] and not _named(first, OUT):
            return Places(second, first)
    if not others:
        return Places(out)
    best = min(others, key=lambda o: (not _row_sums(o[1]), _rank(o[0], WEIGHTS)))
    return Places(out, best[0])


def _row_sums(array: Array) -> bool:
    positive = bool((array >= 0).all())
    return positive and bool(np.allclose(array.sum(-1), 1.0, atol=1e-3))


def _named(path: Path, names: str) -> bool:
    return bool(path) and plain(str(path[-1])) in names.split()


def _rank(path: Path, names: str) -> tuple[int, int]:
    listed = names.split()
    name = plain(str(path[-1])) if path else ""
    return (listed.index(name) if name in listed else len(listed), len(path))


def at(value: object, path: Path) -> Array | None:
    """The array that stands at a place, if one does."""
    return dict(parts(value)).get(path)


def forms_that_agree(outs: dict[str, Array], right: Array | None) -> tuple[str, ...]:
    """The forms of a mask that mean the same: those with the right result, or the most.

    A mask may fit in a form that is not meant: a loop over items may take its rows.
    """
    groups: list[list[str]] = []
    for form, out in outs.items():
        for group in groups:
            if np.allclose(outs[group[0]], out, atol=1e-6, equal_nan=True):
                group.append(form)
                break
        else:
            groups.append([form])
    for group in groups:
        out = outs[group[0]]
        same = right is not None and right.shape == out.shape
        if same and np.allclose(out, np.asarray(right), atol=1e-3):
            return tuple(group)
    largest = max(groups, key=len)
    return tuple(largest)


def says_what(value: object) -> str:
    """Why a value is not a result, in words."""
    if value is None:
        return "returned None (is a `return` missing?)"
    if isinstance(value, str):
        return "returned a text"
    if isinstance(value, (bool, int, float, complex, np.number)):
        return "returned a single number"
    shapes = [str(array.shape) for _, array in parts(value)]
    if not shapes:
        return f"returned a {type(value).__name__} without an array of numbers"
    listed = ", ".join(shapes[:3])
    return f"returned shape {listed}" if len(shapes) == 1 else f"returned {listed}"


def torch_is_there() -> bool:
    """Whether torch can be imported."""
    try:
        importlib.import_module("torch")
    except Exception:  # a broken installation raises anything
        return False
    return True
