"""Right attentions, in as many styles as people write them.

A check must leave them all alone. Two compute in float32, and are off by rounding.
"""

from __future__ import annotations

import math

import numpy as np

from attnlib.attention import scaled_dot_product, softmax
from attnlib.clinic.bugs.bug import (
    Array,
    Bug,
    Mask,
    hidden,
    of_steps,
    open_pairs,
    raw,
    scaled,
    whole,
)
from attnlib.clinic.bugs.tiles import online


def _library(q: Array, k: Array, v: Array, mask: Mask | None = None) -> Array:
    return scaled_dot_product(q, k, v, mask).out


def _loops(q: Array, k: Array, v: Array, mask: Mask | None = None) -> Array:
    """One query after the other; hidden keys are left out of the sum."""
    lead = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    q, k, v = (np.broadcast_to(a, (*lead, *a.shape[-2:])) for a in (q, k, v))
    allowed = open_pairs((*lead, q.shape[-2], k.shape[-2]), mask)
    out = np.zeros((*lead, q.shape[-2], v.shape[-1]))
    for place in np.ndindex(*lead, q.shape[-2]):
        *item, _ = place
        seen = allowed[place]
        if not seen.any():
            continue
        scores = k[tuple(item)][seen] @ q[place] / math.sqrt(q.shape[-1])
        e = np.exp(scores - scores.max())
        out[place] = e / e.sum() @ v[tuple(item)][seen]
    return out


def _einsum(q: Array, k: Array, v: Array, mask: Mask | None = None) -> Array:
    scores = np.einsum("...id,...jd->...ij", q * q.shape[-1] ** -0.5, k)
    weights = softmax(hidden(scores, mask))
    return np.asarray(np.einsum("...ij,...jd->...id", weights, v))


def _roots(q: Array, k: Array, v: Array, mask: Mask | None = None) -> Array:
    root = q.shape[-1] ** 0.25
    return np.asarray(softmax(hidden(raw(q / root, k / root, v), mask)) @ v)


def _float32(q: Array, k: Array, v: Array, mask: Mask | None = None) -> Array:
    q, k, v = (a.astype(np.float32) for a in (q, k, v))
    return scaled_dot_product(q, k, v, mask).out


def _float32_tiles(q: Array, k: Array, v: Array, mask: Mask | None = None) -> Array:
    q, k, v = (a.astype(np.float32) for a in (q, k, v))
    return online(q, k, v, mask, tile=5).astype(np.float32)


def _tiles(q: Array, k: Array, v: Array, mask: Mask | None = None) -> Array:
    return online(q, k, v, mask, tile=3)


def _added(scores: Array, mask: Mask | None) -> Array:
    return scores if mask is None else scores + np.where(mask, 0.0, -np.inf)


def _log_sum_exp(scores: Array) -> Array:
    largest = scores.max(axis=-1, keepdims=True)
    largest = np.where(np.isneginf(largest), 0, largest)
    total = np.exp(scores - largest).sum(axis=-1, keepdims=True)
    total = np.where(total == 0, 1, total)
    return np.asarray(np.exp(scores - largest - np.log(total)))


def _nan_to_zero(scores: Array) -> Array:
    """An empty row is NaN at first, and then 0: right, as long as nobody trains it."""
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(np.nan_to_num(e / e.sum(axis=-1, keepdims=True)))


def _exponentials_masked(
    q: Array, k: Array, v: Array, mask: Mask | None = None
) -> Array:
    """The mask after exp and before the sum: late, and still right."""
    scores = scaled(raw(q, k, v), q, k, v)
    allowed = open_pairs(scores.shape, mask)
    largest = hidden(scores, allowed).max(axis=-1, keepdims=True)
    e = np.exp(np.minimum(scores - np.where(np.isneginf(largest), 0, largest), 0))
    e = e * allowed
    total = e.sum(axis=-1, keepdims=True)
    return np.asarray(e / np.where(total == 0, 1, total) @ v)


def _large_fill(q: Array, k: Array, v: Array, mask: Mask | None = None) -> Array:
    """-1e30 for hidden, and empty rows set to 0 by hand."""
    scores = scaled(raw(q, k, v), q, k, v)
    allowed = open_pairs(scores.shape, mask)
    weights = softmax(np.where(allowed, scores, -1e30))
    return np.asarray(weights * allowed.any(axis=-1, keepdims=True) @ v)


def _base_two(scores: Array) -> Array:
    """exp by powers of two, as GPUs do it."""
    bits = scores * math.log2(math.e)
    largest = bits.max(axis=-1, keepdims=True)
    e = np.exp2(bits - np.where(np.isneginf(largest), 0, largest))
    total = e.sum(axis=-1, keepdims=True)
    return np.asarray(e / np.where(total == 0, 1, total))


def _backwards(q: Array, k: Array, v: Array, mask: Mask | None = None) -> Array:
    """The last key first."""
    scores = scaled(raw(q, k, v), q, k, v)
    turned = softmax(hidden(scores, open_pairs(scores.shape, mask))[..., ::-1])
    return np.asarray(turned @ v[..., ::-1, :])


def _centred(q: Array, k: Array, v: Array) -> Array:
    return raw(q, k - k.mean(axis=-2, keepdims=True), v)


def _key_bias(q: Array, k: Array, v: Array) -> Array:
    return raw(q, k + np.linspace(-1, 1, k.shape[-1]), v)


def _query_term(scores: Array, q: Array, k: Array, v: Array) -> Array:
    return scaled(scores + (q * q).sum(axis=-1, keepdims=True), q, k, v)


def _right(name: str, attention: object) -> Bug:
    return whole(name, "", "", "It is right.", attention)  # type: ignore[arg-type]


RIGHT = (
    _right("attnlib", _library),
    _right("loops", _loops),
    _right("einsum, queries scaled first", _einsum),
    _right("fourth root on both sides", _roots),
    _right("tiles of 3 keys", _tiles),
    _right("float32", _float32),
    of_steps("mask added as 0 and -inf", "", "", "It is right.", hide=_added),
    _right("exponentials masked", _exponentials_masked),
)
RIGHT_HIDDEN = (
    of_steps("log-sum-exp", "", "", "It is right.", soft=_log_sum_exp),
    of_steps("NaN turned into 0", "", "", "It is right.", soft=_nan_to_zero),
    _right("fill -1e30, empty rows by hand", _large_fill),
    of_steps("powers of two", "", "", "It is right.", soft=_base_two),
    _right("last key first", _backwards),
    of_steps("keys centred", "", "", "It is right.", score=_centred),
    _right("float32, tiles of 5 keys", _float32_tiles),
)
# Wrong lines that change nothing: each adds the same number to all scores of a row.
EQUIVALENT = (
    of_steps("a bias on the keys", "", "", "A mutant without effect.", score=_key_bias),
    of_steps("q·q added", "", "", "A mutant without effect.", scale=_query_term),
)
