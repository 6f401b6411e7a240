"""What variants give on questions that were asked before, for the next examination.

A question is drawn from a seed, so two subjects that take the same things are asked the
very same ones, and what a wrong attention gives to them is the same as well. Whoever
mends a function and examines it again waits for its own calls only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from attnlib.clinic.black_box.traits import Found, Traits
from attnlib.clinic.case import Faults
from attnlib.shapes import Array

Table = dict[Faults, Array | None]  # None: the call raised

MOST_BYTES = 64 * 2**20  # that are kept between two examinations
ENTRY = 500  # bytes of a table, or of one entry beside its numbers, about

# Faults with a number that was read off one subject, and what such numbers are called.
NUMBERED: Faults = frozenset(
    {
        "scale_other",
        "slopes_other",
        "cap_other",
        "mask_fill_other",
        "mask_fill_added",
        "mask_before_scale",
        "mask_added_before_scale",
    }
)
NUMBERS = ("scale", "cap", "fill", "fill_before_scale", "slope_")

_tables: dict[Hashable, Table] = {}  # the one used last stands last


class Known:
    """The tables of some questions, for attention of one kind with such numbers."""

    def __init__(self, questions: Sequence[Any], traits: Traits, found: Found) -> None:
        self.common = [_table(question, traits) for question in questions]
        self.own: list[Table] = [{} for _ in questions]
        usual = all(name.startswith(NUMBERS) for name in found)
        self.numbered = NUMBERED if usual else None  # None: any fault may hold them
        self.nothing_found = not found

    def __call__(self, number: int, faults: Faults) -> Table:
        """Where the answer of a variant to this question is kept."""
        if self.nothing_found or (self.numbered and not self.numbered & faults):
            return self.common[number]
        return self.own[number]


def _table(question: Any, traits: Traits) -> Table:
    key = digest(question), traits
    _tables[key] = _tables.pop(key, {})
    return _tables[key]


def digest(question: Any) -> bytes:
    """A name for a question: the same for equal numbers, and for no others."""
    told = hashlib.blake2b(digest_size=16)

    def tell(value: Any) -> None:
        if isinstance(value, np.ndarray):
            told.update(f"{value.dtype}{value.shape}".encode())
            told.update(np.ascontiguousarray(value).tobytes())
        elif is_dataclass(value):
            told.update(type(value).__name__.encode())
            for field in fields(value):
                told.update(field.name.encode())
                tell(getattr(value, field.name))
        else:
            told.update(repr(value).encode())

    tell(question)
    return told.digest()


def forget(most: int = MOST_BYTES) -> None:
    """Drop the tables used longest ago, until the others fit."""
    sizes = {key: _bytes(kept) for key, kept in _tables.items()}
    total = sum(sizes.values())
    for key in list(_tables):
        if total <= most:
            return
        total -= sizes[key]
        del _tables[key]


def _bytes(kept: Table) -> int:
    arrays = (0 if out is None else out.nbytes for out in kept.values())
    return ENTRY * (1 + len(kept)) + sum(arrays)
