"""The weights of `nn.MultiheadAttention`, read into a module of ours.

It keeps W_q, W_k and W_v in one matrix if key and value are as wide as the query, and
in three otherwise; the biases are always in one vector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from attnlib.nn.multihead import MultiHeadAttention


def arguments(module: nn.MultiheadAttention) -> dict[str, Any]:
    """What `MultiHeadAttention` must be called with to have the same sizes."""
    if not isinstance(module, nn.MultiheadAttention):
        raise TypeError(
            "from_torch takes an nn.MultiheadAttention, but it was given a "
            f"{type(module).__name__}."
        )
    for name, used in (
        ("add_bias_kv", module.bias_k is not None or module.bias_v is not None),
        ("add_zero_attn", module.add_zero_attn),
    ):
        if used:
            raise ValueError(
                f"the nn.MultiheadAttention was made with {name}=True, which appends "
                "a key that is no token; there is no such key here."
            )
    return {
        "d_model": module.embed_dim,
        "n_heads": module.num_heads,
        "d_memory": module.kdim,
        "d_values": module.vdim,
        "bias": module.in_proj_bias is not None,
        "dropout": module.dropout,
        "device": module.out_proj.weight.device,
        "dtype": module.out_proj.weight.dtype,
    }


@torch.no_grad()
def copy_weights(module: nn.MultiheadAttention, ours: MultiHeadAttention) -> None:
    """Copy all weights and biases; nothing is shared afterwards."""
    parts = (ours.W_q, ours.W_k, ours.W_v)
    if module.in_proj_weight is not None:
        weights = module.in_proj_weight.chunk(3)
    else:
        weights = (
            module.q_proj_weight,
            module.k_proj_weight,
            module.v_proj_weight,
        )
    for part, weight in zip(parts, weights, strict=True):
        part.weight.copy_(weight)
    if module.in_proj_bias is not None:
        for part, vector in zip(parts, module.in_proj_bias.chunk(3), strict=True):
            part.bias.copy_(vector)
    ours.W_o.weight.copy_(module.out_proj.weight)
    if module.out_proj.bias is not None:
        ours.W_o.bias.copy_(module.out_proj.bias)
