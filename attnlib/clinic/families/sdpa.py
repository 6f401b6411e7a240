"""Attention with a mask and a flag for causal, as an API offers it, in wrong versions.

In NumPy, like every family. What it imitates are calls of PyTorch's own function with
arguments that mean something else there.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Case, Family, Faults, Result, View
from attnlib.clinic.families.attention import masked_softmax, scale
from attnlib.clinic.families.masks import causal as causal_mask

Float = npt.NDArray[np.floating]
Truth = npt.NDArray[np.bool_]

_TRIANGLE = (
    "aligned_top_left",
    "offset_negated",
    "diagonal_missing",
    "diagonal_next",
    "causal_mirrored",
    "triu",
    "triu_shifted",
    "offset_one",
)
_WEIGHTS = ("mask_added", "mask_fill_zero", "mask_after")
_EMPTY = ("empty_row_nan", "empty_row_filled", "empty_row_unmasked")


def match_sdpa(
    q: Float,
    k: Float,
    v: Float,
    mask: Truth | None = None,
    causal: bool = False,
    *,
    faults: Faults = RIGHT,
) -> Float:
    """Attention where mask and causal allow it; returns out, (..., n_q, d_v)."""
    look = _look(q.shape[-2], k.shape[-2], mask, causal, faults)
    raw = q @ np.swapaxes(k, -1, -2)
    scores = scale(raw, q, k, v, faults)
    rest = faults - {"mask_inverted", "mask_ignored"}
    weights = masked_softmax(scores, look, q.shape[-1], rest)
    out = np.asarray(weights @ v)
    # By position, the fifth argument of SDPA is dropout_p: True is 1, all is dropped.
    return np.zeros_like(out) if causal and "causal_as_dropout" in faults else out


def _look(
    n_q: int, n_k: int, mask: Truth | None, causal: bool, faults: Faults
) -> Truth | None:
    if "causal_always" in faults:
        causal = True
    elif "causal_reversed" in faults:
        causal = not causal
    elif "causal_missing" in faults:
        causal = False
    if "mask_ignored" in faults:
        mask = None
    if mask is not None and "mask_inverted" in faults:
        mask = ~mask
    if causal and mask is not None:
        if "is_causal_handed_over" in faults:  # as SDPA does, on most of its paths
            raise RuntimeError("attn_mask and is_causal exclude each other.")
        if "mask_dropped_beside_causal" in faults:
            mask = None
        elif "causal_dropped_beside_mask" in faults:
            causal = False
    if not causal:
        look = mask
    else:
        kind = faults & set(_TRIANGLE)
        alone = mask is None and "is_causal_without_mask" in faults
        if alone or "is_causal_handed_over" in faults:
            kind = frozenset({"aligned_top_left"})
        past = np.asarray(causal_mask(n_q, n_k, faults=kind), np.bool_)
        if "offset_one" in kind:
            past = np.tri(n_q, n_k, 1, dtype=np.bool_)
        if mask is None:
            look = past
        else:
            look = past | mask if "combined_by_or" in faults else past & mask
    if look is None and "nothing_given_hides_all" in faults:
        return np.zeros((n_q, n_k), np.bool_)
    if "look_inverted_throughout" in faults:  # the table of True as well
        return np.zeros((n_q, n_k), np.bool_) if look is None else ~look
    return ~look if look is not None and "look_inverted" in faults else look


def see_match_sdpa(case: Case, arrays: tuple[Result, ...]) -> View:
    """Where v is the unit matrix, the output is the weights."""
    q, k, v = (np.asarray(a) for a in case.args[:3])
    mask = case.args[3] if len(case.args) > 3 else None
    causal = len(case.args) > 4 and bool(case.args[4])
    raw = q @ np.swapaxes(k, -1, -2)
    look = _look(
        q.shape[-2],
        k.shape[-2],
        None if mask is None else np.asarray(mask, np.bool_),
        causal,
        RIGHT,
    )
    n_k = k.shape[-2]
    named = v.shape == (n_k, n_k) and bool((v == np.eye(n_k)).all())
    shown = named and bool(arrays) and arrays[0].shape == raw.shape
    return View(
        weights=arrays[0] if shown else None,
        raw_scores=raw,
        q=q,
        k=k,
        allowed=np.broadcast_to(True if look is None else look, raw.shape),
        sizes={"n_q": q.shape[-2], "n_k": n_k, "d_k": q.shape[-1]},
    )


MATCH_SDPA = Family(
    "match_sdpa",
    match_sdpa,
    {
        "mask": ("mask_ignored", "mask_inverted"),
        "causal": (
            "causal_missing",
            "causal_always",
            "causal_reversed",
            "causal_as_dropout",
        ),
        "triangle": (*_TRIANGLE, "is_causal_handed_over", "is_causal_without_mask"),
        "both": (
            "combined_by_or",
            "mask_dropped_beside_causal",
            "causal_dropped_beside_mask",
        ),
        "polarity": (
            "look_inverted",
            "look_inverted_throughout",
            "nothing_given_hides_all",
        ),
        "weights": _WEIGHTS,
        "empty": _EMPTY,
        "scale": ("scale_missing", "scale_d_k", "scale_multiplied"),
        "axis": ("axis_second_last",),
    },
    see_match_sdpa,
)
