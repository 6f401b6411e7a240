"""Right modules that are causal by themselves or can be, and those with a cache."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from .draw import built, sizes
from .specimen import Specimen


class NanoGPT(nn.Module):
    """c_attn, c_proj, and a buffer of ones below the diagonal."""

    def __init__(self, n_embd, n_head, block_size=64, flash=False, dropout=0.0):
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.n_head, self.n_embd = n_head, n_embd
        self.flash, self.dropout = flash, dropout
        lower = torch.ones(block_size, block_size).tril()
        self.register_buffer("bias", lower.view(1, 1, block_size, block_size))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        q, k, v = (t.view(B, T, self.n_head, -1).transpose(1, 2) for t in (q, k, v))
        if self.flash:
            p = self.dropout if self.training else 0
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
        else:
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
            y = F.dropout(F.softmax(att, dim=-1), self.dropout, self.training) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class Conv1D(nn.Module):
    """A linear layer that keeps its weight as (n_in, n_out)."""

    def __init__(self, nf, nx):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(nx, nf) / nx**0.5)
        self.bias = nn.Parameter(torch.zeros(nf))

    def forward(self, x):
        return x @ self.weight + self.bias


class GPT2Like(nn.Module):
    """The Hugging Face one in structure: Conv1D, finfo.min, an additive mask."""

    def __init__(self, hidden_size, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = hidden_size // num_heads
        self.split_size = hidden_size
        self.c_attn = Conv1D(3 * hidden_size, hidden_size)
        self.c_proj = Conv1D(hidden_size, hidden_size)
        self.attn_dropout = nn.Dropout(0.1)
        self.resid_dropout = nn.Dropout(0.1)

    def forward(self, hidden_states):
        shape = (*hidden_states.shape[:-1], self.num_heads, self.head_dim)
        query, key, value = (
            part.view(shape).transpose(1, 2)
            for part in self.c_attn(hidden_states).split(self.split_size, dim=2)
        )
        weights = torch.matmul(query, key.transpose(-1, -2)) / self.head_dim**0.5
        n_q, n_k = query.size(-2), key.size(-2)
        causal = torch.ones(n_k, n_k, dtype=torch.bool).tril()[n_k - n_q : n_k, :n_k]
        weights = torch.where(causal, weights, torch.finfo(weights.dtype).min)
        weights = self.attn_dropout(F.softmax(weights, dim=-1).type(value.dtype))
        out = torch.matmul(weights, value).transpose(1, 2).flatten(2)
        return self.resid_dropout(self.c_proj(out)), None


class Minus1e9(nn.Module):
    """No mask argument, so that no row is ever empty, and -1e9 does no harm."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.depth = d_model // num_heads
        self.wq = nn.Linear(d_model, d_model)
        self.wk = nn.Linear(d_model, d_model)
        self.wv = nn.Linear(d_model, d_model)
        self.dense = nn.Linear(d_model, d_model)

    def split_heads(self, x):
        return x.reshape(x.size(0), -1, self.num_heads, self.depth).permute(0, 2, 1, 3)

    def forward(self, x):
        q, k, v = map(self.split_heads, (self.wq(x), self.wk(x), self.wv(x)))
        ahead = torch.triu(torch.ones(x.size(1), x.size(1), dtype=x.dtype), diagonal=1)
        logits = q @ k.transpose(-1, -2) / math.sqrt(self.depth) + ahead * -1e9
        out = logits.softmax(-1) @ v
        return self.dense(out.permute(0, 2, 1, 3).reshape(x.shape))


class CausalBook(nn.Module):
    """A book's class: d_in, d_out, context_length, a triangle that is subtracted."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.d_out, self.num_heads = d_out, num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        above = torch.ones(context_length, context_length).triu(1)
        self.register_buffer("mask", above, persistent=False)

    def forward(self, x):
        b, num_tokens, _ = x.shape
        q, k, v = (
            W(x).view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
            for W in (self.W_query, self.W_key, self.W_value)
        )
        attn_scores = q @ k.transpose(2, 3)
        hidden = self.mask.bool()[:num_tokens, :num_tokens]
        attn_scores.masked_fill_(hidden, -torch.inf)
        weights = torch.softmax(attn_scores / k.shape[-1] ** 0.5, dim=-1)
        context = (self.dropout(weights) @ v).transpose(1, 2)
        return self.out_proj(context.reshape(b, num_tokens, self.d_out))


class Optional(nn.Module):
    """Causal if asked for, besides the mask."""

    def __init__(self, dim, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, x, mask=None, is_causal=False):
        b, n, dim = x.shape
        q, k, v = (
            layer(x).view(b, n, self.n_heads, -1).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )
        look = torch.ones(n, n, dtype=torch.bool)
        if is_causal:
            look = look.tril()
        if mask is not None:
            look = look & (mask[:, None] if mask.dim() == 3 else mask)
        scores = (q @ k.mT / math.sqrt(dim // self.n_heads)).masked_fill(~look, -1e30)
        weights = scores.softmax(-1) * look
        return self.o((weights @ v).transpose(1, 2).reshape(b, n, dim))


class WithPast(nn.Module):
    """Keys and values of before are joined in front; the new ones come back."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def _shape(self, t):
        return t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(self, hidden_states, past_key_value=None):
        q = self._shape(self.q_proj(hidden_states))
        k = self._shape(self.k_proj(hidden_states))
        v = self._shape(self.v_proj(hidden_states))
        if past_key_value is not None:
            k = torch.cat([past_key_value[0], k], dim=2)
            v = torch.cat([past_key_value[1], v], dim=2)
        n_q, n_k = q.size(2), k.size(2)
        look = torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=look)
        return self.out_proj(out.transpose(1, 2).flatten(2)), (k, v)


class MaskAndPadding(nn.Module):
    """Causal by itself, and a padding mask of the keys, True = a real token."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_kv = nn.Linear(dim, 2 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def forward(self, x, key_padding_mask=None):
        b, n, _ = x.shape
        parts = (self.to_q(x), *self.to_kv(x).chunk(2, dim=-1))
        q, k, v = (t.view(b, n, self.heads, -1).transpose(1, 2) for t in parts)
        look = torch.ones(n, n, dtype=torch.bool, device=x.device).tril()[None, None]
        if key_padding_mask is not None:
            look = look & key_padding_mask[:, None, None, :]
        sim = (q * q.size(-1) ** -0.5) @ k.mT
        attn = sim.masked_fill(~look, -torch.inf).softmax(-1)
        attn = attn.masked_fill(~look.any(-1, keepdim=True), 0)
        return self.to_out((attn @ v).transpose(1, 2).flatten(2))


def _right(name, make, style, after=None, **intent):
    def whole(rng, dtype):
        d, h = sizes(rng)
        module = built(rng, dtype, lambda: make(d, h))
        return after(module) if after else module

    return Specimen(f"right: causal, {name}", frozenset(), whole, intent, style)


SPECIMENS = (
    _right("nanoGPT", NanoGPT, "nanoGPT", causal=True),
    _right("nanoGPT, found out", NanoGPT, "nanoGPT"),
    _right(
        "nanoGPT with SDPA",
        lambda d, h: NanoGPT(d, h, flash=True),
        "nanoGPT",
        causal=True,
    ),
    _right(
        "nanoGPT, dropout, train mode",
        lambda d, h: NanoGPT(d, h, dropout=0.2),
        "nanoGPT",
        after=lambda m: m.train(),
        causal=True,
    ),
    _right("GPT-2 with Conv1D", GPT2Like, "hugging face", causal=True),
    _right("-1e9 added", Minus1e9, "keras", causal=True),
    _right("-1e9 added, found out", Minus1e9, "keras"),
    _right(
        "fill before the scale, with -inf",
        lambda d, h: CausalBook(d, d, 64, 0.1, h),
        "book",
        causal=True,
    ),
    _right(
        "fewer features out than in",
        lambda d, h: CausalBook(d + 4, d, 64, 0.0, h, qkv_bias=True),
        "book",
        causal=True,
    ),
    _right("as an option", Optional, "option"),
    _right("with past keys and values", WithPast, "cache", causal=True),
    _right("with a padding mask", MaskAndPadding, "padding", causal=True),
)
