"""FLOPs: a multiplication and an addition count as two, and only products count.

A product (m, k) @ (k, n) takes 2 m k n FLOPs. Softmax, masks and norms are left out, as
they are by `torch.utils.flop_counter`: they cost time, but few FLOPs.
"""

from __future__ import annotations

from dataclasses import dataclass

from attnlib.cost.pairs import allowed_pairs
from attnlib.cost.sizes import head_sizes
from attnlib.shapes import size


@dataclass(frozen=True)
class AttentionFlops:
    """FLOPs of the products of one attention, forward."""

    projections: int  #  with W_q, W_k, W_v and W_o
    scores: int  #       q k^T
    mixing: int  #       weights v

    @property
    def core(self) -> int:
        """What grows with n^2: scores and mixing."""
        return self.scores + self.mixing

    @property
    def forward(self) -> int:
        """All of them."""
        return self.projections + self.core

    @property
    def backward(self) -> int:
        """Twice the forward pass: each product gives a gradient to both its factors."""
        return 2 * self.forward

    @property
    def flash_backward(self) -> int:
        """The same, and the scores once more, since they were not kept."""
        return self.backward + self.scores

    @property
    def training(self) -> int:
        """Forward and backward."""
        return self.forward + self.backward


def attention_flops(
    n_q: int,
    d_model: int,
    n_heads: int,
    *,
    n_k: int | None = None,
    n_kv_heads: int | None = None,
    d_k: int | None = None,
    d_v: int | None = None,
    d_memory: int | None = None,
    causal: bool = False,
    batch: int = 1,
) -> AttentionFlops:
    """Count the FLOPs of one multi-head attention.

    projections = 8 n d_model^2 and core = 4 n^2 d_model, if nothing is left to choose

    The core does not depend on how many heads there are, nor on how many of them share
    keys. The two parts are equal at n = 2 d_model.

    Args:
        n_q: how many queries.
        d_model: how many numbers a token has.
        n_heads: how many query heads.
        n_k: how many keys; n_q if left out, and then they come from the same tokens.
        n_kv_heads: how many key and value heads; n_heads if left out.
        d_k: numbers in a query or key of one head; d_model / n_heads if left out.
        d_v: numbers in a value of one head; d_k if left out.
        d_memory: numbers in a token that gives keys and values; d_model if left out.
        causal: count only the pairs that a causal mask leaves, as a kernel that skips
            the others would compute them.
        batch: how many sequences.

    Returns:
        The parts; there is no array, hence no shape.

    Raises:
        ShapeError: sizes that do not fit, named one by one.
        TypeError: a size is not a whole number.

    Cost: none worth counting.
    Source: Vaswani et al. 2017, table 1, with its constants.
    Lesson: 11.

    >>> flops = attention_flops(128, d_model=64, n_heads=4)
    >>> flops.projections, flops.core, flops.backward
    (4194304, 4194304, 16777216)
    """
    n_q, batch = size("n_q", n_q), size("batch", batch)
    n_k = n_q if n_k is None else size("n_k", n_k)
    h = head_sizes(d_model, n_heads, n_kv_heads, d_k, d_v)
    d_memory = d_model if d_memory is None else size("d_memory", d_memory)
    of_queries = n_q * h.d_model * h.n_heads * (h.d_k + h.d_v)  # W_q and W_o
    of_keys = n_k * d_memory * h.n_kv_heads * (h.d_k + h.d_v)  # W_k and W_v
    pairs = batch * h.n_heads * allowed_pairs(n_q, n_k, causal=causal)
    return AttentionFlops(
        projections=2 * batch * (of_queries + of_keys),
        scores=2 * pairs * h.d_k,
        mixing=2 * pairs * h.d_v,
    )


def mlp_flops(
    n: int, d_model: int, d_mlp: int, *, gated: bool = False, batch: int = 1
) -> int:
    """Count the FLOPs of the MLP of a layer, forward.

    4 n d_model d_mlp; 6 n d_model d_mlp with a gate

    Args:
        n: how many tokens.
        d_model: how many numbers a token has.
        d_mlp: how many numbers it has in the middle.
        gated: whether there is a third matrix, as in SwiGLU.
        batch: how many sequences.

    Returns:
        The count, an int; there is no array, hence no shape.

    Raises:
        ShapeError: a size is negative.
        TypeError: a size is not a whole number.

    Cost: none worth counting.
    Source: Vaswani et al. 2017, equation 2; Shazeer 2020 for the gate.
    Lesson: 11.

    >>> mlp_flops(10, 8, 32), mlp_flops(10, 8, 32, gated=True)
    (10240, 15360)
    """
    n, batch = size("n", n), size("batch", batch)
    d_model, d_mlp = size("d_model", d_model), size("d_mlp", d_mlp)
    return 2 * batch * n * d_model * d_mlp * (3 if gated else 2)
