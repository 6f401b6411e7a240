"""A gate for each head: a number from 0 to 1 that a token sets for itself.

    mixed_h[t] * sigmoid(x[t] W_g + b_g)[h]         then W_o, as always

A gate that asks a token for its own number cannot see the future, nor fillers. One that
asks for the mean of a text sees both, whatever mask the attention has.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from attnlib.nn.heads import merge_heads
from attnlib.nn.multihead import MultiHeadAttention
from attnlib.nn.shapes import check_tensors
from attnlib.shapes import ShapeError, size


class HeadGate(nn.Module):
    """Turn each head up and down, token by token, before W_o.

    gates = sigmoid(x W_g + b_g), and mixed_h[t] * gates[t, h]

    W_g starts at zeros and b_g so that every gate is at `start`: an attention with a
    gate begins as one without, but for that factor.

    Args:
        d_model: how many numbers a token of x has.
        n_heads: how many heads there are.
        start: the first value of all gates, between 0 and 1.
        device, dtype: of the parameters.

    Raises:
        ShapeError: a size is smaller than 1.
        TypeError: a size is not a whole number.
        ValueError: start is not between 0 and 1.

    Cost: 2 d_model n_heads FLOPs a token, and one product a number of mixed.
    Source: Qiu et al. 2025 (Gated Attention), the head-specific gate after SDPA.
    Lesson: 14.

    >>> gate = HeadGate(6, n_heads=3, start=0.5)
    >>> gate(torch.ones(4, 6), torch.ones(3, 4, 2))[0].tolist()
    [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        start: float = 0.9,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.n_heads = size("n_heads", n_heads, least=1)
        if not 0 < start < 1:
            raise ValueError(f"start must be between 0 and 1, but it is {start}.")
        self.start = start
        self.W_g = nn.Linear(
            size("d_model", d_model, least=1), n_heads, device=device, dtype=dtype
        )
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Set all gates to `start`, whatever the token."""
        self.W_g.weight.zero_()
        self.W_g.bias.fill_(math.log(self.start / (1 - self.start)))

    def gates(self, x: Tensor) -> Tensor:
        """Give the gates of the tokens x, (..., n_q, d_model): (..., n_q, n_heads)."""
        check_tensors({"x": (x, "n_q d_model")}, d_model=self.W_g.in_features)
        return torch.sigmoid(self.W_g(x))

    def forward(self, x: Tensor, mixed: Tensor) -> Tensor:
        """Gate what the heads have mixed.

        Args:
            x: the tokens that ask, (..., n_q, d_model).
            mixed: the heads' results, (..., n_heads, n_q, d_v).

        Returns:
            The same shape as mixed.

        Raises:
            ShapeError, TypeError: tensors that do not fit, named one by one.
        """
        gates = self.gates(x).transpose(-1, -2)[..., None]  # (..., n_heads, n_q, 1)
        check_tensors(
            {"mixed": (mixed, "n_heads n_q d_v")},
            n_heads=self.n_heads,
            n_q=x.shape[-2],
        )
        return mixed * gates


class GatedAttention(nn.Module):
    """A `MultiHeadAttention` with a gate between its heads and W_o.

    out = merge(gate(x, mixed)) W_o + b_o

    It stands where the attention stood, and takes what it takes.

    Args:
        attention: the attention, which stays as it is.
        gate: called as `gate(x, mixed)`, a `HeadGate` for one; it returns mixed, of the
            same shape.

    Raises:
        TypeError: attention is no MultiHeadAttention.

    Cost: that of the attention and of the gate, and W_o once more.
    Source: Qiu et al. 2025.
    Lesson: 14.

    >>> attention = MultiHeadAttention(6, n_heads=3)
    >>> gated = GatedAttention(attention, HeadGate(6, 3, start=0.9))
    >>> gated(torch.ones(1, 4, 6), causal=True).shape
    torch.Size([1, 4, 6])
    """

    def __init__(self, attention: MultiHeadAttention, gate: nn.Module) -> None:
        super().__init__()
        if not isinstance(attention, MultiHeadAttention):
            raise TypeError(
                "GatedAttention takes a MultiHeadAttention, but got a "
                f"{type(attention).__name__}."
            )
        self.attention = attention
        self.gate = gate

    def forward(
        self, x: Tensor, memory: Tensor | None = None, **options: Any
    ) -> Tensor:
        """Attend and gate; everything is as for `MultiHeadAttention`.

        Args:
            x: the tokens that ask, (..., n_q, d_model); they set the gates as well.
            memory: the tokens that are looked at; x if left out.
            options: what else `MultiHeadAttention` takes, but for `return_stages`.

        Returns:
            The result, (..., n_q, d_model).

        Raises:
            ShapeError: the gate returns another shape than it was given.
        """
        stages = self.attention(x, memory, return_stages=True, **options)
        gated = self.gate(x, stages.mixed)
        if gated.shape != stages.mixed.shape:
            raise ShapeError(
                f"the gate was given mixed with shape {tuple(stages.mixed.shape)} and "
                f"returned {tuple(gated.shape)}; the heads must stay, for W_o reads "
                "them side by side."
            )
        out: Tensor = self.attention.W_o(merge_heads(gated))
        return out
