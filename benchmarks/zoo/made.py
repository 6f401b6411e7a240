"""How a specimen is made of a wrong function: its numbers drawn, its type chosen."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from .specimen import Specimen

Attention = Callable[..., Any]


def fixed(codes: str, name: str, function: Attention, style: str, **intent) -> Specimen:
    """A function without numbers of its own; codes stand apart by a space."""
    return drawn(codes, name, lambda rng: function, style, **intent)


def drawn(
    codes: str,
    name: str,
    build: Callable[[np.random.Generator], Attention],
    style: str,
    **intent,
) -> Specimen:
    """A function whose numbers (a fill, a block size) are drawn when it is made."""

    def make(rng: np.random.Generator, dtype: str) -> Attention:
        function = build(rng)
        # A function that is meant for a type gets its arrays just as they come.
        if dtype == "float64" or "dtype" in intent:
            return function
        return computes_in_float32(function)

    label = f"{codes.replace(' ', '+')} function: {name}"
    return Specimen(label, frozenset(codes.split()), make, intent, style)


def computes_in_float32(function: Attention) -> Attention:
    """The same function for somebody whose arrays are all float32."""

    @wraps(function)
    def in_float32(*args, **options):
        options = {name: _narrow(x) for name, x in options.items()}
        return function(*map(_narrow, args), **options)

    return in_float32


def _narrow(x):
    if isinstance(x, np.ndarray) and x.dtype == np.float64:
        return x.astype(np.float32)
    # A tensor, without importing torch for it.
    return x.float() if getattr(x, "is_floating_point", bool)() else x
