"""The zoo's modules against an independent formula, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from attnlib.positions import alibi_bias, rope
from attnlib.shapes import Array
from benchmarks.zoo.module_kit import Probe, draw_weights


def as_array(value: Any) -> Array | None:
    return None if value is None else value.detach().double().numpy()


def expected(read: dict[str, Any], features: dict[str, Any], n: int, p: Probe) -> Array:
    """Multi-head attention written out: n heads, empty rows give zeros."""
    w = {name: as_array(value) for name, value in read.items()}
    x = as_array(p.x)
    memory = x if p.memory is None else as_array(p.memory)
    heads = {}
    for name, tokens in (("q", x), ("k", memory), ("v", memory)):
        flat = tokens @ w[f"W_{name}"]
        if w.get(f"b_{name}") is not None:
            flat = flat + w[f"b_{name}"]
        d = w["W_q"].shape[1] // n
        parts = [flat[..., i : i + d] for i in range(0, flat.shape[-1], d)]
        heads[name] = [parts[i * len(parts) // n] for i in range(n)]
    n_q, n_k = x.shape[1], memory.shape[1]
    distance = np.arange(n_k) - (n_k - n_q + np.arange(n_q))[:, None]
    look = np.ones((x.shape[0], n_q, n_k), bool)
    if features.get("causal"):
        look &= distance <= 0
    if "window" in features:
        look &= distance > -features["window"]
    if p.mask is not None:
        look &= p.mask.numpy()
    if p.padding is not None:
        look &= p.padding.numpy()[:, None, :]
    mixed = []
    for i in range(n):
        q, k, v = heads["q"][i], heads["k"][i], heads["v"][i]
        if "norm" in features:
            q, k = (normed(t, features, g) for t, g in ((q, "q_gain"), (k, "k_gain")))
        if "rope" in features:
            at = np.arange(n_k)
            q = rope(q, at[n_k - n_q :], layout=features["rope"])
            k = rope(k, at, layout=features["rope"])
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
        if "softcap" in features:
            scores = features["softcap"] * np.tanh(scores / features["softcap"])
        if features.get("alibi"):
            scores = scores + alibi_bias(n, n_q, n_k)[i]
        scores = np.where(look, scores, -np.inf)
        top = scores.max(-1, keepdims=True)
        weights = np.exp(scores - np.where(np.isfinite(top), top, 0))
        weights /= np.maximum(weights.sum(-1, keepdims=True), 1e-300)
        mixed.append(weights @ v)
    out = np.concatenate(mixed, -1) @ w["W_o"]
    return out if w.get("b_o") is None else out + w["b_o"]


def normed(x: Array, features: dict[str, Any], gain: str) -> Array:
    if features["norm"] == "layer":
        centred = x - x.mean(-1, keepdims=True)
        x = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    else:
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)
    return x * features[gain]


def probes(d_model: int, seed: int) -> dict[str, Probe]:
    """Questions that tell: each with batch, n_q, n_k, d_model all different."""
    draw = torch.Generator().manual_seed(seed)

    def tokens(batch: int, n: int, size: float = 1.0) -> torch.Tensor:
        x = torch.randn(batch, n, d_model, generator=draw, dtype=torch.float64)
        return size * x

    def looks(batch: int, n_q: int, n_k: int) -> torch.Tensor:
        mask = torch.rand(batch, n_q, n_k, generator=draw) < 0.5
        own = torch.randint(n_k, (batch, n_q, 1), generator=draw)
        return mask.scatter(2, own, True)

    def real(lengths: list[int], n: int) -> torch.Tensor:
        return torch.arange(n) < torch.tensor(lengths)[:, None]

    past = torch.ones(7, 7, dtype=torch.bool).tril()
    row = looks(5, 7, 7)
    row[1, 2] = row[3, 5] = row[4] = False
    left = ~real([0, 3, 1, 6, 2], 7)
    return {
        "self": Probe(tokens(5, 7)),
        "one": Probe(tokens(1, 7)),
        "mask": Probe(tokens(5, 7), mask=looks(5, 7, 7)),
        "causal": Probe(tokens(5, 7), mask=past.expand(5, 7, 7)),
        "padding": Probe(tokens(5, 7), padding=real([7, 3, 5, 1, 6], 7)),
        "both": Probe(
            tokens(5, 7), mask=past.expand(5, 7, 7), padding=real([7, 3, 5, 1, 6], 7)
        ),
        "cross": Probe(tokens(5, 4), tokens(5, 7)),
        "cross mask": Probe(tokens(5, 4), tokens(5, 7), mask=looks(5, 4, 7)),
        "cross padding": Probe(
            tokens(5, 4), tokens(5, 7), padding=real([7, 3, 5, 1, 6], 7)
        ),
        "huge": Probe(tokens(5, 7, 40.0)),
        "vast": Probe(tokens(5, 7, 1000.0)),
        "huge padding": Probe(tokens(5, 7, 300.0), padding=real([7, 3, 5, 1, 6], 7)),
        "huge mask": Probe(tokens(5, 7, 300.0), mask=looks(5, 7, 7)),
        "empty rows": Probe(tokens(5, 7), mask=row),
        "empty padding": Probe(tokens(5, 7), padding=real([7, 0, 5, 1, 6], 7)),
        "empty left": Probe(tokens(5, 7), padding=left),
    }


def with_good_weights(module: Any, seed: int) -> Any:
    """The module in float64, with weights that hide nothing."""
    module = module.double()
    generator = torch.Generator().manual_seed(seed)
    draw_weights(module, generator, spread=1.2, bias=0.3)
    return module


def features_of(style: Any, module: Any) -> dict[str, Any]:
    found = dict(style.features(module))
    if "norm" in found:
        found["q_gain"] = as_array(module.q_norm.weight)
        found["k_gain"] = as_array(module.k_norm.weight)
    return found


def heads_of(module: Any) -> int:
    for name in ("n_heads", "n_head", "h", "num_heads", "num_attention_heads"):
        if hasattr(module, name):
            return int(getattr(module, name))
    return int(module.nhead if hasattr(module, "nhead") else len_or(module))


def len_or(module: Any) -> int:
    heads = module.heads
    return heads if isinstance(heads, int) else len(heads)
