"""Names of axes, and errors that say which size was wrong.

Every array in the course names its axes the same way: `n_q` queries, `n_k` keys,
`d_k` numbers in a query or a key, `d_v` numbers in a value, `d_model` numbers in a
token, `n_heads` heads. `check_shapes` reads these names off the arrays of one call
and raises when one name would need two sizes.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating]
Mask = npt.NDArray[np.bool_]


class ShapeError(ValueError):
    """The shapes of two arrays do not fit together, or one has too few axes."""


def check_shapes(
    arrays: Mapping[str, tuple[object, str]], **known: int
) -> dict[str, int]:
    """Read the sizes of named axes off the arrays of one call.

    `arrays` maps the name of an argument to the array and its last axes, as in
    `{"q": (q, "n_q d_k"), "k": (k, "n_k d_k")}`. Axes further left are free: they
    are batch axes.

    Args:
        arrays: name -> (array, names of its last axes, separated by spaces).
        known: sizes that are fixed from outside, such as `d_model=8`.

    Returns:
        The size of each named axis.

    Raises:
        ShapeError: an array has too few axes, or one name would need two sizes.
        TypeError: an argument is not an array of numbers.

    Cost: none worth counting; no array is copied.
    Source: the names of the course.
    Lesson: 01.

    >>> check_shapes({"q": (np.ones((3, 2)), "n_q d_k")})
    {'n_q': 3, 'd_k': 2}
    >>> check_shapes({"q": (np.ones((3, 2)), "n_q d_k"),
    ...               "k": (np.ones((5, 4)), "n_k d_k")})
    Traceback (most recent call last):
        ...
    attnlib.shapes.ShapeError: d_k is 2 in q with shape (3, 2) but 4 in k with \
shape (5, 4); q and k must agree in d_k.
    """
    sizes: dict[str, int] = dict(known)
    seen: dict[str, str] = dict.fromkeys(known, "")
    for name, (value, axes) in arrays.items():
        shape = numbers(name, value).shape
        names = axes.split()
        if len(shape) < len(names):
            wanted = ", ".join(names)
            raise ShapeError(
                f"{name} needs the axes ({wanted}) at its end, but its shape is "
                f"{shape}."
            )
        for axis, found in zip(names, shape[len(shape) - len(names) :], strict=True):
            if axis not in sizes:
                sizes[axis], seen[axis] = found, name
            elif sizes[axis] != found:
                first = seen[axis]
                if not first:
                    raise ShapeError(
                        f"{axis} is {sizes[axis]}, but {name} with shape {shape} "
                        f"has {found} there."
                    )
                other = numbers(first, arrays[first][0]).shape
                raise ShapeError(
                    f"{axis} is {sizes[axis]} in {first} with shape {other} but "
                    f"{found} in {name} with shape {shape}; {first} and {name} must "
                    f"agree in {axis}."
                )
    return sizes


def numbers(name: str, value: object) -> npt.NDArray[Any]:
    """Return `value` as an array, or say in one sentence why it is none.

    Args:
        name: what to call the argument in the error.
        value: an array, or nested lists of numbers.

    Returns:
        The array, not copied if it was one already. Any shape.

    Raises:
        TypeError: the value is not numeric: None, text, a ragged list, an object.

    Cost: a copy only for lists.
    Source: the names of the course.
    Lesson: 01.

    >>> numbers("q", "three tokens")
    Traceback (most recent call last):
        ...
    TypeError: q must be an array of numbers, but it is a str.
    """
    try:
        array = np.asarray(value)
    except Exception as error:  # a ragged list, or an object that refuses
        raise TypeError(
            f"{name} must be an array of numbers, but NumPy cannot read it: "
            f"{str(error).rstrip('.')}."
        ) from None
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must be an array of numbers, but it is a {type(value).__name__}"
            + (f" of dtype {array.dtype}." if not isinstance(value, str) else ".")
        )
    return array


def size(name: str, value: object, least: int = 0) -> int:
    """Return `value` as an int, or say in one sentence why it is no size.

    Args:
        name: what to call the size in the error, such as `n_heads`.
        value: a whole number; NumPy's are welcome, floats and truth values are not.
        least: the smallest size that makes sense.

    Returns:
        The size.

    Raises:
        TypeError: the value is not a whole number.
        ShapeError: it is smaller than `least`.

    Cost: none worth counting.
    Source: the names of the course.
    Lesson: 03.

    >>> size("n_q", 3)
    3
    >>> size("n_q", -1)
    Traceback (most recent call last):
        ...
    attnlib.shapes.ShapeError: n_q must be at least 0, but it is -1.
    """
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be a whole number, but it is {value!r}.")
    try:
        number = operator.index(value)
    except TypeError:  # an array of several numbers has __index__, and refuses
        raise TypeError(
            f"{name} must be a whole number, but it is {value!r}."
        ) from None
    if number < least:
        raise ShapeError(f"{name} must be at least {least}, but it is {number}.")
    return number
