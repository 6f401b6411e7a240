"""The bugs that lesson 17 shows: a table of them, to sharpen checks on."""

from __future__ import annotations

import numpy as np

from attnlib.attention import softmax
from attnlib.clinic.bugs.bug import (
    Array,
    Attention,
    Bug,
    Mask,
    hidden,
    of_family,
    of_steps,
    open_pairs,
    raw,
    scaled,
)
from attnlib.clinic.bugs.shown_masks import MASK_BUGS
from attnlib.clinic.bugs.tiles import last_tile_dropped, not_rescaled


def _nearness(scores: Array, q: Array, k: Array, v: Array) -> Array:
    n_q, n_k = scores.shape[-2:]
    apart = np.abs(np.arange(n_k - n_q, n_k)[:, None] - np.arange(n_k))
    return scaled(scores, q, k, v) - 0.1 * apart


def _heads_merged(weights: Array, v: Array) -> Array:
    out = np.asarray(weights @ v)
    if out.ndim < 3:
        return out
    return np.swapaxes(out, -2, -3).reshape(out.shape)


def _items_mixed(q: Array, k: Array, v: Array, mask: Mask | None = None) -> Array:
    """The batch axis taken for tokens: every item reads the keys of all."""
    shape = (*np.broadcast_shapes(q.shape[:-2], k.shape[:-2]), q.shape[-2], k.shape[-2])
    if len(shape) < 3:
        return np.asarray(softmax(hidden(scaled(raw(q, k, v), q, k, v), mask)) @ v)
    allowed, items = open_pairs(shape, mask), shape[0]
    k, v = (np.broadcast_to(a, (*shape[:-2], *a.shape[-2:])) for a in (k, v))
    every_k = np.concatenate([k[i] for i in range(items)], axis=-2)
    every_v = np.concatenate([v[i] for i in range(items)], axis=-2)
    scores = scaled(q @ np.swapaxes(every_k, -1, -2), q, k, v)
    return np.asarray(softmax(hidden(scores, np.tile(allowed, items))) @ every_v)


def _writes_into_q(q: Array, k: Array, v: Array, mask: Mask | None = None) -> Array:
    q /= np.sqrt(q.shape[-1])
    return np.asarray(softmax(hidden(raw(q, k, v), mask)) @ v)


def _old_keys() -> Attention:
    seen: dict[tuple[int, ...], Array] = {}

    def attention(q: Array, k: Array, v: Array, mask: Mask | None = None) -> Array:
        k = seen.setdefault(k.shape, k.copy())
        return np.asarray(softmax(hidden(scaled(raw(q, k, v), q, k, v), mask)) @ v)

    return attention


_SCORES = (
    of_family(
        "causal unasked",
        "",
        "order",
        "Hides the future though no mask says so.",
        "causal_unasked",
    ),
    of_family(
        "no scale",
        "M01",
        "slope",
        "Scores are √d_k times too far apart, and the weights too sharp.",
        "scale_missing",
    ),
    of_family(
        "scale 1/d_k",
        "M03",
        "slope",
        "Scaled twice: the weights are too flat.",
        "scale_d_k",
    ),
    of_family(
        "√d_v for √d_k",
        "M02",
        "slope",
        "Right wherever values are as wide as keys.",
        "scale_d_v",
    ),
    of_family(
        "√n_k for √d_k",
        "M02",
        "slope",
        "Right wherever there are as many keys as a key has numbers.",
        "scale_n_k",
    ),
    of_family(
        "scale after softmax", "M01", "x-ray", "The rows sum to 1/√d_k.", "scale_after"
    ),
    of_family(
        "keys ask, queries answer",
        "M46",
        "sizes",
        "The table of scores is transposed.",
        "roles_swapped",
    ),
    of_family(
        "keys for values",
        "M46",
        "x-ray",
        "The keys are mixed, not the values.",
        "values_are_keys",
    ),
    of_family(
        "weights transposed",
        "M46",
        "sizes",
        "Rows and columns of the weights change places before they mix.",
        "weights_transposed",
    ),
    of_steps(
        "a bias for nearness",
        "",
        "order",
        "Keys further away score less, which nobody asked for.",
        scale=_nearness,
    ),
)
_SOFTMAX = (
    of_family(
        "softmax over queries",
        "M04",
        "x-ray",
        "Columns sum to one, not rows.",
        "axis_second_last",
    ),
    of_family(
        "softmax over everything",
        "M04",
        "x-ray",
        "All weights together sum to one.",
        "axis_all",
    ),
    of_family(
        "softmax over axis 1",
        "M04",
        "heads",
        "With a batch and heads, axis 1 is the heads.",
        "axis_one",
    ),
    of_family(
        "softmax twice",
        "M47",
        "slope",
        "The weights are nearly equal.",
        "softmax_twice",
    ),
    of_family(
        "sign turned", "", "slope", "What fits best is looked at least.", "sign_flipped"
    ),
    of_family(
        "not divided by the sum",
        "M47",
        "x-ray",
        "Rows sum to anything.",
        "not_normalised",
    ),
    of_family(
        "largest not subtracted",
        "M06",
        "huge",
        "exp overflows at scores beyond 709.",
        "not_stable",
    ),
    of_family(
        "one maximum for all rows",
        "M06",
        "huge",
        "A row far below the others is rounded to nothing.",
        "shift_global",
    ),
)
_BUILDING = (
    of_steps(
        "heads merged untransposed",
        "M21",
        "heads",
        "The numbers of the heads get into other tokens.",
        mix=_heads_merged,
    ),
    Bug(
        "items read each other",
        "M23",
        "alone",
        "The batch axis is taken for the tokens.",
        lambda: _items_mixed,
    ),
    Bug(
        "last tile dropped",
        "",
        "many",
        "Works in tiles of 4 keys, and loses what does not fill one.",
        lambda: last_tile_dropped,
    ),
    Bug(
        "tiles not rescaled",
        "M36",
        "many",
        "When a later tile of 4 holds a larger score, the sum so far is not corrected.",
        lambda: not_rescaled,
    ),
    Bug(
        "writes into q",
        "",
        "twice",
        "Its result is right, and the queries of the caller are changed.",
        lambda: _writes_into_q,
    ),
    Bug(
        "keeps the old keys",
        "",
        "twice",
        "Keys of the first call are used for all of that shape.",
        _old_keys,
    ),
)

SHOWN = (*_SCORES, *_SOFTMAX, *MASK_BUGS, *_BUILDING)
