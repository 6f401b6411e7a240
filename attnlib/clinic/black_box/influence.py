"""Read the kind of an attention off its outputs: who sees whom, by which numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from attnlib.clinic.black_box.traits import Traits
from attnlib.shapes import Mask

Table = npt.NDArray[Any]  # of numbers: weights, scores, queries, keys

GOOD_FIT = 1e-4  # of the spread of log-weights
LEAST = 1e-30  # logarithms of smaller weights say nothing


def kinds(sees: Mask, told: Traits) -> list[Traits]:
    """The kinds of attention that a pattern of influence may be, the simplest first.

    Args:
        sees: (n, n), whether the output of token i changes with token j.
        told: what is known already.
    """
    n = len(sees)
    found = [told]
    if sees.all() or told.causal or told.window is not None:
        return found
    found.append(replace(told, causal=True))
    back = np.arange(n)[:, None] - np.arange(n)
    reach = int(np.where(sees, back, 0).max(initial=0)) + 1  # keys, itself counted
    ahead = int(np.where(sees, -back, 0).max(initial=0)) + 1
    if reach < n:
        both = ahead > 1
        found += [
            replace(told, causal=not both, window=keys, both_sides=both)
            for keys in dict.fromkeys((reach, max(reach, ahead)))
        ]
    return found


def slope(log_weights: Table, scores: Table, seen: Mask) -> float | None:
    """The factor by which `scores` enter the softmax, if they alone do.

    Within a row, log(weight) is factor * score plus a constant.
    """
    x, y = _within_rows(scores, seen), _within_rows(log_weights, seen)
    power = float((x * x).sum())
    if not power > 0:
        return None
    factor = float((x * y).sum() / power)
    spread = float(np.abs(y).max(initial=0.0))
    rest = float(np.abs(y - factor * x).max(initial=0.0))
    return factor if rest <= GOOD_FIT * max(spread, 1e-9) else None


def _within_rows(values: Table, seen: Mask) -> Table:
    count = np.maximum(seen.sum(axis=-1, keepdims=True), 1)
    values = np.where(seen, values, 0.0)
    return np.where(seen, values - values.sum(axis=-1, keepdims=True) / count, 0.0)


def logarithms(weights: Table) -> tuple[Table, Mask]:
    """log(weights), and where it may be used."""
    seen = np.isfinite(weights) & (weights > LEAST)
    return np.log(np.where(seen, weights, 1.0)), seen


def once(weights: Table) -> Table | None:
    """The weights before a second softmax, if these may have gone through two.

    Those before sum to 1 as well, which says the constant that a logarithm leaves open.
    """
    if not np.isfinite(weights).all() or not (weights > 0).all():
        return None
    if not (weights.max(axis=-1) < 2.72 * weights.min(axis=-1)).all():
        return None
    logs = np.log(weights)
    n = weights.shape[-1]
    before = logs + (1 - logs.sum(axis=-1, keepdims=True)) / n
    return before if (before > -1e-9).all() else None


def scales(
    weights: Table, q: Table, k: Table, allowed: Table | None = None
) -> Iterator[float]:
    """Factors on q·k, or on other products, that explain the weights of one call."""
    logs, seen = logarithms(weights)
    seen = seen if allowed is None else seen & np.broadcast_to(allowed, seen.shape)
    pairs = ((q, k), (k, q), (q, q), (k, k))
    for a, b in pairs:
        scores = a @ np.swapaxes(b, -1, -2)
        if scores.shape == weights.shape:
            factor = slope(logs, scores, seen)
            if factor is not None and abs(factor) > 1e-6:
                yield factor


def fill(
    weights: Table, scores: Table, allowed: Table, *, any_scores: bool = False
) -> tuple[float, bool] | None:
    """The finite number that stands where a mask hides, read off the weights.

    Args:
        weights: as they were seen.
        scores: as they meet the mask.
        allowed: True = may look.
        any_scores: whether the scores are known to be those of the subject.

    Returns:
        The number, and whether it was added to the scores (else it replaced them).
        None if hidden weights are 0 or as if shown, or no one number explains them.
    """
    logs, seen = logarithms(weights)
    allowed = np.broadcast_to(allowed, weights.shape)
    hidden, shown = seen & ~allowed, seen & allowed
    rows = hidden.any(axis=-1, keepdims=True) & shown.any(axis=-1, keepdims=True)
    hidden, shown = hidden & rows, shown & rows
    if not hidden.any():
        return None
    factor = slope(logs, scores, shown)
    if factor is None or (any_scores and abs(factor - 1) > 1e-3):
        return None
    count = np.maximum(shown.sum(axis=-1, keepdims=True), 1)
    constant = np.where(shown, logs - scores, 0).sum(axis=-1, keepdims=True) / count
    put = (logs - constant)[hidden]
    lowered = put - np.broadcast_to(scores, weights.shape)[hidden]
    for values, added in ((put, False), (lowered, True)):
        middle = float(np.median(values))
        if np.abs(values - middle).max() < 1e-3 * max(1.0, abs(middle)):
            nothing = added and abs(middle) < 1e-3  # then nothing is hidden at all
            return None if nothing else (middle, added)
    return None


def is_round(value: float) -> bool:
    """Whether it is a number of two digits, as far as it was measured: to four."""
    near = float(f"{value:.1e}")
    return abs(value - near) <= 3e-4 * abs(value)


def slopes(weights: Table, scores: Table, allowed: Mask) -> Table | None:
    """A slope for each head that explains the weights by minus slope times distance."""
    logs, seen = logarithms(weights)
    seen = seen & np.broadcast_to(allowed, weights.shape)
    n_q, n_k = weights.shape[-2:]
    near = -np.abs(np.arange(n_k) - (np.arange(n_q) + n_k - n_q)[:, None])
    x = _within_rows(np.broadcast_to(near, weights.shape).astype(float), seen)
    y = _within_rows(logs - scores, seen)
    axes = (0, -2, -1)
    power = (x * x).sum(axis=axes)
    if weights.ndim != 4 or not (power > 0).all():
        return None
    found = (x * y).sum(axis=axes) / power
    rest = np.abs(y - found[:, None, None] * x).max(initial=0.0)
    return np.asarray(found) if rest < 1e-3 else None


def cap(weights: Table, scores: Table) -> float | None:
    """The cap of a softcap that explains the weights, if one does."""
    logs, seen = logarithms(weights)
    trial = np.geomspace(0.3, 300.0, 60)
    rest = [_misfit(logs, scores, seen, c) for c in trial]
    best = int(np.argmin(rest))
    if not 0 < best < len(trial) - 1:
        return None
    low, high = float(trial[best - 1]), float(trial[best + 1])
    for _ in range(60):
        a, b = low + (high - low) * 0.382, low + (high - low) * 0.618
        if _misfit(logs, scores, seen, a) < _misfit(logs, scores, seen, b):
            high = b
        else:
            low = a
    middle = (low + high) / 2
    near = round(middle, 2)
    middle = near if abs(near - middle) < 1e-3 * middle else middle
    return middle if _misfit(logs, scores, seen, middle) < GOOD_FIT else None


def _misfit(logs: Table, scores: Table, seen: Mask, value: float) -> float:
    capped = _within_rows(value * np.tanh(scores / value), seen)
    return float(np.abs(_within_rows(logs, seen) - capped).max(initial=0.0))
