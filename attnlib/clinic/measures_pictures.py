"""Measures for pictures and for attention across: which pixels a patch holds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attnlib.clinic.families.pictures import PATCHES
from attnlib.clinic.measures_scores import scaled_by
from attnlib.clinic.sight import Sight, first, place


def pixels(sight: Sight) -> str | None:
    """Where the pixels of the first wrong patch stand in the picture."""
    mine, image = sight.result(), np.asarray(sight.case.args[0])
    good = sight.right.arrays[0] if sight.right.arrays else None
    if mine is None or good is None or mine.shape != good.shape:
        return None
    if len(np.unique(image)) < image.size:
        return None  # a pixel could not be told by its number
    for number, (row, right) in enumerate(zip(mine, good, strict=True)):
        if np.array_equal(row, right):
            continue
        said = []
        for values in (row, right):
            where = [np.argwhere(np.isclose(image, value)) for value in values]
            if any(len(w) != 1 for w in where):
                return None
            said.append(", ".join(place(w[0]) for w in where[:4]))
        more = " and so on" if len(row) > 4 else ""
        return (
            f"your patch {number} holds the pixels {said[0]}{more}; right is "
            f"{said[1]}{more} ({sight.case.name})."
        )
    return None


def one_row(sight: Sight) -> str | None:
    """The shape of the result."""
    mine = sight.result()
    good = sight.right.arrays[0] if sight.right.arrays else None
    if mine is None or good is None or mine.shape == good.shape:
        return None
    return (
        f"your result has the shape {mine.shape}; {good.shape} is right "
        f"({sight.case.name})."
    )


def hidden(sight: Sight) -> str | None:
    """How much weight falls on parts of the memory that are not there."""
    weights, allowed = sight.weights, sight.view.allowed
    if weights is None or allowed is None or not np.isfinite(weights).all():
        return None
    lost = np.where(np.broadcast_to(allowed, weights.shape), 0, weights).sum(axis=-1)
    if lost.max() < 1e-3:
        return None
    at = np.unravel_index(lost.argmax(), lost.shape)
    return (
        f"query {int(at[-1])} gives {lost[at]:.3f} of its weight to parts that are not "
        f"there ({sight.case.name})."
    )


MEASURES: dict[str, Callable[[Sight], str | None]] = {
    **{key: first(pixels, one_row) for key in PATCHES.faults},
    "memory_zeroed": hidden,
    "scale_d_memory": scaled_by("d_memory", "√d_k/√d_memory"),
    "mask_on_queries": hidden,
    "mask_without_axis": hidden,
}
