"""Masks, with every mistake built in. True = may look."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Case, Family, Faults, Result, View

Array = npt.NDArray[np.generic]

# How the finished mask is handed over. The last step of every mask.
HANDED_OVER = (
    "mask_inverted",
    "mask_numbers",
    "mask_additive",
    "mask_additive_finite",
    "mask_transposed",
    "mask_all_false",
)


def causal(n_q: int, n_k: int | None = None, *, faults: Faults = RIGHT) -> Array:
    """Query i stands at position n_k - n_q + i and may look at keys up to there."""
    n_k = n_q if n_k is None or "causal_square" in faults else n_k
    if "causal_square_keys" in faults:
        n_q = n_k
    offset = n_k - n_q
    if "aligned_top_left" in faults:
        offset = 0
    elif "offset_negated" in faults:
        offset = -offset
    if "diagonal_missing" in faults:
        offset -= 1
    elif "diagonal_next" in faults:
        offset += 1
    i, j = np.arange(n_q)[:, None], np.arange(n_k)
    allowed = j <= i + offset
    if "causal_missing" in faults:
        allowed = np.ones_like(allowed)
    elif "causal_mirrored" in faults:
        allowed = j >= i + offset
    elif "causal_self_only" in faults:
        allowed = j == i + offset
    elif "triu" in faults:
        allowed = j > i  # np.triu(..., k=1), which knows of no offset
    elif "triu_shifted" in faults:
        allowed = j > i + offset
    return hand_over(allowed, faults)


def document(ids: npt.ArrayLike, *, faults: Faults = RIGHT) -> Array:
    """Tokens of one document see one another: (n, n), or (batch, 1, n, n)."""
    ids = np.asarray(ids)
    if "document_sorted" in faults:
        ids = np.sort(ids, axis=-1)
    q, k = ids[..., :, None], ids[..., None, :]
    n = ids.shape[-1]
    i, j = np.arange(n)[:, None], np.arange(n)
    allowed = np.asarray(q == k)
    if "document_earlier_too" in faults:
        allowed = np.asarray(q >= k)
    elif "document_later_too" in faults:
        allowed = np.asarray(q <= k)
    elif "document_neighbours" in faults:
        allowed = (q == k) & (abs(i - j) <= 1)
    elif "document_first_only" in faults:
        allowed = (q == k) & (k == ids[..., :1, None])
    elif "document_runs" in faults:
        # A new document wherever the number changes: 7 7 4 7 are three.
        steps = np.diff(ids, axis=-1, prepend=ids[..., :1]) != 0
        runs = np.cumsum(steps, axis=-1)
        allowed = np.asarray(runs[..., :, None] == runs[..., None, :])
    elif "document_nonzero" in faults:
        allowed = np.asarray((q != 0) & (k != 0))
    elif "document_zero_hidden" in faults:
        allowed = np.asarray((q == k) & (k != 0))
    elif "document_missing" in faults:
        allowed = np.ones_like(allowed)
    elif "document_self_hidden" in faults:
        allowed = (q == k) & (i != j)
    if "document_causal" in faults:
        allowed = allowed & (j <= i)
    elif "document_from_here" in faults:
        allowed = allowed & (j >= i)
    if ids.ndim > 1 and "head_axis_missing" not in faults:
        allowed = np.expand_dims(allowed, -3)
    return hand_over(allowed, faults)


def hand_over(allowed: npt.NDArray[np.bool_], faults: Faults) -> Array:
    """Return the mask as it should be, or inverted, as numbers, transposed, empty."""
    if "mask_all_false" in faults:
        return np.zeros_like(allowed)
    if "mask_inverted" in faults:
        allowed = ~allowed
    if "mask_transposed" in faults:
        allowed = np.swapaxes(allowed, -1, -2)
    if "mask_numbers" in faults:
        return allowed.astype(float)
    if "mask_additive" in faults:
        return np.where(allowed, 0.0, -np.inf)
    if "mask_additive_finite" in faults:
        return np.where(allowed, 0.0, -1e9)
    return allowed


def see_mask(case: Case, arrays: tuple[Result, ...]) -> View:
    """The answer is the mask itself."""
    return View(allowed=arrays[0] if arrays else None)


CAUSAL = Family(
    "causal",
    causal,
    {
        "alignment": (
            "aligned_top_left",
            "offset_negated",
            "causal_square",
            "causal_square_keys",
        ),
        "diagonal": ("diagonal_missing", "diagonal_next"),
        "shape": ("causal_missing", "causal_mirrored", "causal_self_only", "triu"),
        "handed over": HANDED_OVER,
    },
    see_mask,
)
DOCUMENT = Family(
    "document",
    document,
    {
        "rule": (
            "document_earlier_too",
            "document_later_too",
            "document_neighbours",
            "document_first_only",
            "document_missing",
            "document_runs",
            "document_nonzero",
            "document_zero_hidden",
            "document_self_hidden",
        ),
        "order": ("document_sorted",),
        "causal": ("document_causal", "document_from_here"),
        "axis": ("head_axis_missing",),
        "handed over": HANDED_OVER,
    },
    see_mask,
)
