"""The falling frequencies that sinusoid and RoPE share, and numbers that are checked.

Pair i turns by base^(-2 i / d) radians a token: the first pair by 1, the last by
nearly 1 / base.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from attnlib.shapes import numbers

Whole = npt.NDArray[np.int64]


def falling(d: int, base: float) -> npt.NDArray[np.float64]:
    """base^(-2 i / d) for each pair i; an odd d has a last pair of one feature."""
    base = real("base", base, above=1)
    return np.asarray(base ** (-np.arange(0, d, 2) / d), np.float64)


def real(
    name: str, value: object, *, least: float | None = None, above: float | None = None
) -> float:
    """One finite number, at least `least` or above `above`, or an error saying why."""
    wrong = isinstance(value, bool | np.bool_ | str)
    try:
        number = math.nan if wrong else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        wrong = True
    if wrong:
        raise TypeError(f"{name} must be one number, but it is {value!r}.")
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, but it is {number:g}.")
    if least is not None and number < least:
        raise ValueError(f"{name} must be at least {least:g}, but it is {number:g}.")
    if above is not None and number <= above:
        raise ValueError(f"{name} must be above {above:g}, but it is {number:g}.")
    return number


def whole(name: str, value: npt.ArrayLike) -> Whole:
    """An array of whole numbers; an empty one may have any type."""
    array: npt.NDArray[Any] = numbers(name, value)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(
            f"{name} must be whole numbers, but their dtype is {array.dtype}."
        )
    return array.astype(np.int64)
