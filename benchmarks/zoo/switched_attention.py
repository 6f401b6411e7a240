"""One module with a switch at every step; all switches at rest, it is right."""

from __future__ import annotations

import math

import torch
import torch.nn as nn


class SwitchedAttention(nn.Module):
    """Self- or cross-attention; masks and padding: True = may look, True = real."""

    def __init__(self, dim, n_heads, meant, **switches):
        super().__init__()
        self.dim, self.n_heads, self.switches = dim, n_heads, switches
        self.n_kv_heads = meant.get("n_kv_heads", n_heads)
        self.head_size = dim // n_heads
        self.causal, self.rope = meant.get("causal", False), meant.get("rope")
        self.window, self.softcap = meant.get("window"), meant.get("softcap")
        kv = self.n_kv_heads * self.head_size
        self.q_lin = nn.Linear(dim, dim)
        self.k_lin = nn.Linear(dim, kv)
        self.v_lin = nn.Linear(dim, kv)
        self.out_lin = nn.Linear(dim, dim)
        if meant.get("qk_norm"):
            self.q_norm = nn.RMSNorm(self.head_size, eps=1e-6)
            self.k_norm = nn.RMSNorm(self.head_size, eps=1e-6)
        if meant.get("alibi"):
            self.register_buffer("slopes", self.slopes_of(n_heads))

    def at(self, slot):
        return self.switches.get(slot, "right")

    def slopes_of(self, n):
        power = 2 ** int(math.log2(n))
        first = 2.0 ** (-8.0 / power * torch.arange(1, power + 1).double())
        more = 2.0 ** (-4.0 / power * torch.arange(1, 2 * power, 2).double())
        if self.at("slopes") == "one formula":
            return 2.0 ** (-8.0 / n * torch.arange(1, n + 1).double())
        return torch.cat([first, more])[:n]

    def split(self, t, n_heads):
        b, n, _ = t.shape
        if self.at("split") == "no transpose":
            return t.reshape(b, n_heads, n, -1)
        if self.at("split") == "interleaved":
            return t.reshape(b, n, -1, n_heads).permute(0, 3, 1, 2)
        return t.reshape(b, n, n_heads, -1).transpose(1, 2)

    def share(self, t):
        group = self.n_heads // self.n_kv_heads
        if self.at("groups") == "tiled":
            return t.repeat(1, group, 1, 1)
        return t.repeat_interleave(group, dim=1)

    def turn(self, t, positions, by_pairs=False):
        half = self.head_size // 2
        turns = 10000.0 ** (-torch.arange(half).double() / half)
        angle = positions[:, None].double() * turns
        cos, sin = angle.cos().to(t), angle.sin().to(t)
        if by_pairs:
            a, b = t[..., 0::2], t[..., 1::2]
            pairs = (a * cos - b * sin, a * sin + b * cos)
            return torch.stack(pairs, -1).flatten(-2)
        a, b = t.chunk(2, -1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    def positioned(self, q, k):
        at = torch.arange(k.shape[2], device=k.device)
        rope = self.at("rope")
        q = self.turn(q, at, by_pairs=rope == "both by pairs")
        if rope == "only q":
            return q, k
        behind = 1 if rope == "k one ahead" else 0
        return q, self.turn(k, at + behind, rope in ("k by pairs", "both by pairs"))

    def normed(self, q, k):
        if self.at("norm") == "never":
            return q, k
        if self.at("norm") == "k not":
            return self.q_norm(q), k
        if self.at("norm") == "over tokens":
            return (
                t * t.pow(2).mean(2, keepdim=True).add(1e-6).rsqrt() * norm.weight
                for t, norm in ((q, self.q_norm), (k, self.k_norm))
            )
        return self.q_norm(q), self.k_norm(k)

    def looks(self, batch, n_q, n_k, mask, padding, causal, device):
        """Who may look at whom, (batch or 1, heads or 1, n_q, n_k)."""
        given = torch.ones(1, 1, n_q, n_k, dtype=torch.bool, device=device)
        past = given.clone()
        if causal:
            edge = {"strict": -1, "one ahead": 1}.get(self.at("causal"), 0)
            start = 0 if self.at("causal") == "top left" else n_k - n_q
            past = past.tril(start + edge)
        if self.window:
            more = {"more": 1, "less": -1}.get(self.at("window"), 0)
            past = past & given.triu(n_k - n_q - self.window + 1 - more)
        if mask is not None:
            mask = ~mask if self.at("mask") == "turned round" else mask
            given = mask if mask.dim() == 4 else mask.view(-1, 1, n_q, n_k)
            if self.at("order") == "repeat" and given.shape[:2] == (batch, 1):
                given = given.squeeze(1).repeat(self.n_heads, 1, 1)
                given = given.view(batch, self.n_heads, n_q, n_k)
        if padding is not None:
            padding = ~padding if self.at("mask") == "turned round" else padding
            shape = (
                (-1, 1, 1, n_k) if self.at("padding") == "right" else (-1, 1, n_k, 1)
            )
            if not (self.at("combine") == "padding dropped" and causal):
                given = given & padding.view(shape)
        if causal and self.at("combine") == "or" and not (mask is padding is None):
            return given | past
        return given & past

    def forward(self, x, memory=None, mask=None, padding_mask=None, is_causal=False):
        if self.at("batch") == "second":
            x = x.transpose(0, 1)
        source = x if memory is None else memory
        q = self.split(self.q_lin(x), self.n_heads)
        k = self.split(self.k_lin(source), self.n_kv_heads)
        v = self.split(self.v_lin(source), self.n_kv_heads)
        if hasattr(self, "q_norm"):
            q, k = self.normed(q, k)
        if self.rope:
            q, k = self.positioned(q, k)
        k, v = self.share(k), self.share(v)
        if self.at("roles") == "keys are said":
            v = k
        (b, _, n_q, _), n_k = q.shape, k.shape[2]
        look = self.looks(
            *(b, n_q, n_k, mask, padding_mask, is_causal or self.causal, x.device)
        )
        weights = self.weigh(self.scored(q, k, look), look)
        if self.at("dropout") == "always":
            weights = nn.functional.dropout(weights, 0.1)
        if self.at("roles") == "transposed weights":
            weights = weights.transpose(-1, -2)
        mixed = weights @ v
        if self.at("merge") == "no transpose":
            mixed = mixed.reshape(b, -1, self.dim)
        else:
            mixed = mixed.transpose(1, 2).reshape(b, -1, self.dim)
        if self.at("out") == "missing":
            return mixed
        if self.at("out") == "no bias":
            return mixed @ self.out_lin.weight.T
        out = self.out_lin(mixed)
        return out.transpose(0, 1) if self.at("batch") == "second" else out

    def scored(self, q, k, look):
        if self.at("roles") == "k asks":
            q, k = k, q
        scale = {
            "none": 1.0,
            "dim": self.dim**-0.5,
            "twice": 1 / self.head_size,
        }.get(self.at("scale"), self.head_size**-0.5)
        if self.at("mode") == "other scale in training" and self.training:
            scale = self.dim**-0.5
        scores = q @ k.transpose(-1, -2)
        if self.at("mask") == "filled before scaling":
            scores = scores.masked_fill(~look, -60.0)
        scores = scores * scale
        if self.softcap and self.at("cap") == "right":
            scores = torch.tanh(scores / self.softcap) * self.softcap
        if hasattr(self, "slopes"):
            n = scores.shape[-1]
            at = torch.arange(n, device=q.device)
            away = (at - at[:, None]).abs() * (-1 if self.at("slopes") == "sign" else 1)
            scores = scores - self.slopes.to(q)[:, None, None] * away
        return scores

    def weigh(self, scores, look):
        how = self.at("mask")
        empty = ~look.any(-1, keepdim=True)
        if how == "added":
            scores = scores + look
        elif how == "multiplied":
            scores = scores * look
        elif how in ("right", "turned round"):
            scores = scores.masked_fill(~look, -torch.inf)
        elif how == "weak":
            scores = scores.masked_fill(~look, -50.0)
        if self.softcap and self.at("cap") == "after the mask":
            scores = torch.tanh(scores / self.softcap) * self.softcap
        if self.at("empty") == "right":
            scores = scores.masked_fill(empty, 0.0)
        weights = self.softmax(scores)
        if self.at("again") == "softmax":
            weights = self.softmax(weights)
        if how == "after the softmax":
            weights = weights * look
        return (
            weights.masked_fill(empty, 0.0) if self.at("empty") == "right" else weights
        )

    def softmax(self, scores):
        axis = {"queries": -2, "heads and keys": (1, 3)}.get(self.at("axis"), -1)
        if self.at("softmax") == "bare exp":
            weights = scores.exp()
        else:
            weights = (scores - scores.amax(axis, keepdim=True)).exp()
        return weights / weights.sum(axis, keepdim=True)
