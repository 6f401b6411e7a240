"""Measures for splitting, merging and many heads: which number moved where."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attnlib.clinic.sight import Sight, number, place


def moved(sight: Sight) -> str | None:
    """Which element of the input stands at the first wrong place."""
    mine = sight.result()
    good = sight.right.arrays[0] if sight.right.arrays else None
    x = np.asarray(sight.case.args[0])
    if mine is None or good is None:
        return None
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


def head_differences(sight: Sight) -> str | None:
    """Which heads have wrong weights."""
    weights, raw = sight.weights, sight.view.raw_scores
    if weights is None or raw is None or not sight.right.arrays:
        return None
    wrong = [
        head
        for head in range(weights.shape[-3])
        if not np.allclose(weights[..., head, :, :].sum(axis=-1), 1, atol=1e-3)
    ]
    if not wrong:
        return None
    return f"in head {wrong[0]} the weights do not sum to 1."


def width(sight: Sight) -> str | None:
    """The shape of the output."""
    mine = sight.result()
    good = sight.right.arrays[0] if sight.right.arrays else None
    if mine is None or good is None or mine.shape == good.shape:
        return None
    return f"your output has the shape {mine.shape}; {good.shape} is right."


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
        ),
        moved,
    ),
    "softmax_over_heads": all_heads,
    "W_o_missing": width,
}
