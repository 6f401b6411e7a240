"""Sort what was handed in: a function, a module, a class, or nothing to examine."""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from dataclasses import replace
from typing import Any

from attnlib.clinic.budget import Budget
from attnlib.clinic.function_subject import function_subject
from attnlib.clinic.handing import NO_BFLOAT16
from attnlib.clinic.subject import FunctionSubject, ModuleSubject, Refusal
from attnlib.clinic.weighted_subject import weighted_subject
from attnlib.clinic.words_refused import HAND_IN, raised

MEANINGS = ("may look", "blocked", "added")
DTYPES = ("float16", "bfloat16", "float32", "float64")


def make(
    attention: Any,
    n_heads: int | None,
    n_kv_heads: int | None,
    mask: str,
    dtype: str | None,
    seed: int,
    seconds: float,
) -> FunctionSubject | ModuleSubject | Refusal:
    """See `attnlib.clinic.subject.make_subject`."""
    if mask not in MEANINGS:
        listed = ", ".join(f'"{m}"' for m in MEANINGS)
        return Refusal(f"mask={mask!r} is none of {listed}.")
    if dtype is not None and dtype not in DTYPES:
        return Refusal(f"dtype={dtype!r} is none of {', '.join(DTYPES)}.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _sort(attention, n_heads, n_kv_heads, mask, dtype, seed, seconds)


def _sort(
    attention: Any,
    n_heads: int | None,
    n_kv_heads: int | None,
    mask: str,
    dtype: str | None,
    seed: int,
    seconds: float,
) -> FunctionSubject | ModuleSubject | Refusal:
    budget = Budget(seconds)
    name = name_of(attention)
    try:
        if is_module(attention):
            from attnlib.clinic.module_subject import module_subject

            return module_subject(
                attention,
                name,
                n_heads=n_heads,
                n_kv_heads=n_kv_heads,
                mask=mask,
                dtype=dtype,
                seed=seed,
                budget=budget,
            )
        if isinstance(attention, type):
            return _class(attention, n_heads, n_kv_heads, mask, dtype, seed, budget)
        if not callable(attention):
            kind = type(attention).__name__
            what = "None" if attention is None else f"An object of class {kind}"
            return Refusal(f"{what} was handed in, which cannot be called. {HAND_IN}")
        weighted = weighted_subject(
            attention,
            name,
            n_heads=n_heads,
            n_kv_heads=n_kv_heads,
            mask=mask,
            dtype=dtype,
            seed=seed,
            budget=budget,
        )
        if weighted is not None:
            return weighted
        found = function_subject(attention, name, mask=mask, dtype=dtype, budget=budget)
        if isinstance(found, Refusal):
            return _better(found, attention, name, dtype)
        heads = {"n_heads": n_heads, "n_kv_heads": n_kv_heads}
        unused = tuple(
            f"{key}={value} was given, but a function of q, k and v has the heads that "
            "it is handed: nothing was asked about it."
            for key, value in heads.items()
            if value is not None
        )
        return replace(found, notes=(*found.notes, *unused))
    except (
        Exception
    ) as error:  # never a traceback of ours: an object may raise anywhere
        return Refusal(f"{name} could not be examined: {raised(error)}. {HAND_IN}")


def _better(
    refusal: Refusal, attention: object, name: str, dtype: str | None
) -> Refusal:
    """What else can be said of a function that could not be examined."""
    if NO_BFLOAT16 in refusal.sentence:
        return Refusal(
            f"{name} takes NumPy arrays, and NumPy has no bfloat16. Leave dtype out, "
            "or say float16."
        )
    if inspect.ismethod(attention) and is_module(attention.__self__):
        kind = type(attention.__self__).__name__
        return Refusal(
            f"{name} is a method of the module {kind}. Hand in the module itself."
        )
    return refusal


def is_module(thing: object) -> bool:
    """Whether it is an nn.Module, without importing torch."""
    loaded = sys.modules.get("torch")
    return loaded is not None and isinstance(thing, loaded.nn.Module)


def name_of(thing: object) -> str:
    """What to call it in a report."""
    if thing is None:
        return "None"
    if isinstance(thing, functools.partial):
        return name_of(thing.func)
    try:
        name = getattr(thing, "__name__", None) or type(thing).__name__
        return "The function" if name == "<lambda>" else str(name)
    except Exception:  # an object that raises whatever it is asked
        return "The object"


def _class(
    cls: type,
    n_heads: int | None,
    n_kv_heads: int | None,
    mask: str,
    dtype: str | None,
    seed: int,
    budget: Budget,
) -> FunctionSubject | ModuleSubject | Refusal:
    """A class without an object: make one with plain sizes, if that works."""
    name = cls.__name__
    loaded = sys.modules.get("torch")
    if loaded is None or not issubclass(cls, loaded.nn.Module):
        return Refusal(
            f"{name} is a class. Hand in an object of it, such as {name}(...), that "
            "can be called with q, k and v."
        )
    from attnlib.clinic.module_class import instance

    made = instance(cls, n_heads, n_kv_heads, budget)
    if isinstance(made, Refusal):
        return made
    from attnlib.clinic.module_subject import module_subject

    return module_subject(
        made,
        name,
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        mask=mask,
        dtype=dtype,
        seed=seed,
        budget=budget,
    )
