"""Ring attention: what each rank sends, as a formula."""

from __future__ import annotations

from dataclasses import dataclass

from attnlib.shapes import ShapeError, size


@dataclass(frozen=True)
class RingTraffic:
    """Bytes that one rank sends to the next; it receives as many."""

    step: int  #      one block of keys and values
    forward: int  #   n_ranks - 1 of them
    backward: int  #  as many again, and n_ranks blocks of gradients

    @property
    def total(self) -> int:
        """Both passes."""
        return self.forward + self.backward


def ring_traffic(
    n: int,
    n_ranks: int,
    n_kv_heads: int,
    d_k: int,
    d_v: int | None = None,
    *,
    batch: int = 1,
    itemsize: int = 4,
    grad_itemsize: int | None = None,
) -> RingTraffic:
    """Count the bytes that each rank sends in one ring attention.

    step = batch n / n_ranks n_kv_heads (d_k + d_v) itemsize
    forward = (n_ranks - 1) step;  backward = (n_ranks - 1) step + n_ranks step'

    The first block is at home, so keys and values make one hop less than there are
    ranks. Gradients go home, so they make all hops; they may be wider (step').

    Args:
        n: tokens of the whole text.
        n_ranks: how many ranks share them.
        n_kv_heads: key and value heads; queries do not travel.
        d_k: numbers in a key of one head.
        d_v: numbers in a value of one head; d_k if left out.
        batch: how many texts.
        itemsize: bytes of a number of k and v.
        grad_itemsize: bytes of a number of their gradients; the larger of itemsize and
            4 if left out, as `attnlib.nn.ring` has it.

    Returns:
        Bytes a step, forward and backward; there is no array, hence no shape.

    Raises:
        ShapeError: a size is negative, or n not a multiple of n_ranks.
        TypeError: a size is not a whole number.

    Cost: none worth counting.
    Source: Liu, Zaharia and Abbeel 2023, section 3.
    Lesson: 16.

    >>> ring_traffic(8, 4, 1, 3, 5, itemsize=8)
    RingTraffic(step=128, forward=384, backward=896)
    >>> ring_traffic(8, 1, 1, 3, 5).total
    0
    """
    n, n_ranks = size("n", n), size("n_ranks", n_ranks, least=1)
    if n % n_ranks:
        raise ShapeError(f"n={n} is not a multiple of n_ranks={n_ranks}.")
    d_k = size("d_k", d_k)
    width = d_k + (d_k if d_v is None else size("d_v", d_v))
    numbers = size("batch", batch) * n // n_ranks * size("n_kv_heads", n_kv_heads)
    itemsize = size("itemsize", itemsize)
    if grad_itemsize is None:
        grad_itemsize = max(4, itemsize)
    step = numbers * width * itemsize
    of_gradients = numbers * width * size("grad_itemsize", grad_itemsize)
    others = n_ranks - 1
    home = n_ranks if others else 0
    return RingTraffic(step, others * step, others * step + home * of_gradients)
