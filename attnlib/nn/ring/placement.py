"""Which tokens of a text lie on which rank, and what one rank sees of another.

Every rank holds equally many tokens. Without a mask it does not matter which. With a
causal mask it does: the later a token stands, the more it sees.

    Blocks   rank 0 has 0 1 2 3, rank 1 has 4 5 6 7     the last rank works most
    Stripes  rank 0 has 0 2 4 6, rank 1 has 1 3 5 7     nearly even, at every step
    Zigzag   rank 0 has 0 1 6 7, rank 1 has 2 3 4 5     even, at every step

In each of them what a rank sees of another is a piece of the queries, a piece of the
keys, and everything or a causal triangle: no mask has to be made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from attnlib.cost import allowed_pairs
from attnlib.shapes import ShapeError, size


@dataclass(frozen=True)
class Look:
    """What the queries of one rank see of the keys of another; of both, a piece."""

    queries: tuple[int, int]  # from, to; others see nothing
    keys: tuple[int, int]
    causal: bool  # a triangle, aligned bottom-right as in `attnlib.masks`; or all

    @property
    def pairs(self) -> int:
        """How many pairs of a query and a key there are."""
        n_q, n_k = (last - first for first, last in (self.queries, self.keys))
        return allowed_pairs(n_q, n_k, causal=self.causal)


@dataclass(frozen=True)
class Placement(ABC):
    """n tokens on n_ranks ranks, the same number on each."""

    n: int
    n_ranks: int
    PIECES = 1  # of the text that a rank holds, at least

    def __post_init__(self) -> None:
        size("n", self.n, least=1)
        pieces = self.PIECES * size("n_ranks", self.n_ranks, least=1)
        if self.n % pieces:
            ranks = "n_ranks" if self.PIECES == 1 else f"{self.PIECES} n_ranks"
            raise ShapeError(
                f"n={self.n} tokens are not a multiple of {ranks} = {pieces}; pad the "
                f"text at its end."
            )

    @property
    def n_local(self) -> int:
        """How many tokens a rank holds."""
        return self.n // self.n_ranks

    @abstractmethod
    def _tokens(self, rank: int) -> Tensor:
        """What `tokens` returns."""

    @abstractmethod
    def _before(self, rank: int, other: int) -> Look | None:
        """What `look` returns under a causal mask."""

    def tokens(self, rank: int) -> Tensor:
        """Where in the text the tokens of a rank stand, rising: (n_local,)."""
        return self._tokens(self._known("rank", rank))

    def look(
        self, rank: int, other: int, *, causal: bool, n_q: int | None = None
    ) -> Look | None:
        """What `rank` sees of the keys of `other`, if anything.

        It has n_q queries, if there is no mask and they are not as many as its keys.
        """
        rank, other = self._known("rank", rank), self._known("other", other)
        if causal:
            return self._before(rank, other)
        return Look((0, self.n_local if n_q is None else n_q), (0, self.n_local), False)

    def pairs(self, *, causal: bool) -> list[list[int]]:
        """The pairs that each rank computes in each step of the ring: [rank][step]."""
        table = []
        for rank in range(self.n_ranks):
            others = ((rank - step) % self.n_ranks for step in range(self.n_ranks))
            looks = (self.look(rank, other, causal=causal) for other in others)
            table.append([look.pairs if look else 0 for look in looks])
        return table

    def share(self, x: Tensor, rank: int) -> Tensor:
        """The rows of a rank: (..., n, d) to (..., n_local, d)."""
        if x.ndim < 2 or x.shape[-2] != self.n:
            raise ShapeError(
                f"{self} places n={self.n} tokens, but x has shape {tuple(x.shape)}."
            )
        return x[..., self.tokens(rank), :]

    def whole(self, shares: list[Tensor]) -> Tensor:
        """The rows of all ranks in the order of the text: (..., n, d)."""
        if len(shares) != self.n_ranks:
            raise ShapeError(
                f"{self} has n_ranks={self.n_ranks}, but {len(shares)} shares came."
            )
        places = torch.cat([self.tokens(rank) for rank in range(self.n_ranks)])
        return torch.cat(shares, dim=-2)[..., places.argsort(), :]

    def _known(self, name: str, rank: int) -> int:
        rank = size(name, rank)
        if rank >= self.n_ranks:
            raise ShapeError(
                f"{self} has ranks 0 to {self.n_ranks - 1}, but {name}={rank}."
            )
        return rank


class Blocks(Placement):
    """Rank r holds the r-th block of the text."""

    def _tokens(self, rank: int) -> Tensor:
        return torch.arange(self.n_local) + rank * self.n_local

    def _before(self, rank: int, other: int) -> Look | None:
        """All of what came before, a triangle of its own block, nothing after."""
        every = (0, self.n_local)
        return Look(every, every, rank == other) if other <= rank else None


class Stripes(Placement):
    """Rank r holds tokens r, r + n_ranks, r + 2 n_ranks, and so on."""

    def _tokens(self, rank: int) -> Tensor:
        return torch.arange(rank, self.n, self.n_ranks)

    def _before(self, rank: int, other: int) -> Look | None:
        """A triangle: with its diagonal, if `other` comes first in every stripe."""
        late = int(other > rank)  # then query i sees the keys before i, and not key i
        if late == self.n_local:
            return None
        return Look((late, self.n_local), (0, self.n_local - late), True)


class Zigzag(Placement):
    """Of 2 n_ranks pieces, rank r holds the r-th from the front and from the end."""

    PIECES = 2

    def _tokens(self, rank: int) -> Tensor:
        half = torch.arange(self.n_local // 2)
        from_end = 2 * self.n_ranks - 1 - rank
        return torch.cat([half + len(half) * piece for piece in (rank, from_end)])

    def _before(self, rank: int, other: int) -> Look | None:
        """All see the first half of an outer rank; the second half all of an inner."""
        every, middle = (0, self.n_local), self.n_local // 2
        if rank == other:
            return Look(every, every, True)
        if other < rank:
            return Look(every, (0, middle), False)
        return Look((middle, self.n_local), every, False)
