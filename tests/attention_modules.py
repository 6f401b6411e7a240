"""Attention modules as people write them: names, layouts, masks, results.

Every one is right. `MODULES` says for each how to make it and what it takes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

D, H = 24, 4


def attend(q, k, v, mask=None):
    """(b, h, n, d); mask True = may look."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask.bool(), -torch.inf)
    return torch.softmax(scores, -1) @ v


def split(x, h):
    b, n, d = x.shape
    return x.view(b, n, h, d // h).transpose(1, 2)


def merge(x):
    b, h, n, d = x.shape
    return x.transpose(1, 2).reshape(b, n, h * d)


class Separate(nn.Module):
    """Four nn.Linear with names of one's own; forward(x, mask)."""

    names = ("W_q", "W_k", "W_v", "W_o")
    heads_name = "n_heads"

    def __init__(self, bias=True):
        super().__init__()
        setattr(self, self.heads_name, H)
        for name in self.names:
            if name:
                setattr(self, name, nn.Linear(D, D, bias=bias))

    def forward(self, x, mask=None):
        q, k, v = (split(getattr(self, name)(x), H) for name in self.names[:3])
        out = merge(attend(q, k, v, mask))
        return getattr(self, self.names[3])(out) if self.names[3] else out


def named(label, names, heads_name="n_heads"):
    return type(label, (Separate,), {"names": names, "heads_name": heads_name})


Llama = named("Llama", ("q_proj", "k_proj", "v_proj", "o_proj"), "num_heads")
Reference = named("Reference", ("wq", "wk", "wv", "wo"), "n_head")
Diffusers = named("Diffusers", ("to_q", "to_k", "to_v", "proj_out"), "heads")
Samuel = named("Samuel", ("q_linear", "k_linear", "v_linear", "out"), "h")
Fc = named("Fc", ("fc_q", "fc_k", "fc_v", "fc_o"), "nhead")
Former = named("Former", ("toqueries", "tokeys", "tovalues", "unifyheads"), "heads")
Words = named("Words", ("query", "key", "value", "dense"), "num_attention_heads")
Capital = named("Capital", ("WQ", "WK", "WV", "linear"), "num_heads")
NoOut = named("NoOut", ("W_query", "W_key", "W_value", ""), "num_heads")


class NeverCalled(Separate):
    """It has a W_o and does not use it."""

    def forward(self, x, mask=None):
        q, k, v = (split(getattr(self, name)(x), H) for name in self.names[:3])
        return merge(attend(q, k, v, mask))


class Annotated(nn.Module):
    """Four in a list; forward(query, key, value, mask), mask (b, n_q, n_k)."""

    def __init__(self):
        super().__init__()
        self.h, self.d_k = H, D // H
        self.linears = nn.ModuleList([nn.Linear(D, D) for _ in range(4)])

    def forward(self, query, key, value, mask=None):
        if mask is not None:
            mask = mask.unsqueeze(1)
        q, k, v = (
            split(lin(x), self.h)
            for lin, x in zip(self.linears, (query, key, value), strict=False)
        )
        return self.linears[-1](merge(attend(q, k, v, mask)))


class ThreeAndOne(nn.Module):
    """A list of three and a projection."""

    def __init__(self):
        super().__init__()
        self.num_heads = H
        self.layers = nn.ModuleList([nn.Linear(D, D, bias=False) for _ in range(3)])
        self.final = nn.Linear(D, D)

    def forward(self, x):
        q, k, v = (split(layer(x), H) for layer in self.layers)
        return self.final(merge(attend(q, k, v)))


class Nameless(nn.Module):
    """Names that say nothing: the order of use does."""

    def __init__(self):
        super().__init__()
        self.heads = H
        self.last = nn.Identity()
        self.fc4 = nn.Linear(D, D)
        self.fc1, self.fc2, self.fc3 = (nn.Linear(D, D) for _ in range(3))

    def forward(self, x):
        q, k, v = (split(fc(x), H) for fc in (self.fc1, self.fc2, self.fc3))
        return self.last(self.fc4(merge(attend(q, k, v))))


class Fused(nn.Module):
    """q, k and v side by side in one nn.Linear."""

    order = (0, 1, 2)
    name = "qkv"

    def __init__(self, bias=True):
        super().__init__()
        self.num_heads = H
        setattr(self, self.name, nn.Linear(D, 3 * D, bias=bias))
        self.proj = nn.Linear(D, D)

    def forward(self, x):
        three = getattr(self, self.name)(x).chunk(3, dim=-1)
        q, k, v = (split(three[i], H) for i in self.order)
        return self.proj(merge(attend(q, k, v)))


class KeyFirst(Fused):
    order = (1, 0, 2)


class ValueFirst(Fused):
    order = (1, 2, 0)
    name = "attn"


class CAttn(Fused):
    name = "c_attn"


class ByHead(nn.Module):
    """q, k and v of each head side by side, as GPT-NeoX has them."""

    def __init__(self):
        super().__init__()
        self.config = SimpleNamespace(num_attention_heads=H)
        self.query_key_value = nn.Linear(D, 3 * D)
        self.dense = nn.Linear(D, D)

    def forward(self, hidden_states, attention_mask=None):
        b, n, _ = hidden_states.shape
        qkv = self.query_key_value(hidden_states).view(b, n, H, 3 * (D // H))
        q, k, v = (t.transpose(1, 2) for t in qkv.chunk(3, dim=-1))
        if attention_mask is not None:  # (b, 1, n_q, n_k), or the heads' own
            assert attention_mask.dim() == 4
        return (self.dense(merge(attend(q, k, v, attention_mask))), None)


class Innermost(nn.Module):
    """(d_k, 3, h) in one matrix: the heads innermost, so that features alternate."""

    def __init__(self):
        super().__init__()
        self.heads = H
        self.to_qkv = nn.Linear(D, 3 * D, bias=False)

    def forward(self, x):
        b, n, _ = x.shape
        three = self.to_qkv(x).view(b, n, D // H, 3, H).permute(3, 0, 4, 1, 2)
        return merge(attend(*three))


class Grouped(nn.Module):
    """Fewer key heads, and q, k, v of a group side by side."""

    def __init__(self):
        super().__init__()
        self.n_head, self.n_kv_head = 6, 2
        self.wqkv = nn.Linear(D, (6 + 2 + 2) * 4, bias=False)
        self.wo = nn.Linear(D, D, bias=False)

    def forward(self, x, mask=None):
        b, n, _ = x.shape
        groups = self.wqkv(x).view(b, n, 2, 5, 4)
        q = groups[..., :3, :].reshape(b, n, 6, 4).transpose(1, 2)
        k, v = (groups[..., i, :].transpose(1, 2) for i in (3, 4))
        k, v = (t.repeat_interleave(3, dim=1) for t in (k, v))
        return self.wo(merge(attend(q, k, v, mask)))


class SideBySideGroups(nn.Module):
    """One matrix of 6 query, 2 key and 2 value heads."""

    def __init__(self):
        super().__init__()
        self.num_heads, self.num_key_value_heads = 6, 2
        self.qkv_proj = nn.Linear(D, 40)
        self.o_proj = nn.Linear(D, D, bias=False)

    def forward(self, x):
        q, k, v = self.qkv_proj(x).split([24, 8, 8], dim=-1)
        q, k, v = split(q, 6), split(k, 2), split(v, 2)
        k, v = (t.repeat_interleave(3, dim=1) for t in (k, v))
        return self.o_proj(merge(attend(q, k, v)))


class MultiQuery(nn.Module):
    def __init__(self):
        super().__init__()
        self.n_heads, self.kv_heads = 6, 1
        self.q_proj = nn.Linear(D, D)
        self.kv_proj = nn.Linear(D, 8)
        self.out_proj = nn.Linear(D, D)

    def forward(self, x, mask=None):
        k, v = self.kv_proj(x).unsqueeze(1).chunk(2, dim=-1)
        return self.out_proj(merge(attend(split(self.q_proj(x), 6), k, v, mask)))


class QAndKV(nn.Module):
    """Cross attention: to_q of x, to_kv of the context."""

    def __init__(self, context_dim=10):
        super().__init__()
        self.heads = H
        self.norm_out = nn.Identity()
        self.to_q = nn.Linear(D, D, bias=False)
        self.to_kv = nn.Linear(context_dim, 2 * D, bias=False)
        self.to_out = nn.Sequential(nn.Linear(D, D), nn.Dropout(0.1))

    def forward(self, x, context, context_mask=None):
        k, v = (split(t, H) for t in self.to_kv(context).chunk(2, dim=-1))
        if context_mask is not None:
            context_mask = context_mask[:, None, None, :]
        return self.to_out(merge(attend(split(self.to_q(x), H), k, v, context_mask)))


class Raw(nn.Module):
    """Plain parameters, x @ W, square: behaviour tells which way round they are."""

    def __init__(self):
        super().__init__()
        self.n_heads = H
        for name in ("W_q", "W_k", "W_v", "W_o"):
            setattr(self, name, nn.Parameter(torch.randn(D, D) / 5))
        self.b_o = nn.Parameter(torch.zeros(D))

    def forward(self, x, memory=None, mask=None):
        source = x if memory is None else memory
        q = split(x @ self.W_q, H)
        k, v = split(source @ self.W_k, H), split(source @ self.W_v, H)
        return merge(attend(q, k, v, mask)) @ self.W_o + self.b_o


class RawFlipped(nn.Module):
    """Plain parameters used by F.linear."""

    def __init__(self):
        super().__init__()
        self.num_heads = H
        self.q_weight, self.k_weight, self.v_weight, self.out_weight = (
            nn.Parameter(torch.randn(D, D) / 5) for _ in range(4)
        )
        self.q_bias, self.v_bias = (nn.Parameter(torch.randn(D)) for _ in range(2))

    def forward(self, x):
        q = split(F.linear(x, self.q_weight, self.q_bias), H)
        k = split(F.linear(x, self.k_weight), H)
        v = split(F.linear(x, self.v_weight, self.v_bias), H)
        return F.linear(merge(attend(q, k, v)), self.out_weight)


class RawFused(nn.Module):
    """in_proj_weight and in_proj_bias as in nn.MultiheadAttention, written anew."""

    def __init__(self):
        super().__init__()
        self.nhead = H
        self.in_proj_weight = nn.Parameter(torch.randn(3 * D, D) / 5)
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * D))
        self.out_proj = nn.Linear(D, D)

    def forward(self, query, key=None, value=None, attn_mask=None):
        key = query if key is None else key
        value = key if value is None else value
        weights = self.in_proj_weight.chunk(3)
        biases = self.in_proj_bias.chunk(3)
        q, k, v = (
            split(F.linear(x, w, b), H)
            for x, w, b in zip((query, key, value), weights, biases, strict=True)
        )
        return self.out_proj(merge(attend(q, k, v, attn_mask)))


class Lens(nn.Module):
    """One matrix a head, (n_heads, d_model, d_head)."""

    def __init__(self):
        super().__init__()
        d = D // H
        self.cfg = SimpleNamespace(n_heads=H, d_head=d, d_model=D)
        self.W_Q, self.W_K, self.W_V = (
            nn.Parameter(torch.randn(H, D, d) / 5) for _ in range(3)
        )
        self.W_O = nn.Parameter(torch.randn(H, d, D) / 5)
        self.b_Q, self.b_K, self.b_V = (
            nn.Parameter(torch.zeros(H, d)) for _ in range(3)
        )
        self.b_O = nn.Parameter(torch.zeros(D))

    def forward(self, query_input, key_input, value_input):
        q = torch.einsum("bpd,hde->bhpe", query_input, self.W_Q) + self.b_Q[:, None]
        k = torch.einsum("bpd,hde->bhpe", key_input, self.W_K) + self.b_K[:, None]
        v = torch.einsum("bpd,hde->bhpe", value_input, self.W_V) + self.b_V[:, None]
        return torch.einsum("bhpe,hed->bpd", attend(q, k, v), self.W_O) + self.b_O


class DenseGeneral(nn.Module):
    """(d_model, n_heads, d_head), as Flax and Keras have them."""

    def __init__(self):
        super().__init__()
        d = D // H
        self.query, self.key, self.value = (
            nn.Parameter(torch.randn(D, H, d) / 5) for _ in range(3)
        )
        self.out = nn.Parameter(torch.randn(H, d, D) / 5)

    def forward(self, inputs_q, inputs_kv, mask=None):
        q = torch.einsum("bnd,dhe->bhne", inputs_q, self.query)
        k = torch.einsum("bnd,dhe->bhne", inputs_kv, self.key)
        v = torch.einsum("bnd,dhe->bhne", inputs_kv, self.value)
        return torch.einsum("bhne,hed->bnd", attend(q, k, v, mask), self.out)


class OneHead(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        return attend(q, k, v)


class HeadList(nn.Module):
    """A list of heads, joined."""

    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList([OneHead(D, D // H) for _ in range(H)])
        self.out_proj = nn.Linear(D, D)

    def forward(self, x):
        return self.out_proj(torch.cat([head(x) for head in self.heads], dim=-1))


class HeadListNoOut(HeadList):
    def __init__(self):
        super().__init__()
        del self.out_proj

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)


class Conv1D(nn.Module):
    """GPT-2's layer: the weight is (n_in, n_out)."""

    def __init__(self, nf, nx):
        super().__init__()
        self.nf = nf
        self.weight = nn.Parameter(torch.randn(nx, nf) * 0.02)
        self.bias = nn.Parameter(torch.zeros(nf))

    def forward(self, x):
        flat = torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight)
        return flat.view(*x.shape[:-1], self.nf)


class GPT2(nn.Module):
    def __init__(self):
        super().__init__()
        self.n_head = H
        self.c_attn, self.c_proj = Conv1D(3 * D, D), Conv1D(D, D)

    def forward(self, hidden_states, layer_past=None, use_cache=False):
        q, k, v = (split(t, H) for t in self.c_attn(hidden_states).split(D, dim=2))
        return self.c_proj(merge(attend(q, k, v))), (k, v)


class KernelOne(nn.Module):
    """1x1 convolutions over (b, d, n)."""

    def __init__(self):
        super().__init__()
        self.n_heads = H
        self.conv_q, self.conv_k, self.conv_v, self.conv_o = (
            nn.Conv1d(D, D, 1) for _ in range(4)
        )

    def forward(self, x, c, attn_mask=None):
        x, c = x.transpose(1, 2), c.transpose(1, 2)
        q, k, v = (
            conv(t).view(len(t), H, D // H, -1).transpose(2, 3)
            for conv, t in ((self.conv_q, x), (self.conv_k, c), (self.conv_v, c))
        )
        out = attend(q, k, v, attn_mask).transpose(2, 3).reshape(len(x), D, -1)
        return self.conv_o(out).transpose(1, 2)


class Lengths(nn.Module):
    """valid_lens, as in a text book."""

    def __init__(self):
        super().__init__()
        self.num_heads = H
        self.W_q, self.W_k, self.W_v, self.W_o = (
            nn.LazyLinear(D, bias=False) for _ in range(4)
        )

    def forward(self, queries, keys, values, valid_lens):
        mask = None
        if valid_lens is not None:
            mask = torch.arange(keys.shape[1])[None] < valid_lens[:, None]
            mask = mask[:, None, None]
        q = split(self.W_q(queries), H)
        k, v = split(self.W_k(keys), H), split(self.W_v(values), H)
        return self.W_o(merge(attend(q, k, v, mask)))


class Blocked(Separate):
    """mask and key_padding_mask, True = blocked; both."""

    def forward(self, x, mask=None, key_padding_mask=None):
        b, n, _ = x.shape
        allowed = torch.ones(b, 1, n, n, dtype=torch.bool)
        if mask is not None:
            allowed = allowed & ~mask
        if key_padding_mask is not None:
            allowed = allowed & ~key_padding_mask[:, None, None]
        q, k, v = (split(getattr(self, name)(x), H) for name in self.names[:3])
        return self.W_o(merge(attend(q, k, v, allowed)))


class Causal(Separate):
    """A switch, and it is off."""

    def forward(self, x, causal: bool = False):
        n = x.shape[1]
        mask = torch.ones(n, n).tril().bool() if causal else None
        return super().forward(x, mask)


@dataclass
class Output:
    attn_weights: torch.Tensor
    last_hidden_state: torch.Tensor


class GivesDataclass(Separate):
    def forward(self, x):
        q, k, v = (split(getattr(self, name)(x), H) for name in self.names[:3])
        weights = torch.softmax(q @ k.mT / (D // H) ** 0.5, -1)
        return Output(weights, self.W_o(merge(weights @ v)))


class Angles(Separate):
    """Hugging Face's position_embeddings must be given."""

    def forward(self, hidden_states, position_embeddings, attention_mask=None):
        cos, sin = position_embeddings
        q, k, v = (split(getattr(self, n)(hidden_states), H) for n in self.names[:3])

        def turn(x):
            half = x.shape[-1] // 2
            turned = torch.cat((-x[..., half:], x[..., :half]), -1)
            return x * cos[:, None] + turned * sin[:, None]

        return self.W_o(merge(attend(turn(q), turn(k), v, attention_mask)))


class TimeFirst(nn.Module):
    """batch_first = False, as nn.MultiheadAttention has it by default."""

    batch_first = False

    def __init__(self):
        super().__init__()
        self.inner = Separate()

    def forward(self, x):
        return self.inner(x.transpose(0, 1)).transpose(0, 1)


class Mixed(nn.Module):
    """In bfloat16, with a frozen weight, in train mode and with dropout."""

    def __init__(self):
        super().__init__()
        self.inner = Separate().to(torch.bfloat16)
        self.inner.W_q.weight.requires_grad_(False)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.inner(x))


class Narrow(nn.Module):
    """Fewer features inside, of another number for the values, and other ones out."""

    def __init__(self):
        super().__init__()
        self.n_heads = H
        self.W_q, self.W_k = nn.Linear(D, 12), nn.Linear(D, 12)
        self.W_v, self.W_o = nn.Linear(D, 20), nn.Linear(20, 18)

    def forward(self, x, mask=None):
        q, k, v = (split(w(x), H) for w in (self.W_q, self.W_k, self.W_v))
        return self.W_o(merge(attend(q, k, v, mask)))


class NoHeads(Separate):
    """It does not say how many heads it has."""

    def __init__(self):
        super().__init__()
        del self.n_heads


def weight_normed():
    module = Separate()
    nn.utils.parametrizations.weight_norm(module.W_q)
    nn.utils.parametrizations.spectral_norm(module.W_v)
    return module


# label -> (make, options, what it takes)
MODULES = {
    "W_q": (Separate, {}, {"mask"}),
    "W_q, no bias": (lambda: Separate(bias=False), {}, {"mask"}),
    "q_proj": (Llama, {}, {"mask"}),
    "wq": (Reference, {}, {"mask"}),
    "to_q": (Diffusers, {}, {"mask"}),
    "q_linear": (Samuel, {}, {"mask"}),
    "fc_q": (Fc, {}, {"mask"}),
    "toqueries": (Former, {}, {"mask"}),
    "query, dense": (Words, {}, {"mask"}),
    "WQ, linear": (Capital, {}, {"mask"}),
    "no W_o": (NoOut, {}, {"mask", "no out"}),
    "linears": (Annotated, {}, {"mask", "memory"}),
    "a list of three": (ThreeAndOne, {}, set()),
    "fc1 to fc4": (Nameless, {}, set()),
    "qkv": (Fused, {}, set()),
    "qkv, no bias": (lambda: Fused(bias=False), {}, set()),
    "kqv": (KeyFirst, {}, set()),
    "vqk, named attn": (ValueFirst, {}, set()),
    "c_attn": (CAttn, {}, set()),
    "by head": (ByHead, {}, {"mask"}),
    "groups by group": (Grouped, {}, {"mask"}),
    "groups side by side": (SideBySideGroups, {}, set()),
    "multi-query": (MultiQuery, {}, {"mask"}),
    "to_kv of a context": (QAndKV, {}, {"memory", "padding"}),
    "x @ W": (Raw, {}, {"mask", "memory"}),
    "F.linear": (RawFlipped, {}, set()),
    "in_proj_weight": (RawFused, {}, {"mask", "memory"}),
    "W_Q of each head": (Lens, {}, {"memory"}),
    "DenseGeneral": (DenseGeneral, {}, {"mask", "memory"}),
    "a list of heads": (HeadList, {}, set()),
    "a list of heads, no W_o": (HeadListNoOut, {}, {"no out"}),
    "GPT-2": (GPT2, {}, set()),
    "1x1 convolutions": (KernelOne, {}, {"mask", "memory"}),
    "valid_lens": (Lengths, {}, {"memory", "padding"}),
    "blocked": (Blocked, {"mask": "blocked"}, {"mask", "padding"}),
    "a causal switch": (Causal, {}, {"causal"}),
    "a dataclass": (GivesDataclass, {}, {"weights"}),
    "angles": (Angles, {}, {"mask"}),
    "time first": (TimeFirst, {}, set()),
    "bfloat16": (Mixed, {}, set()),
    "narrow": (Narrow, {}, {"mask"}),
    "heads not said": (NoHeads, {}, {"mask", "counted"}),
    "heads by keyword": (NoHeads, {"n_heads": H}, {"mask"}),
    "weight norm": (weight_normed, {}, {"mask"}),
    "nn.MultiheadAttention": (
        lambda: nn.MultiheadAttention(D, H, batch_first=True),
        {},
        {"mask", "padding", "memory"},
    ),
    "nn.MultiheadAttention, time first": (
        lambda: nn.MultiheadAttention(D, H, dropout=0.3),
        {},
        {"mask", "padding", "memory"},
    ),
    "nn.MultiheadAttention, no bias": (
        lambda: nn.MultiheadAttention(D, H, bias=False, batch_first=True).eval(),
        {},
        {"mask", "padding", "memory"},
    ),
    "nn.MultiheadAttention, other widths": (
        lambda: nn.MultiheadAttention(D, H, kdim=10, vdim=14, batch_first=True),
        {},
        {"mask", "padding", "memory", "values"},
    ),
}


class Jadore(nn.Module):
    """layer_norm(residual + dropout(fc(...))) in one module, and the weights."""

    def __init__(self):
        super().__init__()
        self.n_head, self.d_k, self.d_v = H, 5, 7
        self.w_qs, self.w_ks = (nn.Linear(D, H * 5, bias=False) for _ in range(2))
        self.w_vs = nn.Linear(D, H * 7, bias=False)
        self.fc = nn.Linear(H * 7, D, bias=False)
        self.dropout = nn.Dropout(0.1)
        self.layer_norm = nn.LayerNorm(D, eps=1e-6)

    def forward(self, q, k, v, mask=None):
        residual = q
        q, k, v = (
            split(w(x), H) for w, x in ((self.w_qs, q), (self.w_ks, k), (self.w_vs, v))
        )
        if mask is not None:
            mask = mask.unsqueeze(1)
        out = self.dropout(self.fc(merge(attend(q, k, v, mask))))
        return self.layer_norm(out + residual), None


class PreNorm(Separate):
    """Norms first, and a residual at the end."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(D)
        nn.init.normal_(self.norm.weight)

    def forward(self, x, mask=None):
        return x + super().forward(self.norm(x), mask)


class ImageNorm(Fused):
    """Norms first, no residual, and a fused matrix."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(D)

    def forward(self, x):
        return super().forward(self.norm(x))


AROUND = {
    "jadore": (
        Jadore,
        (
            "It norms its result: examined is the attention without.",
            "It adds its tokens to the result: examined is what it adds.",
        ),
    ),
    "norm first": (
        PreNorm,
        (
            "It norms its tokens first: examined is the attention without.",
            "It adds its tokens to the result: examined is what it adds.",
        ),
    ),
    "norm first, fused": (
        ImageNorm,
        ("It norms its tokens first: examined is the attention without.",),
    ),
}


class Shared(nn.Module):
    """One small matrix for all heads; forward(values, keys, query, mask)."""

    def __init__(self, embed_size=D, heads=H):
        super().__init__()
        self.embed_size, self.heads = embed_size, heads
        self.head_dim = embed_size // heads
        self.values, self.keys, self.queries = (
            nn.Linear(self.head_dim, self.head_dim, bias=False) for _ in range(3)
        )
        self.fc_out = nn.Linear(embed_size, embed_size)

    def forward(self, values, keys, query, mask):
        n, h, d = query.shape[0], self.heads, self.head_dim
        v = self.values(values.reshape(n, -1, h, d))
        k = self.keys(keys.reshape(n, -1, h, d))
        q = self.queries(query.reshape(n, -1, h, d))
        energy = torch.einsum("nqhd,nkhd->nhqk", [q, k])
        if mask is not None:
            energy = energy.masked_fill(mask == 0, float("-1e20"))
        attention = torch.softmax(energy / d**0.5, dim=3)
        out = torch.einsum("nhql,nlhd->nqhd", [attention, v])
        return self.fc_out(out.reshape(n, -1, self.embed_size))


class FirstLesson(nn.Module):
    """One text (n, d) at a time, one head, plain parameters, as books begin."""

    def __init__(self, d_in=D, d_out=D - 4):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x, mask=None):
        keys, queries, values = x @ self.W_key, x @ self.W_query, x @ self.W_value
        scores = queries @ keys.T
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        return weights @ values


class HandsOn(nn.Module):
    """forward(*args, **kwargs) around another module, as wrappers do."""

    def __init__(self):
        super().__init__()
        self.inner = Raw()

    def forward(self, *args, **kwargs):
        return self.inner(*args, **kwargs)


class Standardised(nn.Linear):
    """A layer that makes something of its own of its weight."""

    def forward(self, x):
        centred = self.weight - self.weight.mean(1, keepdim=True)
        return F.linear(x, centred / centred.std(), self.bias)


class OwnLayers(Separate):
    def __init__(self):
        super().__init__()
        self.W_q, self.W_o = Standardised(D, D), Standardised(D, D)


class OwnFused(Fused):
    def __init__(self):
        super().__init__()
        self.qkv = Standardised(D, 3 * D)


AROUND |= {
    "shared by heads": (
        Shared,
        ("Its heads share a matrix: examined with one for each.",),
    ),
    "one text": (
        FirstLesson,
        (
            "It takes one text at a time, without a batch.",
            "n_heads was not given, and no attribute says it: 1 was counted, from what "
            "it does.",
        ),
    ),
    "hands on": (HandsOn, ()),
    "compiled": (lambda: torch.compile(Separate(), backend="eager"), ()),
    "data parallel": (lambda: nn.DataParallel(Separate()), ()),
    "own layers": (OwnLayers, ()),
    "own fused layer": (OwnFused, ()),
}


class DecoderStyle(nn.Module):
    """Many masks by name, of which two are used."""

    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(D, H, batch_first=True)

    def forward(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
    ):
        return self.inner(
            tgt,
            memory,
            memory,
            attn_mask=memory_mask,
            key_padding_mask=memory_key_padding_mask,
        )[0]


MODULES["four masks"] = (
    DecoderStyle,
    {"mask": "blocked"},
    {"mask", "padding", "memory"},
)


class Reads(nn.Module):
    """PyTorch's attention under a name that says nothing, for x and a memory."""

    def __init__(self):
        super().__init__()
        self.cross = nn.MultiheadAttention(D, H, batch_first=True)

    def forward(self, x, memory, memory_key_padding_mask=None):
        return self.cross(
            x,
            memory,
            memory,
            key_padding_mask=memory_key_padding_mask,
            need_weights=False,
        )[0]


class ReadsAndNorms(Reads):
    """The same with x added, and a norm after it."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(D)

    def forward(self, x, memory):
        return self.norm(x + super().forward(x, memory))


MODULES["cross"] = (Reads, {"mask": "blocked"}, {"padding", "memory"})
AROUND["cross, normed"] = (
    ReadsAndNorms,
    (
        "It norms its result: examined is the attention without.",
        "It adds its tokens to the result: examined is what it adds.",
    ),
)
