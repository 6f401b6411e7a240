"""Measures for bytes that are counted: the two counts beside each other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attnlib.clinic.families.cache_size import KV_BYTES
from attnlib.clinic.families.shared_keys import KEY_OF
from attnlib.clinic.measures_layers import shares
from attnlib.clinic.sight import Sight


def counted(sight: Sight) -> str | None:
    """How many bytes the answer counts, and how many there are."""
    mine, right = sight.result(), sight.right.arrays[0]
    if mine is None or mine.shape != right.shape:
        return None
    yours, good = float(np.asarray(mine, float)), float(np.asarray(right, float))
    if np.isclose(yours, good):
        return None
    return f"you count {of(yours)} bytes, and there are {of(good)} ({sight.case.name})."


def of(value: float) -> str:
    """A count as a person reads it."""
    return f"{value:,.0f}" if value == round(value) else f"{value:.4g}"


MEASURES: dict[str, Callable[[Sight], str | None]] = {
    **dict.fromkeys(KV_BYTES.faults, counted),
    **dict.fromkeys((*KEY_OF, "kv_keys_tiled", "kv_keys_first_only"), shares),
}
