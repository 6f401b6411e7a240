"""Specimens written without a look at the clinic: inputs apart, and places of one."""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import nn

from .specimen import Specimen


class Apart(nn.Module):
    """Query, key and value are handed in apart, as in the annotated papers."""

    def __init__(self, used: tuple[int, int, int], d: int = 24, heads: int = 3) -> None:
        super().__init__()
        self.used, self.heads = used, heads
        self.linears = nn.ModuleList(nn.Linear(d, d) for _ in range(4))

    def forward(self, query, key, value, mask=None):
        given = (query, key, value)
        q, k, v = (
            linear(given[which]).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for linear, which in zip(self.linears, self.used, strict=False)
        )
        scores = q @ k.mT * q.size(-1) ** -0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        mixed = scores.softmax(-1).nan_to_num(0.0) @ v
        return self.linears[-1](mixed.transpose(1, 2).flatten(2))


def turned(x):
    n, d = x.shape[-2:]
    speeds = 10000.0 ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)
    angles = torch.arange(n, dtype=x.dtype)[:, None] * speeds
    cos, sin = (torch.cat([f(angles)] * 2, -1) for f in (torch.cos, torch.sin))
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


class Turned(nn.Module):
    """RoPE on some of its vectors, one fused table, causal or not."""

    def __init__(self, which: str, causal: bool, d: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.which, self.causal, self.heads = which, causal, heads
        self.qkv = nn.Linear(d, 3 * d, bias=False)
        self.proj = nn.Linear(d, d, bias=False)

    def forward(self, x, mask=None):
        shape = (3, self.heads, x.size(-1) // self.heads)
        q, k, v = self.qkv(x).unflatten(-1, shape).permute(2, 0, 3, 1, 4)
        q = turned(q) if "q" in self.which else q
        k = turned(k) if "k" in self.which else k
        scores = q @ k.mT / q.size(-1) ** 0.5
        past = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        if self.causal:
            scores = scores.masked_fill(~past, -torch.inf)
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        mixed = scores.softmax(-1).nan_to_num(0.0) @ v
        return self.proj(mixed.transpose(1, 2).flatten(2))


def only_queries_turned(q, k, v):
    return torch.softmax(turned(q) @ k.mT / q.size(-1) ** 0.5, -1) @ v


def _built(
    build: Callable[[], nn.Module],
) -> Callable[[np.random.Generator, str], object]:
    def make(rng: np.random.Generator, dtype: str) -> object:
        torch.manual_seed(int(rng.integers(1 << 30)))
        return build().to(getattr(torch, dtype))

    return make


def _module(
    name: str, code: str, build: Callable[[], nn.Module], style: str
) -> Specimen:
    codes = frozenset([code] if code else [])
    return Specimen(f"unseen: {name}", codes, _built(build), {}, style)


SPECIMENS = (
    _module("three inputs", "", partial(Apart, (0, 1, 2)), "annotated"),
    _module("values of the key input", "M46", partial(Apart, (0, 1, 1)), "annotated"),
    _module("keys of the value input", "M46", partial(Apart, (0, 2, 2)), "annotated"),
    *(
        _module(f"RoPE on {which}, {name}", code, partial(Turned, which, causal), "gpt")
        for which, code in (("qk", ""), ("q", "M27"), ("k", "M27"))
        for name, causal in (("causal", True), ("open", False))
    ),
    Specimen(
        "unseen: RoPE on q, a function",
        frozenset(["M27"]),
        lambda rng, dtype: only_queries_turned,
        {},
        "torch",
    ),
)
