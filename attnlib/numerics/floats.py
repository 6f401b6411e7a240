"""What a float type can hold, bfloat16 too.

NumPy has no bfloat16. It is emulated: a float32 array that holds only values that
bfloat16 has, rounded as hardware rounds.

A type is named "float16", "bfloat16", "float32" or "float64"; NumPy's own types will
do too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from attnlib.shapes import Array, numbers

_NAMES = ("float16", "bfloat16", "float32", "float64")


@dataclass(frozen=True)
class Limits:
    """The ends of a float type, and its steps."""

    largest: float
    lowest: float  #   -largest
    epsilon: float  #  the step from 1 to the next larger number
    smallest: float  # the smallest positive number, a subnormal one


def round_to_bfloat16(x: npt.ArrayLike) -> Array:
    """Round to the nearest numbers that bfloat16 has, ties to the even one.

    bits = (bits + 0x7fff + lowest kept bit) with the lower 16 of 32 set to 0

    A bfloat16 is the upper half of a float32: the same exponents, and 8 significant
    bits instead of 24. A float64 is rounded to float32 first, as PyTorch does it.

    Args:
        x: numbers, (...).

    Returns:
        A float32 array of the same shape, of values that bfloat16 can hold.

    Raises:
        TypeError: x is not an array of numbers.

    Cost: a handful of integer operations a number.
    Source: the IEEE 754 rule "to nearest, ties to even"; Kalamkar et al. 2019.
    Lesson: 09.

    >>> round_to_bfloat16([1.0, 1.003, 1.005, 257.0]).tolist()
    [1.0, 1.0, 1.0078125, 256.0]
    """
    with np.errstate(over="ignore"):  # a float64 too large for float32 becomes inf
        wide = np.asarray(numbers("x", x), np.float32)
    # As uint64, so that the sum has room; the carry may run into the exponent, as it
    # should: that is how the largest numbers become inf.
    bits = np.asarray(wide.view(np.uint32), np.uint64)
    kept = (bits + np.uint64(0x7FFF) + ((bits >> 16) & np.uint64(1))) & 0xFFFF0000
    rounded = np.asarray(kept).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(wide), np.float32(np.nan), rounded)


def stored(x: npt.ArrayLike, dtype: npt.DTypeLike) -> Array:
    """Say what becomes of numbers when a float type has to hold them.

    the nearest number of the type; beyond its ends, +-inf

    Args:
        x: numbers, (...).
        dtype: "float16", "bfloat16", "float32" or "float64".

    Returns:
        An array of that type and the same shape; of float32 for bfloat16.

    Raises:
        TypeError: x is not an array of numbers, or dtype is none of the four.

    Cost: one pass over the numbers.
    Source: IEEE 754.
    Lesson: 09.

    >>> stored([-1e9, 2049, 0.1], "float16").tolist()
    [-inf, 2048.0, 0.0999755859375]
    >>> stored([-1e9, 2049, 0.1], "bfloat16").tolist()
    [-998244352.0, 2048.0, 0.10009765625]
    """
    name, array = type_name(dtype), numbers("x", x)
    if name == "bfloat16":
        return round_to_bfloat16(array)
    with np.errstate(over="ignore"):
        return np.asarray(array, np.dtype(name))


def limits(dtype: npt.DTypeLike) -> Limits:
    """Give the ends and the steps of a float type.

    largest = (2 - epsilon) 2^e, where e is the largest exponent; lowest = -largest

    Args:
        dtype: "float16", "bfloat16", "float32" or "float64".

    Returns:
        largest, lowest, epsilon and smallest.

    Raises:
        TypeError: dtype is none of the four.

    Cost: none worth counting.
    Source: IEEE 754; Kalamkar et al. 2019 for bfloat16.
    Lesson: 09.

    >>> limits("float16").largest, limits("float16").epsilon
    (65504.0, 0.0009765625)
    >>> f"{limits('bfloat16').largest:.3g}", limits("bfloat16").epsilon
    ('3.39e+38', 0.0078125)
    """
    name = type_name(dtype)
    if name == "bfloat16":
        epsilon = 2.0**-7
        largest = (2 - epsilon) * 2.0**127
        return Limits(largest, -largest, epsilon, 2.0**-133)
    info = np.finfo(np.dtype(name))
    largest = float(info.max)
    smallest = float(info.smallest_subnormal)
    return Limits(largest, -largest, float(info.eps), smallest)


def type_name(dtype: npt.DTypeLike) -> str:
    """Return the name of a float type, or say in one sentence why it is none here."""
    try:
        name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    except TypeError:
        name = ""
    if dtype is None or name not in _NAMES:
        raise TypeError(
            f"dtype must be one of {', '.join(_NAMES)}, but it is {dtype!r}."
        )
    return name
