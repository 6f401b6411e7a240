"""The bugs of lesson 17 that everyone sees: masks."""

from __future__ import annotations

import numpy as np

from attnlib.clinic.bugs.bug import Array, Mask, hidden, of_family, of_steps


def _first_mask(scores: Array, mask: Mask | None) -> Array:
    return hidden(scores, mask if mask is None or mask.ndim < 3 else mask[:1])


def _diagonal_open(scores: Array, mask: Mask | None) -> Array:
    if mask is None:
        return scores
    n_q, n_k = scores.shape[-2:]
    return hidden(scores, mask | np.eye(n_q, n_k, n_k - n_q, dtype=bool))


def _first_row(scores: Array, mask: Mask | None) -> Array:
    return hidden(scores, mask if mask is None or mask.ndim < 2 else mask[..., :1, :])


MASK_BUGS = (
    of_family(
        "mask ignored", "M16", "future", "Everyone sees everything.", "mask_ignored"
    ),
    of_family("mask upside down", "M07", "future", "True blocks.", "mask_inverted"),
    of_family(
        "mask added",
        "M08",
        "future",
        "True adds 1 to a score, and hides nothing.",
        "mask_added",
    ),
    of_family(
        "score 0 for hidden",
        "M09",
        "future",
        "0 is a score like any other.",
        "mask_fill_zero",
    ),
    of_family(
        "mask after softmax",
        "M10",
        "x-ray",
        "The weight of the hidden keys is lost.",
        "mask_after",
    ),
    of_family(
        "fill -10", "M11", "shift", "Real scores lie lower than -10.", "mask_fill_10"
    ),
    of_family(
        "fill before scale",
        "M12",
        "shift",
        "The fill is divided by √d_k too.",
        "mask_before_scale",
    ),
    of_family(
        "mask transposed",
        "M15",
        "masks",
        "Who is looked at decides, not who looks.",
        "mask_transposed",
    ),
    of_steps(
        "first row's mask for all",
        "M15",
        "masks",
        "Right for fillers, wrong for the future.",
        hide=_first_row,
    ),
    of_steps(
        "first item's mask for all",
        "M17",
        "masks",
        "Right as long as all sentences are of one length.",
        hide=_first_mask,
    ),
    of_steps(
        "diagonal always open",
        "M18",
        "masks",
        "Each query sees the key beside it, allowed or not.",
        hide=_diagonal_open,
    ),
    of_family(
        "empty row NaN",
        "M14",
        "empty",
        "-inf minus -inf is no number.",
        "empty_row_nan",
    ),
    of_family(
        "empty row reads all",
        "M14",
        "empty",
        "With -1e9 for hidden all scores are equal, and the forbidden is read.",
        "empty_row_filled",
    ),
)
