"""Counting numbers that stand in the row of another token, with mistakes built in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults
from attnlib.clinic.families.splits import split_heads

Float = npt.NDArray[np.floating]


def strays(x: Float, split: Float, *, faults: Faults = RIGHT) -> float:
    """How many numbers of `split` are in row i of a head, but not in token i."""
    if "strays_by_place" in faults:
        return int(np.sum(split != split_heads(x, len(split))))
    if "strays_by_division" in faults:
        return int(np.sum(split // x.shape[1] != np.arange(len(x))[:, None]))
    if "strays_by_eight" in faults:
        return int(np.sum(split // 8 != np.arange(len(x))[:, None]))
    if "strays_by_wrong_place" in faults:
        return int(np.sum(split != x.reshape(split.shape)))
    if "strays_merged_at_once" in faults:
        rows = split.reshape(len(x), -1)
        return int(sum(np.sum(~np.isin(a, b)) for a, b in zip(rows, x, strict=True)))
    if "strays_head_as_token" in faults:
        return int(sum(np.sum(~np.isin(split[i], x[i])) for i in range(len(split))))
    if "strays_anywhere" in faults:
        return int(np.sum(~np.isin(split, x)))
    if "strays_first_head" in faults:
        split = split[:1]
    at_home = (split[..., None] == x[:, None, :]).any(axis=-1)  # (n_heads, n, d_k)
    if "strays_at_home" in faults:
        return int(np.sum(at_home))
    if "strays_rows" in faults:
        return int(np.sum(~at_home.all(axis=-1)))
    if "strays_tokens" in faults:
        return int(np.sum(~at_home.all(axis=(0, -1))))
    if "strays_share" in faults:
        return float(np.mean(~at_home))
    if "strays_whether" in faults:
        return int(not at_home.all())
    return int(np.sum(~at_home))


STRAYS = Family(
    "strays",
    strays,
    {
        "test": (
            "strays_by_place",
            "strays_by_division",
            "strays_by_eight",
            "strays_by_wrong_place",
            "strays_merged_at_once",
            "strays_head_as_token",
            "strays_anywhere",
            "strays_at_home",
        ),
        "heads": ("strays_first_head",),
        "count": ("strays_rows", "strays_tokens", "strays_share", "strays_whether"),
    },
)
