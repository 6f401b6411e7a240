"""Blocks of queries, each with the blocks of keys that a pattern allows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from attnlib.attention import scaled_dot_product
from attnlib.shapes import Array, ShapeError, size
from attnlib.sparse.inputs import checked


@dataclass(frozen=True)
class Blocks:
    """The result of `blocks`, and what it took."""

    out: Array  #   (..., n_q, d_v)
    n_pairs: int  # pairs of a query and a key that look at each other, all computed


def blocks(
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    pattern: npt.ArrayLike,
    block_q: int,
    block_k: int | None = None,
    *,
    scale: float | None = None,
) -> Blocks:
    """Let every block of queries look at the blocks of keys that a pattern allows.

    out_a = softmax(q_a K^T / sqrt(d_k)) V, where K and V hold the blocks b that
    pattern[a, b] allows

    The allowed blocks of keys are put side by side, and there it is plain attention.
    It equals `scaled_dot_product` under `masks.blocks(pattern, block_q, block_k)`. A
    block of queries without keys gets zeros.

    Args:
        q: queries, (..., n_q, d_k).
        k: keys, (..., n_k, d_k).
        v: values, (..., n_k, d_v).
        pattern: boolean, (n_blocks_q, n_blocks_k). True = may look.
        block_q: how many queries a block holds; the last one may hold fewer.
        block_k: how many keys a block holds; block_q if left out.
        scale: factor on the raw scores; 1 / sqrt(d_k) if left out.

    Returns:
        The result, (..., n_q, d_v), and the pairs counted.

    Raises:
        ShapeError: q, k and v do not fit together, a block holds nothing, or there are
            not as many blocks as the tokens fill.
        TypeError: an argument is not an array of numbers, or the pattern not boolean.

    Cost: the share of True in the pattern of 2 n_q n_k (d_k + d_v) FLOPs, and memory
        for one row of blocks.
    Source: Child et al. 2019 (Sparse Transformer); Zaheer et al. 2020 (BigBird),
        appendix D, for the gathering.
    Lesson: 13.

    >>> q, v = np.zeros((4, 2)), np.eye(4)
    >>> result = blocks(q, q, v, np.eye(2, dtype=bool), 2)
    >>> result.out[0].tolist(), result.n_pairs
    ([0.5, 0.5, 0.0, 0.0], 8)
    """
    q, k, v, scale = checked(q, k, v, scale)
    n_q, n_k = q.shape[-2], k.shape[-2]
    block_q = size("block_q", block_q, least=1)
    block_k = block_q if block_k is None else size("block_k", block_k, least=1)
    allowed = np.asarray(pattern)
    if allowed.dtype != np.bool_:
        raise TypeError(f"pattern must be boolean, but its dtype is {allowed.dtype}.")
    wanted = (-(-n_q // block_q), -(-n_k // block_k))
    if allowed.shape != wanted:
        raise ShapeError(
            f"n_q={n_q} and n_k={n_k} fill {wanted} blocks of block_q={block_q} and "
            f"block_k={block_k}, but the pattern has shape {allowed.shape}."
        )
    batch = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    out = np.zeros((*batch, n_q, v.shape[-1]), np.result_type(q, k, v))
    n_pairs = 0
    for number, row in enumerate(allowed):
        rows = slice(number * block_q, min((number + 1) * block_q, n_q))
        keys = np.flatnonzero(row.repeat(block_k)[:n_k])  # those of this row
        slab = k[..., keys, :], v[..., keys, :]
        mine = scaled_dot_product(q[..., rows, :], *slab, scale=scale)
        out[..., rows, :] = mine.out
        n_pairs += (rows.stop - rows.start) * len(keys)
    return Blocks(out, n_pairs)
