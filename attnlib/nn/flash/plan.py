"""What flash attention knows before it starts: sizes, tiles, who may look where.

Inside, a tensor has the axes (batch, n_kv_heads, group, n, d): the queries of all heads
that share a KV head are one group, so that its keys are read once for all of them and
never repeated. Keys and values have no axis for the group.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from attnlib.nn.flash.drop import Drop
from attnlib.nn.flash.looks import Looks, Part, Tile, cut

LOG2_E = math.log2(math.e)  # exp(x) = exp2(x * LOG2_E), and exp2 is the faster one


@dataclass(frozen=True)
class Plan:
    """One call, without its q, k, v and bias."""

    batch: int
    n_kv_heads: int
    group: int
    n_q: int
    n_k: int
    scale: float
    block_q: int
    block_k: int
    n_heads: int  # KV heads that are computed together
    back: tuple[int, int]  # block_q and n_heads of backward
    looks: Looks
    drop: Drop | None
    dtype: torch.dtype  # what is computed in: float32, or float64
    log_too: bool  # whether anybody wants the log-sum-exp: backward, or the caller

    @property
    def parts(self) -> Iterator[Part]:
        """The heads that are computed together, as one tensor."""
        for entry in range(self.batch):
            for first in range(0, self.n_kv_heads, self.n_heads):
                yield entry, slice(first, min(first + self.n_heads, self.n_kv_heads))

    @property
    def blocks(self) -> Iterator[slice]:
        """The queries, a block at a time."""
        for first in range(0, self.n_q, self.block_q):
            yield slice(first, min(first + self.block_q, self.n_q))

    def backward(self) -> Plan:
        """The same with the tiles of backward."""
        block_q, n_heads = self.back
        return replace(self, block_q=block_q, n_heads=n_heads)

    def room(self, like: Tensor) -> Tensor:
        """Memory for one tile, to be used again for every other."""
        rows = self.group * self.block_q
        return like.new_empty(self.n_heads, rows, self.block_k, dtype=self.dtype)

    def rows(self, x: Tensor, part: Part, queries: slice) -> Tensor:
        """What belongs to a block of queries: (heads, group * n_q, d)."""
        return x[*part, :, queries].to(self.dtype).flatten(1, 2)

    def by_query(self, rows: Tensor) -> Tensor:
        """The same rows with their group apart: (heads, group, n_q, d)."""
        n_heads, n, d = rows.shape
        return rows.view(n_heads, self.group, n // self.group, d)

    def tiles_of(self, x: Tensor, part: Part) -> tuple[Tensor, ...]:
        """All keys, or values, a tile at a time: (heads, n_k, d) each."""
        return torch.split(x[part].to(self.dtype), self.block_k, dim=-2)

    def scores(
        self, room: Tensor, q: Tensor, k: Tensor, tile: Tile, bias: Tensor | None
    ) -> Tensor:
        """The scores of a tile, for exp2: (heads, group * n_q, n_k)."""
        scores = product(room, q, k.mT, alpha=self.scale * LOG2_E)
        if bias is not None:
            added = cut(bias, tile.part, tile.queries, tile.keys).to(self.dtype)
            self.by_query(scores).add_(added, alpha=LOG2_E)
        if tile.hidden is not None:
            self.by_query(scores).add_(tile.hidden)
        return scores


def product(room: Tensor, a: Tensor, b: Tensor, alpha: float = 1.0) -> Tensor:
    """alpha * a @ b, written where there is room for it; the last tiles are smaller."""
    shape = (a.shape[0], a.shape[1], b.shape[2])
    if room.shape != shape:
        room = room[: shape[0], : shape[1], : shape[2]]
    return room.baddbmm_(a, b, beta=0, alpha=alpha)
