"""Cutting a picture into patches, with every mistake built in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults

Float = npt.NDArray[np.floating]

# The axes of the cut are (row of patches, row inside, column of patches, column
# inside); right is 0, 2, 1, 3.
_ORDERS = {
    "patches_not_moved": (0, 1, 2, 3),
    "patches_by_columns": (2, 0, 1, 3),
    "patches_pixels_by_columns": (0, 2, 3, 1),
    "patches_all_by_columns": (2, 0, 3, 1),
    "patches_first_axes": (1, 0, 2, 3),
    "patches_last_axes": (0, 1, 3, 2),
    "patches_outer_axes": (2, 1, 0, 3),
    "patches_inner_axes": (0, 3, 2, 1),
    "patches_every_nth": (1, 3, 0, 2),
    "patches_axes_reversed": (3, 2, 1, 0),
}


def patches(image: Float, size: int, *, faults: Faults = RIGHT) -> Float:
    """(height, width) -> (n_patches, size * size), both as one reads them."""
    height, width = image.shape
    if "patches_counted" in faults:  # size taken for how many along each side
        cut = image.reshape(size, height // size, size, width // size)
        return np.swapaxes(cut, 1, 2).reshape(size * size, -1)
    if "patches_counted_in_the_cut" in faults:
        cut = image.reshape(size, height // size, size, width // size)
        return np.swapaxes(cut, 1, 2).reshape(-1, size * size)
    if "patches_sides_swapped" in faults:
        cut = image.reshape(width // size, size, height // size, size)
        return np.swapaxes(cut, 1, 2).reshape(-1, size * size)
    if "patches_spread_out" in faults:  # what is inside is taken for the outer axis
        cut = image.reshape(size, height // size, size, width // size)
        return cut.transpose(1, 3, 0, 2).reshape(-1, size * size)
    if "patches_step_one" in faults:
        starts = [(i, j) for i in range(height // size) for j in range(width // size)]
        return np.stack([image[i : i + size, j : j + size].ravel() for i, j in starts])
    if "patches_overlapping" in faults:
        windows = np.lib.stride_tricks.sliding_window_view(image, (size, size))
        return windows.reshape(-1, size * size)
    if "patches_columns_of_pixels" in faults:
        return image.T.reshape(-1, size * size)
    if {"patches_square_by_height", "patches_square_by_width"} & faults:
        n = (height if "patches_square_by_height" in faults else width) // size
        starts = [(i * size, j * size) for i in range(n) for j in range(n)]
        parts = [image[i : i + size, j : j + size].ravel() for i, j in starts]
        return np.stack(parts)
    cut = image.reshape(height // size, size, width // size, size)
    order = next((o for key, o in _ORDERS.items() if key in faults), (0, 2, 1, 3))
    moved = cut.transpose(order)
    if "patches_in_a_grid" in faults:
        return moved.reshape(height // size, width // size, size * size)
    if "patches_square" in faults:
        return moved.reshape(-1, size, size)
    if "patches_four_axes" in faults:
        return moved
    if "patches_below_each_other" in faults:
        return moved.reshape(-1, size)
    rows = moved.reshape(-1, size * size)
    if "patches_joined_by_pixels" in faults:
        return rows.reshape(size * size, -1)
    if "patches_as_columns" in faults:
        return rows.T
    if "patches_means" in faults:
        return np.asarray(rows.mean(axis=-1, keepdims=True))
    return rows


PATCHES = Family(
    "patches",
    patches,
    {
        "cut": (
            *_ORDERS,
            "patches_columns_of_pixels",
            "patches_counted",
            "patches_counted_in_the_cut",
            "patches_sides_swapped",
            "patches_spread_out",
            "patches_step_one",
            "patches_overlapping",
            "patches_square_by_height",
            "patches_square_by_width",
        ),
        "shape": (
            "patches_in_a_grid",
            "patches_square",
            "patches_four_axes",
            "patches_as_columns",
            "patches_joined_by_pixels",
            "patches_below_each_other",
            "patches_means",
        ),
    },
)
