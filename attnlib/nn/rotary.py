"""RoPE in PyTorch: what `MultiHeadAttention(rotate=...)` is given.

It is `attnlib.positions.rope`, layout "interleaved", for tensors.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attnlib.positions import rope_frequencies
from attnlib.shapes import Array


@dataclass(frozen=True, eq=False)
class Rotary:
    """Turn each pair of features (2 i, 2 i + 1) by its frequency times the position.

    For texts longer than those of the training, frequencies that were slowed take the
    place of those of the base, as in `attnlib.positions.rope`; and YaRN has turned
    vectors multiplied by a factor.

    >>> turn = Rotary(base=10000.0)
    >>> turn(torch.tensor([[1.0, 0.0]]), torch.tensor([2])).tolist()
    [[-0.416146844625473, 0.9092974066734314]]
    >>> slow = Rotary(frequencies=rope_frequencies(2) / 4)
    >>> slow(torch.tensor([[1.0, 0.0]]), torch.tensor([8])).tolist()
    [[-0.416146844625473, 0.9092974066734314]]
    """

    base: float = 10000.0
    frequencies: Array | None = None  # (d / 2); the base has no effect then
    factor: float = 1.0

    def __call__(self, x: Tensor, positions: Tensor) -> Tensor:
        """Turn x, (..., n, d), at positions, (n,) or with the batch axes of x."""
        turns = self.frequencies
        if turns is None:
            turns = rope_frequencies(x.shape[-1], self.base)
        # Angles in float64: in float32 a far position would lose its last digits.
        angles = positions[..., None].double() * torch.from_numpy(turns).to(x.device)
        cos, sin = (f(angles).to(x.dtype) * self.factor for f in (torch.cos, torch.sin))
        a, b = x[..., 0::2], x[..., 1::2]
        turned = torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1)
        return turned.flatten(-2)
