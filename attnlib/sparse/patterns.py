"""Patterns of blocks, (n_blocks, n_blocks): which squares are computed."""

from __future__ import annotations

import numpy as np

from attnlib.shapes import Mask, ShapeError, size


def fixed_blocks(
    n_blocks: int, *, n_local: int = 4, n_global: int = 1, causal: bool = False
) -> Mask:
    """Make the fixed pattern: local blocks, and some that represent them everywhere.

    pattern[a, b] = a // n_local == b // n_local, or b % n_local >= n_local - n_global

    The sequence is cut into windows of n_local blocks. A block sees its own window, and
    the last n_global blocks of every window. There are n_blocks / n_local windows, so
    the share of pairs that is left,

    n_local / n_blocks + n_global / n_local - n_global / n_blocks,

    does not fall to zero: with 4 and 1 it stays above a quarter. The cost is a quarter
    of n^2, and still quadratic.

    Args:
        n_blocks: how many blocks the sequence has.
        n_local: how many blocks a window has.
        n_global: how many blocks of each window all others see. In a last window that
            is not full, they are its last ones, too.
        causal: leave out the blocks that come after; a mask must hide the future
            inside the blocks.

    Returns:
        The pattern, boolean, (n_blocks, n_blocks).

    Raises:
        ShapeError: n_local or n_blocks is less than 1, or n_global not from 0 to
            n_local.
        TypeError: a size is not a whole number.

    Cost: n_blocks^2 bytes.
    Source: Child et al. 2019, section 4.3; the defaults are those of DeepSpeed's
        FixedSparsityConfig.
    Lesson: 13.

    >>> fixed_blocks(4, n_local=2, n_global=1).astype(int).tolist()
    [[1, 1, 0, 1], [1, 1, 0, 1], [0, 1, 1, 1], [0, 1, 1, 1]]
    """
    n_blocks = size("n_blocks", n_blocks, least=1)
    n_local = size("n_local", n_local, least=1)
    n_global = size("n_global", n_global)
    if n_global > n_local:
        raise ShapeError(f"n_global={n_global} is larger than n_local={n_local}.")
    b = np.arange(n_blocks)
    window = b // n_local
    ends = np.minimum((window + 1) * n_local, n_blocks)  # where b's window ends
    pattern = (window[:, None] == window) | (b >= ends - n_global)
    if causal:
        pattern &= b <= b[:, None]
    return np.asarray(pattern)


def bigbird_blocks(
    n_blocks: int,
    *,
    n_local: int = 3,
    n_global: int = 2,
    n_random: int = 3,
    rng: np.random.Generator,
) -> Mask:
    """Make BigBird's pattern: neighbours, some blocks that all see, some by chance.

    pattern[a, b] = |a - b| <= n_local // 2, or a < n_global, or b < n_global, or drawn

    Every row but the global ones holds n_local + n_global + n_random blocks at most,
    however long the sequence: the cost grows as n.

    Args:
        n_blocks: how many blocks the sequence has.
        n_local: how many blocks the window has, an odd number.
        n_global: how many blocks at the start see all and are seen by all.
        n_random: how many more blocks each other one sees, drawn among the rest.
        rng: where they are drawn from.

    Returns:
        The pattern, boolean, (n_blocks, n_blocks).

    Raises:
        ShapeError: n_local is even, or a size is negative.
        TypeError: a size is not a whole number.

    Cost: n_blocks^2 bytes.
    Source: Zaheer et al. 2020 (BigBird), section 2.
    Lesson: 13.

    >>> pattern = bigbird_blocks(64, rng=np.random.default_rng(0))
    >>> int(pattern[2:].sum(axis=1).max()), round(float(pattern.mean()), 2)
    (8, 0.15)
    """
    n_blocks, n_local = size("n_blocks", n_blocks), size("n_local", n_local)
    n_global, n_random = size("n_global", n_global), size("n_random", n_random)
    if n_local % 2 == 0:
        raise ShapeError(
            f"n_local={n_local} must be odd: a block, and as many on each side."
        )
    b = np.arange(n_blocks)
    pattern = np.abs(b[:, None] - b) <= n_local // 2
    pattern |= (b < n_global) | (b[:, None] < n_global)
    for row in pattern[n_global:]:
        left_out = np.flatnonzero(~row)
        row[rng.permutation(left_out)[:n_random]] = True
    return np.asarray(pattern)
