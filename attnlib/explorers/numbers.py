"""Numbers on their way to a page: rounded, checked, and few of them.

A figure is stored in the notebook, compared by nbval and read by people, so it gets
the digits it shows and no others. JSON knows no NaN and no infinity; they travel as
words.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from attnlib.shapes import ShapeError, numbers

Number = int | float | str


def rounded(array: npt.ArrayLike, digits: int) -> list[Number]:
    """Flatten an array into rounded numbers that JSON can hold.

    >>> rounded([[0.25, -0.0], [np.nan, -np.inf]], 1)
    [0.2, 0, 'nan', '-inf']
    """
    flat = np.asarray(array).ravel()
    if flat.dtype.kind == "b":
        return [int(value) for value in flat]
    return [_number(float(value), digits) for value in flat]


def _number(value: float, digits: int) -> Number:
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    value = round(value, digits)
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def table(name: str, values: npt.ArrayLike) -> npt.NDArray[np.generic]:
    """Return `values` as a two-axis array, or say which shape was found.

    >>> table("weights", [1.0, 2.0])
    Traceback (most recent call last):
        ...
    attnlib.shapes.ShapeError: weights needs two axes to be shown as a table, but \
its shape is (2,).
    """
    array = numbers(name, values)
    if array.ndim != 2:
        raise ShapeError(
            f"{name} needs two axes to be shown as a table, but its shape is "
            f"{array.shape}."
        )
    return array


def labels(
    name: str, given: Sequence[object] | None, size: int, axis: str
) -> tuple[str, ...]:
    """Return one text a row or column: those given, or 0, 1, 2, ...

    >>> labels("weights", None, 2, "rows")
    ('0', '1')
    """
    if given is None:
        return tuple(str(index) for index in range(size))
    if len(given) != size:
        raise ShapeError(
            f"{name} has {size} {axis}, but {len(given)} labels were given for them."
        )
    return tuple(str(label) for label in given)


def one_line(sentence: str) -> str:
    """Return the sentence if it is one line of text.

    >>> one_line("")
    Traceback (most recent call last):
        ...
    ValueError: a figure needs a sentence of one line that says what it shows, but \
got ''.
    """
    if not isinstance(sentence, str) or not sentence.strip() or "\n" in sentence:
        raise ValueError(
            "a figure needs a sentence of one line that says what it shows, but got "
            f"{sentence!r}."
        )
    return sentence.strip()


def compact(data: object) -> str:
    """Return JSON without spaces, safe between the tags of a script."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")
