"""Measures for parts: keys in a window, rows of a table, copies of heads, sizes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attnlib.clinic.measures_positions import not_toeplitz
from attnlib.clinic.sight import Float, Sight, number

CLOSE = 1e-4


def keys_seen(sight: Sight) -> str | None:
    """How many keys the first query sees that sees another number of them."""
    mine, right = sight.result(), sight.right.arrays[0]
    if mine is None or mine.shape != right.shape or mine.dtype.kind != "b":
        return None
    seen, wanted = mine.sum(axis=-1), right.sum(axis=-1)
    wrong = np.flatnonzero(seen != wanted)
    if not wrong.size:
        return None
    row = int(wrong[-1])
    keys = "key" if seen[row] == 1 else "keys"
    return (
        f"query {row} sees {seen[row]} {keys}, and {wanted[row]} "
        f"{'is' if wanted[row] == 1 else 'are'} right ({sight.case.name})."
    )


def row_of_table(sight: Sight) -> str | None:
    """Which row of the table the first wrong token gets."""
    mine, right = sight.result(), sight.right.arrays[0]
    table = np.asarray(sight.case.args[0], dtype=np.float64)
    if mine is None or mine.ndim != 2 or table.ndim != 2:
        return None
    if mine.shape[0] != right.shape[0]:
        return (
            f"{len(mine)} rows come back, and {len(right)} are right "
            f"({sight.case.name})."
        )
    for token, (row, good) in enumerate(zip(mine, right, strict=True)):
        got, wanted = _row(table, row), _row(table, good)
        if got is not None and wanted is not None and got != wanted:
            return (
                f"token {token} gets row {got} of the table, where row {wanted} is "
                f"right ({sight.case.name})."
            )
    return None


def _row(table: Float, row: np.ndarray) -> int | None:
    found = np.flatnonzero(np.abs(table - row.astype(float)).max(axis=-1) < CLOSE)
    return int(found[0]) if found.size else None


def position_of(sight: Sight) -> str | None:
    """The position of the first real token that has a wrong one."""
    mine, right = sight.result(), sight.right.arrays[0]
    if mine is None or mine.shape != right.shape or mine.ndim != 2:
        return None
    wrong = np.argwhere(np.abs(mine.astype(float) - right) > CLOSE)
    if not len(wrong):
        return None
    text, place = (int(i) for i in wrong[0])
    first = int(np.argmax(np.asarray(sight.case.args[0], bool)[text]))
    which = "the first token" if place == first else f"the token at place {place}"
    return (
        f"{which} of text {text} gets position {number(float(mine[text, place]))}, "
        f"where {number(float(right[text, place]))} is right ({sight.case.name})."
    )


def copied_head(sight: Sight) -> str | None:
    """Which key head stands where another should."""
    mine, k = sight.result(), np.asarray(sight.case.args[0], dtype=np.float64)
    axis = int(np.asarray(sight.case.args[2]))
    right = sight.right.arrays[0]
    if mine is None or mine.ndim != right.ndim:
        return None
    got, wanted = mine.shape[axis], right.shape[axis]
    if got != wanted:
        return f"{got} heads come out, and {wanted} are right ({sight.case.name})."
    if mine.shape != right.shape:
        return None
    heads, source = np.moveaxis(mine.astype(float), axis, 0), np.moveaxis(k, axis, 0)
    for h, (head, good) in enumerate(
        zip(heads, np.moveaxis(right, axis, 0), strict=True)
    ):
        which, should = _head(source, head), _head(source, good)
        if which is not None and should is not None and which != should:
            return (
                f"query head {h} gets key head {which}, where key head {should} is "
                f"right ({sight.case.name})."
            )
    return None


def _head(source: Float, head: np.ndarray) -> int | None:
    for i, one in enumerate(source):
        if one.shape == head.shape and np.allclose(one, head, atol=CLOSE):
            return i
    return None


def size_of_query(sight: Sight) -> str | None:
    """The root mean square of the first query whose size is wrong."""
    mine, right = sight.result(), sight.right.arrays[0]
    if mine is None or mine.shape != right.shape:
        return None
    sizes, wanted = (
        np.sqrt(np.mean(np.square(np.asarray(a, float)), axis=-1)).ravel()
        for a in (mine, right)
    )
    wrong = np.flatnonzero(np.abs(sizes - wanted) > 1e-3)
    if not wrong.size:
        return None
    i = int(wrong[0])
    q = sight.case.args[0]
    before = np.sqrt(np.mean(np.square(np.asarray(q, float)), axis=-1)).ravel()
    return (
        f"a query of root mean square {number(float(before[i]))} has "
        f"{number(float(sizes[i]))} afterwards, where {number(float(wanted[i]))} is "
        f"right ({sight.case.name})."
    )


_WINDOW = (
    "window_one_more window_one_less window_two_more window_right_one_more "
    "window_right_one_less window_both_one_more window_both_one_less window_halved "
    "window_two_sided window_not_causal window_missing window_ahead "
    "window_self_hidden window_blocks window_outside"
)
_LEARNED = (
    "learned_offset_two learned_from_one learned_one_early learned_offset_missing "
    "learned_past_ignored learned_past_one_less learned_past_one_more "
    "learned_past_doubled learned_all_rows learned_last_rows learned_reversed "
    "learned_first_row learned_from_the_end"
)
_PADDED = (
    "padded_by_place padded_from_one padded_from_two padded_from_the_end "
    "padded_over_batch padded_through_batch padded_like_first padded_fillers_counted "
    "padded_whether"
)
_COPIED = (
    "repeat_missing repeat_one_more repeat_to_n_rep repeat_on_tokens "
    "repeat_on_features repeat_on_batch"
)
_NORM = (
    "norm_missing norm_over_tokens norm_over_heads norm_over_batch "
    "norm_over_tokens_too norm_over_all norm_over_everything norm_of_merged "
    "norm_largest norm_sum norm_without_root norm_root_twice norm_multiplied "
    "norm_clipped"
)
MEASURES: dict[str, Callable[[Sight], str | None]] = {
    "frequency_of_cosines": not_toeplitz,
    "frequency_of_odd_columns": not_toeplitz,
    **dict.fromkeys(_WINDOW.split(), keys_seen),
    **dict.fromkeys(_LEARNED.split(), row_of_table),
    **dict.fromkeys(_PADDED.split(), position_of),
    **dict.fromkeys(_COPIED.split(), copied_head),
    **dict.fromkeys(_NORM.split(), size_of_query),
}
