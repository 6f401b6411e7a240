"""Padding and the causal mask in one, with every mistake built in. True = may look."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults
from attnlib.clinic.families.masks import (
    HANDED_OVER,
    Array,
    causal,
    hand_over,
    see_mask,
)

Truth = npt.NDArray[np.bool_]


def padding_and_causal(
    lengths: npt.ArrayLike, n_q: int, n_k: int, *, faults: Faults = RIGHT
) -> Array:
    """Real keys that are not in the future: (batch, 1, n_q, n_k)."""
    if "causal_square_keys" in faults:
        n_q = n_k
    past = _past(n_q, n_k, faults)
    if "only_causal" in faults:
        return hand_over(past, faults)
    real = np.arange(n_k) < np.asarray(lengths)[:, None, None, None]
    if "only_padding" in faults:
        return hand_over(real, faults)
    if "tril_of_one_row" in faults:
        return hand_over(np.tril(real), faults)
    allowed = _combined(past, lengths, n_q, n_k, faults)
    return hand_over(_axes(allowed, faults), faults)


def create_mask(
    n_q: int,
    n_k: int,
    lengths: npt.ArrayLike | None = None,
    is_causal: bool = False,
    *,
    faults: Faults = RIGHT,
) -> Array:
    """Padding where lengths are given, causal where asked: (batch, 1, n_q, n_k)."""
    if faults & set(_ARTICLE):
        return _article(n_q, n_k, lengths, is_causal, faults)
    if "nothing_asked_nothing_open" in faults and lengths is None and not is_causal:
        return hand_over(np.zeros((1, 1, n_q, n_k), np.bool_), faults)
    if "causal_always" in faults:
        is_causal = True
    elif "causal_reversed" in faults:
        is_causal = not is_causal
    if not is_causal:  # the two are combined only where both are asked for
        faults = faults - {"combined_by_or_where_both", "padding_overwritten"}
    everyone = np.ones((n_q, n_k), dtype=np.bool_)
    past = _past(n_q, n_k, faults) if is_causal else everyone
    if lengths is None:
        allowed = past[None]
    elif "causal_forgotten_with_padding" in faults:
        allowed = _combined(everyone, lengths, n_q, n_k, faults)
    elif "tril_of_padding" in faults and not is_causal:
        allowed = _combined(everyone, lengths, n_q, n_k, frozenset())
    else:
        allowed = _combined(past, lengths, n_q, n_k, faults)
    return hand_over(_axes(allowed, faults), faults)


def _article(
    n_q: int,
    n_k: int,
    lengths: npt.ArrayLike | None,
    is_causal: bool,
    faults: Faults,
) -> Array:
    """The article's function with `is_causal` defined; or mended a little."""
    axes = (1, 1) if "tril_of_one_row" in faults else ()
    kind = np.float64 if "article_as_printed" in faults else np.bool_
    if lengths is None:
        mask: Array = np.ones((*axes, n_q, n_k), dtype=kind)
    else:
        ends = np.asarray(lengths).reshape(-1, 1, 1)
        mask = np.arange(n_k) < (ends[:, None] if axes else ends)
    return np.tril(mask) if is_causal else mask


def _past(n_q: int, n_k: int, faults: Faults) -> Truth:
    return np.asarray(causal(n_q, n_k, faults=faults & _CAUSAL_FAULTS), np.bool_)


def _combined(
    past: Truth, lengths: npt.ArrayLike, n_q: int, n_k: int, faults: Faults
) -> Truth:
    """(batch, n_q, n_k)."""
    ends = np.asarray(lengths)[:, None, None]
    if "batch_reversed" in faults:
        ends = ends[::-1]
    elif "batch_longest" in faults:
        ends = np.full_like(ends, ends.max(initial=0))
    elif "batch_first" in faults:
        ends = np.full_like(ends, ends[0])
    elif "batch_shortest" in faults:
        ends = np.full_like(ends, ends.min(initial=n_k))
    if "length_one_more" in faults:
        ends = ends + 1
    elif "length_one_less" in faults:
        ends = ends - 1
    shape = (len(ends), n_q, n_k)
    real: Truth = np.broadcast_to(np.arange(n_k) < ends, shape)
    rows = np.arange(n_q)[:, None]
    if {"padding_on_queries_placed", "padding_on_both_placed"} & faults:
        rows = rows + n_k - n_q
    real_queries = np.broadcast_to(rows < ends, shape)
    if "aligned_to_length" in faults:  # each sentence has a corner of its own
        return np.asarray(np.arange(n_k) <= rows + ends - n_q)
    if {"padding_on_queries", "padding_on_queries_placed"} & faults:
        real = real_queries
    elif "padding_column" in faults:
        # Keys written into the axis of the queries: an error unless n_q = n_k.
        real = np.arange(n_k)[:, None] < ends
    elif {"padding_on_both", "padding_on_both_placed"} & faults:
        real = real & real_queries
    elif "padding_in_front" in faults:
        real = np.arange(n_k) >= n_k - ends
    if "padding_inverted" in faults:
        real = ~real
    if {"combined_by_or", "combined_by_or_where_both"} & faults:
        return past | real
    if "combined_by_xor" in faults:
        return past ^ real
    if {"padding_missing", "padding_overwritten"} & faults:
        return np.broadcast_to(past, shape)
    if "tril_of_padding" in faults:
        # np.tril of one row of keys keeps only key 0: what the article does.
        return np.asarray(real & (np.arange(n_k) == 0))
    return past & real


def _axes(allowed: Truth, faults: Faults) -> Truth:
    if "head_axis_missing" in faults:
        return allowed
    if "head_axis_first" in faults:
        return allowed[None]
    return allowed[:, None]


_TRIU = ("triu", "triu_shifted")
_CAUSAL = {
    "alignment": ("aligned_top_left", "offset_negated"),
    "diagonal": ("diagonal_missing", "diagonal_next"),
    "shape": ("causal_missing", "causal_mirrored", "causal_self_only", *_TRIU),
}
_CAUSAL_FAULTS = frozenset(key for keys in _CAUSAL.values() for key in keys)
_PADDING = {
    "axis": (
        "padding_on_queries",
        "padding_column",
        "padding_on_both",
        "padding_on_queries_placed",
        "padding_on_both_placed",
        "padding_in_front",
    ),
    "batch": ("batch_longest", "batch_shortest", "batch_reversed", "batch_first"),
    "length": ("length_one_more", "length_one_less"),
    "padding": ("padding_inverted",),
    "axes": ("head_axis_missing", "head_axis_first"),
    "handed over": HANDED_OVER,
}
_COMBINED = ("combined_by_or", "padding_missing", "tril_of_padding", "combined_by_xor")
_ARTICLE = ("article_as_printed", "article_boolean", "tril_of_one_row")

PADDING_AND_CAUSAL = Family(
    "padding_and_causal",
    padding_and_causal,
    {
        "combined": (*_COMBINED, "tril_of_one_row", "only_padding", "only_causal"),
        **_CAUSAL,
        "alignment": (*_CAUSAL["alignment"], "aligned_to_length", "causal_square_keys"),
        **_PADDING,
    },
    see_mask,
)
CREATE_MASK = Family(
    "create_mask",
    create_mask,
    {
        "combined": (
            *_COMBINED,
            "combined_by_or_where_both",
            "causal_forgotten_with_padding",
            "padding_overwritten",
            *_ARTICLE,
        ),
        "asked": ("causal_always", "causal_reversed", "nothing_asked_nothing_open"),
        **_CAUSAL,
        **_PADDING,
    },
    see_mask,
)
