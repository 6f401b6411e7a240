"""Measures for masks, and for attention under a mask."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attnlib.clinic.sight import Sight, first, number, place


def forbidden_mass(sight: Sight) -> str | None:
    """How much weight goes to keys that may not be looked at."""
    weights, allowed = sight.weights, sight.view.allowed
    if weights is None or allowed is None or weights.shape != np.shape(allowed):
        return None
    if not np.isfinite(weights).all():
        return None
    mass = np.where(allowed, 0, weights).sum(axis=-1)
    mass = np.where(np.any(allowed, axis=-1), mass, 0)  # empty rows are another story
    if mass.max(initial=0.0) <= 1e-6:
        return None
    row = np.unravel_index(int(mass.argmax()), mass.shape)
    share = number(float(mass[row])) if mass[row] >= 1e-3 else f"{mass[row]:.1e}"
    return (
        f"query {row[-1]} gives {share} of its weight to keys "
        f"it may not look at ({sight.case.name})."
    )


def mask_difference(sight: Sight) -> str | None:
    """How many places of the mask are open, and the first that is wrong."""
    mine, good = sight.result(), sight.right.arrays[0] if sight.right.arrays else None
    if mine is None or good is None or mine.shape != good.shape:
        return None
    if good.dtype.kind != "b":
        return None
    wrong = mine.astype(float) != good.astype(float)
    if not wrong.any():
        return None
    where = np.argwhere(wrong)[0]
    allowed = bool(mine[tuple(where)])
    says = "may look" if allowed else "may not look"
    return (
        f"at {place(where)} yours says that query {where[-2]} {says} at key "
        f"{where[-1]}; it lets {int(mine.astype(bool).sum())} places through, and "
        f"{int(good.sum())} are right ({sight.case.name})."
    )


def mask_shape(sight: Sight) -> str | None:
    """The shape of the mask."""
    mine, good = sight.result(), sight.right.arrays[0] if sight.right.arrays else None
    if mine is None or good is None or mine.shape == good.shape:
        return None
    return f"your mask has the shape {mine.shape}; {good.shape} is right."


def mask_values(sight: Sight) -> str | None:
    """What is in the mask, if not truth values."""
    mine = sight.result()
    if mine is None or mine.dtype.kind == "b":
        return None
    values = ", ".join(number(float(v)) for v in np.unique(mine)[:3])
    return f"your mask holds the numbers {values}; its dtype is {mine.dtype}."


def lost_mass(sight: Sight) -> str | None:
    """Rows that sum to less than 1 by just what the forbidden keys took."""
    weights, allowed = sight.weights, sight.view.allowed
    if weights is None or allowed is None or not np.isfinite(weights).all():
        return None
    if weights.shape != np.shape(allowed) or not np.any(allowed, axis=-1).all():
        return None
    sums = weights.sum(axis=-1)
    if sums.min() > 1 - 1e-3:
        return None
    row = np.unravel_index(int(sums.argmin()), sums.shape)
    return (
        f"the weights of query {row[-1]} sum to {number(float(sums[row]))}, not to 1."
    )


def added_one(sight: Sight) -> str | None:
    """Allowed keys gained a factor of e on forbidden ones."""
    weights, raw, allowed = sight.weights, sight.view.raw_scores, sight.view.allowed
    if weights is None or raw is None or allowed is None:
        return None
    if weights.shape != raw.shape or not (weights > 0).all():
        return None
    rows = allowed.any(axis=-1) & ~allowed.all(axis=-1)
    if not rows.any():
        return None
    row = tuple(np.argwhere(rows)[0])
    excess = (
        np.log(weights[row]) - np.asarray(raw[row]) / sight.view.sizes["d_k"] ** 0.5
    )
    on, off = np.asarray(allowed[row], bool), ~np.asarray(allowed[row], bool)
    ratio = float(np.exp(excess[on].mean() - excess[off].mean()))
    return (
        f"for query {row[-1]}, an allowed key weighs {number(ratio)} times what its "
        f"score alone gives it against a forbidden one, and e is 2.718."
    )


def not_a_number(sight: Sight) -> str | None:
    """A row of NaN, though its query may look at something."""
    weights, allowed = sight.weights, sight.view.allowed
    if weights is None or allowed is None or weights.shape != np.shape(allowed):
        return None
    rows = np.argwhere(np.isnan(weights).any(axis=-1) & np.any(allowed, axis=-1))
    if not rows.size:
        return None
    return (
        f"the weights of query {rows[0][-1]} are NaN, though it may look "
        f"({sight.case.name})."
    )


def nan_wiped(sight: Sight) -> str | None:
    """A zero where the right output is NaN."""
    mine, good = sight.result(1), sight.right.arrays[-1] if sight.right.arrays else None
    if mine is None or good is None or mine.shape != good.shape:
        return None
    wiped = np.isnan(good.astype(float)) & np.isfinite(mine.astype(float))
    if not wiped.any():
        return None
    where = np.argwhere(wiped)[0]
    value = number(float(mine[tuple(where)]))
    return f"given {sight.case.name}, your output at {place(where)} is {value}."


_MASK = first(mask_difference, forbidden_mass)
MEASURES: dict[str, Callable[[Sight], str | None]] = {
    "mask_inverted": _MASK,
    "mask_ignored": forbidden_mass,
    "mask_added": first(added_one, forbidden_mass),
    "mask_fill_zero": forbidden_mass,
    "mask_after": lost_mass,
    "mask_after_divided": lost_mass,
    "mask_after_divided_nan": not_a_number,
    "mask_times_infinity": not_a_number,
    "mask_nan_throughout": not_a_number,
    "mask_fill_10": forbidden_mass,
    "mask_fill_10000": forbidden_mass,
    "mask_before_scale": forbidden_mass,
    "mask_transposed": _MASK,
    "mask_numbers": mask_values,
    "mask_additive": mask_values,
    "mask_additive_finite": mask_values,
    "mask_replaced_by_causal": forbidden_mass,
    "mask_replaced_by_top_left": forbidden_mass,
    "causal_square_keys": mask_shape,
    "nan_hidden": nan_wiped,
    "causal_square": mask_shape,
    "head_axis_missing": mask_shape,
    "head_axis_first": mask_shape,
    "article_as_printed": first(mask_difference, mask_shape),
    "article_boolean": first(mask_difference, mask_shape),
    "tril_of_one_row": first(mask_difference, mask_shape),
    "only_padding": mask_shape,
    "only_causal": mask_shape,
    "empty_row_unmasked": forbidden_mass,
    "mask_tiled_over_heads": forbidden_mass,
    **dict.fromkeys(
        (
            "padding_inverted",
            "diagonal_missing",
            "diagonal_next",
            "aligned_top_left",
            "causal_missing",
            "causal_mirrored",
            "causal_self_only",
            "combined_by_or",
            "combined_by_xor",
            "padding_missing",
            "tril_of_padding",
            "padding_on_queries",
            "padding_on_both",
            "batch_reversed",
            "batch_longest",
            "batch_shortest",
            "length_one_more",
            "length_one_less",
            "causal_always",
            "triu",
            "triu_shifted",
            "padding_column",
            "document_later_too",
            "causal_forgotten_with_padding",
            "document_earlier_too",
            "document_neighbours",
            "document_first_only",
            "document_missing",
            "document_causal",
            "document_runs",
            "document_nonzero",
            "document_zero_hidden",
            "document_self_hidden",
            "document_from_here",
            "document_sorted",
            "aligned_to_length",
            "padding_on_queries_placed",
            "padding_on_both_placed",
            "padding_in_front",
            "batch_first",
            "combined_by_or_where_both",
            "padding_overwritten",
            "causal_reversed",
            "nothing_asked_nothing_open",
            "mask_all_false",
            "offset_negated",
        ),
        mask_difference,
    ),
}
