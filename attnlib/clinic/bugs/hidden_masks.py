"""The bugs of lesson 17 that are held back: masks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attnlib.clinic.bugs.bug import (
    Array,
    Bug,
    Mask,
    hidden,
    of_family,
    of_steps,
    open_pairs,
)


def masks(rng: np.random.Generator) -> tuple[Bug, ...]:
    """Bugs of masks, with numbers drawn."""

    fill = -float(rng.integers(15, 60))

    def filled(value: float) -> Callable[[Array, Mask | None], Array]:
        return lambda s, mask: s if mask is None else np.where(mask, s, value)

    def rows_closed(scores: Array, mask: Mask | None) -> Array:
        """Fillers may not look; that they are looked at is forgotten."""
        allowed = open_pairs(scores.shape, mask)
        if scores.shape[-1] != scores.shape[-2]:
            return hidden(scores, mask)
        turned = np.swapaxes(allowed, -1, -2)
        return hidden(scores, np.where(allowed, allowed, turned))

    def one_further(scores: Array, mask: Mask | None) -> Array:
        if mask is None:
            return scores
        wider = mask.copy()
        wider[..., 1:] |= mask[..., :-1]
        return hidden(scores, wider)

    def not_for_one(scores: Array, mask: Mask | None) -> Array:
        return hidden(scores, None if scores.shape[-2] == 1 else mask)

    def any_item(scores: Array, mask: Mask | None) -> Array:
        if mask is None or mask.ndim < 3:
            return hidden(scores, mask)
        return hidden(scores, np.asarray(mask.any(axis=0, keepdims=True)))

    def heads_first(scores: Array, mask: Mask | None) -> Array:
        """The mask in the order of heads, the scores in that of items."""
        if mask is None or scores.ndim < 4:
            return hidden(scores, mask)
        batch, heads, *pair = scores.shape
        flat = np.moveaxis(open_pairs(scores.shape, mask), 1, 0)
        return hidden(scores, flat.reshape(batch, heads, *pair))

    def closed_diagonal(scores: Array, mask: Mask | None) -> Array:
        n_q, n_k = scores.shape[-2:]
        if n_q != n_k or mask is None:
            return hidden(scores, mask)
        return hidden(scores, mask & ~np.eye(n_q, dtype=bool))

    return (
        of_steps(
            f"fill {fill:.0f}",
            "M11",
            "shift",
            "Scores lie lower at times.",
            hide=filled(fill),
        ),
        of_steps(
            "fill -10 000",
            "M11",
            "shift",
            "Nearly always enough. Scores of -20 000 are lower.",
            hide=filled(-1e4),
        ),
        of_family(
            "renormalised, 0 by 0",
            "M10",
            "huge",
            "Beside a high hidden score all others are rounded to 0 first.",
            "mask_after_divided_nan",
        ),
        of_steps(
            "seen from either side",
            "",
            "square",
            "With as many queries as keys, i sees j if j may see i.",
            hide=rows_closed,
        ),
        of_steps(
            "one key further",
            "M18",
            "future",
            "Each query sees one more than it may.",
            hide=one_further,
        ),
        of_steps(
            "no mask for one query",
            "",
            "one",
            "One query needs no causal mask, but one against fillers.",
            hide=not_for_one,
        ),
        of_steps(
            "open for one, open for all",
            "M17",
            "masks",
            "A key that one item may see is open in all.",
            hide=any_item,
        ),
        of_steps(
            "heads and items exchanged",
            "M17",
            "heads",
            "The masks reach other items where there are several heads.",
            hide=heads_first,
        ),
        of_steps(
            "not itself",
            "M18",
            "square",
            "With as many queries as keys, the diagonal is closed.",
            hide=closed_diagonal,
        ),
        of_family(
            "empty row unmasked",
            "M14",
            "empty",
            "A query that may see nothing sees everything.",
            "empty_row_unmasked",
        ),
    )
