"""What the attentions of the arena take: arrays and a mask that fit each other."""

from __future__ import annotations

import numpy as np

from attnlib.clinic.bugs.bug import Array, Mask
from attnlib.shapes import ShapeError, check_shapes

MOST_NUMBER = 1e6  # beyond it float32, which is right, has no digits left to compare


def legal(
    q: object, k: object, v: object, mask: object = None
) -> tuple[list[Array], Mask | None]:
    """The arrays and the mask of one call, or an error that says what is wrong."""
    arrays = [a if isinstance(a, np.ndarray) else np.asarray(a) for a in (q, k, v)]
    for name, array in zip("qkv", arrays, strict=True):
        if array.dtype.kind not in "biuf" or array.size == 0:
            raise TypeError(f"{name} must be an array of numbers, with one at least.")
        if not (np.abs(array.astype(float)) <= MOST_NUMBER).all():
            raise ValueError(
                f"{name} has NaN, infinity, or a number larger than {MOST_NUMBER:,.0f}."
            )
    q, k, v = arrays
    check_shapes({"q": (q, "n_q d_k"), "k": (k, "n_k d_k"), "v": (v, "n_k d_v")})
    lead = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    arrays = [a if a.dtype.kind == "f" else a.astype(float) for a in arrays]
    if mask is None:
        return arrays, None
    allowed = np.asarray(mask)
    scores = (*lead, q.shape[-2], k.shape[-2])
    if allowed.dtype != np.bool_:
        raise TypeError(f"mask must be boolean, but its dtype is {allowed.dtype}.")
    if not _fits(allowed.shape, scores):
        raise ShapeError(f"mask {allowed.shape} does not fit scores {scores}.")
    return arrays, allowed


def _fits(shape: tuple[int, ...], scores: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, scores) == scores
    except ValueError:
        return False
