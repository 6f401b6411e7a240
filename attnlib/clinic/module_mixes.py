"""Whether a module is an attention at all: whether its tokens mix with each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from attnlib.clinic.module_call import ModuleCall
from attnlib.clinic.module_first import plain_text, result
from attnlib.clinic.subject import Weights


def mixes(call: ModuleCall, d_model: int) -> bool:
    """Whether a token has an influence on what comes out for any other."""
    text = plain_text(d_model)
    before = result(call, text)
    for token in (0, -1):  # one that all may see in a causal text, and its mirror
        other = text.copy()
        other[0, token] += 1.0
        after = result(call, other)
        if before is None or after is None or before.shape != after.shape:
            return True
        with np.errstate(all="ignore"):
            moved = ~(np.abs(after - before) <= 1e-12 * (1 + np.abs(before)))
        moved &= ~(np.isnan(before) & np.isnan(after))
        moved[0, token] = False
        if moved.any():
            return True
    return False


def heads_mix(
    call: ModuleCall, weights: Weights, write: Callable[[Weights], None], d_model: int
) -> bool:
    """Whether the heads of a token look at each other, as in a wrong layout of axes.

    Queries then decide by how much: without them, what a token says still comes out.
    """
    text = plain_text(d_model)
    before = result(call, text)
    write(replace(weights, W_q=np.zeros_like(weights.W_q), b_q=None))
    even = result(call, text)
    write(weights)
    if before is None or even is None or before.shape != even.shape:
        return False
    of_queries = np.abs(before - even).max(initial=0.0) > 1e-6
    return bool(of_queries and np.ptp(even, axis=1).max(initial=0.0) > 1e-6)
