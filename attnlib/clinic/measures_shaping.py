"""Measures for gates of heads, for heads taken away, and for attention copied."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attnlib.clinic.families.head_gate import HEAD_GATE
from attnlib.clinic.families.looks_copied import LOOKS_COPIED
from attnlib.clinic.families.pruned import PRUNED
from attnlib.clinic.sight import Sight, number


def gate_used(sight: Sight) -> str | None:
    """What the heads were multiplied with, at the place where it is most wrong."""
    mine, right = sight.result(), sight.right.arrays[0].astype(float)
    if mine is None or mine.shape != right.shape:
        return None
    mixed = np.asarray(sight.case.args[1], dtype=float)
    apart = np.where(np.abs(mixed) > 0.1, np.abs(mine - right), -1.0)
    if not np.isfinite(apart).all() or apart.max() < 1e-4:
        return None
    where = tuple(int(i) for i in np.unravel_index(apart.argmax(), apart.shape))
    text, head, token, _ = where
    yours, wanted = (float(a[where]) / float(mixed[where]) for a in (mine, right))
    return (
        f"head {head} of token {token} in text {text} is multiplied by "
        f"{number(yours)}, where its gate is {number(wanted)} ({sight.case.name})."
    )


def heads_kept(sight: Sight) -> str | None:
    """Which heads are kept, and what the loss is with them."""
    mine, right = sight.result(), sight.right.arrays[0]
    n_heads = int(np.asarray(sight.case.args[1]))
    if mine is None or mine.ndim != 1 or mine.dtype.kind not in "iu":
        return None
    yours, wanted = mine.tolist(), right.tolist()
    if yours == wanted or not set(yours) <= set(range(n_heads)):
        return None
    if len(set(yours)) < len(yours):
        return None
    loss_of = sight.case.args[0]
    assert callable(loss_of)
    text = f"yours keeps {yours}, with a loss of {number(loss_of(yours))}; one after "
    text += f"the other leads to {wanted}, with {number(loss_of(wanted))}"
    return f"{text} ({sight.case.name})."


def loss_given(sight: Sight) -> str | None:
    """The one number, beside the right one."""
    mine, right = sight.result(), float(sight.right.arrays[0])
    if mine is None or mine.ndim or mine.dtype.kind not in "iuf":
        return None
    if np.isclose(float(mine), right, rtol=1e-4, atol=1e-6):
        return None
    return f"for {sight.case.name} yours is {number(float(mine))}, not {number(right)}."


MEASURES: dict[str, Callable[[Sight], str | None]] = {
    **dict.fromkeys(HEAD_GATE.faults, gate_used),
    **dict.fromkeys(PRUNED.faults, heads_kept),
    **dict.fromkeys(LOOKS_COPIED.faults, loss_given),
}
