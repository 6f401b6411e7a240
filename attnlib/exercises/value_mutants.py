"""Wrong answers to an exercise whose answer is a value, made from the right one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np

from attnlib.exercises.exercise import ValueExercise
from attnlib.exercises.values import equal

Pair = tuple[str, object]


def value_mutants(exercise: ValueExercise) -> tuple[Pair, ...]:
    """Each value with a text that shows it. None is within the tolerance."""
    right, tolerance = exercise.right, exercise.tolerance
    found: dict[str, object] = {}
    for value in _near(right, tolerance):
        if not equal(value, right, tolerance):
            found.setdefault(_shown(value), value)
    return tuple(found.items())


def _near(value: object, tolerance: float) -> Iterator[object]:
    """The value changed in one place, and then in its form."""
    yield from _changed(value, tolerance)
    if isinstance(value, dict | tuple | np.ndarray | str):
        yield from (None, 0, True, (), {}, "")
    if isinstance(value, tuple):
        yield from (set(value), str(len(value)))


def _changed(value: object, tolerance: float) -> Iterator[object]:
    if isinstance(value, dict):
        for pairs in _parts(list(value.items()), tolerance):
            yield dict(cast("list[tuple[object, object]]", pairs))
        keys = list(value)
        for values in _exchanged(list(value.values())):
            yield dict(zip(keys, values, strict=True))
        yield {value: key for key, value in value.items()}
    elif isinstance(value, str):
        letters = list(value)
        for parts in (*_exchanged(letters), *_parts(letters, tolerance)):
            yield "".join(map(str, parts))
    elif isinstance(value, tuple):
        yield from map(tuple, _exchanged(list(value)))
        yield from map(tuple, _parts(list(value), tolerance))
    elif isinstance(value, np.ndarray):
        yield from map(np.array, _exchanged(value.tolist()))
        yield from map(np.array, _parts(value.tolist(), tolerance))
        yield from (value * 2, -value, value[None], value[:, None], value * np.nan)
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        near = 1 if isinstance(value, int) else 2 * tolerance
        yield from (value + near, value - near, -value, value * 2, value + 1)
        yield from (float("nan"), float("inf"), 0)


def _parts(parts: Sequence[object], tolerance: float) -> Iterator[list[object]]:
    """One part left out, one twice, one changed."""
    for i, part in enumerate(parts):
        before, after = list(parts[:i]), list(parts[i + 1 :])
        yield before + after
        yield [*before, part, part, *after]
        if not (isinstance(part, str) and len(part) == 1):
            for new in _part(part, tolerance):
                yield [*before, new, *after]


def _part(part: object, tolerance: float) -> Iterator[object]:
    """One part changed: of a key and its value, the value; of a word, its end."""
    if isinstance(part, tuple):
        yield from ((part[0], new) for new in _part(part[1], tolerance))
    elif isinstance(part, str):
        yield from (part[:-1], part + "s", "")
    else:
        yield from _changed(part, tolerance)


def _exchanged(parts: Sequence[object]) -> Iterator[list[object]]:
    """Two parts exchanged, whichever."""
    for i in range(len(parts)):
        for j in range(i + 1, len(parts)):
            new = list(parts)
            new[i], new[j] = new[j], new[i]
            yield new


def _shown(value: object) -> str:
    return repr(value)
