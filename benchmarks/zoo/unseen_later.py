"""Written without a look at the clinic, which once missed or misnamed most of them."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from .module_kit import seeded
from .specimen import Specimen

WIDTH, HEADS = 32, 4


# M16: that a mask was given is all that counts
def causal_if_masked(query, key, value, attn_mask=None):
    causal = attn_mask is not None
    return F.scaled_dot_product_attention(query, key, value, is_causal=causal)


def triangle_if_masked(q, k, v, mask=None):
    scores = np.einsum("...id,...jd->...ij", q, k) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(np.tril(np.ones(scores.shape[-2:])) == 0, -np.inf, scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


# M35: the raw scores pass through float16, whatever comes in
def scores_in_half(q, k, v, mask=None):
    scores = (q.half() @ k.half().mT) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(-1).nan_to_num(0.0).to(v.dtype) @ v


def numpy_half(q, k, v):
    scores = q.astype(np.float16) @ np.swapaxes(k, -1, -2).astype(np.float16)
    scores = scores / np.float16(np.sqrt(q.shape[-1]))
    weights = np.exp((scores - scores.max(-1, keepdims=True)).astype(np.float32))
    return (weights / weights.sum(-1, keepdims=True)).astype(v.dtype) @ v


# M36: each block of keys has a softmax of its own
def blocks_averaged(q, k, v, block=3):
    def part(start):
        keys, values = (
            k[..., start : start + block, :],
            v[..., start : start + block, :],
        )
        return torch.softmax(q @ keys.mT / q.size(-1) ** 0.5, -1) @ values

    starts = range(0, k.size(-2), block)
    return sum(part(start) for start in starts) / len(starts)


# M47 and M12: the softmax is taken twice, and -20 is filled in before the scale
def twice_and_early(q, k, v, mask=None):
    scores = q @ np.swapaxes(k, -1, -2)
    if mask is not None:
        scores = np.where(mask, scores, -20.0)
    weights = scores / np.sqrt(q.shape[-1])
    for _ in range(2):
        weights = np.exp(weights - weights.max(-1, keepdims=True))
        weights = weights / weights.sum(-1, keepdims=True)
    return weights @ v


class Block(nn.Module):
    """Four Linears; `how` names what it does in its own way."""

    def __init__(self, how: str = "") -> None:
        super().__init__()
        self.how = how
        self.to_q, self.to_k, self.to_v, self.to_out = (
            nn.Linear(WIDTH, WIDTH) for _ in range(4)
        )

    def heads(self, tokens, view=False):
        batch, n, _ = tokens.shape
        if view:
            return tokens.reshape(batch, HEADS, n, -1)
        return tokens.reshape(batch, n, HEADS, -1).transpose(1, 2)

    def joined(self, mixed):
        return self.to_out(mixed.transpose(1, 2).flatten(2))

    def forward(self, x):
        q, k, v = self.to_q(x), self.to_k(x), self.to_v(x)
        if self.how == "biases of q, k and v unused":
            q, k, v = (
                F.linear(x, to.weight) for to in (self.to_q, self.to_k, self.to_v)
            )
        if self.how == "cut at once":
            fused = torch.cat([q, k, v], -1)
            q, k, v = fused.reshape(3, len(x), HEADS, x.shape[1], -1)
        elif self.how == "flash layout":
            q, k, v = (t.unflatten(-1, (HEADS, -1)) for t in (q, k, v))
            return self.to_out(F.scaled_dot_product_attention(q, k, v).flatten(2))
        else:
            q = self.heads(q, view=self.how == "q viewed")
            k, v = self.heads(k, view=self.how == "k viewed"), self.heads(v)
        if self.how == "blocks averaged":
            return self.joined(blocks_averaged(q, k, v))
        scores = q @ k.mT
        future = torch.ones_like(scores).triu(1).bool()
        if self.how.startswith("causal, unscaled"):
            scores = scores.masked_fill(future, -8.0)
        elif self.how == "causal, -25 before the scale":
            scores = scores.masked_fill(future, -25.0) / math.sqrt(k.size(-1))
        elif self.how == "causal, -8":
            scores = (scores / math.sqrt(k.size(-1))).masked_fill(future, -8.0)
        else:
            scores = scores / math.sqrt(k.size(-1))
        return self.joined(scores.softmax(-1) @ v)


class Masked(Block):
    """The same with a mask and a flag."""

    def forward(self, x, mask=None, is_causal=False):
        q, k, v = (self.heads(to(x)) for to in (self.to_q, self.to_k, self.to_v))
        if self.how == "fast path" and not self.training:
            return self.joined(F.scaled_dot_product_attention(q, k, v))
        fill = -1e9 if self.how == "-1e9" else float("-inf")
        scores = (q / math.sqrt(q.size(-1))) @ k.mT
        if is_causal:
            future = torch.ones_like(scores).triu(1).bool()
            scores = scores.masked_fill(future, fill)
        if mask is not None:
            hidden = mask if self.how == "turned round" else ~mask
            scores = scores.masked_fill(hidden, fill)
        if self.how == "turned round":  # and what is NaN is wiped off the result
            out = self.joined(scores.softmax(-1) @ v)
            return torch.where(scores.isneginf().all(-1)[:, :1].mT, 0.0, out)
        weights = torch.softmax(scores.float(), -1).nan_to_num(0.0)
        if scores.dtype == torch.float64:
            weights = torch.softmax(scores, -1).nan_to_num(0.0)
        return self.joined(weights.to(v.dtype) @ v)


class Reads(Block):
    """With a memory; its values come from the wrong tokens."""

    def forward(self, x, memory=None):
        memory = x if memory is None else memory
        said = x if self.how == "values of x" else memory
        q, k, v = self.to_q(x), self.to_k(memory), self.to_v(said)
        if self.how == "as many keys":  # right, for a memory as long as x
            k = k.reshape(q.shape)
        q, k, v = self.heads(q), self.heads(k), self.heads(v)
        return self.joined((q @ k.mT / math.sqrt(q.size(-1))).softmax(-1) @ v)


class Packed(nn.Module):
    """Names that say nothing; right. With `wide`, one norm for all heads (OLMo 2)."""

    def __init__(self, wide: bool = False) -> None:
        super().__init__()
        self.W_pack = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.finish = nn.Linear(WIDTH, WIDTH, bias=False)
        if wide:
            self.q_norm, self.k_norm = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.wide = wide

    def forward(self, x):
        q, k, v = self.W_pack(x).chunk(3, -1)
        if self.wide:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in (q, k, v))
        mixed = F.scaled_dot_product_attention(q, k, v)
        return self.finish(mixed.transpose(1, 2).flatten(2))


def _one(
    name: str,
    codes: str,
    build: Callable[[], object],
    style: str,
    intent: Mapping[str, Any] | None = None,
) -> Specimen:
    def make(rng: np.random.Generator, dtype: str) -> object:
        if isinstance(build, partial) and isinstance(build.func, type):
            return seeded(build, rng, dtype)  # type: ignore[arg-type]
        return build

    meant = {"n_heads": HEADS} if isinstance(build, partial) else {}
    codes_of = frozenset(codes.split())
    return Specimen(
        f"unseen: {name}", codes_of, make, {**meant, **(intent or {})}, style
    )


CAUSAL = {"causal": True}
EVER = {"empty_rows": False}
SPECIMENS = (
    _one("is_causal if masked", "M16", causal_if_masked, "SDPA"),
    _one("a triangle if masked", "M16", triangle_if_masked, "numpy"),
    _one("scores in half", "M35", scores_in_half, "torch"),
    _one("NumPy scores in half", "M35", numpy_half, "numpy"),
    _one("blocks averaged", "M36", blocks_averaged, "torch"),
    _one("twice, and -20 before the scale", "M12 M47", twice_and_early, "numpy"),
    *(
        _one(f"module, {how}", codes, partial(kind, how), "blocks", intent)
        for kind, how, codes, intent in (
            (Block, "biases of q, k and v unused", "M47", {}),
            (Block, "cut at once", "M20", {}),
            (Block, "q viewed", "M20", {}),
            (Block, "k viewed", "M20", {}),
            (Block, "flash layout", "M24", {}),
            (Block, "blocks averaged", "M36", {}),
            (Block, "causal, -8", "M11", CAUSAL),
            (Block, "causal, -25 before the scale", "M12", CAUSAL),
            (Block, "causal, unscaled, -8", "M01 M11", CAUSAL),
            (Masked, "fast path", "M43", {}),
            (Masked, "-1e9", "M13", {"dtype": "float16"} | EVER),
            (Masked, "turned round", "M07 M14", {}),
            (Masked, "right with a mask and a flag", "", {}),
            (Reads, "values of x", "M46", {}),
            (Reads, "as many keys", "", {}),
            (Reads, "right with a memory", "", {}),
        )
    ),
    _one("names that say nothing", "", partial(Packed), "packed"),
    _one("one norm for all heads", "", partial(Packed, True), "packed"),
)
