"""Attention in tiles of keys, as fast kernels do it: right, and wrong in four ways."""

from __future__ import annotations

import numpy as np

from attnlib.clinic.bugs.bug import Array, Mask, hidden, raw, scaled

TILE = 4


def online(
    q: Array,
    k: Array,
    v: Array,
    mask: Mask | None = None,
    *,
    tile: int = TILE,
    rescale: bool = True,
    lowest: float = -np.inf,
    guard: bool = True,
    rest: bool = True,
) -> Array:
    """Softmax and mixing in one pass over tiles of keys; right with its defaults.

    `rescale`: correct what was summed when a larger score comes. `lowest`: the largest
    score before any was seen. `guard`: do not subtract -inf from -inf. `rest`: take
    the last tile along where it is not full.
    """
    scores = hidden(scaled(raw(q, k, v), q, k, v), mask)
    n_k = k.shape[-2]
    end = n_k if rest or n_k < tile else n_k - n_k % tile
    largest = np.full((*scores.shape[:-1], 1), lowest)
    total = np.zeros_like(largest)
    out: Array = np.zeros((*scores.shape[:-1], v.shape[-1]))
    for start in range(0, end, tile):
        part = scores[..., start : min(start + tile, end)]
        new = np.maximum(largest, part.max(axis=-1, keepdims=True))
        safe = np.where(np.isneginf(new), 0, new) if guard else new
        e = np.exp(part - safe)
        if rescale:
            factor = np.exp(largest - safe)
            total, out = total * factor, out * factor
        total = total + e.sum(axis=-1, keepdims=True)
        out = out + e @ v[..., start : start + e.shape[-1], :]
        largest = new
    return np.asarray(out / np.where(total == 0, 1, total))


def last_tile_dropped(q: Array, k: Array, v: Array, mask: Mask | None = None) -> Array:
    """What does not fill a tile is lost."""
    return online(q, k, v, mask, rest=False)


def not_rescaled(q: Array, k: Array, v: Array, mask: Mask | None = None) -> Array:
    """The sum so far is not corrected when a larger score comes."""
    return online(q, k, v, mask, rescale=False)
