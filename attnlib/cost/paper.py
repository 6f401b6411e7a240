"""The FlashAttention paper's own numbers, and which of them a count can reach.

Its figure 2 reports, for GPT-2 medium on an A100, forward and backward: 66.6 and 75.2
GFLOPs, and 40.3 and 4.4 GB of HBM traffic. The shape it states is n = 1024, d = 64, 16
heads, batch 64. How they were counted is not said there. The counting here was found
afterwards: it reaches the traffic; the GFLOPs are not those of the shape.
"""

from __future__ import annotations

from dataclasses import dataclass

from attnlib.shapes import size


@dataclass(frozen=True)
class Pass:
    """One time that a matrix goes through HBM."""

    what: str
    phase: str  #   "forward" or "backward"
    bytes: float  # for each score, where a number takes 2
    part: str = ""  # "mask" or "dropout", if it is there only with these


# The usual attention in float16, one kernel for each step. Masks are added, as GPT-2
# does it; what dropout dropped is kept as one byte a weight.
PASSES = (
    Pass("scores written", "forward", 2),
    Pass("mask added: read and written", "forward", 4, "mask"),
    Pass("softmax: read and written", "forward", 4),
    Pass("dropout: read and written", "forward", 4, "dropout"),
    Pass("dropout's flags written", "forward", 1, "dropout"),
    Pass("weights read for the product with v", "forward", 2),
    Pass("weights read for grad_v", "backward", 2),
    Pass("grad_weights written", "backward", 2),
    Pass("dropout: read and written", "backward", 4, "dropout"),
    Pass("dropout's flags read", "backward", 1, "dropout"),
    Pass("softmax: weights and grad_weights read, grad_scores written", "backward", 6),
    Pass("grad_scores read for grad_q and for grad_k", "backward", 4),
)


def standard_gpu_bytes(
    batch: int,
    n_heads: int,
    n: int,
    d: int,
    *,
    mask: bool = False,
    dropout: bool = False,
) -> int:
    """Count the HBM bytes of the usual attention on a GPU, forward and backward.

    the sum of `PASSES` for each score, and 12 reads or writes of n d numbers

    The twelve: q, k, v and the result in the forward pass; grad_out twice, q, k, v and
    three gradients in the backward pass. Products are taken to read their factors once.

    Args:
        batch: how many sequences.
        n_heads: how many heads.
        n: how many tokens.
        d: how many numbers a query, key or value has.
        mask: whether a mask is added to the scores.
        dropout: whether weights are dropped.

    Returns:
        Bytes; there is no array, hence no shape.

    Raises:
        ShapeError: a size is negative.
        TypeError: a size is not a whole number.

    Cost: none worth counting.
    Source: Dao et al. 2022, algorithms 0 and 3, and the kernels of PyTorch; inferred.
    Lesson: 12.

    >>> round(standard_gpu_bytes(64, 16, 1024, 64, mask=True, dropout=True) / 1e9, 2)
    40.27
    """
    heads, n, d = (
        size("batch", batch) * size("n_heads", n_heads),
        size("n", n),
        size("d", d),
    )
    wanted = {"": True, "mask": mask, "dropout": dropout}
    per_score = sum(p.bytes for p in PASSES if wanted[p.part])
    return int(heads * (n * n * per_score + 12 * n * d * 2))


def flash_gpu_bytes(batch: int, n_heads: int, n: int, d: int, *, block_k: int) -> int:
    """Count the HBM bytes of the first FlashAttention, forward and backward.

    forward (3 T + 1) n d numbers, backward (4 T + 4) n d, where T = ceil(n / block_k)

    Its outer loop goes over blocks of keys: for each, q is read, the result read (but
    for the first) and written. Backward: q, grad_out and grad_q read, grad_q written.
    What each query keeps beside (two numbers) is left out.

    Args:
        batch: how many sequences.
        n_heads: how many heads.
        n: how many tokens.
        d: how many numbers a query, key or value has.
        block_k: how many keys a block has.

    Returns:
        Bytes in float16; there is no array, hence no shape.

    Raises:
        ShapeError: a size is negative, or block_k less than 1.
        TypeError: a size is not a whole number.

    Cost: none worth counting.
    Source: Dao et al. 2022, algorithms 1 and 4; block_k = 256 is inferred.
    Lesson: 12.

    >>> round(flash_gpu_bytes(64, 16, 1024, 64, block_k=256) / 1e9, 2)
    4.43
    """
    heads, n, d = (
        size("batch", batch) * size("n_heads", n_heads),
        size("n", n),
        size("d", d),
    )
    times = -(-n // size("block_k", block_k, least=1))
    return heads * n * d * 2 * ((3 * times + 1) + (4 * times + 4))


@dataclass(frozen=True)
class Reported:
    """A number of the paper beside ours."""

    quantity: str
    reported: float
    ours: float
    how: str  # what ours counts

    @property
    def ratio(self) -> float:
        """Ours over the reported one."""
        return self.ours / self.reported

    @property
    def fits(self) -> bool:
        """Whether the two are within 5 %."""
        return abs(self.ratio - 1) <= 0.05


def flash_figure_2() -> tuple[Reported, ...]:
    """Set the numbers of the paper's figure 2 beside what their shape gives.

    n = 1024, d = 64, 16 heads, batch 64, float16, mask and dropout, both directions

    Args:
        Nothing is asked.

    Returns:
        One row a number; there is no array, hence no shape.

    Raises:
        Nothing.

    Cost: none worth counting.
    Source: Dao et al. 2022, figure 2, left.
    Lesson: 12.

    >>> [row.quantity for row in flash_figure_2() if not row.fits]
    ['standard, GFLOPs', 'flash, GFLOPs']
    """
    shape = (64, 16, 1024, 64)
    product = 64 * 16 * 2 * 1024 * 1024 * 64 / 1e9  # one product of the six
    standard = standard_gpu_bytes(*shape, mask=True, dropout=True) / 1e9
    flash = flash_gpu_bytes(*shape, block_k=256) / 1e9
    return (
        Reported("standard, GB", 40.3, standard, "18 passes of the scores"),
        Reported("flash, GB", 4.4, flash, "keys outside, blocks of 256 keys"),
        Reported("GB, standard over flash", 40.3 / 4.4, standard / flash, "the two"),
        Reported("standard, GFLOPs", 66.6, 6 * product, "six products"),
        Reported("flash, GFLOPs", 75.2, 7 * product, "seven products"),
        Reported(
            "GFLOPs, flash less standard",
            75.2 - 66.6,
            product / 16,
            "one product, a sixteenth of it: a guess at how FLOPs were weighted",
        ),
    )
