"""What the functions of this package are given: checked, and as floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from attnlib.shapes import Array, ShapeError, check_shapes


def checked(
    q: npt.ArrayLike, k: npt.ArrayLike, v: npt.ArrayLike, scale: float | None
) -> tuple[Array, Array, Array, float]:
    """q, k and v as floating arrays that fit together, and the scale of the scores."""
    sizes = check_shapes(
        {"q": (q, "n_q d_k"), "k": (k, "n_k d_k"), "v": (v, "n_k d_v")}
    )
    arrays = [_floating(np.asarray(array)) for array in (q, k, v)]
    batch = [array.shape[:-2] for array in arrays]
    try:
        np.broadcast_shapes(*batch)
    except ValueError:
        raise ShapeError(
            f"the batch axes of q {batch[0]}, k {batch[1]} and v {batch[2]} do not "
            "broadcast."
        ) from None
    if scale is None:
        scale = 1.0 if sizes["d_k"] == 0 else sizes["d_k"] ** -0.5
    return arrays[0], arrays[1], arrays[2], float(scale)


def check_width(n_q: int, n_k: int, dilation: int = 1, **reaches: int) -> None:
    """Raise where a window reaches past everything there is."""
    n = max(n_q, n_k, 1)
    for name, steps in reaches.items():
        if steps and steps * dilation >= n:
            found = f"{name}={steps}"
            if dilation > 1:
                found += f" steps of dilation={dilation}"
            raise ShapeError(
                f"{found} makes a window wider than the sequence, n_q={n_q} and "
                f"n_k={n_k}; {name}={(n - 1) // dilation} reaches everything."
            )


def _floating(array: npt.NDArray[Any]) -> Array:
    """Whole numbers and truth values become float64; floats keep their type."""
    return array if array.dtype.kind == "f" else array.astype(np.float64)
