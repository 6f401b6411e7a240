"""Measures for windows whose scores are made one neighbour at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attnlib.clinic import measures_masks
from attnlib.clinic.families.banded import WINDOW_ATTENTION
from attnlib.clinic.families.window_reach import OLDEST_TOKEN
from attnlib.clinic.sight import Sight, first, number


def keys_seen(sight: Sight) -> str | None:
    """In an x-ray: which keys get weight, and which may."""
    mine, allowed = sight.weights, sight.view.allowed
    if mine is None or allowed is None or mine.shape != np.shape(allowed):
        return None
    seen = ~np.isclose(mine, 0, atol=1e-12) & np.isfinite(mine)
    wrong = np.flatnonzero((seen != np.asarray(allowed)).any(axis=-1))
    if not wrong.size:
        return None
    row = int(wrong[-1])
    yours, right = (np.flatnonzero(a[row]).tolist() for a in (seen, allowed))
    return (
        f"when the values only name their token, query {row} puts its weight on the "
        f"keys {yours}, and may see {right} ({sight.case.name})."
    )


def place_told(sight: Sight) -> str | None:
    """Which token the answer gives, and which is right."""
    mine, right = sight.result(), sight.right.arrays[0]
    if mine is None or mine.shape != right.shape or np.isclose(float(mine), right):
        return None
    return (
        f"you say token {number(float(mine))}, and it is token {number(float(right))} "
        f"({sight.case.name})."
    )


_WINDOWS = [
    key
    for key in WINDOW_ATTENTION.faults
    if key.startswith("window_")
    or key.startswith("band_centred")
    or key in ("band_wraps", "band_shifted_at_start", "band_first_rows_empty")
]
MEASURES: dict[str, Callable[[Sight], str | None]] = {
    **{
        key: first(*(m for m in [measures_masks.MEASURES.get(key)] if m), keys_seen)
        for key in _WINDOWS
    },
    **dict.fromkeys(OLDEST_TOKEN.faults, place_told),
}
