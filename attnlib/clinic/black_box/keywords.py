"""Check the keywords of `examine`: each error names the keyword and what it may be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real

import numpy as np


def one_of(name: str, value: object, allowed: Sequence[str]) -> None:
    """Raise if a word is none of those that there are."""
    if not isinstance(value, str) or value not in allowed:
        choices = ", ".join(map(repr, allowed))
        raise ValueError(f"{name} must be one of {choices}, but it is {value!r}.")


def count(name: str, value: object, least: int = 1) -> None:
    """Raise if it is no whole number from `least` on."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or int(value) < least:  # type: ignore[call-overload]
        raise ValueError(
            f"{name} must be a whole number from {least} on, but it is {value!r}."
        )


def positive(name: str, value: object) -> None:
    """Raise if it is no finite number above 0."""
    real = isinstance(value, Real) and not isinstance(value, bool)
    if not real or not 0 < float(value) < math.inf:  # type: ignore[arg-type]
        raise ValueError(f"{name} must be a number above 0, but it is {value!r}.")


def truth(name: str, value: object) -> None:
    """Raise if it is neither True nor False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, but it is {value!r}.")


def heads(n_heads: int | None, n_kv_heads: int | None) -> None:
    """Raise if one of the numbers is none, or if they do not fit each other."""
    for name, value in (("n_heads", n_heads), ("n_kv_heads", n_kv_heads)):
        if value is not None:
            count(name, value)
    if n_heads and n_kv_heads and n_heads % n_kv_heads:
        raise ValueError(
            f"n_kv_heads must divide n_heads, but {n_kv_heads} does not divide "
            f"{n_heads}."
        )
