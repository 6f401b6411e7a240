"""HBM traffic: bytes that attention moves, in tiles and untiled, as formulas.

They are what the meters of `attnlib.tiles.Chip` show, to the byte. For one head, with
no mask but the causal one.
"""

from __future__ import annotations

from dataclasses import dataclass

from attnlib.shapes import size


@dataclass(frozen=True)
class Traffic:
    """Bytes between HBM and the chip."""

    forward_read: int
    forward_written: int
    backward_read: int
    backward_written: int

    @property
    def forward(self) -> int:
        """Both directions of the forward pass."""
        return self.forward_read + self.forward_written

    @property
    def backward(self) -> int:
        """Both directions of the backward pass."""
        return self.backward_read + self.backward_written

    @property
    def total(self) -> int:
        """Everything."""
        return self.forward + self.backward


def flash_traffic(
    n_q: int,
    n_k: int,
    d_k: int,
    d_v: int | None = None,
    *,
    block_q: int,
    block_k: int,
    causal: bool = False,
    itemsize: int = 4,
) -> Traffic:
    """Count the bytes that `flash_forward` and `flash_backward` move for one head.

    forward: n_q d_k + ceil(n_q / block_q) n_k (d_k + d_v) read, n_q (d_v + 1) written

    With M numbers of SRAM, block_q is about M / d, and the second term n^2 d^2 / M: the
    FlashAttention paper's theorem. The backward pass keeps the keys on the chip, and q,
    grad_out and grad_q pass by once for each block of keys.

    Args:
        n_q: how many queries.
        n_k: how many keys.
        d_k: how many numbers a query or a key has.
        d_v: how many numbers a value has; d_k if left out.
        block_q: how many queries a tile has.
        block_k: how many keys a tile has.
        causal: whether tiles that a causal mask hides are left out.
        itemsize: bytes a number takes.

    Returns:
        Bytes read and written, forward and backward; there is no array, hence no shape.

    Raises:
        ShapeError: a size is negative, or a block size less than 1.
        TypeError: a size is not a whole number.

    Cost: one step for each tile of queries.
    Source: Dao et al. 2022, theorem 2; Dao 2023 for the order of the loops.
    Lesson: 12.

    >>> flash_traffic(1024, 1024, 64, block_q=64, block_k=64, itemsize=8).forward_read
    17301504
    """
    n_q, n_k, d_k, d_v = _sizes(n_q, n_k, d_k, d_v)
    block_q, block_k = size("block_q", block_q, 1), size("block_k", block_k, 1)
    keys_passing = queries_passing = first_visits = 0
    for i in range(0, n_q, block_q):
        rows = min(block_q, n_q - i)
        # Keys up to the last query of the tile, in whole blocks.
        past = max(0, n_k - n_q + i + rows) if causal else n_k
        blocks = -(-past // block_k)
        keys_passing += min(blocks * block_k, n_k)
        queries_passing += rows * blocks
        first_visits += rows if blocks else 0
    forward_read = n_q * d_k + keys_passing * (d_k + d_v)
    of_delta = 2 * n_q * d_v
    # Each visit reads q, grad_out, log_sum_exp, delta, and grad_q but for the first.
    visits = queries_passing * (d_k + d_v + 2) + (queries_passing - first_visits) * d_k
    return Traffic(
        forward_read=itemsize * forward_read,
        forward_written=itemsize * n_q * (d_v + 1),
        backward_read=itemsize * (of_delta + n_k * (d_k + d_v) + visits),
        backward_written=itemsize * (n_q + queries_passing * d_k + n_k * (d_k + d_v)),
    )


def untiled_traffic(
    n_q: int,
    n_k: int,
    d_k: int,
    d_v: int | None = None,
    *,
    block_q: int,
    block_k: int,
    itemsize: int = 4,
) -> Traffic:
    """Count the bytes that `untiled_forward` and `untiled_backward` move for one head.

    forward: that of `flash_traffic` and 4 n_q n_k; backward: 7 n_q n_k and products

    Args:
        n_q: how many queries.
        n_k: how many keys.
        d_k: how many numbers a query or a key has.
        d_v: how many numbers a value has; d_k if left out.
        block_q: rows of a block of the products.
        block_k: columns of a block of the products.
        itemsize: bytes a number takes.

    Returns:
        Bytes read and written, forward and backward; there is no array, hence no shape.

    Raises:
        ShapeError: a size is negative, or a block size less than 1.
        TypeError: a size is not a whole number.

    Cost: none worth counting.
    Source: Dao et al. 2022, algorithms 0 and 3.
    Lesson: 12.

    >>> untiled = untiled_traffic(1024, 1024, 64, block_q=64, block_k=64)
    >>> flash = flash_traffic(1024, 1024, 64, block_q=64, block_k=64)
    >>> untiled.forward - flash.forward == 4 * (4 * 1024**2 - 1024)
    True
    """
    n_q, n_k, d_k, d_v = _sizes(n_q, n_k, d_k, d_v)
    of_rows = -(-n_q // size("block_q", block_q, 1))
    of_cols = -(-n_k // size("block_k", block_k, 1))
    pairs = n_q * n_k
    backward_read = (
        5 * pairs  # weights twice, grad_weights once, grad_scores twice
        + n_q * d_v * (1 + of_cols)  # grad_out: for grad_weights, for grad_v
        + n_k * (d_k + d_v) * of_rows  # k for grad_q, v for grad_weights
        + n_q * d_k * of_cols  # q for grad_k
    )
    return Traffic(
        forward_read=itemsize * (2 * pairs + n_q * d_k + of_rows * n_k * (d_k + d_v)),
        forward_written=itemsize * (2 * pairs + n_q * d_v),
        backward_read=itemsize * backward_read,
        backward_written=itemsize * (2 * pairs + n_q * d_k + n_k * (d_k + d_v)),
    )


def _sizes(n_q: int, n_k: int, d_k: int, d_v: int | None) -> tuple[int, int, int, int]:
    d_k = size("d_k", d_k)
    d_v = d_k if d_v is None else size("d_v", d_v)
    return size("n_q", n_q), size("n_k", n_k), d_k, d_v
