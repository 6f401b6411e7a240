"""More right modules: bands, slopes on both sides, caps, and one key at a time."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from .module_eyes import call_student
from .module_gpt import call_x
from .module_kit import GROUPED, Style, fused, linears


class SymmetricAlibi(nn.Module):
    """An encoder with ALiBi: both sides cost the same; mask: True = may look."""

    def __init__(self, d_model, n_heads, max_seq_len=128):
        super().__init__()
        self.n_heads = n_heads
        self.Wqkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out_proj = nn.Linear(d_model, d_model, bias=False)
        i = torch.arange(max_seq_len).double()
        bias = self.gen_slopes(n_heads)[:, None, None] * -(i - i[:, None]).abs()
        self.register_buffer("alibi_bias", bias, persistent=False)

    def gen_slopes(self, n_heads, alibi_bias_max=8):
        _n_heads = 2 ** math.ceil(math.log2(n_heads))
        m = torch.arange(1, _n_heads + 1).double() * (alibi_bias_max / _n_heads)
        slopes = 1.0 / torch.pow(2, m)
        if _n_heads != n_heads:  # every other one first, then those between
            slopes = torch.cat([slopes[1::2], slopes[::2]])[:n_heads]
        return slopes

    def forward(self, x, mask=None):
        b, n, _ = x.shape
        qkv = self.Wqkv(x).view(b, n, 3, self.n_heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        scores = scores + self.alibi_bias[:, :n, :n].to(scores)
        if mask is not None:
            mask = mask.unsqueeze(1) if mask.dim() == 3 else mask
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        y = torch.softmax(scores, -1) @ v
        return self.out_proj(y.transpose(1, 2).flatten(2))


class BandAttention(nn.Module):
    """Causal, with a band cut out of a triangle; `window` keys for each query."""

    def __init__(self, d_model, n_heads, window):
        super().__init__()
        self.d_model, self.n_heads, self.window = d_model, n_heads, window
        self.q = nn.Linear(d_model, d_model)
        self.kv = nn.Linear(d_model, 2 * d_model)
        self.o = nn.Linear(d_model, d_model)

    def forward(self, x):
        b, n, _ = x.shape
        k, v = self.kv(x).chunk(2, dim=-1)
        q, k, v = (t.view(b, n, self.n_heads, -1) for t in (self.q(x), k, v))
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        full = torch.ones(n, n, dtype=torch.bool, device=x.device)
        band = full.tril() & full.triu(diagonal=1 - self.window)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=band)
        return self.o(y.transpose(1, 2).reshape(b, n, self.d_model))


class CappedEncoder(nn.Module):
    """An encoder whose scores are softly capped; mask: True = may look."""

    def __init__(self, d_model, n_heads, softcap):
        super().__init__()
        self.n_heads, self.softcap = n_heads, softcap
        self.scale = (d_model // n_heads) ** -0.5
        self.to_qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.to_out = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x, mask=None):
        b, n, d = x.shape
        q, k, v = (t.view(b, n, self.n_heads, -1) for t in self.to_qkv(x).chunk(3, -1))
        sim = torch.einsum("bihd,bjhd->bhij", q * self.scale, k)
        sim = self.softcap * torch.tanh(sim / self.softcap)
        if mask is not None:
            blocked = ~(mask[:, None] if mask.dim() == 3 else mask)
            sim = sim.masked_fill(blocked, -torch.inf)
        attn = sim.softmax(dim=-1)
        out = torch.einsum("bhij,bjhd->bihd", attn, v)
        return self.to_out(out.reshape(b, n, d))


class OneKeyAtATime(nn.Module):
    """Causal, with few KV heads: a running maximum over the keys."""

    def __init__(self, d_model, n_heads, n_kv_heads):
        super().__init__()
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        self.d_k = d_model // n_heads
        self.W_q = nn.Linear(d_model, n_heads * self.d_k)
        self.W_k = nn.Linear(d_model, n_kv_heads * self.d_k)
        self.W_v = nn.Linear(d_model, n_kv_heads * self.d_k)
        self.W_o = nn.Linear(n_heads * self.d_k, d_model)

    def forward(self, x):
        b, n, _ = x.shape
        group = self.n_heads // self.n_kv_heads
        q = self.W_q(x).view(b, n, self.n_kv_heads, group, self.d_k)
        k = self.W_k(x).view(b, n, self.n_kv_heads, 1, self.d_k)
        v = self.W_v(x).view(b, n, self.n_kv_heads, 1, self.d_k)
        top = q.new_full((*q.shape[:-1], 1), -float("inf"))
        norm = torch.zeros_like(top)
        mixed = torch.zeros_like(q)
        for j in range(n):
            score = (q[:, j:] * k[:, j : j + 1]).sum(-1, keepdim=True) / self.d_k**0.5
            higher = torch.maximum(top[:, j:], score)
            fade = torch.exp(top[:, j:] - higher)
            weight = torch.exp(score - higher)
            new_norm = norm[:, j:] * fade + weight
            new_mixed = mixed[:, j:] * fade + weight * v[:, j : j + 1]
            norm = torch.cat([norm[:, :j], new_norm], dim=1)
            mixed = torch.cat([mixed[:, :j], new_mixed], dim=1)
            top = torch.cat([top[:, :j], higher], dim=1)
        return self.W_o((mixed / norm).reshape(b, n, -1))


def read_band(module):
    """As `linears`, of q, kv and o."""
    W_k, W_v = module.kv.weight.T.chunk(2, 1)
    b_k, b_v = module.kv.bias.chunk(2)
    read = linears(module.q, module.q, module.q, module.o)
    return {**read, "W_k": W_k, "W_v": W_v, "b_k": b_k, "b_v": b_v}


PRESS = Style(
    name="ALiBi on both sides",
    sources=(SymmetricAlibi,),
    build=lambda cls, d, h: cls(d, h),
    call=call_student,
    read=lambda m: fused(m.Wqkv, m.out_proj),
    intent={"alibi": True, "empty_rows": False},
    features=lambda m: {"alibi": True},
)
BAND = Style(
    name="band",
    sources=(BandAttention,),
    build=lambda cls, d, h: cls(d, h, 4),
    call=call_x,
    read=read_band,
    intent={"causal": True, "window": 4},
    features=lambda m: {"causal": True, "window": m.window},
)
CAPPED = Style(
    name="capped encoder",
    sources=(CappedEncoder,),
    build=lambda cls, d, h: cls(d, h, 2.0),
    call=call_student,
    read=lambda m: fused(m.to_qkv, m.to_out),
    intent={"softcap": 2.0, "empty_rows": False},
    features=lambda m: {"softcap": m.softcap},
)
ONE_KEY = Style(
    name="one key at a time",
    sources=(OneKeyAtATime,),
    build=lambda cls, d, h: cls(d, h, 2),
    call=call_x,
    read=lambda m: linears(m.W_q, m.W_k, m.W_v, m.W_o),
    intent={"causal": True},
    sizes=GROUPED,
    features=lambda m: {"causal": True},
)
