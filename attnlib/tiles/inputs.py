"""What the kernels are handed: arguments checked, broadcast, one head at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from attnlib.shapes import Array, Mask, ShapeError, check_shapes, numbers


@dataclass(frozen=True)
class Inputs:
    """q, k, v and mask, with the batch axes broadcast and copied nowhere."""

    q: Array  #               (*batch, n_q, d_k)
    k: Array  #               (*batch, n_k, d_k)
    v: Array  #               (*batch, n_k, d_v)
    mask: Mask | None  #      (*batch, n_q or 1, n_k or 1): never stretched over those
    scale: float
    batch: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]  # of q, k and v before they were broadcast
    dtype: np.dtype[np.floating]  #  of what is computed: at least float32

    @property
    def n_q(self) -> int:
        """How many queries."""
        return int(self.q.shape[-2])

    def heads(self) -> Iterator[tuple[int, ...]]:
        """The index of every head of every sequence."""
        return np.ndindex(*self.batch)

    def result(self, *shape: int, dtype: npt.DTypeLike | None = None) -> Array:
        """Room for a result in HBM, (*batch, *shape)."""
        return np.zeros((*self.batch, *shape), dtype or self.dtype)


def read_inputs(
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    mask: npt.ArrayLike | None,
    scale: float | None,
) -> Inputs:
    """Check the arguments as `scaled_dot_product` does, and broadcast them."""
    sizes = check_shapes(
        {"q": (q, "n_q d_k"), "k": (k, "n_k d_k"), "v": (v, "n_k d_v")}
    )
    arrays = [_floating(numbers(n, x)) for n, x in (("q", q), ("k", k), ("v", v))]
    shapes = tuple(array.shape for array in arrays)
    try:
        batch = np.broadcast_shapes(*(shape[:-2] for shape in shapes))
    except ValueError:
        raise ShapeError(
            f"the batch axes of q {shapes[0][:-2]}, k {shapes[1][:-2]} and v "
            f"{shapes[2][:-2]} do not broadcast."
        ) from None
    q, k, v = (np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in arrays)
    if scale is None:
        scale = 1.0 if sizes["d_k"] == 0 else sizes["d_k"] ** -0.5
    look = None
    if mask is not None:
        look = _mask(mask, batch, sizes["n_q"], sizes["n_k"])
    dtype = np.result_type(np.float32, *(x.dtype for x in arrays))
    return Inputs(q, k, v, look, float(scale), batch, shapes, dtype)


def _floating(array: npt.NDArray[Any]) -> Array:
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def _mask(mask: npt.ArrayLike, batch: tuple[int, ...], n_q: int, n_k: int) -> Mask:
    array = np.asarray(mask)
    if array.dtype != np.bool_:
        raise TypeError(
            f"mask must be boolean (True = may look), but its dtype is {array.dtype}."
        )
    wanted = (*batch, n_q, n_k)
    try:
        fits = np.broadcast_shapes(array.shape, wanted) == wanted
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(
            f"mask with shape {array.shape} does not broadcast to the scores' shape "
            f"{wanted}, which ends in (n_q, n_k)."
        )
    array = array.reshape((1,) * (2 - array.ndim) + array.shape)
    return np.broadcast_to(array, (*batch, *array.shape[-2:]))
