"""Masks: who may look at whom.

The convention of the whole course, said once:

- A mask is boolean, and **True = may look**.
- It broadcasts to the scores, (..., n_q, n_k). With heads, that is
  (batch, n_heads, n_q, n_k), so a mask that differs by batch needs an axis of 1 for
  the heads; `padding` and `document` make it.
- Query i stands at position n_k - n_q + i: the last query beside the last key. This
  is called bottom-right alignment. It is the one that fits a cache: one new query
  against all keys so far sees them all.
- Masks are combined with & (both must allow) and | (either may allow).
- A query that may look at nothing gets zeros.

Others chose otherwise, which is where many mistakes come from:

==========================  ===================  ===========================
who                         True means           causal, when n_q != n_k
==========================  ===================  ===========================
attnlib                     may look             bottom-right
SDPA, `attn_mask`           may look             `is_causal`: top-left
nn.MultiheadAttention       must not look        the mask you hand over
Keras, `attention_mask`     may look             `use_causal_mask`: top-left
flash-attn from 2.1         takes no such mask   bottom-right
==========================  ===================  ===========================

SDPA is `torch.nn.functional.scaled_dot_product_attention`. Handed a float mask, it
adds it to the scores: a mask of 0.0 and 1.0 hides nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.shapes import Mask, ShapeError, size


def causal(n_q: int, n_k: int | None = None) -> Mask:
    """Let every query look at itself and at what came before.

    may_look[i, j] = j <= n_k - n_q + i

    With more queries than keys, the first n_q - n_k queries stand before the first
    key: their rows are empty.

    Args:
        n_q: how many queries.
        n_k: how many keys; n_q if left out.

    Returns:
        The mask, (n_q, n_k).

    Raises:
        ShapeError: a size is negative.
        TypeError: a size is not a whole number.

    Cost: n_q n_k bytes.
    Source: Vaswani et al. 2017, section 3.2.3; alignment as in flash-attn 2.1.
    Lesson: 03.

    >>> causal(2, 3).astype(int).tolist()
    [[1, 1, 0], [1, 1, 1]]
    """
    q_positions, k_positions = _positions(n_q, n_k)
    return k_positions <= q_positions


def padding(lengths: npt.ArrayLike, n_k: int) -> Mask:
    """Hide the keys behind the end of each sequence of a batch.

    may_look[b, 0, 0, j] = j < lengths[b]

    The two axes of 1 stand for heads and queries, so that the mask broadcasts to
    (batch, n_heads, n_q, n_k). Without heads, take `padding(...)[:, 0]`.

    Args:
        lengths: how many real keys each sequence has, (batch,); other shapes are kept.
        n_k: how many keys the longest sequence has, padding included.

    Returns:
        The mask, (batch, 1, 1, n_k).

    Raises:
        ShapeError: a length is negative or larger than n_k.
        TypeError: the lengths or n_k are not whole numbers.

    Cost: batch n_k bytes.
    Source: the names of the course.
    Lesson: 03.

    >>> mask = padding([2, 3], 3)
    >>> mask.shape, mask[:, 0, 0].astype(int).tolist()
    ((2, 1, 1, 3), [[1, 1, 0], [1, 1, 1]])
    """
    n_k = size("n_k", n_k)
    array = np.asarray(lengths)
    if array.size == 0:  # np.asarray([]) is float64, and no length is wrong
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(
            f"lengths must be whole numbers, but their dtype is {array.dtype}."
        )
    wrong = (array < 0) | (array > n_k)
    if wrong.any():
        found = array[wrong].flat[0]
        raise ShapeError(
            f"lengths must lie between 0 and n_k={n_k}, but one of them is {found}."
        )
    return np.asarray(np.arange(n_k) < array[..., None, None, None])


def window(
    n_q: int, n_k: int | None = None, *, left: int, right: int = 0, dilation: int = 1
) -> Mask:
    """Let every query look at its neighbours only.

    may_look[i, j] = p - left <= j <= p + right, where p = n_k - n_q + i

    Both ends are included: a query sees `left` keys before it, itself, and `right`
    keys after it, so left + 1 + right keys away from the ends. `right=0` is causal.
    Dilated, it sees as many, `dilation` tokens apart: at p - dilation and so on.

    Args:
        n_q: how many queries.
        n_k: how many keys; n_q if left out.
        left: how many keys before its own position a query sees.
        right: how many keys after its own position a query sees.
        dilation: how far apart the keys stand that a query sees.

    Returns:
        The mask, (n_q, n_k).

    Raises:
        ShapeError: a size is negative, or the dilation less than 1.
        TypeError: a size is not a whole number.

    Cost: n_q n_k bytes.
    Source: Beltagy et al. 2020 (Longformer), section 3.1; counts as in flash-attn.
    Lesson: 03, 13.

    >>> window(3, left=1).astype(int).tolist()
    [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    """
    left, right = size("left", left), size("right", right)
    dilation = size("dilation", dilation, least=1)
    q_positions, k_positions = _positions(n_q, n_k)
    steps, rest = np.divmod(k_positions - q_positions, dilation)
    return np.asarray((rest == 0) & (-left <= steps) & (steps <= right))


def global_tokens(n_q: int, n_k: int | None = None, *, n_global: int) -> Mask:
    """Let the first tokens look at all, and be looked at by all.

    may_look[i, j] = j < n_global or p < n_global, where p = n_k - n_q + i

    Alone it is a cross; use it with a window: `window(...) | global_tokens(...)`, and
    `& causal(...)` for text that is written on.

    Args:
        n_q: how many queries.
        n_k: how many keys; n_q if left out.
        n_global: how many tokens at the start are global.

    Returns:
        The mask, (n_q, n_k).

    Raises:
        ShapeError: a size is negative.
        TypeError: a size is not a whole number.

    Cost: n_q n_k bytes.
    Source: Beltagy et al. 2020 (Longformer), section 3.1.
    Lesson: 13.

    >>> global_tokens(3, n_global=1).astype(int).tolist()
    [[1, 1, 1], [1, 0, 0], [1, 0, 0]]
    """
    n_global = size("n_global", n_global)
    q_positions, k_positions = _positions(n_q, n_k)
    return (k_positions < n_global) | (q_positions < n_global)


def prefix(n_q: int, n_prefix: int) -> Mask:
    """Let everyone look at the whole prefix, and be causal after it.

    may_look[i, j] = j <= i or j < n_prefix

    Args:
        n_q: how many tokens, prefix included; each is a query and a key.
        n_prefix: how many of them are the prefix (the question, the picture).

    Returns:
        The mask, (n_q, n_q).

    Raises:
        ShapeError: a size is negative, or n_prefix larger than n_q.
        TypeError: a size is not a whole number.

    Cost: n_q^2 bytes.
    Source: Raffel et al. 2020 (T5), figure 3, right.
    Lesson: 03.

    >>> prefix(3, 2).astype(int).tolist()
    [[1, 1, 0], [1, 1, 0], [1, 1, 1]]
    """
    n_q, n_prefix = size("n_q", n_q), size("n_prefix", n_prefix)
    if n_prefix > n_q:
        raise ShapeError(f"n_prefix={n_prefix} is larger than n_q={n_q}.")
    return causal(n_q) | (np.arange(n_q) < n_prefix)


def document(ids: npt.ArrayLike) -> Mask:
    """Keep documents that share one sequence from looking at each other.

    may_look[i, j] = ids[i] == ids[j]

    A batch gets an axis of 1 for the heads, as in `padding`. Combine with `causal`
    for packed training text.

    Args:
        ids: the number of the document each token belongs to, (n,) or (batch, n).

    Returns:
        The mask, (n, n) for one sequence, (batch, 1, n, n) for a batch.

    Raises:
        ShapeError: ids has no axis.
        TypeError: ids are not whole numbers.

    Cost: batch n^2 bytes.
    Source: Krell et al. 2021 (packing).
    Lesson: 03.

    >>> document([7, 7, 4]).astype(int).tolist()
    [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    >>> document([[7, 7, 4], [1, 2, 2]]).shape
    (2, 1, 3, 3)
    """
    array = np.asarray(ids)
    if array.ndim == 0:
        raise ShapeError(f"ids needs the axis (n) at its end, but it is {ids!r}.")
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"ids must be whole numbers, but their dtype is {array.dtype}.")
    if array.ndim > 1:
        array = array[..., None, :]  # (..., 1, n): the axis of 1 for the heads
    return np.asarray(array[..., :, None] == array[..., None, :])


def blocks(
    pattern: npt.ArrayLike,
    block_q: int,
    block_k: int | None = None,
    *,
    n_q: int | None = None,
    n_k: int | None = None,
) -> Mask:
    """Expand a pattern over blocks to a mask over tokens.

    may_look[i, j] = pattern[i // block_q, j // block_k]

    Args:
        pattern: boolean, (..., n_blocks_q, n_blocks_k). True = may look.
        block_q: how many queries a block holds.
        block_k: how many keys a block holds; block_q if left out.
        n_q: how many queries there are, where the last block is not full.
        n_k: how many keys there are, where the last block is not full.

    Returns:
        The mask, (..., n_q, n_k); without n_q and n_k all blocks are full.

    Raises:
        ShapeError: the pattern has too few axes, a block holds nothing, or n_q or n_k
            does not end inside the last block.
        TypeError: the pattern is not boolean, or a size is not a whole number.

    Cost: n_q n_k bytes.
    Source: Child et al. 2019 (Sparse Transformer).
    Lesson: 03.

    >>> blocks([[True, False], [True, True]], 1, 2, n_k=3).astype(int).tolist()
    [[1, 1, 0], [1, 1, 1]]
    """
    array = np.asarray(pattern)
    if array.dtype != np.bool_:
        raise TypeError(f"pattern must be boolean, but its dtype is {array.dtype}.")
    if array.ndim < 2:
        raise ShapeError(
            "pattern needs the axes (n_blocks_q, n_blocks_k) at its end, but its shape "
            f"is {array.shape}."
        )
    block_q = size("block_q", block_q, least=1)
    block_k = block_q if block_k is None else size("block_k", block_k, least=1)
    n_q = _cut("n_q", n_q, "block_q", block_q, array.shape[-2])
    n_k = _cut("n_k", n_k, "block_k", block_k, array.shape[-1])
    return array.repeat(block_q, axis=-2).repeat(block_k, axis=-1)[..., :n_q, :n_k]


def _positions(
    n_q: int, n_k: int | None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Where the queries stand, (n_q, 1), and the keys, (n_k,): bottom-right."""
    n_q = size("n_q", n_q)
    n_k = n_q if n_k is None else size("n_k", n_k)
    q_positions = n_k - n_q + np.arange(n_q, dtype=np.int64)
    return q_positions[:, None], np.arange(n_k, dtype=np.int64)


def _cut(name: str, n: int | None, block_name: str, block: int, n_blocks: int) -> int:
    """How many tokens to keep: all, or as many as end inside the last block."""
    full = n_blocks * block
    if n is None:
        return full
    n = size(name, n)
    if n > full or n + block <= full:
        raise ShapeError(
            f"{name}={n} does not end inside the last of {n_blocks} blocks of "
            f"{block_name}={block}."
        )
    return n
