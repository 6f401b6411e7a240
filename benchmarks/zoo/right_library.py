"""Right attentions from libraries: attnlib's module and PyTorch's, in many settings."""

import torch
from torch import nn

from attnlib.nn import MultiHeadAttention
from attnlib.nn.rotary import Rotary
from attnlib.nn.stable import Softcap, hold_norms

from .draw import built, sizes
from .specimen import Specimen


class Half:
    """RoPE that turns feature i with feature i + d / 2, as LLaMA in transformers."""

    def __call__(self, x, positions):
        d = x.shape[-1]
        speed = 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
        angles = positions[..., None].double() * speed
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        a, b = x[..., : d // 2], x[..., d // 2 :]
        return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


class Around(nn.Module):
    """nn.MultiheadAttention inside, called as people call it; True = may look."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.attn = nn.MultiheadAttention(d_model, n_heads, batch_first=True)
        self.num_heads = n_heads

    def forward(self, x, mask=None):
        hidden = None if mask is None else ~mask
        if hidden is not None and hidden.dim() == 3:  # one mask for each head of each
            hidden = hidden.repeat_interleave(self.num_heads, dim=0)
        return self.attn(x, x, x, attn_mask=hidden, need_weights=False)[0]


class Crossing(nn.Module):
    """The cross attention of a decoder layer, from PyTorch's parts."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.multihead_attn = nn.MultiheadAttention(d_model, n_heads, batch_first=True)

    def forward(self, x, memory, memory_key_padding_mask=None):
        out, _ = self.multihead_attn(
            x,
            memory,
            memory,
            key_padding_mask=memory_key_padding_mask,
            need_weights=False,
        )
        return out


def _ours(name, change=None, intent=None, after=None, **options):
    """Our module; `change(d_model, n_heads)` gives options that need the sizes."""

    def make(rng, dtype):
        d_model, n_heads = sizes(rng)
        wanted = options | (change(d_model, n_heads) if change else {})
        module = built(
            rng, dtype, lambda: MultiHeadAttention(d_model, n_heads, **wanted)
        )
        return after(module) if after else module

    name = f"right: attnlib module, {name}"
    return Specimen(name, frozenset(), make, intent or {}, "attnlib")


def _theirs(name, kind=nn.MultiheadAttention, intent=None, after=None, **options):
    def make(rng, dtype):
        d_model, n_heads = sizes(rng)
        module = built(rng, dtype, lambda: kind(d_model, n_heads, **options))
        return after(module) if after else module

    name = f"right: nn.MultiheadAttention, {name}"
    return Specimen(name, frozenset(), make, intent or {}, "torch")


def _groups(d_model, n_heads):
    return {"n_kv_heads": n_heads // 2 if n_heads % 2 == 0 else 1}


SPECIMENS = (
    _ours("default"),
    _ours("grouped", _groups),
    _ours("multi-query", n_kv_heads=1),
    _ours("no bias", bias=False),
    _ours("d_k and d_v of its own", d_k=6, d_v=5),
    _ours("grouped, no bias, d_k of its own", _groups, bias=False, d_k=8, d_v=3),
    _ours("narrow", d_k=2, d_v=2),
    _ours("RoPE", rotate=Rotary()),
    _ours(
        "RoPE of another base",
        intent={"rope_base": 500.0},
        rotate=Rotary(base=500.0),
        bias=False,
    ),
    _ours("RoPE in halves", rotate=Half(), d_k=8),
    _ours("RoPE and groups", _groups, rotate=Rotary(), d_k=4),
    _ours("queries and keys normed", qk_norm=3.0, intent={"qk_norm": True}),
    _ours("softcap", on_scores=Softcap(4.0), intent={"softcap": 4.0}),
    _ours("dropout, in train mode", dropout=0.5, after=lambda m: m.train()),
    _ours("in eval mode", dropout=0.1, after=lambda m: m.eval()),
    _ours("a memory of another size", d_memory=10),
    _ours("norms of its matrices held", after=hold_norms),
    _ours("weights as GPT-2 starts", init="gpt2", n_layers=12),
    _ours("frozen", after=lambda m: m.requires_grad_(False)),
    _theirs("batch_first", batch_first=True),
    _theirs("time first"),
    _theirs("no bias", bias=False, batch_first=True),
    _theirs("dropout, in train mode", dropout=0.3, batch_first=True),
    _theirs("in eval mode", batch_first=True, after=lambda m: m.eval()),
    _theirs("time first, in eval mode", bias=False, after=lambda m: m.eval()),
    _theirs("keys and values of other sizes", kdim=10, vdim=10, batch_first=True),
    _theirs("inside a module", Around),
    _theirs("as cross attention", Crossing, intent={"mask": "blocked"}),
    _theirs("read by ours", batch_first=True, after=MultiHeadAttention.from_torch),
)
