"""Right modules with QK-norm, with a softcap, and with a cache of their own."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .module_gpt import call_x
from .module_hub import call_llama, cos_and_sin, repeat_kv, rotate_half, rotate_pairs
from .module_kit import EVEN, GROUPED, Probe, Style, fused, linears


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class QwenAttention(nn.Module):
    """Causal; groups; RMSNorm on every query and key, then RoPE by halves."""

    def __init__(self, hidden_size, num_heads, num_key_value_heads):
        super().__init__()
        self.num_heads = num_heads
        self.num_key_value_heads = num_key_value_heads
        self.head_dim = hidden_size // num_heads
        kv = num_key_value_heads * self.head_dim
        self.q_proj = nn.Linear(hidden_size, hidden_size, bias=False)
        self.k_proj = nn.Linear(hidden_size, kv, bias=False)
        self.v_proj = nn.Linear(hidden_size, kv, bias=False)
        self.o_proj = nn.Linear(hidden_size, hidden_size, bias=False)
        self.q_norm = RMSNorm(self.head_dim)
        self.k_norm = RMSNorm(self.head_dim)

    def forward(self, hidden_states, attention_mask=None):
        b, n, _ = hidden_states.shape
        q = self.q_proj(hidden_states).view(b, n, self.num_heads, -1)
        k = self.k_proj(hidden_states).view(b, n, self.num_key_value_heads, -1)
        v = self.v_proj(hidden_states).view(b, n, self.num_key_value_heads, -1)
        q = self.q_norm(q).transpose(1, 2)
        k = self.k_norm(k).transpose(1, 2)
        v = v.transpose(1, 2)
        cos, sin = cos_and_sin(torch.arange(n, device=q.device), self.head_dim, q)
        q = q * cos + rotate_half(q) * sin
        k = k * cos + rotate_half(k) * sin
        k = repeat_kv(k, self.num_heads // self.num_key_value_heads)
        v = repeat_kv(v, self.num_heads // self.num_key_value_heads)
        allowed = torch.ones(n, n, dtype=torch.bool, device=q.device).tril()
        if attention_mask is not None:
            allowed = allowed & attention_mask[:, None, None, :].bool()
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
        return self.o_proj(y.transpose(1, 2).reshape(b, n, -1)), None


class NormedVision(nn.Module):
    """As in large vision transformers: LayerNorm on every query and key."""

    def __init__(self, dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = dim // num_heads
        self.scale = self.head_dim**-0.5
        self.qkv = nn.Linear(dim, dim * 3)
        self.q_norm = nn.LayerNorm(self.head_dim, bias=False)
        self.k_norm = nn.LayerNorm(self.head_dim, bias=False)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, self.head_dim)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        q, k = self.q_norm(q), self.k_norm(k)
        attn = (q * self.scale) @ k.transpose(-2, -1)
        x = attn.softmax(dim=-1) @ v
        return self.proj(x.transpose(1, 2).reshape(B, N, C))


class GemmaAttention(nn.Module):
    """Causal; scores capped by a tanh; attention_mask (batch, n): 1 = real."""

    def __init__(self, hidden_size, num_attention_heads, softcap):
        super().__init__()
        self.num_attention_heads = num_attention_heads
        self.attn_logit_softcapping = softcap
        self.scaling = (hidden_size // num_attention_heads) ** -0.5
        self.q_proj = nn.Linear(hidden_size, hidden_size, bias=False)
        self.k_proj = nn.Linear(hidden_size, hidden_size, bias=False)
        self.v_proj = nn.Linear(hidden_size, hidden_size, bias=False)
        self.o_proj = nn.Linear(hidden_size, hidden_size, bias=False)

    def forward(self, hidden_states, attention_mask=None):
        b, n, d = hidden_states.shape
        shape = (b, n, self.num_attention_heads, -1)
        query = self.q_proj(hidden_states).view(shape).transpose(1, 2)
        key = self.k_proj(hidden_states).view(shape).transpose(1, 2)
        value = self.v_proj(hidden_states).view(shape).transpose(1, 2)
        scores = torch.matmul(query, key.transpose(2, 3)) * self.scaling
        scores = scores / self.attn_logit_softcapping
        scores = torch.tanh(scores) * self.attn_logit_softcapping
        hidden = torch.ones(n, n, device=scores.device).triu(1).bool()
        if attention_mask is not None:
            hidden = hidden | (attention_mask == 0)[:, None, None, :]
        scores = scores.masked_fill(hidden, float("-inf"))
        probs = torch.softmax(scores, dim=-1)
        return self.o_proj((probs @ value).transpose(1, 2).reshape(b, n, d)), probs


class CachedDecoder(nn.Module):
    """Causal; forward(x, cache) with a list [k, v] that it fills; RoPE by pairs."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.d_model, self.n_heads = d_model, n_heads
        self.d_k = d_model // n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)

    def rotate(self, x, positions):
        pair = torch.arange(0, self.d_k, 2, device=x.device).double() / self.d_k
        angle = positions[:, None].double() * 10000.0**-pair
        turned = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
        turned = turned * torch.polar(torch.ones_like(angle), angle)
        return torch.view_as_real(turned).flatten(-2).to(x)

    def forward(self, x, cache=None):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        past = cache[0].shape[2] if cache else 0
        positions = torch.arange(past, past + n, device=x.device)
        q = self.rotate(q, positions)
        k = self.rotate(k, positions)
        if cache:
            k = torch.cat([cache[0], k], dim=2)
            v = torch.cat([cache[1], v], dim=2)
        if cache is not None:
            cache[:] = [k, v]
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_k)
        allowed = torch.ones(n, past + n, device=x.device).bool().tril(past)
        scores = scores.masked_fill(~allowed, -torch.inf)
        y = scores.softmax(-1) @ v
        return self.proj(y.transpose(1, 2).reshape(b, n, d))


def call_cached(module: Any, probe: Probe) -> Any:
    """Call forward(x, cache) twice: first on all tokens but the last two."""
    if (probe.memory, probe.mask, probe.padding) != (None, None, None):
        return None
    cache: list[Any] = []
    first = module(probe.x[:, :-2], cache)
    return torch.cat([first, module(probe.x[:, -2:], cache)], dim=1)


QWEN = Style(
    name="Qwen with QK-norm",
    sources=(rotate_pairs, RMSNorm, QwenAttention),
    build=lambda cls, d, h: cls(d, h, 2),
    call=call_llama,
    read=lambda m: linears(m.q_proj, m.k_proj, m.v_proj, m.o_proj),
    intent={"causal": True, "rope": "half", "qk_norm": True},
    sizes=tuple(size for size in GROUPED if size in EVEN),
    features=lambda m: {"causal": True, "rope": "half", "norm": "rms"},
)
VISION = Style(
    name="ViT with QK-norm",
    sources=(NormedVision,),
    build=lambda cls, d, h: cls(d, h),
    call=call_x,
    read=lambda m: fused(m.qkv, m.proj),
    intent={"qk_norm": True},
    sizes=EVEN,
    features=lambda m: {"norm": "layer"},
)
GEMMA = Style(
    name="Gemma with a softcap",
    sources=(GemmaAttention,),
    build=lambda cls, d, h: cls(d, h, 5.0),
    call=call_llama,
    read=lambda m: linears(m.q_proj, m.k_proj, m.v_proj, m.o_proj),
    intent={"causal": True, "softcap": 5.0, "empty_rows": False},
    features=lambda m: {"causal": True, "softcap": m.attn_logit_softcapping},
)
CACHED = Style(
    name="decoder with a cache",
    sources=(CachedDecoder,),
    build=lambda cls, d, h: cls(d, h),
    call=call_cached,
    read=lambda m: fused(m.qkv, m.proj),
    intent={"causal": True, "rope": "interleaved"},
    sizes=EVEN,
    features=lambda m: {"causal": True, "rope": "interleaved"},
)
