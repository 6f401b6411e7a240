"""Online softmax: attention from one block of keys at a time.

Softmax needs the largest score and the sum of the exponentials, over all keys. Both can
be kept up to date, block by block: when a block brings a larger score, everything so
far was computed with the old one, and is shrunk by exp(old - new).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from attnlib.shapes import check_shapes, numbers, size


@dataclass(frozen=True)
class Online:
    """What is known after some blocks: three things a query, however many the keys.

    The papers call them m, l and O. They are arrays, or tiles of a chip.
    """

    m: Any  #      (..., n_q)       the largest score so far; -inf before the first
    total: Any  #  (..., n_q)       sum of exp(score - m) so far
    mixed: Any  #  (..., n_q, d_v)  sum of exp(score - m) v so far, not yet divided

    @property
    def out(self) -> Any:
        """The attention over the keys so far, (..., n_q, d_v); zeros if there is none.

        This is the only division. It could wait until the last block.
        """
        return self.mixed / np.where(self.total == 0, 1, self.total)[..., None]

    @property
    def log_sum_exp(self) -> Any:
        """m + ln(total): all that the backward pass needs of the scores, (..., n_q)."""
        empty = self.total == 0  # ln(1) stands in for ln(0), and m is -inf there
        return self.m + np.log(np.where(empty, 1, self.total))


def online_start(n_q: int, d_v: int) -> Online:
    """Give the state before the first block: nothing was seen yet.

    m = -inf, total = 0, mixed = 0

    Args:
        n_q: how many queries.
        d_v: how many numbers a value has.

    Returns:
        m (n_q,), total (n_q,) and mixed (n_q, d_v), in float64.

    Raises:
        ShapeError: a size is negative.
        TypeError: a size is not a whole number.

    Cost: n_q (d_v + 2) numbers.
    Source: Milakov and Gimelshein 2018, algorithm 3.
    Lesson: 12.

    >>> online_start(2, 3).m.tolist()
    [-inf, -inf]
    """
    n_q, d_v = size("n_q", n_q), size("d_v", d_v)
    return Online(np.full(n_q, -np.inf), np.zeros(n_q), np.zeros((n_q, d_v)))


def online_step(state: Online, scores: Any, v: Any) -> Online:
    """Take one more block of keys into the state.

    m' = max(m, max_j s_j); total' = exp(m - m') total + sum_j exp(s_j - m');
    mixed' = exp(m - m') mixed + sum_j exp(s_j - m') v_j

    A block whose scores are all -inf changes nothing.

    Args:
        state: what is known so far; arrays, or tiles of a chip.
        scores: scaled and masked scores of the block, (..., n_q, block_k).
        v: values of the block, (..., block_k, d_v).

    Returns:
        The new state; the old one is left as it was.

    Raises:
        Nothing of its own: it is the inner loop. NumPy objects to shapes.

    Cost: 2 n_q block_k d_v FLOPs and n_q (block_k + 1) exponentials.
    Source: Milakov and Gimelshein 2018, algorithm 3; Dao 2023 for `mixed`.
    Lesson: 12.

    >>> state = online_step(online_start(1, 1), np.array([[0.0]]), np.array([[3.0]]))
    >>> state = online_step(state, np.array([[0.0]]), np.array([[5.0]]))
    >>> state.total.tolist(), state.out.tolist()
    ([2.0], [[4.0]])
    """
    m = np.maximum(state.m, scores.max(axis=-1))
    shift = np.where(np.isneginf(m), 0, m)  # -inf - -inf is NaN, -inf - 0 is not
    weights = scores - shift[..., None]
    np.exp(weights, out=weights)  # in place: a second copy would take room on a chip
    shrink = np.exp(state.m - shift)
    total = shrink * state.total + weights.sum(axis=-1)
    return Online(m, total, shrink[..., None] * state.mixed + weights @ v)


def online_attention(
    scores: npt.ArrayLike, v: npt.ArrayLike, block_k: int
) -> tuple[Online, ...]:
    """Mix values by softmax of scores, one block of keys at a time.

    softmax(scores) v = mixed / total after the last block

    Args:
        scores: scaled and masked scores, (n_q, n_k).
        v: values, (n_k, d_v).
        block_k: how many keys a block has; the last one may have fewer.

    Returns:
        The state before the first block and after each. `[-1].out` is the attention.

    Raises:
        ShapeError: scores and v differ in n_k, or block_k is less than 1.
        TypeError: an argument is not an array of numbers, or block_k no whole number.

    Cost: 2 n_q n_k d_v FLOPs and n_q (n_k + n_blocks) exponentials.
    Source: Milakov and Gimelshein 2018; Rabe and Staats 2021.
    Lesson: 12.

    >>> states = online_attention([[0.0, 0.0, -np.inf]], [[3.0], [5.0], [9.0]], 2)
    >>> [state.out.tolist() for state in states]
    [[[0.0]], [[4.0]], [[4.0]]]
    """
    check_shapes({"scores": (scores, "n_q n_k"), "v": (v, "n_k d_v")})
    scores = numbers("scores", scores).astype(np.float64, copy=False)
    v = numbers("v", v).astype(np.float64, copy=False)
    states = [online_start(scores.shape[-2], v.shape[-1])]
    for cols in ranges(scores.shape[-1], block_k):
        block = slice(cols.start, cols.stop)
        states.append(online_step(states[-1], scores[:, block], v[block]))
    return tuple(states)


def ranges(n: int, block: int) -> list[range]:
    """Cut n rows into blocks; the last one may be shorter.

    0..block-1, block..2 block-1, ..., the rest

    Args:
        n: how many rows there are.
        block: how many rows a block has.

    Returns:
        One range a block, none if n is 0.

    Raises:
        ShapeError: n is negative or block less than 1.
        TypeError: a size is not a whole number.

    Cost: none worth counting.
    Source: the names of the course.
    Lesson: 12.

    >>> ranges(5, 2)
    [range(0, 2), range(2, 4), range(4, 5)]
    """
    n, block = size("n", n), size("block", block, least=1)
    return [range(i, min(i + block, n)) for i in range(0, n, block)]
