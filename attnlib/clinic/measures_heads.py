"""Measures for splitting, merging and many heads: which number moved where."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attnlib.clinic.measures_scores import scaled_by
from attnlib.clinic.sight import Sight, first, number, numbers, place


def moved(sight: Sight) -> str | None:
    """Which element of the input stands at the first wrong place."""
    mine = sight.result()
    good = sight.right.arrays[0] if sight.right.arrays else None
    x = np.asarray(sight.case.args[0])
    if mine is None or good is None or len(sight.case.args) > 2:
        return None  # only split_heads and merge_heads move numbers and nothing else
    if mine.shape != good.shape:
        return f"your result has the shape {mine.shape}; {good.shape} is right."
    # The number itself may occur twice; so follow it by its index where it does not.
    for where in np.argwhere(~np.isclose(mine, good)):
        from_here = np.argwhere(np.isclose(x, mine[tuple(where)]))
        belongs = np.argwhere(np.isclose(x, good[tuple(where)]))
        if len(from_here) == 1 and len(belongs) == 1:
            return (
                f"at {place(where)} stands the number that was at "
                f"{place(from_here[0])} of x; the one from {place(belongs[0])} "
                "belongs there."
            )
    return None


def all_heads(sight: Sight) -> str | None:
    """Each head sums to less than 1, all heads together to 1."""
    weights = sight.weights
    if weights is None or not np.isfinite(weights).all():
        return None
    sums = weights.sum(axis=-1)
    if np.allclose(sums, 1, atol=1e-3):
        return None
    one = sums[..., :, 0].ravel()
    return (
        f"the weights of query 0 sum to {number(float(one[0]))} in head 0, and to "
        f"{number(float(one.sum()))} over all heads."
    )


def one_key(sight: Sight) -> str | None:
    """One query and one key: all heads together hand out 1 there."""
    weights = sight.weights
    if weights is None or weights.ndim < 3 or not np.isfinite(weights).all():
        return None
    if not np.allclose(weights.sum(axis=-3), 1, atol=1e-3):
        return None
    row = float(weights[..., 0, 0, :].sum(axis=-1).ravel()[0])
    return (
        "what the heads give to one key sums to 1 over the heads; the weights of query "
        f"0 in head 0 sum to {number(row)}."
    )


def moved_inside(sight: Sight) -> str | None:
    """The same inside multi-head attention: whose weights an x-ray shows where.

    An x-ray is a call whose output is its weights: see `families.heads.see_multi_head`.
    """
    weights, right = sight.weights, sight.right.arrays
    if weights is None or weights.ndim != 3 or not right:
        return moved(sight)
    n_heads, n, _ = weights.shape
    good = np.swapaxes(right[0].reshape(n, n_heads, n), 0, 1)
    for head, token in np.argwhere(np.abs(weights).max(axis=-2) < 1e-9):
        return (
            f"in head {head} no query gives token {token} any weight; right is up to "
            f"{number(float(good[head, :, token].max()))}. Its numbers are not in "
            "this head."
        )
    return None


def misplaced(sight: Sight) -> str | None:
    """In an x-ray: whose weights stand in the first wrong row."""
    mine, good = sight.weights, sight.right_weights
    if mine is None or good is None or mine.ndim < 3 or mine.shape != good.shape:
        return None
    wrong = np.argwhere(~np.isclose(mine, good).all(axis=-1))
    if not len(wrong):
        return None
    head, query = (int(i) for i in wrong[0][-2:])
    row = mine[tuple(wrong[0])]
    where = (
        "when the values only name their token, the output shows the weights: the row "
        f"of head {head} and query {query}"
    )
    owner = np.argwhere(np.isclose(good, row).all(axis=-1))
    if len(owner) == 1:
        return f"{where} is the one of head {owner[0][-2]} and query {owner[0][-1]}."
    if not np.isclose(row.sum(), 1, atol=1e-3):
        return f"{where} sums to {number(float(row.sum()))}, not to 1."
    return f"{where} is {numbers(row)}, and should be {numbers(good[tuple(wrong[0])])}."


def batched(axes: int) -> Callable[[Sight], str | None]:
    """What happens to a batch, where tables without one come out right."""

    def measure(sight: Sight) -> str | None:
        x = np.asarray(sight.case.args[0])
        if x.ndim <= axes:
            return None
        mine, good = sight.result(), sight.right.arrays[0]
        if mine is None:
            return f"given {sight.case.name}, it raises {sight.yours.error}."
        if mine.shape != good.shape:
            return (
                f"x of shape {x.shape} becomes {mine.shape}; {good.shape} is right "
                f"({sight.case.name})."
            )
        return moved(sight)

    return measure


def width(sight: Sight) -> str | None:
    """The shape of the output."""
    mine = sight.result()
    good = sight.right.arrays[0] if sight.right.arrays else None
    if mine is None or good is None or mine.shape == good.shape:
        return None
    return f"your output has the shape {mine.shape}; {good.shape} is right."


def added(sight: Sight) -> str | None:
    """The output is too large by just the tokens."""
    mine, good = sight.result(), sight.right.arrays[0]
    x = np.asarray(sight.case.args[0], dtype=float)
    if mine is None or not mine.shape == good.shape == x.shape:
        return None
    for where in np.argwhere(np.abs(x) > 0.1):
        at = tuple(where)
        yours, right = float(mine[at]), float(good[at])
        return (
            f"at {place(where)} yours gives {number(yours)}, where {number(right)} is "
            f"right; x has {number(float(x[at]))} there, just the difference."
        )
    return None


def averaged(sight: Sight) -> str | None:
    """The output is the right one, divided by the number of heads."""
    mine, good = sight.result(), sight.right.arrays[0]
    n_heads = sight.view.sizes.get("n_heads", 1)
    if mine is None or mine.shape != good.shape or n_heads < 2:
        return None
    at = np.unravel_index(np.abs(good).argmax(), good.shape)
    return (
        f"your result is {number(float(mine[at] / good[at]))} times the right one, and "
        f"1/n_heads is {number(1 / n_heads)}."
    )


MEASURES: dict[str, Callable[[Sight], str | None]] = {
    **dict.fromkeys(
        (
            "split_no_transpose",
            "split_only_reshaped",
            "split_interleaved",
            "split_features_first",
            "split_wrong_axes",
            "split_heads_before_batch",
            "heads_of_size_n_heads",
            "merge_no_transpose",
            "merge_interleaved",
            "merge_features_first",
            "merge_not_reshaped",
            "merge_sum",
            "merge_mean",
            "heads_never_moved",
            "weights_W_reshaped",
            "heads_all_first",
            "split_overlapping",
            "split_turned_first",
            "weights_averaged",
        ),
        first(moved_inside, misplaced),
    ),
    **dict.fromkeys(("split_no_batch", "split_first_axes"), batched(axes=2)),
    **dict.fromkeys(
        (
            "merge_no_batch",
            "merge_first_axes",
            "merge_first_axes_counted",
            "merge_items",
            "merge_items_stacked",
            "merge_batch_flattened",
        ),
        batched(axes=3),
    ),
    "softmax_over_heads": all_heads,
    "axis_heads": one_key,
    "W_o_missing": width,
    "out_mean": averaged,
    "residual_added": added,
    "scale_all_heads": scaled_by("n_heads", "1/√n_heads"),
    **dict.fromkeys(
        ("scale_d_model_part", "scale_d_model_share"),
        scaled_by("(d_model/n_heads)", "√d_k/√(d_model/n_heads)"),
    ),
}
