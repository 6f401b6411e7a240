"""Right modules that keep bare parameters, or call PyTorch's own attention."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .module_eyes import call_student
from .module_kit import Probe, Style, fused, linears


class MatrixAttention(nn.Module):
    """Row vectors times matrices, x @ W."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.d_k = d_model // n_heads
        self.W_q = nn.Parameter(torch.empty(d_model, d_model))
        self.W_k = nn.Parameter(torch.empty(d_model, d_model))
        self.W_v = nn.Parameter(torch.empty(d_model, d_model))
        self.W_o = nn.Parameter(torch.empty(d_model, d_model))
        self.b_q = nn.Parameter(torch.zeros(d_model))
        self.b_k = nn.Parameter(torch.zeros(d_model))
        self.b_v = nn.Parameter(torch.zeros(d_model))
        self.b_o = nn.Parameter(torch.zeros(d_model))
        for W in (self.W_q, self.W_k, self.W_v, self.W_o):
            nn.init.xavier_uniform_(W)

    def heads(self, x):
        return x.unflatten(-1, (self.n_heads, self.d_k)).transpose(-3, -2)

    def forward(self, x, memory=None, mask=None):
        memory = x if memory is None else memory
        q = x @ self.W_q + self.b_q
        k = memory @ self.W_k + self.b_k
        v = memory @ self.W_v + self.b_v
        q, k, v = self.heads(q), self.heads(k), self.heads(v)
        scores = q @ k.mT / self.d_k**0.5
        empty = None
        if mask is not None:
            mask = mask[:, None] if mask.dim() == 3 else mask
            empty = ~mask.any(-1, keepdim=True)
            scores = scores.masked_fill(~mask, -math.inf)
            scores = scores.masked_fill(empty, 0.0)
        scores = scores - scores.max(-1, keepdim=True).values
        weights = torch.exp(scores)
        weights = weights / weights.sum(-1, keepdim=True)
        if empty is not None:
            weights = weights.masked_fill(empty, 0.0)
        mixed = (weights @ v).transpose(-3, -2).flatten(-2)
        return mixed @ self.W_o + self.b_o


class LensAttention(nn.Module):
    """One matrix a head, as interpretability tools keep them; causal."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        d_head = d_model // n_heads
        self.n_heads, self.d_head = n_heads, d_head
        self.W_Q = nn.Parameter(torch.randn(n_heads, d_model, d_head) * 0.02)
        self.W_K = nn.Parameter(torch.randn(n_heads, d_model, d_head) * 0.02)
        self.W_V = nn.Parameter(torch.randn(n_heads, d_model, d_head) * 0.02)
        self.W_O = nn.Parameter(torch.randn(n_heads, d_head, d_model) * 0.02)
        self.b_Q = nn.Parameter(torch.zeros(n_heads, d_head))
        self.b_K = nn.Parameter(torch.zeros(n_heads, d_head))
        self.b_V = nn.Parameter(torch.zeros(n_heads, d_head))
        self.b_O = nn.Parameter(torch.zeros(d_model))

    def forward(self, resid):
        q = torch.einsum("bpm,nmh->bpnh", resid, self.W_Q) + self.b_Q
        k = torch.einsum("bpm,nmh->bpnh", resid, self.W_K) + self.b_K
        v = torch.einsum("bpm,nmh->bpnh", resid, self.W_V) + self.b_V
        attn_scores = torch.einsum("bqnh,bknh->bnqk", q, k) / math.sqrt(self.d_head)
        n = attn_scores.shape[-1]
        allowed = torch.ones(n, n, device=resid.device).tril().bool()
        attn_scores = attn_scores.where(allowed, torch.tensor(-torch.inf).to(resid))
        pattern = attn_scores.softmax(-1)
        z = torch.einsum("bknh,bnqk->bqnh", v, pattern)
        return torch.einsum("bqnh,nhm->bqm", z, self.W_O) + self.b_O


class InProjAttention(nn.Module):
    """(batch, n, d); key_padding_mask and attn_mask as PyTorch's: True = blocked."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.in_proj_weight = nn.Parameter(torch.empty(3 * embed_dim, embed_dim))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * embed_dim))
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        nn.init.xavier_uniform_(self.in_proj_weight)

    def forward(self, query, key, value, key_padding_mask=None, attn_mask=None):
        bsz, tgt_len, _ = query.shape
        src_len, h = key.shape[1], self.num_heads
        w_q, w_k, w_v = self.in_proj_weight.chunk(3)
        b_q, b_k, b_v = self.in_proj_bias.chunk(3)
        q = F.linear(query, w_q, b_q).view(bsz, tgt_len, h, -1).transpose(1, 2)
        k = F.linear(key, w_k, b_k).view(bsz, src_len, h, -1).transpose(1, 2)
        v = F.linear(value, w_v, b_v).view(bsz, src_len, h, -1).transpose(1, 2)
        blocked = torch.zeros(bsz, 1, tgt_len, src_len).to(query.device).bool()
        if key_padding_mask is not None:
            blocked = blocked | key_padding_mask.view(bsz, 1, 1, src_len)
        if attn_mask is not None:
            attn_mask = attn_mask.view(-1, 1, tgt_len, src_len)
            blocked = blocked | attn_mask
        attn = q @ k.transpose(-2, -1) * (self.embed_dim // h) ** -0.5
        attn = attn.masked_fill(blocked, float("-inf"))
        attn = torch.softmax(attn, dim=-1).masked_fill(blocked, 0.0)
        out = (attn @ v).transpose(1, 2).reshape(bsz, tgt_len, self.embed_dim)
        return self.out_proj(out), attn


class FusedKernel(nn.Module):
    """Hands everything to scaled_dot_product_attention."""

    def __init__(self, d_model, n_heads, dropout=0.1):
        super().__init__()
        self.n_heads, self.dropout = n_heads, dropout
        self.wq = nn.Linear(d_model, d_model)
        self.wk = nn.Linear(d_model, d_model)
        self.wv = nn.Linear(d_model, d_model)
        self.wo = nn.Linear(d_model, d_model)

    def forward(self, x, memory=None, mask=None, causal=False):
        memory = x if memory is None else memory
        q = self.wq(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k = self.wk(memory).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        v = self.wv(memory).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        if mask is not None and mask.dim() == 3:
            mask = mask.unsqueeze(1)
        if causal:
            n_q, n_k = q.size(2), k.size(2)
            past = torch.ones(n_q, n_k, dtype=torch.bool, device=x.device)
            past = past.tril(n_k - n_q)
            mask = past if mask is None else mask & past
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
        return self.wo(y.transpose(1, 2).flatten(2))


class TiledAttention(nn.Module):
    """Keys in blocks of three, and a running maximum."""

    def __init__(self, d_model, n_heads, block=3):
        super().__init__()
        self.n_heads, self.block = n_heads, block
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, mask=None):
        b, n, d_model = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        q = q / math.sqrt(q.shape[-1])
        m = torch.full_like(q[..., :1], -torch.inf)
        total = torch.zeros_like(m)
        acc = torch.zeros_like(q)
        for start in range(0, n, self.block):
            part = slice(start, start + self.block)
            s = q @ k[..., part, :].transpose(-2, -1)
            if mask is not None:
                look = mask[..., part]
                s = s.masked_fill(~(look[:, None] if look.dim() == 3 else look), -1e30)
            m_new = torch.maximum(m, s.amax(-1, keepdim=True))
            alpha = torch.exp(m - m_new)
            p = torch.exp(s - m_new)
            total = total * alpha + p.sum(-1, keepdim=True)
            acc = acc * alpha + p @ v[..., part, :]
            m = m_new
        y = acc / total
        return self.out(y.transpose(1, 2).reshape(b, n, d_model))


def call_memory(module: Any, probe: Probe) -> Any:
    """Call forward(x, memory, mask) with a mask (batch, n_q, n_k)."""
    memory = probe.x if probe.memory is None else probe.memory
    mask = probe.mask
    if probe.padding is not None:
        padding = probe.padding[:, None, :].expand(-1, probe.x.shape[1], -1)
        mask = padding if mask is None else mask & padding
    return module(probe.x, memory, mask)


def call_in_proj(module: Any, probe: Probe) -> Any:
    """Call forward(q, k, v, key_padding_mask, attn_mask), True = blocked."""
    memory = probe.x if probe.memory is None else probe.memory
    padding = None if probe.padding is None else ~probe.padding
    mask = None if probe.mask is None else ~probe.mask
    return module(probe.x, memory, memory, padding, mask)[0]


def read_matrices(module: Any) -> dict[str, Any]:
    """The parameters themselves."""
    return {name: p for name, p in module.named_parameters() if name[1] == "_"}


def read_lens(module: Any) -> dict[str, Any]:
    """The heads' matrices, side by side."""
    read = {}
    for name in "QKV":
        W = getattr(module, f"W_{name}")
        read[f"W_{name.lower()}"] = W.permute(1, 0, 2).flatten(1)
        read[f"b_{name.lower()}"] = getattr(module, f"b_{name}").flatten()
    return {**read, "W_o": module.W_O.flatten(0, 1), "b_o": module.b_O}


def read_in_proj(module: Any) -> dict[str, Any]:
    """The rows of in_proj_weight, as columns."""
    matrices = module.in_proj_weight.chunk(3)
    vectors = module.in_proj_bias.chunk(3)
    read = {f"W_{name}": W.T for name, W in zip("qkv", matrices, strict=True)}
    read |= {f"b_{name}": b for name, b in zip("qkv", vectors, strict=True)}
    return {**read, "W_o": module.out_proj.weight.T, "b_o": module.out_proj.bias}


def read_fused(module: Any) -> dict[str, Any]:
    """As `fused`, for the tiles."""
    return fused(module.qkv, module.out)


MATRICES = Style(
    name="x @ W matrices",
    sources=(MatrixAttention,),
    build=lambda cls, d, h: cls(d, h),
    call=call_memory,
    read=read_matrices,
)
LENS = Style(
    name="one matrix a head",
    sources=(LensAttention,),
    build=lambda cls, d, h: cls(d, h),
    call=lambda m, p: m(p.x) if (p.memory, p.mask, p.padding) == (None,) * 3 else None,
    read=read_lens,
    intent={"causal": True},
    features=lambda m: {"causal": True},
)
IN_PROJ = Style(
    name="in_proj_weight",
    sources=(InProjAttention,),
    build=lambda cls, d, h: cls(d, h),
    call=call_in_proj,
    read=read_in_proj,
    intent={"mask": "blocked"},
)
KERNEL = Style(
    name="SDPA module",
    sources=(FusedKernel,),
    build=lambda cls, d, h: cls(d, h),
    call=call_memory,
    read=lambda m: linears(m.wq, m.wk, m.wv, m.wo),
)
TILED = Style(
    name="tiles with a running maximum",
    sources=(TiledAttention,),
    build=lambda cls, d, h: cls(d, h),
    call=call_student,
    read=read_fused,
    intent={"empty_rows": False},
)
