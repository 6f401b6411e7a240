"""Right modules of known families: BERT, LLaMA, T5, Whisper, ...; groups, crossings."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from .draw import built, sizes
from .right_modules import zeroing_softmax
from .specimen import Specimen


class BertLike(nn.Module):
    """The mask is added: 0 for what may be read, finfo.min or -inf for what not."""

    def __init__(self, hidden_size, num_attention_heads):
        super().__init__()
        self.num_attention_heads = num_attention_heads
        self.attention_head_size = hidden_size // num_attention_heads
        self.query = nn.Linear(hidden_size, hidden_size)
        self.key = nn.Linear(hidden_size, hidden_size)
        self.value = nn.Linear(hidden_size, hidden_size)
        self.dropout = nn.Dropout(0.1)
        self.dense = nn.Linear(hidden_size, hidden_size)

    def transpose_for_scores(self, x):
        split = (self.num_attention_heads, self.attention_head_size)
        return x.view(*x.shape[:-1], *split).permute(0, 2, 1, 3)

    def forward(self, hidden_states, attention_mask=None):
        query = self.transpose_for_scores(self.query(hidden_states))
        key = self.transpose_for_scores(self.key(hidden_states))
        value = self.transpose_for_scores(self.value(hidden_states))
        scores = query @ key.transpose(-1, -2) / math.sqrt(self.attention_head_size)
        if attention_mask is not None:
            added = attention_mask
            scores = scores + (added if added.dim() == 2 else added[:, None])
        empty = (scores <= torch.finfo(scores.dtype).min / 2).all(-1, keepdim=True)
        probs = scores.masked_fill(empty, 0.0).softmax(dim=-1)
        probs = self.dropout(probs).masked_fill(empty, 0.0)
        context = (probs @ value).permute(0, 2, 1, 3).contiguous()
        return self.dense(context.view(hidden_states.shape)), probs


class Grouped(nn.Module):
    """LLaMA's names; three ways to hand a key head to its group."""

    def __init__(self, hidden, n_heads, n_kv_heads, way="expand"):
        super().__init__()
        self.num_heads, self.num_key_value_heads = n_heads, n_kv_heads
        self.head_dim = hidden // n_heads
        self.way = way
        self.q_proj = nn.Linear(hidden, n_heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(hidden, n_kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(hidden, n_kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(n_heads * self.head_dim, hidden, bias=False)

    def repeat_kv(self, t):
        b, kv, n, d = t.shape
        group = self.num_heads // kv
        if self.way == "repeat_interleave":
            return t.repeat_interleave(group, dim=1)
        return t[:, :, None].expand(b, kv, group, n, d).reshape(b, -1, n, d)

    def forward(self, hidden_states, mask=None):
        b, n, _ = hidden_states.shape
        q = self.q_proj(hidden_states).view(b, n, -1, self.head_dim).transpose(1, 2)
        k = self.k_proj(hidden_states).view(b, n, -1, self.head_dim).transpose(1, 2)
        v = self.v_proj(hidden_states).view(b, n, -1, self.head_dim).transpose(1, 2)
        if self.way == "view":
            q = q.unflatten(1, (self.num_key_value_heads, -1))
            scores = torch.einsum("bgrqd,bgkd->bgrqk", q, k).flatten(1, 2)
            weights = zeroing_softmax(scores / math.sqrt(self.head_dim), mask)
            weights = weights.unflatten(1, (self.num_key_value_heads, -1))
            out = torch.einsum("bgrqk,bgkd->bgrqd", weights, v).flatten(1, 2)
        else:
            k, v = self.repeat_kv(k), self.repeat_kv(v)
            out = zeroing_softmax(q @ k.mT * self.head_dim**-0.5, mask) @ v
        return self.o_proj(out.transpose(1, 2).reshape(b, n, -1))


class MultiQuery(nn.Module):
    """One key and one value head, in one fused layer of unequal parts."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.dim_head = heads, dim // heads
        self.fused = (dim, self.dim_head, self.dim_head)
        self.qkv = nn.Linear(dim, sum(self.fused), bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, x, mask=None):
        q, k, v = self.qkv(x).split(self.fused, dim=-1)
        q = q.unflatten(-1, (self.heads, self.dim_head)).transpose(1, 2)
        sim = torch.einsum("bhid,bjd->bhij", q, k) * self.dim_head**-0.5
        out = torch.einsum("bhij,bjd->bihd", zeroing_softmax(sim, mask), v)
        return self.out(out.flatten(2))


class Folded(nn.Module):
    """Heads folded into the batch, baddbmm and bmm, as diffusers and fairseq do."""

    def __init__(self, query_dim, heads, cross_attention_dim=None):
        super().__init__()
        self.heads, self.scale = heads, (query_dim // heads) ** -0.5
        context_dim = cross_attention_dim or query_dim
        self.to_q = nn.Linear(query_dim, query_dim, bias=False)
        self.to_k = nn.Linear(context_dim, query_dim, bias=False)
        self.to_v = nn.Linear(context_dim, query_dim, bias=False)
        self.to_out = nn.ModuleList([nn.Linear(query_dim, query_dim), nn.Dropout(0.1)])

    def head_to_batch_dim(self, t):
        b, n, _ = t.shape
        return t.view(b, n, self.heads, -1).permute(0, 2, 1, 3).flatten(0, 1)

    def forward(self, hidden_states, encoder_hidden_states=None):
        context = encoder_hidden_states
        context = hidden_states if context is None else context
        q = self.head_to_batch_dim(self.to_q(hidden_states))
        k = self.head_to_batch_dim(self.to_k(context))
        v = self.head_to_batch_dim(self.to_v(context))
        nothing = torch.empty(len(q), q.size(1), k.size(1), dtype=q.dtype)
        scores = torch.baddbmm(nothing, q, k.mT, beta=0, alpha=self.scale)
        out = torch.bmm(scores.softmax(-1), v).unflatten(0, (-1, self.heads))
        out = out.transpose(1, 2).flatten(2)
        for layer in self.to_out:
            out = layer(out)
        return out


class CrossOnly(nn.Module):
    """Queries from x, keys and values from the context; a mask of the context."""

    def __init__(self, d_model, n_heads, d_context):
        super().__init__()
        self.n_heads = n_heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_context, d_model, bias=False)
        self.value = nn.Linear(d_context, d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, context, mask=None):
        q = self.query(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k = self.key(context).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        v = self.value(context).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        look = None if mask is None or mask.dim() == 2 else mask[:, None]
        look = mask if look is None else look
        wv = F.scaled_dot_product_attention(q, k, v, attn_mask=look)
        return self.out(wv.permute(0, 2, 1, 3).flatten(start_dim=2))


class Whisperish(nn.Module):
    """Self or cross attention, d^-1/4 on both sides; no bias for the keys."""

    def __init__(self, n_state, n_head):
        super().__init__()
        self.n_head = n_head
        self.query = nn.Linear(n_state, n_state)
        self.key = nn.Linear(n_state, n_state, bias=False)
        self.value = nn.Linear(n_state, n_state)
        self.out = nn.Linear(n_state, n_state)

    def forward(self, x, xa=None, mask=None):
        source = x if xa is None else xa
        scale = (x.shape[-1] // self.n_head) ** -0.25
        q = self.query(x).view(*x.shape[:2], self.n_head, -1).permute(0, 2, 1, 3)
        shape = (*source.shape[:2], self.n_head, -1)
        k = self.key(source).view(shape).permute(0, 2, 3, 1)
        v = self.value(source).view(shape).permute(0, 2, 1, 3)
        qk = ((q * scale) @ (k * scale)).double()
        w = zeroing_softmax(qk, mask).to(q.dtype)
        return self.out((w @ v).permute(0, 2, 1, 3).flatten(start_dim=2)), qk.detach()


class KeyPadding(nn.Module):
    """A padding mask alone; `hidden` says whether True is padding or a token."""

    def __init__(self, d_model, n_heads, hidden):
        super().__init__()
        self.n_heads, self.hidden = n_heads, hidden
        self.in_proj = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, key_padding_mask=None):
        split = self.in_proj(x).unflatten(-1, (3, self.n_heads, -1))
        q, k, v = split.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
        if key_padding_mask is not None:
            pad = key_padding_mask if self.hidden else ~key_padding_mask
            scores = scores.masked_fill(pad[:, None, None, :], float("-inf"))
        weights = torch.nan_to_num(scores.softmax(-1))
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2))


class OneHead(nn.Module):
    """q, k, v of one head, and no output projection: nothing is missing."""

    def __init__(self, dim, d_k):
        super().__init__()
        self.q = nn.Linear(dim, d_k)
        self.k = nn.Linear(dim, d_k)
        self.v = nn.Linear(dim, dim)

    def forward(self, x, mask=None):
        q, k, v = self.q(x), self.k(x), self.v(x)
        scores = torch.bmm(q, k.transpose(1, 2)) / k.size(-1) ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return torch.nan_to_num(scores.softmax(dim=2)) @ v


class Streaming(nn.Module):
    """An online softmax over the keys, inside a module."""

    def __init__(self, d_model, nhead):
        super().__init__()
        self.nhead = nhead
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.o = nn.Linear(d_model, d_model)

    def forward(self, x, mask=None):
        b, n, _ = x.shape
        qkv = self.qkv(x).view(b, n, 3, self.nhead, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0] / math.sqrt(qkv.size(-1)), qkv[1], qkv[2]
        top = q.new_full((*q.shape[:-1], 1), -torch.inf)
        total, acc = torch.zeros_like(top), torch.zeros_like(v)
        for j in range(n):
            s = (q * k[:, :, j : j + 1]).sum(-1, keepdim=True)
            if mask is not None:
                column = mask[..., j : j + 1]
                column = column if mask.dim() == 2 else column[:, None]
                s = s.masked_fill(~column, -torch.inf)
            new = torch.maximum(top, s)
            shift = new.masked_fill(new.isneginf(), 0)
            old, now = (top - shift).exp(), (s - shift).exp()
            total, acc = total * old + now, acc * old + now * v[:, :, j : j + 1]
            top = new
        mixed = acc / total.masked_fill(total == 0, 1)
        return self.o(mixed.transpose(1, 2).reshape(b, n, -1))


def _right(name, make, style, **intent):
    def whole(rng, dtype):
        d, h = sizes(rng)
        return built(rng, dtype, lambda: make(d, h))

    return Specimen(f"right: family, {name}", frozenset(), whole, intent, style)


def _groups(way):
    return lambda d, h: Grouped(d * 2, 2 * h, h, way)


SPECIMENS = (
    _right("BERT, mask added", BertLike, "hugging face", mask="added"),
    _right("groups expanded", _groups("expand"), "llama"),
    _right("groups by repeat_interleave", _groups("repeat_interleave"), "llama"),
    _right("groups as an axis of q", _groups("view"), "view"),
    _right("one key head", lambda d, h: Grouped(d, h, 1), "llama"),
    _right("multi-query, fused", MultiQuery, "lucidrains"),
    _right("heads in the batch", Folded, "diffusers"),
    _right("heads in the batch, context", lambda d, h: Folded(d, h, 10), "diffusers"),
    _right("cross attention only", lambda d, h: CrossOnly(d, h, 14), "decoder"),
    _right("cross attention, same size", lambda d, h: CrossOnly(d, h, d), "decoder"),
    _right("Whisper", Whisperish, "whisper"),
    _right(
        "padding is True",
        lambda d, h: KeyPadding(d, h, True),
        "padding",
        mask="blocked",
    ),
    _right("tokens are True", lambda d, h: KeyPadding(d, h, False), "padding"),
    _right("one head, no W_o", lambda d, h: OneHead(d, 5), "single head", n_heads=1),
    _right("online softmax", Streaming, "online softmax"),
)
