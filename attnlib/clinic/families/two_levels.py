"""Attention inside pieces, then to their means; with every mistake built in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults
from attnlib.clinic.families.attention import scale
from attnlib.clinic.families.softmax import softmax

Float = npt.NDArray[np.floating]


def two_levels(x: Float, width: int, *, faults: Faults = RIGHT) -> Float:
    """local + attention(local, means, means), means being those of local's pieces."""

    def attend(q: Float, k: Float, v: Float) -> Float:
        return np.asarray(softmax(scale(q @ k.T, q, k, v, faults)) @ v)

    n = len(x)
    if "levels_padded" in faults:
        zeros = np.zeros((-n % width, x.shape[1]), x.dtype)
        return two_levels(np.concatenate([x, zeros]), width)[:n]
    if "levels_article" in faults:
        taps = [x[a : n - 2 + a : 2] for a in range(3)]
        return attend(np.asarray(sum(taps)) / 3, x, x)
    pieces = _pieces(n, width, faults)
    local = np.zeros(x.shape, x.dtype)
    for piece in pieces:
        part = x[piece]
        local[piece] = attend(part, part, part)
        if "levels_causal" in faults:
            scores = scale(part @ part.T, part, part, part, faults)
            hidden = np.triu(np.full(scores.shape, -np.inf), 1)
            local[piece] = softmax(scores + hidden) @ part
        elif "levels_local_unscaled" in faults:
            local[piece] = softmax(part @ part.T) @ part
    if "levels_local_missing" in faults:
        local = x
    elif "levels_local_full" in faults:
        local = attend(x, x, x)
    means = _means(x if "levels_means_of_x" in faults else local, pieces, width, faults)
    if "levels_queries_pooled" in faults:
        return attend(means, local, local)
    if "levels_queries_pooled_x" in faults:
        return attend(means, x, x)
    if "levels_means_only" in faults:
        return attend(means, means, means)
    queries = x if "levels_queries_are_x" in faults else local
    if "levels_keys_not_pooled" in faults:
        means = local
    far = attend(queries, means, means)
    if "levels_far_unscaled" in faults:
        far = np.asarray(softmax(queries @ means.T) @ means)
    if "levels_far_only" in faults:
        return far
    if "levels_local_only" in faults:
        return local
    if "levels_residual" in faults:
        return np.asarray(x + local + far)
    if "levels_x_for_local" in faults:
        return np.asarray(x + far)
    if "levels_halved" in faults:
        return np.asarray((local + far) / 2)
    if "levels_side_by_side" in faults:
        return np.concatenate([local, far], axis=-1)
    return np.asarray(local + far)


def _pieces(n: int, width: int, faults: Faults) -> list[npt.NDArray[np.int64]]:
    places = np.arange(n)
    if "levels_count_for_width" in faults:
        return list(np.array_split(places, width))
    if "levels_split_evenly" in faults:
        return list(np.array_split(places, -(-n // width)))
    if "levels_pieces_strided" in faults:
        n_pieces = -(-n // width)
        return [places[first::n_pieces] for first in range(n_pieces)]
    if "levels_width_from_count" in faults:
        width = -(-n // width)
    starts = range(0, n, width)
    if "levels_pieces_overlap" in faults:  # kernel_size one more than the stride
        return [places[s : s + width + 1] for s in starts]
    if "levels_rest_lost" in faults:
        starts = range(0, n - width + 1, width)
    return [places[s : s + width] for s in starts]


def _means(
    x: Float, pieces: list[npt.NDArray[np.int64]], width: int, faults: Faults
) -> Float:
    means = []
    for piece in pieces:
        part = x[piece]
        if "levels_sums" in faults:
            means.append(part.sum(axis=0))
        elif "levels_largest" in faults:
            means.append(part.max(axis=0))
        elif "levels_first_tokens" in faults:
            means.append(part[0])
        elif "levels_last_tokens" in faults:
            means.append(part[-1])
        elif "levels_rest_diluted" in faults:
            means.append(part.sum(axis=0) / width)
        elif "levels_one_number" in faults:
            means.append(np.full(x.shape[1], part.mean(), x.dtype))
        elif "levels_rest_not_pooled" not in faults or len(part) == width:
            means.append(part.mean(axis=0))
    return np.stack(means)


TWO_LEVELS = Family(
    "two_levels",
    two_levels,
    {
        "whole": (
            "levels_article",
            "levels_queries_pooled",
            "levels_queries_pooled_x",
            "levels_means_only",
        ),
        "pieces": (
            "levels_count_for_width",
            "levels_width_from_count",
            "levels_split_evenly",
            "levels_padded",
            "levels_pieces_strided",
            "levels_pieces_overlap",
            "levels_rest_lost",
        ),
        "local": (
            "levels_local_missing",
            "levels_local_full",
            "levels_causal",
            "levels_local_unscaled",
        ),
        "pooled": (
            "levels_means_of_x",
            "levels_keys_not_pooled",
        ),
        "mean": (
            "levels_sums",
            "levels_largest",
            "levels_first_tokens",
            "levels_last_tokens",
            "levels_rest_diluted",
            "levels_rest_not_pooled",
            "levels_one_number",
        ),
        "queries": ("levels_queries_are_x",),
        "joined": (
            "levels_far_only",
            "levels_local_only",
            "levels_residual",
            "levels_x_for_local",
            "levels_halved",
            "levels_side_by_side",
        ),
        "scale": (
            "scale_missing",
            "scale_d_k",
            "scale_multiplied",
            "levels_far_unscaled",
        ),
    },
)
