"""Dropout that can be computed again: what is dropped follows from its place alone.

Backward must drop the same weights as forward, and to remember which would take n_q n_k
of memory. So no generator draws one number after the other; each is made from the seed,
the head, the query and the key, by mixing their bits. That gives the same numbers on
every device, whatever the tiles.
"""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import Tensor

Bits = TypeVar("Bits", int, Tensor)

# Odd numbers that mix well: the constants of C. Wellons' search for such ("lowbias32").
FIRST, SECOND = 0x7FEB352D, 0x846CA68B
WORD = 2**32


class Drop:
    """Which weights of one call are dropped."""

    def __init__(
        self,
        rate: float,
        seed: int,
        heads: tuple[int, ...],  # batch, n_kv_heads, group
        sizes: tuple[int, int],
        device: torch.device,
    ) -> None:
        n_q, n_k = sizes
        one = _mix(seed % WORD + _mix(seed // WORD % WORD))
        two = _mix(one + 1)
        n_rows = n_q
        for n in heads:
            n_rows *= n
        of_row = _numbers(n_rows, one, two, device)
        self._of_query = of_row.view(*heads, n_q, 1)
        self._of_key = _numbers(n_k, two, one, device)
        # As whole numbers from -2^31 up, every word is as likely as any other.
        self._least_dropped = min(round((1 - rate) * WORD) - WORD // 2, WORD // 2 - 1)
        self.grow = 1 / (1 - rate)  # what stays must weigh as much as all did

    def kept(self, part: tuple[int, slice], queries: slice, keys: slice) -> Tensor:
        """1 where a weight of a tile stays, else 0: (heads, group * n_q, n_k)."""
        entry, heads = part
        bits = self._of_query[entry, heads, :, queries].flatten(1, 2)
        bits = bits ^ self._of_key[keys]
        bits.mul_(_signed(FIRST))
        bits.bitwise_xor_(bits >> 15)
        bits.mul_(_signed(SECOND))
        return bits.lt_(self._least_dropped)


def _numbers(n: int, one: int, two: int, device: torch.device) -> Tensor:
    """n words that look random, for the numbers from 0 to n - 1."""
    words = _mix(_mix(torch.arange(n, device=device) + one) ^ two)
    return (words - WORD // 2).to(torch.int32)


def _mix(x: Bits) -> Bits:
    """A word whose every bit depends on every bit of another."""
    x = x % WORD
    x = (x ^ x >> 16) * FIRST % WORD
    x = (x ^ x >> 15) * SECOND % WORD
    return x ^ x >> 16


def _signed(word: int) -> int:
    """The same 32 bits, as int32 reads them."""
    return word - WORD if word >= WORD // 2 else word
