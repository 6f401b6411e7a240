"""Specimens written without a look at the clinic, some of which it once missed."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from .specimen import Specimen


def gqa(
    repeat_k: Callable[[Any, int], Any], repeat_v: Callable[[Any, int], Any]
) -> object:
    """Shared keys and values, each repeated in a way of its own."""

    def attention(q, k, v, mask=None):
        d = q.shape[-1]
        g = q.shape[1] // k.shape[1]
        k, v = repeat_k(k, g), repeat_v(v, g)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(d))
        if mask is not None:
            att = att.masked_fill(~mask, float("-inf"))
        return torch.softmax(att, dim=-1).nan_to_num(0) @ v

    return attention


def interleave(x, g):
    return x.repeat_interleave(g, dim=1)


def tile(x, g):
    return x.repeat(1, g, 1, 1)


def rotate_half(x):
    x1, x2 = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return np.concatenate((-x2, x1), axis=-1)


def rotary(lay_out: Callable[[Any], Any]) -> object:
    """rotate_half, with angles laid out in one of two ways."""

    def attention(q, k, v, mask=None):
        d = q.shape[-1]
        inv_freq = 1.0 / (10000 ** (np.arange(0, d, 2) / d))

        def turn(x, first):
            emb = lay_out(np.outer(np.arange(first, first + x.shape[-2]), inv_freq))
            return x * np.cos(emb) + rotate_half(x) * np.sin(emb)

        q, k = turn(q, k.shape[-2] - q.shape[-2]), turn(k, 0)
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(d)
        if mask is not None:
            scores = np.where(mask, scores, -1e30)
        p = np.exp(scores - scores.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        if mask is not None:
            p = p * mask
        return p @ v

    return attention


def beside(t):
    return np.concatenate([t, t], -1)


def twice_each(t):
    return np.repeat(t, 2, -1)


def filled(fill: Callable[[Any], float]) -> object:
    """Made for float16: queries scaled first, softmax in float32."""

    def attention(q, k, v, mask=None):
        s = torch.matmul(q / q.shape[-1] ** 0.5, k.transpose(-1, -2))
        if mask is not None:
            s = s.masked_fill(~mask, fill(s))
        p = torch.softmax(s.float(), -1).to(v.dtype)
        if mask is not None:
            p = p.masked_fill(~mask, 0)
        return p @ v

    return attention


class Past(nn.Module):
    """As in GPT-2: keys and values of a call are one tensor, stacked."""

    def __init__(self, aligned: bool, nx: int = 24, n_head: int = 4) -> None:
        super().__init__()
        tril = torch.tril(torch.ones(64, 64, dtype=torch.bool))
        self.register_buffer("bias", tril.view(1, 1, 64, 64))
        self.n_head, self.aligned = n_head, aligned
        self.c_attn = nn.Linear(nx, nx * 3)
        self.c_proj = nn.Linear(nx, nx)

    def forward(self, x, layer_past=None):
        b, t, c = x.shape
        q, k, v = (
            part.view(b, t, self.n_head, -1).transpose(1, 2)
            for part in self.c_attn(x).split(c, dim=2)
        )
        if layer_past is not None:
            k = torch.cat((layer_past[0], k), dim=-2)
            v = torch.cat((layer_past[1], v), dim=-2)
        w = q @ k.transpose(-2, -1) / math.sqrt(v.size(-1))
        nd, ns = w.size(-2), w.size(-1)
        first = ns - nd if self.aligned else 0
        w = w.masked_fill(~self.bias[:, :, first : first + nd, :ns], -1e10)
        a = torch.softmax(w, dim=-1) @ v
        a = a.transpose(1, 2).reshape(b, t, c)
        return self.c_proj(a), torch.stack((k, v))


def _past(aligned: bool) -> Callable[[np.random.Generator, str], object]:
    def make(rng: np.random.Generator, dtype: str) -> object:
        torch.manual_seed(int(rng.integers(1 << 30)))
        return Past(aligned).to(getattr(torch, dtype))

    return make


def _one(
    name: str, code: str, thing: object, intent: Mapping[str, Any], style: str
) -> Specimen:
    codes = frozenset([code] if code else [])
    return Specimen(f"unseen: {name}", codes, lambda rng, dtype: thing, intent, style)


HALF = {"dtype": "float16"}
ROPE = {"rope": "half"}
SPECIMENS = (
    _one("keys and values repeated", "", gqa(interleave, interleave), {}, "torch"),
    _one("values tiled", "M33", gqa(interleave, tile), {}, "torch"),
    _one("keys tiled", "M33", gqa(tile, interleave), {}, "torch"),
    _one("rotate_half, cat of angles", "", rotary(beside), ROPE, "hugging face"),
    _one("rotate_half, each twice", "M26", rotary(twice_each), ROPE, "hugging face"),
    _one("half, finfo", "", filled(lambda s: torch.finfo(s.dtype).min), HALF, "half"),
    _one("half, -1e9", "M13", filled(lambda s: -1e9), HALF, "half"),
    Specimen("unseen: stacked past", frozenset(), _past(True), {}, "gpt2"),
    Specimen("unseen: top left", frozenset(["M19"]), _past(False), {}, "gpt2"),
)
