"""Right modules in the style of vision models, and of cross-attention."""

from __future__ import annotations

from typing import Any

import torch
from torch import einsum, nn

from .module_gpt import call_x
from .module_kit import Probe, Style, fused, linears


class Attention(nn.Module):
    def __init__(self, dim, num_heads=8, qkv_bias=True, proj_drop=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = dim // num_heads
        self.scale = self.head_dim**-0.5
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim)
        self.proj_drop = nn.Dropout(proj_drop)

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, self.head_dim)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        q = q * self.scale
        attn = q @ k.transpose(-2, -1)
        attn = attn.softmax(dim=-1)
        x = attn @ v
        x = x.transpose(1, 2).reshape(B, N, C)
        return self.proj_drop(self.proj(x))


class CrossAttention(nn.Module):
    """Looks at a context, whose padding `context_mask` (batch, n_k) marks."""

    def __init__(self, dim, heads=8, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_kv = nn.Linear(dim, dim * 2, bias=False)
        self.to_out = nn.Sequential(nn.Linear(dim, dim), nn.Dropout(dropout))

    def forward(self, x, context=None, context_mask=None):
        b, n, _, h = *x.shape, self.heads
        context = x if context is None else context
        q = self.to_q(x)
        k, v = self.to_kv(context).chunk(2, dim=-1)
        q, k, v = (t.reshape(b, t.shape[1], h, -1).transpose(1, 2) for t in (q, k, v))
        sim = einsum("b h i d, b h j d -> b h i j", q, k) * self.scale
        if context_mask is not None:
            keep = context_mask[:, None, None, :]
            sim = sim.masked_fill(~keep, -torch.finfo(sim.dtype).max)
        sim = sim - sim.amax(dim=-1, keepdim=True)
        attn = sim.softmax(dim=-1)
        out = einsum("b h i j, b h j d -> b h i d", attn, v)
        out = out.transpose(1, 2).reshape(b, n, -1)
        return self.to_out(out)


class Pretrained(nn.Module):
    """A thin coat over nn.MultiheadAttention, as many write it."""

    def __init__(self, d_model, nhead):
        super().__init__()
        self.nhead = nhead
        self.attn = nn.MultiheadAttention(d_model, nhead, batch_first=True)

    def forward(self, x, key_padding_mask=None):
        out, _ = self.attn(
            x, x, x, key_padding_mask=key_padding_mask, need_weights=False
        )
        return out


class StudentAttention(nn.Module):
    """Head by head, item by item, as in a first exercise."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.q_linear = nn.Linear(d_model, d_model)
        self.k_linear = nn.Linear(d_model, d_model)
        self.v_linear = nn.Linear(d_model, d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, mask=None):
        results = []
        for item in range(x.shape[0]):
            q, k, v = self.q_linear(x), self.k_linear(x), self.v_linear(x)
            heads = []
            for h in range(self.n_heads):
                part = slice(h * self.d_head, (h + 1) * self.d_head)
                scores = q[item][:, part] @ k[item][:, part].T
                scores = scores / self.d_head**0.5
                if mask is not None:
                    allowed = mask if mask.dim() == 2 else mask[item]
                    scores = scores.masked_fill(~allowed, float("-inf"))
                weights = scores.softmax(-1)
                weights = torch.nan_to_num(weights, nan=0.0)
                heads.append(weights @ v[item][:, part])
            results.append(torch.cat(heads, dim=-1))
        return self.out(torch.stack(results))


def call_context(module: Any, probe: Probe) -> Any:
    """Call forward(x, context, context_mask)."""
    if probe.mask is not None:
        return None
    return module(probe.x, probe.memory, probe.padding)


def call_padding(module: Any, probe: Probe) -> Any:
    """Call forward(x, key_padding_mask) with True = padding."""
    if probe.mask is not None or probe.memory is not None:
        return None
    hidden = None if probe.padding is None else ~probe.padding
    return module(probe.x, hidden)


def call_student(module: Any, probe: Probe) -> Any:
    """Call forward(x, mask) with a mask (batch, n, n)."""
    if probe.memory is not None:
        return None
    mask = probe.mask
    if probe.padding is not None:
        padding = probe.padding[:, None, :]
        mask = padding if mask is None else mask & padding
    if mask is not None:
        mask = mask.expand(-1, probe.x.shape[1], -1)
    return module(probe.x, mask)


def read_cross(module: Any) -> dict[str, Any]:
    """As `linears`, of to_q, to_kv and to_out."""
    W_k, W_v = module.to_kv.weight.T.chunk(2, 1)
    out = module.to_out[0]
    W_q, W_o = module.to_q.weight.T, out.weight.T
    return {"W_q": W_q, "W_k": W_k, "W_v": W_v, "W_o": W_o, "b_o": out.bias}


def read_torch(module: Any) -> dict[str, Any]:
    """As `fused`, of nn.MultiheadAttention."""
    theirs = module.attn
    matrices = theirs.in_proj_weight.T.chunk(3, 1)
    vectors = theirs.in_proj_bias.chunk(3)
    read = {f"W_{name}": W for name, W in zip("qkv", matrices, strict=True)}
    read |= {f"b_{name}": b for name, b in zip("qkv", vectors, strict=True)}
    return {**read, "W_o": theirs.out_proj.weight.T, "b_o": theirs.out_proj.bias}


VIT = Style(
    name="ViT fused qkv",
    sources=(Attention,),
    build=lambda cls, d, h: cls(d, h),
    call=call_x,
    read=lambda m: fused(m.qkv, m.proj),
)
CROSS = Style(
    name="cross-attention to_q to_kv",
    sources=(CrossAttention,),
    build=lambda cls, d, h: cls(d, h),
    call=call_context,
    read=read_cross,
    intent={"empty_rows": False},
)
COAT = Style(
    name="coat over nn.MultiheadAttention",
    sources=(Pretrained,),
    build=lambda cls, d, h: cls(d, h),
    call=call_padding,
    read=read_torch,
    intent={"mask": "blocked"},
)
STUDENT = Style(
    name="head by head",
    sources=(StudentAttention,),
    build=lambda cls, d, h: cls(d, h),
    call=call_student,
    read=lambda m: linears(m.q_linear, m.k_linear, m.v_linear, m.out),
)
