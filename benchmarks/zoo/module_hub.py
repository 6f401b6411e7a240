"""Right modules in the style of model hubs: added masks, RoPE, groups, norms, caps."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .module_gpt import call_x
from .module_kit import EVEN, GROUPED, Probe, Style, fused, linears


class BertSelfAttention(nn.Module):
    """attention_mask is added: 0 where one may look, hugely negative elsewhere."""

    def __init__(self, hidden_size, num_attention_heads):
        super().__init__()
        self.num_attention_heads = num_attention_heads
        self.attention_head_size = hidden_size // num_attention_heads
        self.all_head_size = hidden_size
        self.query = nn.Linear(hidden_size, self.all_head_size)
        self.key = nn.Linear(hidden_size, self.all_head_size)
        self.value = nn.Linear(hidden_size, self.all_head_size)
        self.dense = nn.Linear(self.all_head_size, hidden_size)
        self.dropout = nn.Dropout(0.1)

    def transpose_for_scores(self, x):
        heads = (self.num_attention_heads, self.attention_head_size)
        return x.view(*x.size()[:-1], *heads).permute(0, 2, 1, 3)

    def forward(self, hidden_states, attention_mask=None):
        query_layer = self.transpose_for_scores(self.query(hidden_states))
        key_layer = self.transpose_for_scores(self.key(hidden_states))
        value_layer = self.transpose_for_scores(self.value(hidden_states))
        attention_scores = torch.matmul(query_layer, key_layer.transpose(-1, -2))
        attention_scores = attention_scores / math.sqrt(self.attention_head_size)
        if attention_mask is not None:
            attention_scores = attention_scores + attention_mask
        attention_probs = nn.functional.softmax(attention_scores, dim=-1)
        attention_probs = self.dropout(attention_probs)
        context_layer = torch.matmul(attention_probs, value_layer)
        context_layer = context_layer.permute(0, 2, 1, 3).contiguous()
        context_layer = context_layer.view(*context_layer.shape[:2], -1)
        return (self.dense(context_layer), attention_probs)


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def rotate_pairs(x):
    x1, x2 = x[..., ::2], x[..., 1::2]
    return torch.stack((-x2, x1), dim=-1).flatten(-2)


def cos_and_sin(position_ids, dim, like, theta=10000.0):
    inv_freq = 1.0 / (theta ** (torch.arange(0, dim, 2).double() / dim))
    freqs = position_ids[..., None].double() * inv_freq.to(like.device)
    emb = torch.cat((freqs, freqs), dim=-1)
    return emb.cos().to(like), emb.sin().to(like)


def repeat_kv(hidden_states, n_rep):
    b, n_kv, n, d = hidden_states.shape
    hidden_states = hidden_states[:, :, None].expand(b, n_kv, n_rep, n, d)
    return hidden_states.reshape(b, n_kv * n_rep, n, d)


class LlamaAttention(nn.Module):
    """Causal; RoPE by halves; groups; attention_mask (batch, n): 1 = real."""

    def __init__(self, hidden_size, num_heads, num_key_value_heads):
        super().__init__()
        self.num_heads = num_heads
        self.num_key_value_heads = num_key_value_heads
        self.num_key_value_groups = num_heads // num_key_value_heads
        self.head_dim = hidden_size // num_heads
        kv = num_key_value_heads * self.head_dim
        self.q_proj = nn.Linear(hidden_size, hidden_size, bias=False)
        self.k_proj = nn.Linear(hidden_size, kv, bias=False)
        self.v_proj = nn.Linear(hidden_size, kv, bias=False)
        self.o_proj = nn.Linear(hidden_size, hidden_size, bias=False)

    def forward(self, hidden_states, attention_mask=None, past_key_value=None):
        b, n, _ = hidden_states.shape
        q = self.q_proj(hidden_states).view(b, n, -1, self.head_dim).transpose(1, 2)
        k = self.k_proj(hidden_states).view(b, n, -1, self.head_dim).transpose(1, 2)
        v = self.v_proj(hidden_states).view(b, n, -1, self.head_dim).transpose(1, 2)
        past = 0 if past_key_value is None else past_key_value[0].shape[2]
        position_ids = torch.arange(past, past + n, device=q.device)
        cos, sin = cos_and_sin(position_ids, self.head_dim, q)
        q = q * cos + rotate_half(q) * sin
        k = k * cos + rotate_half(k) * sin
        if past_key_value is not None:
            k = torch.cat([past_key_value[0], k], dim=2)
            v = torch.cat([past_key_value[1], v], dim=2)
        present = (k, v)
        k = repeat_kv(k, self.num_key_value_groups)
        v = repeat_kv(v, self.num_key_value_groups)
        scores = q @ k.transpose(2, 3) / math.sqrt(self.head_dim)
        allowed = torch.ones(n, n + past, device=q.device).bool().tril(past)
        if attention_mask is not None:
            allowed = allowed & attention_mask[:, None, None, :].bool()
        scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
        probs = F.softmax(scores, dim=-1)
        out = (probs @ v).transpose(1, 2).reshape(b, n, -1)
        return self.o_proj(out), present


class BloomAttention(nn.Module):
    """Causal; ALiBi instead of positions."""

    def __init__(self, hidden_size, n_head):
        super().__init__()
        self.num_heads = n_head
        self.head_dim = hidden_size // n_head
        self.query_key_value = nn.Linear(hidden_size, 3 * hidden_size)
        self.dense = nn.Linear(hidden_size, hidden_size)
        self.register_buffer("slopes", self.get_slopes(n_head).double())

    def get_slopes(self, n):
        closest = 2 ** math.floor(math.log2(n))
        powers = torch.arange(1, closest + 1)
        slopes = 2.0 ** (-8.0 / closest * powers)
        if closest == n:
            return slopes
        extra = 2.0 ** (-4.0 / closest * torch.arange(1, 2 * closest, 2))
        return torch.cat((slopes, extra[: n - closest]))

    def forward(self, hidden_states):
        b, n, d_model = hidden_states.shape
        qkv = self.query_key_value(hidden_states).chunk(3, dim=-1)
        q, k, v = (t.view(b, n, self.num_heads, -1).transpose(1, 2) for t in qkv)
        position = torch.arange(n, device=q.device)
        distance = position[None, :] - position[:, None]
        alibi = self.slopes.to(q)[:, None, None] * distance.to(q)
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.head_dim) + alibi
        scores = scores.masked_fill(distance > 0, float("-inf"))
        probs = scores.softmax(dim=-1)
        return self.dense((probs @ v).transpose(1, 2).reshape(b, n, d_model))


class MistralAttention(nn.Module):
    """Causal; a query sees the last `sliding_window` keys, its own among them."""

    def __init__(self, dim, n_heads, sliding_window):
        super().__init__()
        self.n_heads, self.sliding_window = n_heads, sliding_window
        self.wq = nn.Linear(dim, dim, bias=False)
        self.wk = nn.Linear(dim, dim, bias=False)
        self.wv = nn.Linear(dim, dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        b, n, dim = x.shape
        xq, xk, xv = self.wq(x), self.wk(x), self.wv(x)
        xq, xk, xv = (t.view(b, n, self.n_heads, -1) for t in (xq, xk, xv))
        scores = torch.einsum("bqhd,bkhd->bhqk", xq, xk) * xq.shape[-1] ** -0.5
        i = torch.arange(n, device=x.device)
        behind = i[:, None] - i[None, :]
        seen = (behind >= 0) & (behind < self.sliding_window)
        scores = scores.masked_fill(~seen, float("-inf"))
        out = torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), xv)
        return self.wo(out.reshape(b, n, dim))


def call_bert(module: Any, probe: Probe) -> Any:
    """Call forward(hidden_states, attention_mask), added."""
    if probe.memory is not None:
        return None
    mask = probe.mask
    if probe.padding is not None:
        padding = probe.padding[:, None, :]
        mask = padding if mask is None else mask & padding
    if mask is None:
        return module(probe.x)[0]
    smallest = torch.finfo(probe.x.dtype).min
    added = torch.zeros(mask.shape).to(probe.x).masked_fill(~mask, smallest)
    return module(probe.x, added[:, None])[0]


def call_llama(module: Any, probe: Probe) -> Any:
    """Call forward(hidden_states, attention_mask) with 1 = real."""
    if probe.memory is not None or probe.mask is not None:
        return None
    real = None if probe.padding is None else probe.padding.long()
    return module(probe.x, real)[0]


def read_bloom(module: Any) -> dict[str, Any]:
    """As `fused`."""
    return fused(module.query_key_value, module.dense)


BERT = Style(
    name="hugging face BERT",
    sources=(BertSelfAttention,),
    build=lambda cls, d, h: cls(d, h),
    call=call_bert,
    read=lambda m: linears(m.query, m.key, m.value, m.dense),
    intent={"mask": "added", "empty_rows": False},
)
LLAMA = Style(
    name="hugging face Llama",
    sources=(rotate_half, rotate_pairs, cos_and_sin, repeat_kv, LlamaAttention),
    build=lambda cls, d, h: cls(d, h, 2),
    call=call_llama,
    read=lambda m: linears(m.q_proj, m.k_proj, m.v_proj, m.o_proj),
    intent={"causal": True, "empty_rows": False, "rope": "half"},
    sizes=tuple(size for size in GROUPED if size in EVEN),
    features=lambda m: {"causal": True, "rope": "half"},
)
BLOOM = Style(
    name="ALiBi",
    sources=(BloomAttention,),
    build=lambda cls, d, h: cls(d, h),
    call=call_x,
    read=read_bloom,
    intent={"causal": True, "alibi": True},
    features=lambda m: {"causal": True, "alibi": True},
)
MISTRAL = Style(
    name="sliding window",
    sources=(MistralAttention,),
    build=lambda cls, d, h: cls(d, h, 3),
    call=call_x,
    read=lambda m: linears(m.wq, m.wk, m.wv, m.wo),
    intent={"causal": True, "window": 3},
    features=lambda m: {"causal": True, "window": m.sliding_window},
)
