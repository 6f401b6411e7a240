"""Numbers to watch an attention by, with every mistake built in."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults

Float = npt.NDArray[np.float64]


def keys_used(weights: npt.ArrayLike, *, faults: Faults = RIGHT) -> object:
    """e^(mean entropy) of each head's rows that are not empty."""
    w = np.asarray(weights, dtype=float)
    filled = np.asarray(w.any(-1))  # (batch, n_heads, n_q)
    if "heads_averaged_first" in faults:
        w = w.mean(axis=1, keepdims=True)
        filled = np.asarray(w.any(-1))
    elif "batch_averaged_first" in faults:
        w = w.mean(axis=0, keepdims=True)
        filled = np.asarray(w.any(-1))
    elif "rows_averaged_first" in faults:
        w = w.mean(axis=2, keepdims=True)
        filled = np.asarray(w.any(-1))
    h = _spread(w, faults)
    if "exp_before_mean" in faults:
        h = np.exp(h)
    if "empty_rows_counted" in faults:
        filled = np.ones_like(filled)
    elif "first_texts_rows" in faults:
        filled = np.broadcast_to(filled[:1], filled.shape)
    elif "rows_of_one_key_left_out" in faults:
        filled = filled & (h != 0)
    mean = _mean_of(h, filled, faults)
    if "entropy_left" in faults or "exp_before_mean" in faults:
        return mean
    used = 2**mean if "base_two_of_nats" in faults else np.exp(mean)
    return used / w.shape[-1] if "share_of_keys" in faults else used


def _spread(w: Float, faults: Faults) -> Float:
    """The entropy of each row, or what is taken for it."""
    if "participation" in faults:
        return np.asarray(-np.log(np.maximum((w**2).sum(-1), 1e-300)))
    if "keys_counted" in faults:
        return np.asarray(np.log(np.maximum((w > 0).sum(-1), 1)))
    if "largest_weight" in faults:
        return np.asarray(-np.log(np.maximum(w.max(-1), 1e-300)))
    bare = {"log_of_no_weight", "log_of_empty_rows"} & faults
    log = np.log(w if bare else np.where(w > 0, w, 1))
    h = -(w * log).sum(-1)
    if "bits_for_nats" in faults:
        h = h / math.log(2)
    return np.asarray(-h if "spread_negative" in faults else h)


def _mean_of(h: Float, rows: npt.NDArray[np.bool_], faults: Faults) -> Float:
    """The mean over batch and rows for each head, or another one."""
    # Summed over all rows, NaN of an empty one spreads over its head.
    kept = h if "log_of_empty_rows" in faults else np.where(rows, h, 0.0)
    if "heads_in_one" in faults or "heads_averaged_first" in faults:
        return np.asarray(kept.sum() / rows.sum())
    if "texts_alone" in faults:
        return np.asarray(kept.sum(2) / np.maximum(rows.sum(2), 1))
    if "mean_of_means" in faults:
        return np.asarray((kept.sum(2) / np.maximum(rows.sum(2), 1)).mean(0))
    if "queries_alone" in faults:
        return np.asarray(kept.sum((0, 1)) / np.maximum(rows.sum((0, 1)), 1))
    if "rows_summed" in faults:
        return np.asarray(kept.sum((0, 2)))
    if "median_of_rows" in faults:
        picked = np.where(rows, h, np.nan)
        return np.asarray(
            np.nanmedian(np.moveaxis(picked, 1, 0).reshape(h.shape[1], -1), axis=1)
        )
    return np.asarray(kept.sum((0, 2)) / rows.sum((0, 2)))


def head_loudness(mixed: npt.ArrayLike, *, faults: Faults = RIGHT) -> object:
    """The root mean square of what each head mixes."""
    m = np.asarray(mixed, dtype=float)
    if "token_for_head" in faults:
        m = np.swapaxes(m, 1, 2)[:, : m.shape[1]]
    elif "text_for_head" in faults:
        m = np.swapaxes(m, 0, 1)
    elif "feature_for_head" in faults:
        m = np.swapaxes(m, 1, 3)
    elif "merged_before" in faults:  # pieces of a reshape without the transpose
        m = m.reshape(m.shape[0], m.shape[2], m.shape[1], -1).swapaxes(1, 2)
    if "mean_taken_off" in faults:
        m = m - m.mean((0, 2, 3), keepdims=True)
    squares = np.abs(m) if "absolute_for_square" in faults else m**2
    if "signs_kept" in faults:
        squares = m
    average = _averaged(squares, faults)
    no_root = {"root_missing", "absolute_for_square", "signs_kept"} & faults
    if no_root:
        return average
    if "mean_of_token_norms" in faults:
        return np.sqrt((m**2).sum(-1)).mean((0, 2))
    if "mean_of_tokens" in faults:
        return np.sqrt((m**2).mean(-1)).mean((0, 2))
    if "mean_of_texts" in faults:
        return np.sqrt((m**2).mean((2, 3))).mean(0)
    if "share_of_all" in faults:
        return np.sqrt(average) / np.sqrt(average).sum()
    return np.sqrt(average)


def _averaged(squares: Float, faults: Faults) -> Float:
    over = (0, 2, 3)
    if "texts_separate" in faults:
        over = (2, 3)  # type: ignore[assignment]
    elif "tokens_separate" in faults:
        over = (0, 3)  # type: ignore[assignment]
    elif "one_for_all_heads" in faults:
        return np.asarray(squares.mean())
    elif "loudest_number" in faults:
        return np.asarray(squares.max(over))
    if "norm_for_mean" in faults:
        return np.asarray(squares.sum(over))
    if "features_summed" in faults:
        return np.asarray(squares.mean(over) * squares.shape[3])
    if "tokens_summed" in faults:
        return np.asarray(squares.mean(over) * squares.shape[2])
    if "texts_summed" in faults:
        return np.asarray(squares.mean(over) * squares.shape[0])
    return np.asarray(squares.mean(over))


KEYS_USED = Family(
    "keys_used",
    keys_used,
    {
        "first": (
            "heads_averaged_first",
            "batch_averaged_first",
            "rows_averaged_first",
        ),
        "rows": (
            "empty_rows_counted",
            "first_texts_rows",
            "rows_of_one_key_left_out",
        ),
        "spread": (
            "log_of_no_weight",
            "log_of_empty_rows",
            "participation",
            "keys_counted",
            "largest_weight",
            "spread_negative",
            "bits_for_nats",
        ),
        "mean": (
            "heads_in_one",
            "texts_alone",
            "mean_of_means",
            "queries_alone",
            "rows_summed",
            "median_of_rows",
        ),
        "unit": (
            "entropy_left",
            "exp_before_mean",
            "base_two_of_nats",
            "share_of_keys",
        ),
    },
)
HEAD_LOUDNESS = Family(
    "head_loudness",
    head_loudness,
    {
        "axis": (
            "token_for_head",
            "text_for_head",
            "feature_for_head",
            "merged_before",
        ),
        "square": (
            "root_missing",
            "absolute_for_square",
            "signs_kept",
            "mean_taken_off",
        ),
        "mean": (
            "norm_for_mean",
            "features_summed",
            "tokens_summed",
            "texts_summed",
            "texts_separate",
            "tokens_separate",
            "one_for_all_heads",
            "loudest_number",
        ),
        "order": (
            "mean_of_token_norms",
            "mean_of_tokens",
            "mean_of_texts",
            "share_of_all",
        ),
    },
)
