"""Right modules in the style of small GPTs: causal by themselves."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn as nn
from torch.nn import functional as F

from .module_kit import Probe, Style, fused, linears


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size=256, bias=True, dropout=0.0):
        super().__init__()
        assert n_embd % n_head == 0
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)
        self.attn_dropout = nn.Dropout(dropout)
        self.n_head = n_head
        self.n_embd = n_embd
        causal = torch.tril(torch.ones(block_size, block_size))
        self.register_buffer("bias", causal.view(1, 1, block_size, block_size))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        att = F.softmax(att, dim=-1)
        att = self.attn_dropout(att)
        y = att @ v
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.c_proj(y)


class Head(nn.Module):
    def __init__(self, n_embd, head_size, block_size, dropout):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        _B, T, _C = x.shape
        k = self.key(x)
        q = self.query(x)
        wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        wei = F.softmax(wei, dim=-1)
        wei = self.dropout(wei)
        v = self.value(x)
        return wei @ v


class ListOfHeads(nn.Module):
    def __init__(self, n_embd, num_heads, block_size=256, dropout=0.2):
        super().__init__()
        size = n_embd // num_heads
        self.heads = nn.ModuleList(
            [Head(n_embd, size, block_size, dropout) for _ in range(num_heads)]
        )
        self.proj = nn.Linear(n_embd, n_embd)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        out = torch.cat([head(x) for head in self.heads], dim=-1)
        return self.dropout(self.proj(out))


class Conv1D(nn.Module):
    """A linear layer whose weight is (n_in, n_out)."""

    def __init__(self, n_out, n_in):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_in, n_out) * 0.02)
        self.bias = nn.Parameter(torch.zeros(n_out))

    def forward(self, x):
        return x @ self.weight + self.bias


class GPT2Attention(nn.Module):
    """Causal, with keys and values of earlier tokens in `layer_past`."""

    def __init__(self, hidden_size, num_heads):
        super().__init__()
        self.embed_dim = hidden_size
        self.num_heads = num_heads
        self.head_dim = hidden_size // num_heads
        self.c_attn = Conv1D(3 * hidden_size, hidden_size)
        self.c_proj = Conv1D(hidden_size, hidden_size)

    def _split_heads(self, tensor):
        shape = (*tensor.shape[:-1], self.num_heads, self.head_dim)
        return tensor.view(shape).permute(0, 2, 1, 3)

    def _merge_heads(self, tensor):
        tensor = tensor.permute(0, 2, 1, 3).contiguous()
        return tensor.view(*tensor.shape[:-2], self.embed_dim)

    def forward(
        self, hidden_states, layer_past=None, attention_mask=None, use_cache=False
    ):
        qkv = self.c_attn(hidden_states)
        query, key, value = qkv.split(self.embed_dim, dim=2)
        query = self._split_heads(query)
        key, value = self._split_heads(key), self._split_heads(value)
        if layer_past is not None:
            key = torch.cat((layer_past[0], key), dim=-2)
            value = torch.cat((layer_past[1], value), dim=-2)
        present = (key, value) if use_cache else None
        n_q, n_k = query.size(-2), key.size(-2)
        weights = query @ key.transpose(-1, -2) / self.head_dim**0.5
        causal = torch.ones(n_k, n_k, dtype=torch.bool).tril()[n_k - n_q : n_k]
        smallest = torch.finfo(weights.dtype).min
        weights = torch.where(causal.to(weights.device), weights, smallest)
        if attention_mask is not None:  # (batch, 1, 1, n_k): 0, or a huge negative
            weights = (weights + attention_mask).clamp(min=smallest)
        weights = weights.softmax(-1)
        output = self.c_proj(self._merge_heads(weights @ value))
        return output, present


class NeoXAttention(nn.Module):
    """q, k, v of a head side by side in one matrix: [head 0: q k v][head 1: ...]."""

    def __init__(self, hidden_size, num_attention_heads):
        super().__init__()
        self.num_attention_heads = num_attention_heads
        self.head_size = hidden_size // num_attention_heads
        self.query_key_value = nn.Linear(hidden_size, 3 * hidden_size)
        self.dense = nn.Linear(hidden_size, hidden_size)
        self.norm_factor = self.head_size**-0.5

    def forward(self, hidden_states):
        b, n, d = hidden_states.shape
        qkv = self.query_key_value(hidden_states)
        qkv = qkv.view(b, n, self.num_attention_heads, 3 * self.head_size)
        query, key, value = qkv.permute(0, 2, 1, 3).chunk(3, dim=-1)
        scores = torch.einsum("bhqd,bhkd->bhqk", query, key) * self.norm_factor
        future = torch.ones(n, n, dtype=torch.bool, device=scores.device).triu(1)
        scores.masked_fill_(future, torch.finfo(scores.dtype).min)
        probs = torch.softmax(scores, dim=-1)
        context = torch.einsum("bhqk,bhkd->bhqd", probs, value)
        return self.dense(context.permute(0, 2, 1, 3).reshape(b, n, d))


def call_x(module: Any, probe: Probe) -> Any:
    """Call forward(x)."""
    if probe.memory is not None or probe.mask is not None or probe.padding is not None:
        return None
    return module(probe.x)


def call_gpt2(module: Any, probe: Probe) -> Any:
    """Call forward(hidden_states, attention_mask=...) with an added padding mask."""
    if probe.memory is not None or probe.mask is not None:
        return None
    added = None
    if probe.padding is not None:
        hidden = ~probe.padding[:, None, None, :]
        smallest = torch.finfo(probe.x.dtype).min
        added = torch.zeros(hidden.shape).to(probe.x).masked_fill(hidden, smallest)
    return module(probe.x, attention_mask=added)[0]


def read_heads(module: Any) -> dict[str, Any]:
    """The matrices of the heads, side by side."""
    read = {}
    for letter, name in (("q", "query"), ("k", "key"), ("v", "value")):
        parts = [getattr(head, name).weight.T for head in module.heads]
        read[f"W_{letter}"] = torch.cat(parts, 1)
    return {**read, "W_o": module.proj.weight.T, "b_o": module.proj.bias}


def read_neox(module: Any) -> dict[str, Any]:
    """The fused matrix, sorted: q of all heads, k of all heads, v of all heads."""
    h, d = module.num_attention_heads, module.head_size
    weight = module.query_key_value.weight.view(h, 3, d, -1)
    bias = module.query_key_value.bias.view(h, 3, d)
    read = linears(module.dense, module.dense, module.dense, module.dense)
    for i, letter in enumerate("qkv"):
        read[f"W_{letter}"] = weight[:, i].reshape(h * d, -1).T
        read[f"b_{letter}"] = bias[:, i].reshape(h * d)
    return read


def read_conv(module: Any) -> dict[str, Any]:
    """As `fused`, of Conv1D layers."""
    c_attn, c_proj = module.c_attn, module.c_proj
    matrices = dict(zip(("W_q", "W_k", "W_v"), c_attn.weight.chunk(3, 1), strict=True))
    vectors = dict(zip(("b_q", "b_k", "b_v"), c_attn.bias.chunk(3), strict=True))
    return {**matrices, **vectors, "W_o": c_proj.weight, "b_o": c_proj.bias}


NANO = Style(
    name="nanoGPT",
    sources=(CausalSelfAttention,),
    build=lambda cls, d, h: cls(d, h),
    call=call_x,
    read=lambda m: fused(m.c_attn, m.c_proj),
    intent={"causal": True},
    features=lambda m: {"causal": True},
)
HEADS = Style(
    name="list of heads",
    sources=(Head, ListOfHeads),
    build=lambda cls, d, h: cls(d, h),
    call=call_x,
    read=read_heads,
    intent={"causal": True},
    features=lambda m: {"causal": True},
)
GPT2 = Style(
    name="hugging face GPT-2",
    sources=(Conv1D, GPT2Attention),
    build=lambda cls, d, h: cls(d, h),
    call=call_gpt2,
    read=read_conv,
    intent={"causal": True, "mask": "added", "empty_rows": False},
    features=lambda m: {"causal": True},
)
NEOX = Style(
    name="GPT-NeoX",
    sources=(NeoXAttention,),
    build=lambda cls, d, h: cls(d, h),
    call=call_x,
    read=read_neox,
    intent={"causal": True},
    features=lambda m: {"causal": True},
)
