"""Right modules with positions in them: RoPE, ALiBi, windows; and normed queries."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from attnlib.positions import alibi_slopes

from .draw import built
from .specimen import Specimen

SIZES = ((8, 2), (16, 4), (16, 2), (24, 2), (32, 4))  # an even number in each head


class Base(nn.Module):
    """Four linear layers; `place` changes q and k, `bias` the scores."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads, self.head_dim = n_heads, d_model // n_heads
        self.wq = nn.Linear(d_model, d_model, bias=False)
        self.wk = nn.Linear(d_model, d_model, bias=False)
        self.wv = nn.Linear(d_model, d_model, bias=False)
        self.wo = nn.Linear(d_model, d_model, bias=False)

    def place(self, x):
        return x

    def bias(self, scores):
        return scores

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (
            w(x).view(b, n, self.n_heads, self.head_dim).transpose(1, 2)
            for w in (self.wq, self.wk, self.wv)
        )
        q, k = self.place(q), self.place(k)
        scores = self.bias(q @ k.transpose(2, 3) / math.sqrt(self.head_dim))
        hidden = torch.ones(n, n, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        return self.wo((weights @ v).transpose(1, 2).reshape(b, n, -1))


class ComplexRope(Base):
    """Meta's LLaMA: neighbours are one complex number, turned by another."""

    def place(self, x):
        n, d = x.shape[-2:]
        freqs = 1.0 / 10000.0 ** (torch.arange(0, d, 2, dtype=torch.float64) / d)
        turns = torch.outer(torch.arange(n, dtype=torch.float64), freqs)
        turned = torch.polar(torch.ones_like(turns), turns)
        pairs = torch.view_as_complex(x.double().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * turned).flatten(-2).to(x.dtype)


class HalfRope(Base):
    """rotate_half, as in transformers."""

    theta = 10000.0

    @staticmethod
    def rotate_half(x):
        first, second = x.chunk(2, dim=-1)
        return torch.cat((-second, first), dim=-1)

    def place(self, x):
        n, d = x.shape[-2:]
        inv_freq = self.theta ** -(torch.arange(0, d, 2, dtype=torch.float64) / d)
        angles = torch.arange(n, dtype=torch.float64)[:, None] * inv_freq
        emb = torch.cat((angles, angles), dim=-1)
        return x * emb.cos().to(x.dtype) + self.rotate_half(x) * emb.sin().to(x.dtype)


class InterleavedRope(HalfRope):
    """The pairs are neighbours: cos and sin are repeated."""

    @staticmethod
    def rotate_half(x):
        return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)

    def place(self, x):
        n, d = x.shape[-2:]
        inv_freq = self.theta ** -(torch.arange(0, d, 2, dtype=torch.float64) / d)
        angles = torch.outer(torch.arange(n, dtype=torch.float64), inv_freq)
        angles = angles.repeat_interleave(2, dim=-1).to(torch.float64)
        return x * angles.cos().to(x.dtype) + self.rotate_half(x) * angles.sin().to(
            x.dtype
        )


class OtherBase(HalfRope):
    theta = 500000.0


class PermutedRope(HalfRope):
    """Weights of an interleaved model, their rows sorted for the other layout."""

    def __init__(self, d_model, n_heads):
        super().__init__(d_model, n_heads)
        d = d_model // n_heads
        order = torch.cat([torch.arange(0, d, 2), torch.arange(1, d, 2)])
        rows = (torch.arange(n_heads)[:, None] * d + order).flatten()
        with torch.no_grad():
            self.wq.weight.copy_(self.wq.weight[rows])
            self.wk.weight.copy_(self.wk.weight[rows])


class PartRope(Base):
    """Only the first half of the features turns, as in GPT-J and GPT-NeoX."""

    def place(self, x):
        turned, kept = x.chunk(2, dim=-1)
        return torch.cat([InterleavedRope.place(self.turning, turned), kept], dim=-1)

    class turning:
        theta = 10000.0
        rotate_half = staticmethod(InterleavedRope.rotate_half)


class Alibi(Base):
    def __init__(self, d_model, n_heads):
        super().__init__(d_model, n_heads)
        slopes = torch.from_numpy(alibi_slopes(n_heads)).view(-1, 1, 1)
        self.register_buffer("slopes", slopes)

    def bias(self, scores):
        at = torch.arange(scores.size(-1))
        distance = (at[None, :] - at[:, None]).abs()
        return scores - (self.slopes.to(scores.dtype) * distance)


class AlibiRow(Alibi):
    """As in BLOOM: slope times the key's position; softmax takes the rest out."""

    def bias(self, scores):
        return scores + self.slopes.to(scores.dtype) * torch.arange(scores.size(-1))


class Window(Base):
    def __init__(self, d_model, n_heads, window_size):
        super().__init__(d_model, n_heads)
        self.window_size = window_size

    def bias(self, scores):
        at = torch.arange(scores.size(-1))
        too_far = at[:, None] - at[None, :] >= self.window_size
        return scores.masked_fill(too_far, -torch.inf)


class SlidingSDPA(Window):
    """The mask of Mistral: query i reads keys i - w + 1 to i."""

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = (
            w(x).view(b, n, self.n_heads, -1).transpose(1, 2)
            for w in (self.wq, self.wk, self.wv)
        )
        band = torch.ones(n, n).tril().triu(1 - self.window_size).bool()
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=band)
        return self.wo(out.transpose(1, 2).reshape(b, n, c))


class Capped(Base):
    """Gemma 2: the scores are capped before they are masked."""

    def bias(self, scores):
        return torch.tanh(scores / 6.0) * 6.0


class NormedHeads(Base):
    """RMSNorm of each head's queries and keys, each with its own gain (Qwen3)."""

    def __init__(self, d_model, n_heads):
        super().__init__(d_model, n_heads)
        self.q_norm = nn.RMSNorm(d_model // n_heads, eps=1e-6)
        self.k_norm = nn.RMSNorm(d_model // n_heads, eps=1e-6)

    def forward(self, x):
        b, n, _ = x.shape
        split = (b, n, self.n_heads, self.head_dim)
        q = self.q_norm(self.wq(x).view(split)).transpose(1, 2)
        k = self.k_norm(self.wk(x).view(split)).transpose(1, 2)
        v = self.wv(x).view(split).transpose(1, 2)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(out.transpose(1, 2).reshape(b, n, -1))


class NormedRope(NormedHeads, HalfRope):
    def forward(self, x):
        b, n, _ = x.shape
        split = (b, n, self.n_heads, self.head_dim)
        q = self.place(self.q_norm(self.wq(x).view(split)).transpose(1, 2))
        k = self.place(self.k_norm(self.wk(x).view(split)).transpose(1, 2))
        v = self.wv(x).view(split).transpose(1, 2)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(out.transpose(1, 2).reshape(b, n, -1))


def _right(name, make, style, **intent):
    def whole(rng, dtype):
        d, h = SIZES[int(rng.integers(len(SIZES)))]
        return built(rng, dtype, lambda: make(d, h))

    return Specimen(f"right: positions, {name}", frozenset(), whole, intent, style)


SPECIMENS = (
    _right("RoPE, complex", ComplexRope, "llama", causal=True),
    _right("RoPE, halves", HalfRope, "hugging face", causal=True),
    _right("RoPE, halves, said", HalfRope, "hugging face", causal=True, rope="half"),
    _right("RoPE, neighbours", InterleavedRope, "roformer", causal=True),
    _right("RoPE, weights permuted", PermutedRope, "hugging face", causal=True),
    _right("RoPE, another base", OtherBase, "llama 3", causal=True),
    _right("RoPE, half of the features", PartRope, "gpt-neox", causal=True),
    _right("ALiBi", Alibi, "alibi", causal=True, alibi=True),
    _right("ALiBi, found out", Alibi, "alibi", causal=True),
    _right("ALiBi by the key", AlibiRow, "bloom", causal=True, alibi=True),
    _right(
        "window of 3, by attribute",
        lambda d, h: Window(d, h, 3),
        "window",
        causal=True,
    ),
    _right(
        "window of 4",
        lambda d, h: SlidingSDPA(d, h, 4),
        "mistral",
        causal=True,
        window=4,
    ),
    _right("softcap", Capped, "gemma", causal=True, softcap=6.0),
    _right("queries and keys normed", NormedHeads, "qwen", causal=True, qk_norm=True),
    _right("normed and turned", NormedRope, "qwen", causal=True, qk_norm=True),
)
