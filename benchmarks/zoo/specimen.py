"""What a specimen of the zoo is: one implementation, and what is wrong with it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Specimen:
    """One attention as somebody might write it.

    name: unique in the whole zoo; says what it is.
    codes: the mistakes of the catalogue that it makes; empty means right.
    make: (rng, "float32" or "float64") -> the function or module to examine.
    intent: keywords for `examine`: what the attention is meant to do.
    style: how it is written ("loops", "einsum", "hugging face", ...).
    """

    name: str
    codes: frozenset[str]
    make: Callable[[np.random.Generator, str], object]
    intent: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    style: str = ""
