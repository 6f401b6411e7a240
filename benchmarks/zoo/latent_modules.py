"""Multi-head latent attention: keys and values come out of a few numbers a token."""

import math

import torch
from torch import nn

from .draw import built, sizes
from .specimen import Specimen


class Latent(nn.Module):
    """Queries, keys and values each by a matrix down and one up, as in DeepSeek-V2.

    `slip` is what goes wrong: "unscaled", "by the latent", "over queries", "unsplit".
    """

    def __init__(self, d_model, n_heads, slip="", fused=False, norm=False, bias=False):
        super().__init__()
        self.n_heads, self.slip, self.fused = n_heads, slip, fused
        self.rank = max(3, d_model // 2 - 1)
        self.q_a_proj = nn.Linear(d_model, self.rank + 1, bias=bias)
        self.q_b_proj = nn.Linear(self.rank + 1, d_model, bias=bias)
        self.kv_a_proj = nn.Linear(d_model, self.rank, bias=bias)
        self.kv_a_layernorm = nn.LayerNorm(self.rank) if norm else nn.Identity()
        if fused:
            self.kv_b_proj = nn.Linear(self.rank, 2 * d_model, bias=bias)
        else:
            self.k_b_proj = nn.Linear(self.rank, d_model, bias=bias)
            self.v_b_proj = nn.Linear(self.rank, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)

    def forward(self, x, mask=None):
        latent = self.kv_a_layernorm(self.kv_a_proj(x))
        if self.fused:
            k, v = self.kv_b_proj(latent).chunk(2, dim=-1)
        else:
            k, v = self.k_b_proj(latent), self.v_b_proj(latent)
        q = self.q_b_proj(self.q_a_proj(x))
        q, k, v = (self.split(a) for a in (q, k, v))
        width = self.rank if self.slip == "by the latent" else q.shape[-1]
        scores = q @ k.transpose(-2, -1)
        if self.slip != "unscaled":
            scores = scores / math.sqrt(width)
        if mask is not None:
            look = mask if mask.dim() == 2 else mask[:, None]
            scores = scores.masked_fill(~look, -torch.inf)
        weights = scores.softmax(dim=-2 if self.slip == "over queries" else -1)
        out = torch.nan_to_num(weights) @ v
        return self.o_proj(out.transpose(1, 2).flatten(2))

    def split(self, x):
        batch, n, width = x.shape
        if self.slip == "unsplit":
            return x.reshape(batch, self.n_heads, n, width // self.n_heads)
        return x.view(batch, n, self.n_heads, -1).transpose(1, 2)


class Named(nn.Module):
    """The names of the paper: W_DKV, W_UK, W_UV; queries have a matrix of their own."""

    def __init__(self, d_model, n_heads, scale=True):
        super().__init__()
        self.n_heads, self.scale = n_heads, scale
        self.W_q = nn.Linear(d_model, d_model, bias=False)
        self.W_dkv = nn.Linear(d_model, max(3, d_model // 3), bias=False)
        self.W_uk = nn.Linear(self.W_dkv.out_features, d_model, bias=False)
        self.W_uv = nn.Linear(self.W_dkv.out_features, d_model, bias=False)
        self.W_o = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x, causal=False):
        batch, n, width = x.shape
        latent = self.W_dkv(x)
        q, k, v = (
            a.view(batch, n, self.n_heads, -1).transpose(1, 2)
            for a in (self.W_q(x), self.W_uk(latent), self.W_uv(latent))
        )
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k)
        if self.scale:
            scores = scores * (width // self.n_heads) ** -0.5
        if causal:
            future = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(future, -torch.inf)
        out = torch.einsum("bhqk,bhkd->bqhd", scores.softmax(dim=-1), v)
        return self.W_o(out.reshape(batch, n, width))


def _specimen(name, codes, made):
    def make(rng, dtype):
        d_model, n_heads = sizes(rng)
        return built(rng, dtype, lambda: made(d_model, n_heads))

    return Specimen(name, frozenset(codes), make, style="latent")


SPECIMENS = (
    _specimen("right: latent", (), Latent),
    _specimen(
        "right: latent, norm, keys and values in one",
        (),
        lambda d, h: Latent(d, h, fused=True, norm=True),
    ),
    _specimen(
        "right: latent, biases", (), lambda d, h: Latent(d, h, norm=True, bias=True)
    ),
    _specimen("right: latent, the paper's names", (), Named),
    _specimen("M01 module: latent", {"M01"}, lambda d, h: Latent(d, h, "unscaled")),
    _specimen(
        "M01 module: latent, the paper's names",
        {"M01"},
        lambda d, h: Named(d, h, scale=False),
    ),
    _specimen(
        "M04 module: latent",
        {"M04"},
        lambda d, h: Latent(d, h, "over queries", fused=True),
    ),
    _specimen(
        "M20 module: latent", {"M20"}, lambda d, h: Latent(d, h, "unsplit", norm=True)
    ),
)
