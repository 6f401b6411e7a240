"""The catalogue of mistakes that the functions of the course can make.

Each entry was seen in public code (`report`) or in an article, and each can be run: the
families in `attnlib.clinic.families` contain it under its key. M01 to M47 are the
numbers of the course; several keys may share one.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Mistake:
    """One mistake: its key in the families, its number, and what to tell a learner."""

    key: str
    code: str  # "M04", or "" for a slip without a number
    name: str  # what is wrong, as a short sentence without its full stop
    sentence: str  # what it means
    mend: str  # where to look, without giving the line
    report: str = ""  # "owner/repo#number": where it was seen in public


_added: set[str] = set()  # keys


@cache
def catalogue() -> dict[str, Mistake]:
    """All mistakes by key."""
    import attnlib.clinic.mistakes as package

    found: dict[str, Mistake] = {}
    for part in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
        for mistake in importlib.import_module(f"{package.__name__}.{part}").MISTAKES:
            if mistake.key in found:
                raise ValueError(f"Two mistakes have the key {mistake.key}.")
            found[mistake.key] = mistake
    return found


def add(mistakes: Iterable[Mistake]) -> None:
    """Take in mistakes that are not the course's: those of a teacher's own exercises.

    Args:
        mistakes: their keys are new. One that was added before is replaced.

    Raises:
        ValueError: the course has a mistake of that key.
    """
    for mistake in mistakes:
        if mistake.key in catalogue() and mistake.key not in _added:
            raise ValueError(f"the course has a mistake {mistake.key} already.")
        _added.add(mistake.key)
        catalogue()[mistake.key] = mistake


def get(key: str) -> Mistake:
    """The mistake of this key.

    >>> get("scale_missing").code
    'M01'
    """
    return catalogue()[key]
