"""Parts of `attnlib.nn` and `torch.nn`, made with weights that are there already."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnlib.nn.multihead import MultiHeadAttention

Pair = tuple[Tensor, Tensor]  # a weight (n_out, n_in), as torch keeps it, and a bias


def linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    """A linear map with this weight, (n_out, n_in), and this bias, (n_out)."""
    n_out, n_in = weight.shape
    part = nn.Linear(n_in, n_out, device="meta")  # empty: nothing is drawn at random
    part.weight, part.bias = fixed(weight), fixed(bias)
    return part


def layer_norm(weight: Tensor, bias: Tensor, eps: float) -> nn.LayerNorm:
    """A normalisation with this gain and this bias, both (d_model)."""
    part = nn.LayerNorm(weight.shape[0], eps=eps, device="meta")
    part.weight, part.bias = fixed(weight), fixed(bias)
    return part


def attention(q: Pair, k: Pair, v: Pair, o: Pair, n_heads: int) -> MultiHeadAttention:
    """Multi-head attention with these four weights and biases."""
    d_model = q[0].shape[1]
    with torch.random.fork_rng(devices=[]):  # the learner's random numbers stay
        part = MultiHeadAttention(d_model, n_heads)
    part.W_q, part.W_k, part.W_v, part.W_o = (linear(*pair) for pair in (q, k, v, o))
    return part


def fixed(weight: Tensor) -> nn.Parameter:
    return nn.Parameter(weight.float(), requires_grad=False)
