"""Names of axes, and errors that say which size was wrong.

Every array in the course names its axes the same way: `n_q` queries, `n_k` keys,
`d_k` numbers in a query or a key, `d_v` numbers in a value, `d_model` numbers in a
token, `n_heads` heads. `check_shapes` reads these names off the arrays of one call
and raises when one name would need two sizes.
"""

from __future__ import annotations

from collections.abc import Mapping

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
    seen: dict[str, str] = {name: "" for name in known}
    for name, (value, axes) in arrays.items():
        shape = numbers(name, value).shape
        names = axes.split()
        if len(shape) < len(names):
            wanted = ", ".join(names)
            raise ShapeError(
                f"{name} needs the axes ({wanted}) at its end, but its shape is {shape}."
            )
        for axis, size in zip(names, shape[len(shape) - len(names) :], strict=True):
            if axis not in sizes:
                sizes[axis], seen[axis] = size, name
            elif sizes[axis] != size:
                first = seen[axis]
                if not first:
                    raise ShapeError(
                        f"{axis} is {sizes[axis]}, but {name} with shape {shape} "
                        f"has {size} there."
                    )
                other = np.shape(arrays[first][0])  # type: ignore[arg-type]
                raise ShapeError(
                    f"{axis} is {sizes[axis]} in {first} with shape {other} but "
                    f"{size} in {name} with shape {shape}; {first} and {name} must "
                    f"agree in {axis}."
                )
    return sizes


def numbers(name: str, value: object) -> npt.NDArray[np.generic]:
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
            f"{name} must be an array of numbers, but NumPy cannot read it: {error}."
        ) from None
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must be an array of numbers, but it is a {type(value).__name__}"
            + (f" of dtype {array.dtype}." if isinstance(value, np.ndarray) else ".")
        )
    return array
