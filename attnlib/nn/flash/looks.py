"""Who may look at whom, one tile at a time: the whole matrix is never made.

A tile that nobody may see is skipped. One where everybody sees everything costs nothing
more. Only the tiles between get numbers to add to their scores; those of the causal
triangle are alike all along the diagonal, and are made once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

Part = tuple[int, slice]  # an entry of the batch, and some of its KV heads
EVERYTHING = slice(None)


class Tile(NamedTuple):
    """Some queries and some keys, of a few heads."""

    number: int  # of the block of keys
    part: Part
    queries: slice
    keys: slice
    hidden: Tensor | None  # to add to the scores, where not all may look at all


class Looks:
    """The mask of one call, (batch, n_kv_heads, group, n_q, n_k), and its causality."""

    def __init__(
        self,
        mask: Tensor | None,
        causal: bool,
        sizes: tuple[int, int],
        block_k: int,
        like: tuple[torch.dtype, torch.device],
    ) -> None:
        n_q, self.n_k = sizes
        self.ahead = self.n_k - n_q  # query i stands at key i + ahead
        self.mask, self.causal, self.block_k = mask, causal, block_k
        self.dtype, self.device = like
        # What is kept of a triangle is as large as its scores, or half of it: bfloat16
        # goes as far down as float32.
        single = self.dtype == torch.float32
        self._small = torch.bfloat16 if single else self.dtype
        self._triangles: dict[tuple[int, int, int], Tensor] = {}
        self._summary: tuple[object, list[tuple[int, int]]] = (None, [])

    def tiles(self, part: Part, queries: slice) -> Iterator[Tile]:
        """The tiles for a block of queries; what none of them may see is skipped."""
        last = min(self.n_k, queries.stop + self.ahead) if self.causal else self.n_k
        known = None if self.mask is None else self._blocks(part, queries)
        for number, first in enumerate(range(0, last, self.block_k)):
            keys = slice(first, min(first + self.block_k, self.n_k))
            some, every = (1, 1) if known is None else known[number]
            if some:
                hidden = self._hidden(part, queries, keys, not every)
                yield Tile(number, part, queries, keys, hidden)

    def _hidden(
        self, part: Part, queries: slice, keys: slice, masked: bool
    ) -> Tensor | None:
        """What to add to the scores of a tile, unless everybody sees everything."""
        first = queries.start + self.ahead - keys.start  # where the first query stands
        n_q, n_k = queries.stop - queries.start, keys.stop - keys.start
        crossing = self.causal and first < n_k - 1
        if not masked or self.mask is None:
            return self._triangle(n_q, n_k, first) if crossing else None
        look = cut(self.mask, part, queries, keys)
        if crossing:
            look = look & self._before(n_q, n_k, first)
        return self._lowest(look, self.dtype)

    def _blocks(self, part: Part, queries: slice) -> list[tuple[int, int]]:
        """For every block of keys: may some query see some of it, and all see all."""
        assert self.mask is not None
        entry, heads = part
        varies = [n > 1 for n in self.mask.shape]
        known = (
            entry if varies[0] else 0,
            heads if varies[1] else 0,
            queries if varies[3] else 0,
        )
        if self._summary[0] != known:
            look = cut(self.mask, part, queries, EVERYTHING).view(torch.uint8)
            some, every = look.amax((0, 1, 2)), look.amin((0, 1, 2))
            short = -self.n_k % self.block_k  # of the last block
            blocks = [
                pad(x.expand(self.n_k), (0, short), value=value).view(-1, self.block_k)
                for x, value in ((some, 0), (every, 1))
            ]
            pairs = torch.stack([blocks[0].amax(1), blocks[1].amin(1)], 1).tolist()
            self._summary = known, [(some, every) for some, every in pairs]
        return self._summary[1]

    def _triangle(self, n_q: int, n_k: int, first: int) -> Tensor:
        key = (n_q, n_k, first)
        if key not in self._triangles:
            self._triangles[key] = self._lowest(self._before(*key), self._small)
        return self._triangles[key]

    def _before(self, n_q: int, n_k: int, first: int) -> Tensor:
        """True where a key comes no later than its query."""
        every = torch.ones(n_q, n_k, dtype=torch.bool, device=self.device)
        return every.tril_(first)

    def _lowest(self, look: Tensor, dtype: torch.dtype) -> Tensor:
        """0 for what may be seen, and the lowest number for what may not.

        Adding is many times faster than `masked_fill`. The number is finite, so that no
        inf - inf can come of it.
        """
        return look.to(dtype).sub_(1).mul_(torch.finfo(dtype).max)


def cut(x: Tensor, part: Part, queries: slice, keys: slice) -> Tensor:
    """What belongs to a tile, of something with a 1 on the axes where it is alike."""
    entry, heads = part
    n_batch, n_heads, _, n_q, n_k = x.shape
    return x[
        entry if n_batch > 1 else 0,
        heads if n_heads > 1 else EVERYTHING,
        :,
        queries if n_q > 1 else EVERYTHING,
        keys if n_k > 1 else EVERYTHING,
    ]
