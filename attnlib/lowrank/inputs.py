"""What the functions of this package are given: checked, and as floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from attnlib.shapes import Array, Mask, ShapeError, check_shapes

NAMES = {"q": "n_q d_k", "k": "n_k d_k", "v": "n_k d_v"}


def checked(
    q: npt.ArrayLike, k: npt.ArrayLike, v: npt.ArrayLike
) -> tuple[Array, Array, Array]:
    """q, k and v as floating arrays that fit together."""
    given = {"q": q, "k": k, "v": v}
    check_shapes({name: (array, NAMES[name]) for name, array in given.items()})
    arrays = tuple(floating(np.asarray(array)) for array in given.values())
    of_q, of_k, of_v = batch = [array.shape[:-2] for array in arrays]
    try:
        np.broadcast_shapes(*batch)
    except ValueError:
        raise ShapeError(
            f"the batch axes of q {of_q}, k {of_k} and v {of_v} do not broadcast."
        ) from None
    return arrays[0], arrays[1], arrays[2]


def floating(array: npt.NDArray[Any]) -> Array:
    """Whole numbers and truth values become float64; floats keep their type."""
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def check_real(real: npt.ArrayLike | None, name: str, x: Array) -> Mask:
    """Which tokens of x are no padding, (..., n) as x has them; all if left out."""
    if real is None:
        return np.ones(x.shape[:-1], bool)
    array = np.asarray(real)
    if array.dtype != np.bool_:
        raise TypeError(
            f"real must be boolean (True = no padding), but its dtype is {array.dtype}."
        )
    try:
        return np.broadcast_to(array, x.shape[:-1])
    except ValueError:
        raise ShapeError(
            f"real with shape {array.shape} does not broadcast to the tokens of {name}"
            f", {x.shape[:-1]}."
        ) from None
