"""Right attention modules that take a mask, True = may look, each in its own style."""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from .draw import built, sizes
from .specimen import Specimen


def look_for_heads(mask):
    """(n_q, n_k) or (batch, n_q, n_k): an axis for the heads."""
    return mask if mask.dim() == 2 else mask[:, None]


def zeroing_softmax(scores, mask):
    if mask is None:
        return scores.softmax(dim=-1)
    look = look_for_heads(mask)
    weights = scores.masked_fill(~look, -torch.inf).softmax(dim=-1)
    return weights.masked_fill(~look.any(-1, keepdim=True), 0.0)


class Annotated(nn.Module):
    """The Annotated Transformer's: four clones of one linear layer."""

    def __init__(self, h, d_model, dropout=0.1):
        super().__init__()
        self.d_k = d_model // h
        self.h = h
        self.linears = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(4))
        self.attn = None
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, query, key, value, mask=None):
        if mask is not None and mask.dim() == 3:
            mask = mask.unsqueeze(1)
        n_batches = query.size(0)
        query, key, value = (
            layer(x).view(n_batches, -1, self.h, self.d_k).transpose(1, 2)
            for layer, x in zip(self.linears, (query, key, value), strict=False)
        )
        scores = query @ key.transpose(-2, -1) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        self.attn = self.dropout(scores.softmax(dim=-1))
        x = (self.attn @ value).transpose(1, 2).contiguous()
        return self.linears[-1](x.view(n_batches, -1, self.h * self.d_k))


class FusedChunk(nn.Module):
    def __init__(self, dim, num_heads, bias=True):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=bias)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, mask=None):
        b, n, c = x.shape
        q, k, v = (
            part.view(b, n, self.num_heads, -1).transpose(1, 2)
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        weights = zeroing_softmax(q @ k.mT * (c // self.num_heads) ** -0.5, mask)
        return self.proj((weights @ v).transpose(1, 2).reshape(b, n, c))


class FusedPermute(nn.Module):
    """A vision transformer's: qkv in one permute, SDPA."""

    def __init__(self, dim, num_heads, qkv_bias=False, attn_drop=0.0):
        super().__init__()
        self.num_heads, self.head_dim = num_heads, dim // num_heads
        self.scale = self.head_dim**-0.5
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.attn_drop = nn.Dropout(attn_drop)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, attn_mask=None):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, self.head_dim)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        look = None if attn_mask is None else look_for_heads(attn_mask)
        x = F.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=look,
            dropout_p=self.attn_drop.p if self.training else 0.0,
            scale=self.scale,
        )
        return self.proj(x.transpose(1, 2).reshape(B, N, C))


class FusedPerHead(nn.Module):
    """GPT-NeoX's order: q, k and v of one head stand together."""

    def __init__(self, hidden_size, num_attention_heads):
        super().__init__()
        self.num_attention_heads = num_attention_heads
        self.head_size = hidden_size // num_attention_heads
        self.query_key_value = nn.Linear(hidden_size, 3 * hidden_size)
        self.dense = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden_states, attention_mask=None):
        shape = (*hidden_states.shape[:-1], self.num_attention_heads, -1)
        qkv = self.query_key_value(hidden_states).view(shape).transpose(1, 2)
        q, k, v = qkv.split(self.head_size, dim=-1)
        scores = q @ k.transpose(2, 3) / math.sqrt(self.head_size)
        out = zeroing_softmax(scores, attention_mask) @ v
        return self.dense(out.transpose(1, 2).flatten(2))


class ToQKV(nn.Module):
    """lucidrains' names: to_qkv, to_out, an inner size of its own."""

    def __init__(self, dim, heads=8, dim_head=6, dropout=0.2):
        super().__init__()
        inner_dim = dim_head * heads
        self.heads = heads
        self.scale = dim_head**-0.5
        self.attend = nn.Softmax(dim=-1)
        self.to_qkv = nn.Linear(dim, inner_dim * 3, bias=False)
        self.to_out = nn.Sequential(nn.Linear(inner_dim, dim), nn.Dropout(dropout))

    def forward(self, x, mask=None):
        split = [t.unflatten(-1, (self.heads, -1)) for t in self.to_qkv(x).chunk(3, -1)]
        q, k, v = split
        dots = torch.einsum("bihd,bjhd->bhij", q, k) * self.scale
        if mask is not None:
            allowed = look_for_heads(mask)
            dots = dots.masked_fill(~allowed, -torch.finfo(dots.dtype).max)
            attn = self.attend(dots).masked_fill(~allowed, 0.0)
        else:
            attn = self.attend(dots)
        out = torch.einsum("bhij,bjhd->bihd", attn, v)
        return self.to_out(out.flatten(2))


class Head(nn.Module):
    def __init__(self, n_embd, head_size):
        super().__init__()
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)

    def forward(self, x, mask=None):
        wei = self.query(x) @ self.key(x).transpose(-2, -1)
        wei = wei * self.key.out_features**-0.5
        if mask is not None:
            wei = wei.masked_fill(mask.logical_not(), float("-inf"))
        return torch.nan_to_num(F.softmax(wei, dim=-1)) @ self.value(x)


class HeadList(nn.Module):
    """One small module for each head, and a concatenation."""

    def __init__(self, num_heads, n_embd):
        super().__init__()
        size = n_embd // num_heads
        self.heads = nn.ModuleList(Head(n_embd, size) for _ in range(num_heads))
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x, mask=None):
        return self.proj(torch.cat([head(x, mask) for head in self.heads], dim=-1))


class Parameters(nn.Module):
    """Weights (n_heads, d_model, d_head), as TransformerLens keeps them."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        d_head = d_model // n_heads
        for name in ("W_Q", "W_K", "W_V"):
            weight = torch.randn(n_heads, d_model, d_head) / d_model**0.5
            setattr(self, name, nn.Parameter(weight))
        self.W_O = nn.Parameter(torch.randn(n_heads, d_head, d_model) / d_model**0.5)
        self.b_O = nn.Parameter(torch.randn(d_model))

    def forward(self, x, mask=None):
        q = torch.einsum("bpd,hde->bhpe", x, self.W_Q)
        k = torch.einsum("bpd,hde->bhpe", x, self.W_K)
        v = torch.einsum("bpd,hde->bhpe", x, self.W_V)
        scores = torch.einsum("bhqe,bhke->bhqk", q, k) / self.W_Q.shape[-1] ** 0.5
        z = torch.einsum("bhqk,bhke->bhqe", zeroing_softmax(scores, mask), v)
        return torch.einsum("bhqe,hed->bqd", z, self.W_O) + self.b_O


class Einsum(nn.Module):
    """A video course's einsums, scaled by the size of a head."""

    def __init__(self, embed_size, heads):
        super().__init__()
        self.heads = heads
        self.head_dim = embed_size // heads
        self.values = nn.Linear(embed_size, embed_size)
        self.keys = nn.Linear(embed_size, embed_size)
        self.queries = nn.Linear(embed_size, embed_size)
        self.fc_out = nn.Linear(embed_size, embed_size)

    def forward(self, values, keys, query, mask=None):
        N = query.shape[0]
        values = self.values(values).reshape(N, -1, self.heads, self.head_dim)
        keys = self.keys(keys).reshape(N, -1, self.heads, self.head_dim)
        queries = self.queries(query).reshape(N, -1, self.heads, self.head_dim)
        energy = torch.einsum("nqhd,nkhd->nhqk", [queries, keys])
        attention = zeroing_softmax(energy / self.head_dim**0.5, mask)
        out = torch.einsum("nhql,nlhd->nqhd", [attention, values])
        return self.fc_out(out.reshape(N, query.shape[1], -1))


class Outcome(NamedTuple):
    last_hidden_state: torch.Tensor
    attentions: torch.Tensor


class Returning(FusedChunk):
    """More than the output comes back."""

    def __init__(self, dim, num_heads, form="tuple"):
        super().__init__(dim, num_heads)
        self.form = form

    def forward(self, x, mask=None):
        b, n, c = x.shape
        qkv = self.qkv(x).view(b, n, 3, self.num_heads, c // self.num_heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        weights = zeroing_softmax(q @ k.mT / math.sqrt(q.size(-1)), mask)
        out = self.proj((weights @ v).transpose(1, 2).reshape(b, n, c))
        if self.form == "dict":
            return {"output": out, "weights": weights}
        return Outcome(out, weights) if self.form == "named" else (out, weights)


def with_weight_norm(module):
    weight_norm(module.qkv)
    weight_norm(module.proj)
    return module


def with_hooks(module):
    """Hooks that look, and one that hands on what it got."""
    seen = []
    module.proj.register_forward_hook(lambda m, i, o: seen.append(tuple(o.shape)))
    module.qkv.register_forward_pre_hook(lambda m, i: i)
    return module


def _right(name, make, style, after=None, **intent):
    def whole(rng, dtype):
        d, h = sizes(rng)
        module = built(rng, dtype, lambda: make(d, h))
        return after(module) if after else module

    return Specimen(f"right: module, {name}", frozenset(), whole, intent, style)


SPECIMENS = (
    _right(
        "four clones, -1e9",
        lambda d, h: Annotated(h, d),
        "annotated transformer",
        empty_rows=False,
    ),
    _right("fused, chunked", FusedChunk, "fused qkv"),
    _right("fused, no bias", lambda d, h: FusedChunk(d, h, bias=False), "fused qkv"),
    _right("fused, one permute", FusedPermute, "vision transformer"),
    _right(
        "fused, bias, dropout, train mode",
        lambda d, h: FusedPermute(d, h, True, 0.4),
        "vision transformer",
        after=lambda m: m.train(),
    ),
    _right("fused by head", FusedPerHead, "GPT-NeoX"),
    _right("to_qkv, to_out", ToQKV, "lucidrains"),
    _right("a list of heads", lambda d, h: HeadList(h, d), "per head"),
    _right("one matrix for each head", Parameters, "TransformerLens"),
    _right("values, keys, query", Einsum, "einsum"),
    _right("a tuple comes back", Returning, "results"),
    _right("a dict comes back", lambda d, h: Returning(d, h, "dict"), "results"),
    _right(
        "a named tuple comes back", lambda d, h: Returning(d, h, "named"), "results"
    ),
    _right("weight_norm", FusedChunk, "parametrized", after=with_weight_norm),
    _right("hooks", FusedChunk, "hooks", after=with_hooks),
    _right("bfloat16", FusedChunk, "dtype", after=lambda m: m.to(torch.bfloat16)),
    _right("float16", FusedPermute, "dtype", after=lambda m: m.half()),
)
