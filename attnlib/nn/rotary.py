"""RoPE in PyTorch: what `MultiHeadAttention(rotate=...)` is given.

It is `attnlib.positions.rope`, layout "interleaved", for tensors.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attnlib.positions import rope_frequencies


@dataclass(frozen=True)
class Rotary:
    """Turn each pair of features (2 i, 2 i + 1) by its frequency times the position.

    >>> turn = Rotary(base=10000.0)
    >>> turn(torch.tensor([[1.0, 0.0]]), torch.tensor([2])).tolist()
    [[-0.416146844625473, 0.9092974066734314]]
    """

    base: float = 10000.0

    def __call__(self, x: Tensor, positions: Tensor) -> Tensor:
        """Turn x, (..., n, d), at positions, (n,) or with the batch axes of x."""
        turns = torch.from_numpy(rope_frequencies(x.shape[-1], self.base))
        # Angles in float64: in float32 a far position would lose its last digits.
        angles = positions[..., None].double() * turns.to(x.device)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        a, b = x[..., 0::2], x[..., 1::2]
        turned = torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1)
        return turned.flatten(-2)
