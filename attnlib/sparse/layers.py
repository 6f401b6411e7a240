"""How far a token sees through several layers of one pattern."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.shapes import Mask, ShapeError, size


def layers_between(mask: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Count the layers it takes until one token can change another's output.

    layers[i, j] = the smallest L with (mask | identity)^L [i, j], the identity being
    the residual connection

    A window of `left` keys before a query needs the distance divided by `left`, rounded
    up; one global token makes it 2 for every pair.

    Args:
        mask: boolean, (n, n), the same in every layer. True = may look.

    Returns:
        The layers, whole numbers, (n, n): 0 on the diagonal, -1 where none suffice.

    Raises:
        ShapeError: the mask is not square.
        TypeError: the mask is not boolean.

    Cost: a product of two (n, n) matrices for each layer up to the largest number.
    Source: Beltagy et al. 2020 (Longformer), section 3.1, counts it for windows.
    Lesson: 13.

    >>> layers_between([[True, False, False], [True, True, False], [False, True, True]])
    array([[ 0, -1, -1],
           [ 1,  0, -1],
           [ 2,  1,  0]])
    """
    look = _square(mask)
    layers = np.full(look.shape, -1)
    np.fill_diagonal(layers, 0)
    # float32 has a fast product, and counts to 2^24; only zero or not is asked.
    step = look.astype(np.float32)
    number = 0
    while True:
        number += 1
        seen = (step @ (layers >= 0).astype(np.float32) > 0) & (layers < 0)
        if not seen.any():
            return layers
        layers[seen] = number


def reach(mask: npt.ArrayLike, n_layers: int) -> Mask:
    """Mark which tokens can change which outputs, after so many layers.

    seen[i, j] = (mask | identity)^n_layers [i, j]

    Args:
        mask: boolean, (n, n), the same in every layer. True = may look.
        n_layers: how many layers there are.

    Returns:
        Boolean, (n, n). Row i is the receptive field of token i.

    Raises:
        ShapeError: the mask is not square, or n_layers is negative.
        TypeError: the mask is not boolean, or n_layers not a whole number.

    Cost: that of `layers_between`.
    Source: Beltagy et al. 2020 (Longformer), section 3.1.
    Lesson: 13.

    >>> chain = np.eye(5, dtype=bool) | np.eye(5, k=-1, dtype=bool)
    >>> reach(chain, 2)[4].astype(int).tolist()
    [0, 0, 1, 1, 1]
    """
    n_layers = size("n_layers", n_layers)
    layers = layers_between(mask)
    return (layers >= 0) & (layers <= n_layers)


def _square(mask: npt.ArrayLike) -> Mask:
    look = np.asarray(mask)
    if look.dtype != np.bool_:
        raise TypeError(f"mask must be boolean, but its dtype is {look.dtype}.")
    if look.ndim != 2 or look.shape[0] != look.shape[1]:
        raise ShapeError(
            "a pattern is followed through layers of one sequence, so the mask must be "
            f"(n, n), but its shape is {look.shape}."
        )
    return look
