"""RoPE beyond its trained length: interpolation, NTK, YaRN.

All of them slow the rotation down, so that a long text turns the pairs no farther
than training did. They differ in which pairs they slow:

- interpolation: every pair alike, by `scale`. Near tokens get hard to tell apart.
- NTK: the fastest pair not at all, the slowest by `scale`, those between gradually.
- YaRN: pairs that turn often within the trained length not at all, those that turn
  less than once by `scale`, and the scores are sharpened a little.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from attnlib.positions.frequencies import real
from attnlib.positions.rotary import even, rope_frequencies
from attnlib.shapes import Array, ShapeError, numbers, size


def interpolate_positions(positions: npt.ArrayLike, scale: float) -> Array:
    """Squeeze the positions of a long text into the range that was trained.

    position / scale

    Args:
        positions: where each token stands, (..., n).
        scale: wanted length over trained length, at least 1.

    Returns:
        The positions for `rope`, (..., n), with fractions.

    Raises:
        TypeError: positions are not an array of numbers, or the scale not one number.
        ValueError: the scale is below 1.

    Cost: one division a position.
    Source: Chen et al. 2023 (position interpolation), section 2.3.
    Lesson: 08.

    >>> interpolate_positions([0, 1, 8], 4).tolist()
    [0.0, 0.25, 2.0]
    """
    return np.asarray(numbers("positions", positions) / _scale(scale))


def ntk_base(base: float, scale: float, d: int) -> float:
    """Raise the base so that only the slowest pair slows down by the whole scale.

    base' = base scale^(d / (d - 2))

    The fastest pair keeps its frequency, 1, and the slowest has its own divided by
    exactly `scale`. The result is a number for `rope(..., base=...)`, not a position
    encoding. A scale below 1 would make the base smaller and the rotation faster; it
    is an error.

    Args:
        base: the base the model was trained with.
        scale: wanted length over trained length, at least 1.
        d: features of one head that are turned (not d_model); even, at least 4.

    Returns:
        The new base, a float; there is no array, hence no shape.

    Raises:
        ShapeError: d is odd, or 2: the only pair turns by 1 whatever the base.
        TypeError: d is not a whole number, base or scale not one number.
        ValueError: the base is not above 1, or the scale below 1.

    Cost: none worth counting.
    Source: bloc97 2023 (NTK-aware scaling); Peng et al. 2024 (YaRN), section 3.1.
    Lesson: 08.

    >>> round(ntk_base(10000.0, 4, 128), 3)
    40889.942
    """
    base, d = real("base", base, above=1), even(d)
    if d == 2:
        raise ShapeError(
            "d=2 has one pair, which turns by 1 whatever the base: NTK needs d >= 4."
        )
    return float(base * _scale(scale) ** (d / (d - 2)))


def dynamic_scale(length: int, trained_length: int, *, factor: float = 1.0) -> float:
    """Let the scale follow the length of the text so far.

    scale = max(1, factor length / trained_length - (factor - 1))

    With factor 1 that is length / trained_length. The "dynamic" NTK of transformers
    puts its configured factor in here, and the result is not what its name suggests:
    factor 4 at four times the trained length gives a scale of 13, not 4.

    Keys that were turned with one scale must not meet queries turned with another.
    A cache has to keep them unturned, or the scale fixed.

    Args:
        length: how many tokens there are so far.
        trained_length: how many tokens the model was trained on.
        factor: the `factor` of a transformers configuration.

    Returns:
        The scale for `ntk_base`, a float from 1; there is no array, hence no shape.

    Raises:
        ShapeError: length is negative, or trained_length below 1.
        TypeError: a length is not a whole number, or the factor not one number.
        ValueError: the factor is below 1.

    Cost: none worth counting.
    Source: Peng et al. 2024 (YaRN), section 3.3; transformers, rope type "dynamic".
    Lesson: 08.

    >>> dynamic_scale(8192, 2048), dynamic_scale(8192, 2048, factor=4)
    (4.0, 13.0)
    >>> dynamic_scale(100, 2048, factor=4)
    1.0
    """
    length = size("length", length)
    trained_length = size("trained_length", trained_length, least=1)
    factor = real("factor", factor, least=1)
    return max(1.0, factor * length / trained_length - (factor - 1))


def yarn_range(
    d: int,
    *,
    base: float = 10000.0,
    trained_length: int,
    fast: float = 32.0,
    slow: float = 1.0,
) -> tuple[int, int]:
    """Find the pairs between which YaRN goes over from not slowing to slowing.

    pair(r) = d ln(trained_length / (2 pi r)) / (2 ln base),
    low = floor(pair(fast)), high = ceil(pair(slow)), both kept within 0 and d - 1

    pair(r) is the pair that makes r full turns within the trained length.

    Args:
        d: features of one head that are turned; even.
        base: the base the model was trained with.
        trained_length: how many tokens the model was trained on.
        fast: pairs with more turns than this keep their frequency.
        slow: pairs with fewer turns than this are slowed by the whole scale.

    Returns:
        (low, high), two whole numbers; there is no array, hence no shape.

    Raises:
        ShapeError: d is odd or below 2, or trained_length below 1.
        TypeError: a size is not a whole number, or another argument not one number.
        ValueError: the base is not above 1, slow not above 0, or fast not above slow.

    Cost: none worth counting.
    Source: Peng et al. 2024 (YaRN), section 3.2, and the authors' code.
    Lesson: 08.

    >>> yarn_range(128, trained_length=4096)
    (20, 46)
    """
    d, base = even(d), real("base", base, above=1)
    trained_length = size("trained_length", trained_length, least=1)
    slow = real("slow", slow, above=0)
    fast = real("fast", fast)
    if fast <= slow:
        raise ValueError(f"fast={fast:g} must be above slow={slow:g}.")

    def pair(turns: float) -> float:
        return d * math.log(trained_length / (2 * math.pi * turns)) / math.log(base) / 2

    low, high = math.floor(pair(fast)), math.ceil(pair(slow))
    return min(max(low, 0), d - 1), min(max(high, 0), d - 1)


def yarn_frequencies(
    d: int,
    scale: float,
    *,
    base: float = 10000.0,
    trained_length: int,
    fast: float = 32.0,
    slow: float = 1.0,
) -> Array:
    """Slow the slow pairs by the whole scale, the fast ones not at all.

    w'_i = w_i (1 - ramp_i) + w_i / scale ramp_i,
    where ramp_i = (i - low) / (high - low), kept within 0 and 1

    This is half of YaRN. The other half multiplies the turned queries and the turned
    keys by `yarn_attention_factor(scale)` each.

    Args:
        d: features of one head that are turned; even.
        scale: wanted length over trained length, at least 1.
        base: the base the model was trained with.
        trained_length: how many tokens the model was trained on.
        fast: for `yarn_range`.
        slow: for `yarn_range`.

    Returns:
        The frequencies for `rope(..., frequencies=...)`, (d / 2).

    Raises:
        ShapeError: d is odd or below 2, or trained_length below 1.
        TypeError: a size is not a whole number, or another argument not one number.
        ValueError: the scale is below 1, the base not above 1, slow not above 0, or
            fast not above slow.

    Cost: none worth counting.
    Source: Peng et al. 2024 (YaRN), section 3.2, and the authors' code.
    Lesson: 08.

    >>> slowed = yarn_frequencies(128, 4, trained_length=4096)
    >>> (rope_frequencies(128) / slowed)[[0, 20, 33, 46, 63]].round(3).tolist()
    [1.0, 1.0, 1.6, 4.0, 4.0]
    """
    low, high = yarn_range(
        d, base=base, trained_length=trained_length, fast=fast, slow=slow
    )
    plain = rope_frequencies(d, base)
    # low == high is a step, not a ramp; a width of 0 would divide by 0.
    ramp = np.clip((np.arange(d // 2) - low) / max(high - low, 0.001), 0, 1)
    return np.asarray(plain * (1 - ramp) + plain / _scale(scale) * ramp)


def yarn_attention_factor(scale: float) -> float:
    """Sharpen the scores a little, since more keys spread the weights wider.

    0.1 ln(scale) + 1

    It multiplies the turned queries and the turned keys, so the scores are multiplied
    by its square.

    Args:
        scale: wanted length over trained length, at least 1.

    Returns:
        The factor, a float from 1; there is no array, hence no shape.

    Raises:
        TypeError: the scale is not one number.
        ValueError: the scale is below 1.

    Cost: none worth counting.
    Source: Peng et al. 2024 (YaRN), section 3.4.
    Lesson: 08.

    >>> round(yarn_attention_factor(4), 6)
    1.138629
    """
    return 0.1 * math.log(_scale(scale)) + 1


def _scale(scale: float) -> float:
    return real("scale", scale, least=1)
