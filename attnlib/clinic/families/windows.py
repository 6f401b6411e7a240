"""A sliding window and a padding mask, with every mistake built in. True = may look."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults
from attnlib.clinic.families.masks import HANDED_OVER, Array, hand_over, see_mask


def window(
    n_q: int, n_k: int, left: int, right: int = 0, *, faults: Faults = RIGHT
) -> Array:
    """Query i stands at p = n_k - n_q + i and sees the keys p - left to p + right."""
    offset = n_k - n_q
    if "aligned_top_left" in faults:
        offset = 0
    elif "offset_negated" in faults:
        offset = -offset
    if "window_one_more" in faults:
        left += 1
    elif "window_one_less" in faults:
        left -= 1
    elif "window_two_more" in faults:
        left += 2
    elif "window_right_one_more" in faults:
        right += 1
    elif "window_right_one_less" in faults:
        right -= 1
    elif "window_both_one_more" in faults:
        left, right = left + 1, right + 1
    elif "window_both_one_less" in faults:
        left, right = left - 1, right - 1
    elif "window_halved" in faults:
        left = left // 2
    ahead = np.arange(n_k) - (np.arange(n_q)[:, None] + offset)  # key minus query
    allowed = (-left <= ahead) & (ahead <= right)
    if "window_two_sided" in faults:
        allowed = np.abs(ahead) <= left
    elif "window_not_causal" in faults:
        allowed = -left <= ahead
    elif "window_missing" in faults:
        allowed = ahead <= right
    elif "window_ahead" in faults:
        allowed = (ahead >= 0) & (ahead <= left)
    elif "window_self_hidden" in faults:
        allowed = allowed & (ahead != 0)
    elif "window_blocks" in faults:  # blocks side by side, and no sliding
        width = left + 1
        q, k = np.arange(n_q)[:, None] + offset, np.arange(n_k)
        allowed = (q // width == k // width) & (ahead <= right)
    elif "window_outside" in faults:
        allowed = (ahead < -left) & (ahead <= right)
    return hand_over(allowed, faults)


def padding(lengths: npt.ArrayLike, n_k: int, *, faults: Faults = RIGHT) -> Array:
    """Which keys are real, (batch, n_k): the first `lengths` of each sequence."""
    ends = np.asarray(lengths)[:, None]
    keys = np.arange(n_k)
    if "batch_longest" in faults:
        ends = np.full_like(ends, ends.max())
    elif "batch_shortest" in faults:
        ends = np.full_like(ends, ends.min())
    elif "batch_first" in faults:
        ends = np.full_like(ends, ends[0])
    elif "batch_reversed" in faults:
        ends = ends[::-1]
    if "length_one_more" in faults:
        ends = ends + 1
    elif "length_one_less" in faults:
        ends = ends - 1
    real = keys < ends
    if "padding_in_front" in faults:
        real = keys >= n_k - ends
    elif "padding_last_only" in faults:
        real = keys == ends - 1
    elif "padding_missing" in faults:
        real = np.ones_like(real)
    if "padding_column" in faults:
        real = real[:, :, None]
    if "mask_transposed" in faults:
        return np.asarray(real.T)
    return hand_over(real, faults)


WINDOW = Family(
    "window",
    window,
    {
        "shape": (
            "window_two_sided",
            "window_not_causal",
            "window_missing",
            "window_ahead",
            "window_self_hidden",
            "window_blocks",
            "window_outside",
        ),
        "count": (
            "window_one_more",
            "window_one_less",
            "window_two_more",
            "window_right_one_more",
            "window_right_one_less",
            "window_both_one_more",
            "window_both_one_less",
            "window_halved",
        ),
        "alignment": ("aligned_top_left", "offset_negated"),
        "handed over": HANDED_OVER,
    },
    see_mask,
)
PADDING = Family(
    "padding",
    padding,
    {
        "length": ("length_one_more", "length_one_less"),
        "batch": ("batch_longest", "batch_shortest", "batch_first", "batch_reversed"),
        "keys": (
            "padding_in_front",
            "padding_column",
            "padding_last_only",
            "padding_missing",
        ),
        "handed over": HANDED_OVER,
    },
    see_mask,
)
