"""One call of an answer, seen beside the right result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import Case, Outcome, Result, View

Float = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Sight:
    """A case, what the answer gave, what is right, and what the call lets us see."""

    case: Case
    yours: Outcome
    right: Outcome
    view: View
    right_view: View

    @property
    def weights(self) -> Float | None:
        """The weights inside the answer, as floats, if this call shows them."""
        weights = self.view.weights
        return None if weights is None else np.asarray(weights, dtype=np.float64)

    @property
    def right_weights(self) -> Float | None:
        """The right weights, if this call shows them."""
        weights = self.right_view.weights
        return None if weights is None else np.asarray(weights, dtype=np.float64)

    def result(self, part: int = 0) -> Result | None:
        """One array of the answer, or None if the call gave none."""
        arrays = self.yours.arrays
        return arrays[part] if len(arrays) > part else None


def number(value: float) -> str:
    """A number as a person reads it: three decimals, none where none are needed."""
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "infinity" if value > 0 else "-infinity"
    text = f"{value:.3f}" if abs(value) < 1000 else f"{value:.3g}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def numbers(values: Float, most: int = 4) -> str:
    """Some numbers in words: 0.1, 0.2 and 0.3."""
    words = [number(float(v)) for v in np.ravel(values)]
    if len(set(words)) == 1 and len(words) > 1:
        return f"{words[0]} throughout"
    if len(words) > most:
        return f"{', '.join(words[:most])} and so on"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def one_table(array: Float) -> Float:
    """The first table of a stack."""
    while array.ndim > 2:
        array = array[0]
    return array


def place(index: npt.ArrayLike) -> str:
    """A place in an array, as it is written in code: [0, 2]."""
    return str([int(i) for i in np.atleast_1d(index)])


def first(*measures: Callable[[Sight], str | None]) -> Callable[[Sight], str | None]:
    """The first of several measures that has something to say."""

    def measure(sight: Sight) -> str | None:
        return next((s for m in measures if (s := m(sight))), None)

    return measure
