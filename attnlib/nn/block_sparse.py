"""Attention where only some blocks of the score matrix are computed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy.typing as npt
import torch
from torch import Tensor

from attnlib.nn.shapes import short
from attnlib.nn.slab_inputs import along, check
from attnlib.nn.slabs import Tile, computing
from attnlib.shapes import ShapeError, size


def block_sparse_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    blocks: Tensor | npt.ArrayLike,
    *,
    block: int = 128,
    causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """Let every block of queries look at the blocks of keys that a pattern allows.

    out_i = softmax over j of (q_i k_j / sqrt(d_k)) v_j, where
    blocks[i // block, j // block], and j <= n_k - n_q + i if causal

    It is exactly `scaled_dot_product` with the mask `masks.blocks(blocks, block,
    n_q=n_q, n_k=n_k)`. Blocks that are not allowed are never computed. A query without
    a key gets zeros, and so do its gradients.

    Args:
        q: queries, (..., n_heads, n_q, d_k).
        k: keys, (..., n_kv_heads, n_k, d_k). n_heads is a multiple of n_kv_heads, and
            neighbouring query heads share a KV head, which is not repeated.
        v: values, (..., n_kv_heads, n_k, d_v).
        blocks: boolean, (n_blocks_q, n_blocks_k), a tensor or an array such as
            `attnlib.sparse.fixed_blocks` makes. True = may look.
        block: how many queries, and how many keys, a block holds; the last one may
            hold fewer.
        causal: hide what comes after a query, inside the blocks, too.
        scale: factor on the raw scores; 1 / sqrt(d_k) if left out.

    Returns:
        The result, (..., n_heads, n_q, d_v), in the dtype of q. Half precision is
        computed in float32.

    Raises:
        ShapeError: q, k and v do not fit together, a block holds nothing, or there are
            not as many blocks as the tokens fill.
        TypeError: q, k or v is not a floating tensor, they differ in dtype, the
            blocks are not boolean, or the block's size is not a whole number.
        NotImplementedError: a second derivative is asked for.

    Cost: the share of True in `blocks` of 2 n_q n_k (d_k + d_v) FLOPs forward, 2.5
        times that backward. Memory grows as n, and with the longest row of blocks.
    Source: Child et al. 2019 (Sparse Transformer); Dao et al. 2022 (FlashAttention),
        section 3.3.
    Lesson: 13.

    >>> q, v = torch.zeros(4, 2), torch.arange(4.0)[:, None]
    >>> diagonal = [[True, False], [False, True]]
    >>> block_sparse_attention(q, q, v, diagonal, block=2)[:, 0].tolist()
    [0.5, 0.5, 2.5, 2.5]
    """
    group = check(q, k, v)
    block = size("block", block, least=1)
    pattern = torch.as_tensor(blocks)
    if pattern.dtype != torch.bool:
        raise TypeError(
            "blocks must be boolean (True = may look), but their dtype is "
            f"{short(pattern)}."
        )
    n_q, n_k = q.shape[-2], k.shape[-2]
    wanted = (-(-n_q // block), -(-n_k // block))
    if pattern.shape != wanted:
        raise ShapeError(
            f"n_q={n_q} and n_k={n_k} fill {wanted} blocks of block={block}, but "
            f"blocks has shape {tuple(pattern.shape)}."
        )
    rows: list[list[bool]] = pattern.tolist()
    plan = Blocks(n_q, n_k, block, rows, causal, computing(q), q.device)
    name = "block_sparse_attention"
    return along(plan, q, k, v, group=group, scale=scale, name=name)


@dataclass(frozen=True)
class Blocks:
    """The tiles of a pattern of blocks: called, it yields one for each row of blocks.

    The blocks of a row are put side by side in one slab; neighbours are one run.
    """

    n_q: int
    n_k: int
    block: int
    pattern: list[list[bool]]
    causal: bool
    dtype: torch.dtype
    device: torch.device

    def __call__(self) -> Iterator[Tile]:
        """Yield one tile for each row of blocks that may look at something."""
        for number, row in enumerate(self.pattern):
            first = number * self.block
            rows = slice(first, min(first + self.block, self.n_q))
            runs = self._runs(row, rows)
            if runs:
                yield Tile(rows, runs, self._bias(rows, runs))

    def _runs(self, row: list[bool], rows: slice) -> tuple[slice, ...]:
        end = self.n_k
        if self.causal:  # the last of the queries stands at this key
            end = min(end, rows.stop + self.n_k - self.n_q)
        runs: list[slice] = []
        for number, look in enumerate(row):
            start, stop = number * self.block, min((number + 1) * self.block, end)
            if not look or start >= stop:
                continue
            if runs and runs[-1].stop == start:
                start = runs.pop().start
            runs.append(slice(start, stop))
        return tuple(runs)

    def _bias(self, rows: slice, runs: tuple[slice, ...]) -> Tensor | None:
        """0 where a query may look at a key of the slab, -inf elsewhere."""
        first, last = (self.n_k - self.n_q + row for row in (rows.start, rows.stop))
        if not self.causal or runs[-1].stop <= first + 1:
            return None
        p = torch.arange(first, last, device=self.device)[:, None]
        parts = [torch.arange(r.start, r.stop, device=self.device) for r in runs]
        j = torch.cat(parts)
        bias = torch.zeros(len(p), len(j), dtype=self.dtype, device=self.device)
        return bias.masked_fill_(j > p, -torch.inf)
