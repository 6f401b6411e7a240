"""The bugs of lesson 17 that are held back: heads, batches, tiles, memory."""

from __future__ import annotations

import numpy as np

from attnlib.attention import softmax
from attnlib.clinic.bugs.bug import (
    Array,
    Attention,
    Bug,
    Mask,
    hidden,
    mixed,
    of_steps,
    open_pairs,
    raw,
    scaled,
    whole,
)
from attnlib.clinic.bugs.tiles import online


def building(rng: np.random.Generator) -> tuple[Bug, ...]:
    """Bugs of what is built around the recipe, with numbers drawn."""

    width, most = int(rng.integers(9, 14)), int(rng.integers(7, 11))
    tile, seed = int(rng.integers(5, 7)), int(rng.integers(1000))
    start = -float(rng.integers(50, 300))

    def first_head(q: Array, k: Array, v: Array) -> Array:
        return raw(q, k[..., :1, :, :] if k.ndim > 3 else k, v)

    def next_item(weights: Array, v: Array) -> Array:
        return mixed(weights, np.roll(v, 1, axis=0) if v.ndim > 2 else v)

    def window(scores: Array, mask: Mask | None) -> Array:
        near = np.arange(scores.shape[-1]) >= scores.shape[-1] - width
        return hidden(scores, open_pairs(scores.shape, mask) & near)

    def largest(scores: Array, mask: Mask | None) -> Array:
        scores = hidden(scores, mask)
        if scores.shape[-1] <= most:
            return scores
        lowest = np.sort(scores, axis=-1)[..., -most, None]
        return np.where(scores >= lowest, scores, -np.inf)

    def queries_lost(weights: Array, v: Array) -> Array:
        out, n_q = mixed(weights, v), weights.shape[-2]
        if n_q > tile:
            out[..., n_q - n_q % tile :, :] = 0
        return out

    def from_a_number(q: Array, k: Array, v: Array, mask: Mask | None = None) -> Array:
        return online(q, k, v, mask, tile=tile, lowest=start)

    def no_guard(q: Array, k: Array, v: Array, mask: Mask | None = None) -> Array:
        return online(q, k, v, mask, tile=tile, guard=False)

    def cut(q: Array, k: Array, v: Array, mask: Mask | None = None) -> Array:
        out = softmax(hidden(scaled(raw(q, k, v), q, k, v), mask)) @ v
        return np.asarray(out[..., : q.shape[-1]])

    def hides_values(q: Array, k: Array, v: Array, mask: Mask | None = None) -> Array:
        if mask is not None:
            seen = open_pairs((*v.shape[:-2], q.shape[-2], v.shape[-2]), mask)
            v[~seen.any(axis=-2)] = 0
        return np.asarray(softmax(hidden(scaled(raw(q, k, v), q, k, v), mask)) @ v)

    def dropout() -> Attention:
        dice = np.random.default_rng(seed)

        def attention(q: Array, k: Array, v: Array, mask: Mask | None = None) -> Array:
            weights = softmax(hidden(scaled(raw(q, k, v), q, k, v), mask))
            return np.asarray(weights * (dice.random(weights.shape) > 0.1) / 0.9 @ v)

        return attention

    def old_mask() -> Attention:
        kept: dict[tuple[int, ...], Mask] = {}

        def attention(q: Array, k: Array, v: Array, mask: Mask | None = None) -> Array:
            if mask is not None:
                mask = kept.setdefault(mask.shape, mask.copy())
            return np.asarray(softmax(hidden(scaled(raw(q, k, v), q, k, v), mask)) @ v)

        return attention

    return (
        of_steps(
            "keys of the first head for all",
            "",
            "heads",
            "All heads look with the first one's keys.",
            score=first_head,
        ),
        of_steps(
            "values of the next item",
            "M17",
            "alone",
            "The batch of the values is shifted by one.",
            mix=next_item,
        ),
        of_steps(
            f"only the last {width} keys",
            "",
            "many",
            "A window that nobody asked for.",
            hide=window,
        ),
        of_steps(
            f"only the {most} largest",
            "",
            "many",
            "With few keys it is right.",
            hide=largest,
        ),
        of_steps(
            "last queries lost",
            "",
            "many",
            f"Queries that do not fill a tile of {tile} get 0.",
            mix=queries_lost,
        ),
        whole(
            "tiles that start at a number",
            "M36",
            "huge",
            f"If all scores lie far below {start:.0f}, nothing is left.",
            from_a_number,
        ),
        whole(
            "a hidden first tile",
            "M36",
            "many",
            "If all keys of the first tile are hidden: -inf minus -inf.",
            no_guard,
        ),
        whole(
            "values cut to d_k",
            "",
            "sizes",
            "Right as long as values are not wider than keys.",
            cut,
        ),
        whole(
            "writes into v",
            "",
            "twice",
            "Hidden values of the caller become 0.",
            hides_values,
        ),
        Bug("dropout left on", "M34", "twice", "Two calls, two results.", dropout),
        Bug(
            "keeps the old mask",
            "",
            "twice",
            "The mask of the first call is used for all of that shape.",
            old_mask,
        ),
    )
