"""Whether a function wants torch tensors, from its code: a guess, to try that first."""

from __future__ import annotations

import builtins
import functools
import sys
import types
from collections.abc import Iterator

DEEP = 4  # functions that call functions
# Methods that tensors have and arrays do not.
OF_TENSORS = {"masked_fill", "masked_fill_", "unsqueeze", "permute", "contiguous"}
OF_TENSORS |= {"chunk", "new_zeros", "new_full"}


def wants_tensors(attention: object) -> bool:
    """Whether the code of `attention`, or what it calls, speaks of torch."""
    return _speaks(attention, DEEP, set())


def _speaks(thing: object, deep: int, seen: set[int]) -> bool:
    if deep < 0 or id(thing) in seen:
        return False
    seen.add(id(thing))
    try:
        if _of_torch(thing):
            return True
        return any(_speaks(other, deep - 1, seen) for other in _used_by(thing))
    except Exception:  # an object that raises whatever it is asked
        return False


def _of_torch(thing: object) -> bool:
    if isinstance(thing, types.ModuleType):
        return thing.__name__.split(".")[0] == "torch"
    owner = str(getattr(thing, "__module__", "") or "")
    if owner.split(".")[0] == "torch" or type(thing).__module__.startswith("torch"):
        return True
    code = getattr(thing, "__code__", None)
    if isinstance(code, types.CodeType):
        names = _names(code)
        numpy_too = "np" in names or "numpy" in names
        return "torch" in names or (bool(names & OF_TENSORS) and not numpy_too)
    loaded = sys.modules.get("torch")
    name = getattr(thing, "__name__", None)
    if loaded and isinstance(thing, types.BuiltinFunctionType) and name:
        functional = loaded.nn.functional
        return thing in (getattr(loaded, name, None), getattr(functional, name, None))
    return False


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


def _used_by(thing: object) -> Iterator[object]:
    """What a callable is made of: what it wraps, its globals, closure and defaults."""
    if isinstance(thing, functools.partial):
        yield thing.func
        yield from thing.args
        yield from thing.keywords.values()
        return
    inner = getattr(thing, "__wrapped__", None) or getattr(thing, "__func__", None)
    if inner is not None:
        yield inner
    owner = getattr(thing, "__self__", None)
    if isinstance(thing, types.MethodType) and owner is not None:
        yield from vars(owner).values()
    if isinstance(thing, types.FunctionType):
        for name in _names(thing.__code__):
            if name in thing.__globals__ and not hasattr(builtins, name):
                used = thing.__globals__[name]
                if callable(used) or isinstance(used, types.ModuleType):
                    yield used
        for cell in thing.__closure__ or ():
            if cell != types.CellType():
                yield cell.cell_contents
        yield from thing.__defaults__ or ()
        yield from thing.__annotations__.values()
    elif not isinstance(thing, (type, types.ModuleType, types.MethodType)):
        call = type(thing).__dict__.get("__call__")
        if isinstance(call, types.FunctionType):
            yield call
            yield from getattr(thing, "__dict__", {}).values()
