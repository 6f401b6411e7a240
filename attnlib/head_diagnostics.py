"""What each head does: where it looks, how loud it is, and which head it resembles.

All of it is measured on one axis of heads, before `W_o` blends them: on the weights,
(..., n_heads, n_q, n_k), or on what they mix, (..., n_heads, n_q, d_v). After the
merge there are no heads left to index: `out[:, i]` is a token.
"""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt

from attnlib.shapes import Array, ShapeError, check_shapes, numbers, size


def sink_mass(weights: npt.ArrayLike, n_sinks: int = 1) -> Array:
    """Measure how much of its weight a head puts on the first key, or the first few.

    mass = mean over rows i of sum_{j < n_sinks} w_ij

    Empty rows are left out. Under a causal mask the first row can look nowhere else,
    so hand over `weights[..., 1:, :]` to leave it out too. Even weights on n keys
    have n_sinks / n: that is what to compare with.

    Args:
        weights: (..., n_q, n_k), with or without an axis of heads before these two.
        n_sinks: how many keys, counted from the first, make the sink.

    Returns:
        The mass for each head, (...), from 0 to 1; 0 where every row is empty.

    Raises:
        ShapeError: weights have fewer than two axes, or n_sinks is smaller than 1 or
            larger than n_k.
        TypeError: weights are not an array of numbers, or n_sinks no whole number.

    Cost: one pass over the weights.
    Source: Xiao et al. 2023 (StreamingLLM), section 3.1.
    Lesson: 10.

    >>> float(sink_mass([[1.0, 0.0], [0.5, 0.5], [0.0, 0.0]]))
    0.75
    """
    w = _wide("weights", weights)
    n_k = check_shapes({"weights": (w, "n_q n_k")})["n_k"]
    n_sinks = size("n_sinks", n_sinks, least=1)
    if n_sinks > n_k:
        raise ShapeError(f"n_sinks={n_sinks} is larger than n_k={n_k}.")
    rows = w.any(axis=-1).sum(axis=-1)
    mass = w[..., :n_sinks].sum(axis=(-2, -1))
    return np.asarray(mass / np.maximum(rows, 1))


def offset_mass(weights: npt.ArrayLike, offset: int) -> Array:
    """Measure how much of its weight a head puts on the key so many places back.

    mass = mean over rows i of w_i,(i - offset), where there is such a key

    The last query stands beside the last key, as under a causal mask. With offset 1 it
    is the score of a previous-token head. 0 is the token itself, -1 the next one. Empty
    rows are left out. Compare with the other offsets: a head that really looks one
    place back has little elsewhere.

    Args:
        weights: (..., n_q, n_k), with or without an axis of heads before these two.
        offset: how many places back the key stands.

    Returns:
        The mass for each head, (...), from 0 to 1; 0 where no row has such a key.

    Raises:
        ShapeError: weights have fewer than two axes.
        TypeError: weights are not an array of numbers, or offset no whole number.

    Cost: one pass over n_q weights of each head.
    Source: Voita et al. 2019, section 5, who call such heads positional.
    Lesson: 06.

    >>> float(offset_mass([[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.0, 0.7, 0.3]], 1))
    0.8
    """
    w = _wide("weights", weights)
    sizes = check_shapes({"weights": (w, "n_q n_k")})
    offset = size("offset", offset, least=-sys.maxsize)
    rows = np.arange(sizes["n_q"])
    return _mean_at(w, rows, rows + sizes["n_k"] - sizes["n_q"] - offset)


def induction_score(weights: npt.ArrayLike, period: int, start: int = 0) -> Array:
    """Measure how well a head finds what came after its token the last time.

    score = mean over rows i >= start + period of w_i,(i - period + 1)

    It is meant for a text that says the same `period` tokens again and again: the token
    of row i stood at i - period, and what came next, at the key after it. Take random
    tokens, so that nothing else points there, and more than one period: a head that
    always looks so many places back would pass with one.

    Args:
        weights: (..., n, n), the weights on the repeated text.
        period: how many tokens there are before they come again.
        start: how many tokens stand before them, such as one <start>.

    Returns:
        The score for each head, (...), from 0 to 1; 0 where nothing comes again.

    Raises:
        ShapeError: weights have fewer than two axes or n_q and n_k differ, period is
            smaller than 1, or start than 0.
        TypeError: weights are not an array of numbers, or period or start no whole
            number.

    Cost: one pass over n weights of each head.
    Source: Olsson et al. 2022, their prefix-matching score.
    Lesson: 06.

    >>> looks = [[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0.2, 0, 0.8, 0]]
    >>> float(induction_score(looks, period=2))
    0.9
    """
    w = _wide("weights", weights)
    n = check_shapes({"weights": (w, "n n")})["n"]
    period, start = size("period", period, least=1), size("start", start, least=0)
    rows = np.arange(min(start + period, n), n)
    return _mean_at(w, rows, rows - period + 1)


def head_norms(mixed: npt.ArrayLike) -> Array:
    """Measure how loud each head is, before W_o.

    norm_h = root of the sum over tokens and features of mixed_h^2

    A loud head need not be an important one: W_o may turn it down. And it grows with
    the root of n_q; see `head_imbalance` for a number that does not.

    Args:
        mixed: the heads' results, (..., n_heads, n_q, d_v), before `merge_heads`.

    Returns:
        The norm of each head, (..., n_heads).

    Raises:
        ShapeError: mixed has fewer than three axes, as the merged output may have.
        TypeError: mixed is not an array of numbers.

    Cost: 2 FLOPs a number.
    Source: the names of the course.
    Lesson: 10.

    >>> head_norms([[[3.0, 4.0]], [[0.0, 0.0]]]).tolist()
    [5.0, 0.0]
    """
    m = _wide("mixed", mixed)
    check_shapes({"mixed": (m, "n_heads n_q d_v")})
    return np.asarray(np.sqrt((m**2).sum(axis=(-2, -1))))


def head_imbalance(mixed: npt.ArrayLike) -> Array:
    """Say in one number how unequally loud the heads are.

    (std / mean)^2 over the heads of the root mean square of mixed_h

    It does not change when all heads get louder, nor when there are more tokens of the
    same kind: that is what makes it fit to watch, or to punish. 0 means equally loud;
    one loud head of n_heads gives n_heads - 1.

    Args:
        mixed: the heads' results, (..., n_heads, n_q, d_v), before `merge_heads`.

    Returns:
        The imbalance, (...); 0 where all heads are silent.

    Raises:
        ShapeError: mixed has fewer than three axes, or one of the three is empty.
        TypeError: mixed is not an array of numbers.

    Cost: 2 FLOPs a number.
    Source: the squared coefficient of variation, as in Shazeer et al. 2017, section 4.
    Lesson: 10.

    >>> float(head_imbalance([[[1.0]], [[1.0]], [[0.0]], [[0.0]]]))
    1.0
    """
    m = _wide("mixed", mixed)
    for name, n in check_shapes({"mixed": (m, "n_heads n_q d_v")}).items():
        size(name, n, least=1)
    loudness = head_norms(m) / np.sqrt(m.shape[-2] * m.shape[-1])
    mean = loudness.mean(axis=-1)
    return np.asarray((loudness.std(axis=-1) / np.where(mean == 0, 1, mean)) ** 2)


def head_cosines(weights: npt.ArrayLike) -> Array:
    """Compare the heads' weights two by two, each taken as one long vector.

    cos(w_a, w_b) = sum_ij w_aij w_bij / (|w_a| |w_b|)

    No weight is negative, so no cosine is, and two heads that know nothing of each
    other are far from 0. Compare with another pair, not with 0.

    Args:
        weights: (..., n_heads, n_q, n_k).

    Returns:
        The cosines, (..., n_heads, n_heads): 1 for heads that do the same, 0 for heads
        that share no key, and for a head of empty rows.

    Raises:
        ShapeError: weights have fewer than three axes.
        TypeError: weights are not an array of numbers.

    Cost: 2 n_heads^2 n_q n_k FLOPs.
    Source: the names of the course.
    Lesson: 10.

    >>> head_cosines([[[1.0, 0.0]], [[1.0, 0.0]], [[0.0, 1.0]]])[0].tolist()
    [1.0, 1.0, 0.0]
    """
    w = _wide("weights", weights)
    check_shapes({"weights": (w, "n_heads n_q n_k")})
    flat = w.reshape(*w.shape[:-2], w.shape[-2] * w.shape[-1])
    length = np.sqrt((flat**2).sum(axis=-1, keepdims=True))
    unit = flat / np.where(length == 0, 1, length)
    return np.asarray(unit @ np.swapaxes(unit, -1, -2))


def head_divergences(weights: npt.ArrayLike) -> Array:
    """Compare the heads' weights two by two, row by row, as distributions.

    mean over rows of H((w_a + w_b) / 2) - (H(w_a) + H(w_b)) / 2, in nats

    That is the Jensen-Shannon divergence: 0 for equal rows, ln 2 for rows that share
    no key. A row that is empty in one of the two heads is left out.

    Args:
        weights: (..., n_heads, n_q, n_k).

    Returns:
        The divergences, (..., n_heads, n_heads), from 0 to ln 2; 0 where two heads
        have no row to compare.

    Raises:
        ShapeError: weights have fewer than three axes.
        TypeError: weights are not an array of numbers.

    Cost: n_heads^2 n_q n_k logarithms; n_heads n_q n_k numbers at a time.
    Source: Lin 1991; between heads, Clark et al. 2019, section 6.
    Lesson: 10.

    >>> head_divergences([[[1.0, 0.0]], [[0.0, 1.0]]])[0].round(4).tolist()
    [0.0, 0.6931]
    """
    w = _wide("weights", weights)
    check_shapes({"weights": (w, "n_heads n_q n_k")})
    spread, filled = _entropy(w), np.asarray(w.any(axis=-1))
    columns = []
    for head in range(w.shape[-3]):  # one at a time: n_heads^2 maps may be too large
        other = slice(head, head + 1)
        between = _entropy((w + w[..., other, :, :]) / 2)
        apart = between - (spread + spread[..., other, :]) / 2
        both = filled & filled[..., other, :]
        total = np.where(both, np.maximum(apart, 0), 0).sum(axis=-1)  # rounding, below
        columns.append(total / np.maximum(both.sum(axis=-1), 1))
    return np.stack(columns, axis=-1) if columns else np.zeros((*w.shape[:-3], 0, 0))


def _entropy(w: Array) -> Array:
    return np.asarray(-(w * np.log(np.where(w > 0, w, 1))).sum(axis=-1))


def _wide(name: str, value: npt.ArrayLike) -> Array:
    """In float32 at least: in float16, squares overflow from 256 on."""
    array = numbers(name, value)
    if array.dtype.kind != "f":
        return array.astype(np.float64)
    return array.astype(np.result_type(array.dtype, np.float32), copy=False)


def _mean_at(w: Array, rows: npt.NDArray[np.intp], keys: npt.NDArray[np.intp]) -> Array:
    """The mean of w[row, key] over pairs that exist and rows that are not empty."""
    there = (keys >= 0) & (keys < w.shape[-1])
    rows, keys = rows[there], keys[there]
    filled = w[..., rows, :].any(axis=-1).sum(axis=-1)
    return np.asarray(w[..., rows, keys].sum(axis=-1) / np.maximum(filled, 1))
