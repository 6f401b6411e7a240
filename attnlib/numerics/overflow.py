"""Where scores and their softmax leave a float type.

Three things go wrong, and only the first is cured by subtracting the largest score:
exp overflows, the raw score overflows before it is scaled, and the value written over
a hidden score is too small, or too large for the type.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from attnlib.numerics.floats import limits, stored, type_name
from attnlib.shapes import Array, check_shapes, size


@dataclass(frozen=True)
class SoftmaxLimits:
    """Where softmax leaves a float type."""

    exp_overflow: float  #  ln(largest): exp of more than this is inf
    exp_underflow: float  # ln(smallest / 2): exp of less than this is 0
    one_hot_gap: float  #   ln(4 / epsilon): a lead of more than this gives weight 1


@dataclass(frozen=True)
class FillEffect:
    """What a fill value does to a hidden key."""

    stored: float  #        the fill as the type holds it
    hidden_weight: float  # of one hidden key beside one visible key
    empty_row: float  #     weight of every key, where all are hidden; NaN for -inf

    @property
    def hides(self) -> bool:
        """True if the hidden key gets no weight at all."""
        return self.hidden_weight == 0


def softmax_limits(dtype: npt.DTypeLike) -> SoftmaxLimits:
    """Say at which scores softmax leaves a float type.

    exp(x) overflows beyond ln(largest) and is 0 below ln(smallest / 2);
    the weight 1 / (1 + exp(-gap)) rounds to 1 when gap > ln(4 / epsilon)

    Subtracting the largest score first makes the overflow impossible. Against the gap
    it does nothing: with a weight of exactly 1, the gradient is exactly 0.

    Args:
        dtype: "float16", "bfloat16", "float32" or "float64".

    Returns:
        The three limits.

    Raises:
        TypeError: dtype is none of the four.

    Cost: none worth counting.
    Source: the names of the course.
    Lesson: 09.

    >>> found = [softmax_limits(t) for t in ("float16", "float32", "float64")]
    >>> [round(limit.exp_overflow, 1) for limit in found]
    [11.1, 88.7, 709.8]
    >>> [round(limit.one_hot_gap, 1) for limit in found]
    [8.3, 17.3, 37.4]
    """
    ends = limits(dtype)
    return SoftmaxLimits(
        exp_overflow=math.log(ends.largest),
        exp_underflow=math.log(ends.smallest) - math.log(2),  # smallest / 2 may be 0
        one_hot_gap=math.log(4 / ends.epsilon),
    )


def fill_effect(
    fill: float, dtype: npt.DTypeLike, *, score: float = 0.0, n_k: int = 4
) -> FillEffect:
    """Say what a fill value does to the weight of a hidden key.

    hidden_weight = exp(fill) / (exp(fill) + exp(score)), all as the type holds it

    A finite fill is a bet that every score is larger. It also turns an empty row into
    equal weights on keys that were hidden. -inf always hides, and gives NaN in an
    empty row, unless the softmax has a rule for it, as ours has.

    Args:
        fill: what is written over the score of the hidden key.
        dtype: the type of the scores, as in `limits`.
        score: the score of the one visible key.
        n_k: how many keys the empty row has.

    Returns:
        stored, hidden_weight and empty_row, and whether the fill `hides`.

    Raises:
        TypeError: dtype is none of the four, or n_k not a whole number.
        ShapeError: n_k is smaller than 1.
        ValueError: the score is not finite in the type, or the fill is NaN or +inf.

    Cost: none worth counting.
    Source: the names of the course.
    Lesson: 09.

    >>> fill_effect(-1e4, "float32").hides
    True
    >>> fill_effect(-1e4, "float32", score=-20_000.0).hidden_weight
    1.0
    >>> fill_effect(-1e9, "float16")
    FillEffect(stored=-inf, hidden_weight=0.0, empty_row=nan)
    """
    n_k = size("n_k", n_k, least=1)
    held, visible = float(stored(fill, dtype)), float(stored(score, dtype))
    if not math.isfinite(visible):
        raise ValueError(
            f"score={score} is not finite in {type_name(dtype)}: no fill can be judged."
        )
    if math.isnan(held) or held == math.inf:
        raise ValueError(
            f"fill={fill} is {held} in {type_name(dtype)}: it hides nothing."
        )
    largest = max(held, visible)
    hidden, seen = math.exp(held - largest), math.exp(visible - largest)
    weight = float(stored(hidden / (hidden + seen), dtype))
    return FillEffect(held, weight, math.nan if math.isinf(held) else 1 / n_k)


def scores_scaled_after(
    q: npt.ArrayLike, k: npt.ArrayLike, dtype: npt.DTypeLike
) -> Array:
    """Compute scores as the formula is written: multiply, store, then scale.

    stored(stored(q k^T) / sqrt(d_k))

    The sum itself is kept in float32, as matrix units keep it. What overflows is the
    raw score, when it is stored before it is scaled.

    Args:
        q: queries, (..., n_q, d_k).
        k: keys, (..., n_k, d_k).
        dtype: the type in which numbers are stored, as in `limits`.

    Returns:
        The scores, (..., n_q, n_k), of that type; of float32 for bfloat16.

    Raises:
        ShapeError: q and k differ in d_k.
        TypeError: q or k is not an array of numbers, or dtype is none of the four.

    Cost: 2 n_q n_k d_k FLOPs.
    Source: Vaswani et al. 2017, equation 1.
    Lesson: 09.

    >>> loud = [[23.0] * 128]
    >>> scores_scaled_after(loud, loud, "float16").tolist()
    [[inf]]
    """
    q, k, scale = _queries_and_keys(q, k, dtype)
    raw_scores = stored(_product(q, k), dtype)
    return stored(raw_scores * scale, dtype)


def scores_scaled_before(
    q: npt.ArrayLike, k: npt.ArrayLike, dtype: npt.DTypeLike
) -> Array:
    """Compute scores with the scale on the queries, so that nothing large is stored.

    stored(stored(q / sqrt(d_k)) k^T)

    Args:
        q: queries, (..., n_q, d_k).
        k: keys, (..., n_k, d_k).
        dtype: the type in which numbers are stored, as in `limits`.

    Returns:
        The scores, (..., n_q, n_k), of that type; of float32 for bfloat16.

    Raises:
        ShapeError: q and k differ in d_k.
        TypeError: q or k is not an array of numbers, or dtype is none of the four.

    Cost: 2 n_q n_k d_k FLOPs.
    Source: the float16 code of most libraries, Megatron-LM's among them.
    Lesson: 09.

    >>> loud = [[23.0] * 128]
    >>> scores_scaled_before(loud, loud, "float16").tolist()
    [[5984.0]]
    """
    q, k, scale = _queries_and_keys(q, k, dtype)
    return stored(_product(stored(q * scale, dtype), k), dtype)


def _queries_and_keys(
    q: npt.ArrayLike, k: npt.ArrayLike, dtype: npt.DTypeLike
) -> tuple[Array, Array, float]:
    d_k = check_shapes({"q": (q, "n_q d_k"), "k": (k, "n_k d_k")})["d_k"]
    return stored(q, dtype), stored(k, dtype), 1.0 if d_k == 0 else d_k**-0.5


def _product(q: Array, k: Array) -> Array:
    """q k^T with the sums in float32 at least."""
    wide = np.result_type(q.dtype, np.float32)
    return np.asarray(q.astype(wide) @ np.swapaxes(k, -1, -2).astype(wide))
