"""The bugs that lesson 17 holds back, to grade checks that have not seen them.

Where a bug has a number in it (a fill, a tile, a window), the seed draws it.
"""

from __future__ import annotations

import numpy as np

from attnlib.attention import softmax
from attnlib.clinic.bugs.bug import (
    Array,
    Bug,
    of_family,
    of_steps,
    raw,
    scaled,
)
from attnlib.clinic.bugs.hidden_building import building
from attnlib.clinic.bugs.hidden_masks import masks


def held_back(seed: int = 0) -> tuple[Bug, ...]:
    """All bugs that are not shown, with the numbers of one seed."""
    rng = np.random.default_rng(seed)
    return (*_scores(rng), *_softmax(rng), *masks(rng), *building(rng), *_pairs())


def _scores(rng: np.random.Generator) -> tuple[Bug, ...]:
    fixed = float(rng.choice([16, 32, 64]))
    cap = float(rng.integers(20, 50))

    def by_width(scores: Array, q: Array, k: Array, v: Array) -> Array:
        heads = q.shape[-3] if q.ndim > 3 else 1
        return np.asarray(scores / np.sqrt(heads * q.shape[-1]))

    def rotated(q: Array, k: Array, v: Array) -> Array:
        """Position turns the first two numbers of each query and key."""
        turned = []
        for x in (q, k):
            angle = np.arange(x.shape[-2])
            x = np.array(x)
            if x.shape[-1] > 1:
                a, b = x[..., 0].copy(), x[..., 1].copy()
                x[..., 0] = a * np.cos(angle) - b * np.sin(angle)
                x[..., 1] = a * np.sin(angle) + b * np.cos(angle)
            turned.append(x)
        return raw(turned[0], turned[1], v)

    return (
        of_family(
            "times √d_k", "M01", "slope", "Multiplied, not divided.", "scale_multiplied"
        ),
        of_steps(
            f"√{fixed:.0f} written out",
            "M02",
            "slope",
            "Right for the one d_k it was written for.",
            scale=lambda scores, q, k, v: np.asarray(scores / np.sqrt(fixed)),
        ),
        of_steps(
            "√d_model for √d_k",
            "M02",
            "heads",
            "The heads are counted too; with one head it is right.",
            scale=by_width,
        ),
        of_family(
            "√n_q for √d_k", "M02", "slope", "Depends on how many ask.", "scale_n_q"
        ),
        of_family("keys against keys", "M46", "sizes", "Nobody asks.", "score_k_k"),
        of_family(
            "queries for values",
            "M46",
            "x-ray",
            "The queries are mixed.",
            "values_are_queries",
        ),
        of_family(
            "keys reshaped",
            "",
            "sizes",
            "reshape does not turn a table over; it deals its numbers out anew.",
            "key_reshaped",
        ),
        of_family("cosine", "", "slope", "Lengths are divided away.", "cosine"),
        of_steps(
            f"soft cap at {cap:.0f}",
            "",
            "huge",
            "Large scores are bent, small ones hardly.",
            scale=lambda s, q, k, v: cap * np.tanh(scaled(s, q, k, v) / cap),
        ),
        of_steps("RoPE unasked", "", "order", "Places matter.", score=rotated),
    )


def _softmax(rng: np.random.Generator) -> tuple[Bug, ...]:
    ends = float(rng.integers(20, 60))

    def half(scores: Array) -> Array:
        return np.asarray(softmax(scores.astype(np.float16)), dtype=float)

    def quiet(scores: Array) -> Array:
        """A key that is not there takes part, with score 0."""
        none = np.zeros((*scores.shape[:-1], 1))
        return softmax(np.concatenate([scores, none], axis=-1))[..., :-1]

    def clipped(scores: Array) -> Array:
        inside = np.where(np.isneginf(scores), scores, np.clip(scores, -ends, ends))
        return softmax(inside)

    return (
        of_family(
            "softmax over axis 0", "M04", "alone", "Axis 0 is the batch.", "axis_zero"
        ),
        of_family(
            "powers of two for e", "", "slope", "The weights are too flat.", "base_two"
        ),
        of_family(
            "divided by the norm", "", "x-ray", "Squares sum to one.", "divides_by_norm"
        ),
        of_family("sigmoid", "", "x-ray", "Keys do not compete.", "sigmoid"),
        of_family(
            "the mean subtracted",
            "M06",
            "huge",
            "One score far above the mean still overflows.",
            "shift_mean",
        ),
        of_steps(
            f"scores cut at {ends:.0f}",
            "M06",
            "huge",
            "Beyond the cut all are equal.",
            soft=clipped,
        ),
        of_steps(
            "scores in float16",
            "M35",
            "huge",
            "Three digits, and infinity beyond 65 504.",
            soft=half,
        ),
        of_steps(
            "one key too many",
            "",
            "x-ray",
            "A score of 0 takes part that belongs to no key.",
            soft=quiet,
        ),
        of_family(
            "divided by the root again",
            "",
            "x-ray",
            "What comes out is divided by √d_k too.",
            "out_scaled",
        ),
    )


def _pairs() -> tuple[Bug, ...]:
    return (
        of_family(
            "softmax twice, mask added",
            "M47",
            "slope",
            "Two at once.",
            "softmax_twice",
            "mask_added",
        ),
        of_family(
            "no scale, rows not divided",
            "M01",
            "x-ray",
            "Two at once.",
            "scale_missing",
            "not_normalised",
        ),
        of_family(
            "fill -10, NaN turned into 0",
            "M11",
            "shift",
            "Two at once.",
            "mask_fill_10",
            "nan_hidden",
        ),
        of_family(
            "overflow, NaN turned into 0",
            "M06",
            "huge",
            "exp overflows, and the NaN that would tell is hidden.",
            "not_stable",
            "nan_hidden",
        ),
    )
