"""What the right attentions of the zoo must answer: plain formulas, in float64.

`weights(module)` reads the four matrices out of a module of the zoo, whatever their
names, layout and order; `attend` is the formula for one case of everything.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from zoo import right_causal, right_families, right_library, right_modules
from zoo import right_positions as placed

from attnlib.nn.stable import SigmaLinear

F64 = np.float64


@dataclass
class Plain:
    """(W, b) for x @ W + b; head h has the h-th block of columns. The rest by name."""

    q: tuple[Any, Any]
    k: tuple[Any, Any]
    v: tuple[Any, Any]
    o: tuple[Any, Any]
    heads: int
    kv_heads: int
    extra: dict[str, Any] = field(default_factory=dict)


def array(tensor):
    return None if tensor is None else tensor.detach().double().numpy()


def linear(layer):
    if isinstance(layer, SigmaLinear):  # its weight is not what it multiplies with
        rows = torch.eye(layer.in_features, dtype=layer.weight.dtype)
        return array(layer(rows) - layer.bias), array(layer.bias)
    return array(layer.weight).T, array(layer.bias)


def cut(pair, parts, axis=-1):
    weight, bias = pair
    biases = [None] * parts if bias is None else np.split(bias, parts)
    return list(zip(np.split(weight, parts, axis), biases, strict=True))


def fused_by_head(layer, heads):
    weight, bias = linear(layer)
    cubes = weight.reshape(len(weight), heads, 3, -1), bias.reshape(heads, 3, -1)
    return [
        (cubes[0][:, :, i].reshape(len(weight), -1), cubes[1][:, i].ravel())
        for i in range(3)
    ]


def packed(m):
    """The four matrices of an nn.MultiheadAttention."""
    d = m.embed_dim
    bias = [None] * 3 if m.in_proj_bias is None else np.split(array(m.in_proj_bias), 3)
    if m.in_proj_weight is None:
        rows = [m.q_proj_weight, m.k_proj_weight, m.v_proj_weight]
    else:
        rows = m.in_proj_weight.split(d)
    pairs = [(array(w).T, b) for w, b in zip(rows, bias, strict=True)]
    return Plain(*pairs, linear(m.out_proj), m.num_heads, m.num_heads)


def weights(m):
    """The plain weights of a module of the zoo."""
    name = type(m).__name__
    if name == "MultiheadAttention":
        return packed(m)
    if isinstance(m, right_library.Around):
        return packed(m.attn)
    if isinstance(m, right_library.Crossing):
        return packed(m.multihead_attn)
    if name == "MultiHeadAttention":
        four = [linear(layer) for layer in (m.W_q, m.W_k, m.W_v, m.W_o)]
        extra = {}
        if m.qk_norm is not None:
            extra["unit"] = m.qk_norm.scale.item()
        if m.on_scores is not None:
            extra["cap"] = m.on_scores.cap
        if m.rotate is not None:
            half = isinstance(m.rotate, right_library.Half)
            base = 10000.0 if half else m.rotate.base
            extra["turn"] = lambda x: turned(x, base, half)
        return Plain(*four, m.n_heads, m.n_kv_heads, extra)
    if isinstance(m, right_modules.Annotated):
        return Plain(*map(linear, m.linears), m.h, m.h)
    if isinstance(m, right_modules.FusedChunk | right_modules.FusedPermute):
        return Plain(*cut(linear(m.qkv), 3), linear(m.proj), m.num_heads, m.num_heads)
    if isinstance(m, right_modules.FusedPerHead):
        h = m.num_attention_heads
        return Plain(*fused_by_head(m.query_key_value, h), linear(m.dense), h, h)
    if isinstance(m, right_modules.ToQKV):
        return Plain(*cut(linear(m.to_qkv), 3), linear(m.to_out[0]), m.heads, m.heads)
    if isinstance(m, right_modules.HeadList):
        three = [
            (np.hstack([linear(getattr(h, part))[0] for h in m.heads]), None)
            for part in ("query", "key", "value")
        ]
        return Plain(*three, linear(m.proj), len(m.heads), len(m.heads))
    if isinstance(m, right_modules.Parameters):
        three = [(np.hstack(list(array(w))), None) for w in (m.W_Q, m.W_K, m.W_V)]
        o = np.vstack(list(array(m.W_O))), array(m.b_O)
        return Plain(*three, o, m.n_heads, m.n_heads)
    if isinstance(m, right_modules.Einsum):
        four = map(linear, (m.queries, m.keys, m.values, m.fc_out))
        return Plain(*four, m.heads, m.heads)
    return _causal(m) or _family(m) or _placed(m)


def _causal(m):
    if isinstance(m, right_causal.NanoGPT):
        return Plain(*cut(linear(m.c_attn), 3), linear(m.c_proj), m.n_head, m.n_head)
    if isinstance(m, right_causal.GPT2Like):
        fused = array(m.c_attn.weight), array(m.c_attn.bias)
        o = array(m.c_proj.weight), array(m.c_proj.bias)
        return Plain(*cut(fused, 3), o, m.num_heads, m.num_heads)
    if isinstance(m, right_causal.Minus1e9):
        four = map(linear, (m.wq, m.wk, m.wv, m.dense))
        return Plain(*four, m.num_heads, m.num_heads)
    if isinstance(m, right_causal.CausalBook):
        four = map(linear, (m.W_query, m.W_key, m.W_value, m.out_proj))
        return Plain(*four, m.num_heads, m.num_heads)
    if isinstance(m, right_causal.Optional):
        return Plain(*map(linear, (m.q, m.k, m.v, m.o)), m.n_heads, m.n_heads)
    if isinstance(m, right_causal.WithPast):
        four = map(linear, (m.q_proj, m.k_proj, m.v_proj, m.out_proj))
        return Plain(*four, m.num_heads, m.num_heads)
    if isinstance(m, right_causal.MaskAndPadding):
        k, v = cut(linear(m.to_kv), 2)
        return Plain(linear(m.to_q), k, v, linear(m.to_out), m.heads, m.heads)
    return None


def _family(m):
    if isinstance(m, right_families.BertLike):
        h = m.num_attention_heads
        return Plain(*map(linear, (m.query, m.key, m.value, m.dense)), h, h)
    if isinstance(m, right_families.Grouped):
        four = map(linear, (m.q_proj, m.k_proj, m.v_proj, m.o_proj))
        return Plain(*four, m.num_heads, m.num_key_value_heads)
    if isinstance(m, right_families.MultiQuery):
        w, d = linear(m.qkv)[0], m.dim_head
        q, k, v = w[:, : -2 * d], w[:, -2 * d : -d], w[:, -d:]
        return Plain((q, None), (k, None), (v, None), linear(m.out), m.heads, 1)
    if isinstance(m, right_families.Folded):
        four = map(linear, (m.to_q, m.to_k, m.to_v, m.to_out[0]))
        return Plain(*four, m.heads, m.heads)
    if isinstance(m, right_families.CrossOnly):
        four = map(linear, (m.query, m.key, m.value, m.out))
        return Plain(*four, m.n_heads, m.n_heads)
    if isinstance(m, right_families.Whisperish):
        four = map(linear, (m.query, m.key, m.value, m.out))
        return Plain(*four, m.n_head, m.n_head)
    if isinstance(m, right_families.KeyPadding):
        three = cut(linear(m.in_proj), 3)
        return Plain(*three, linear(m.out_proj), m.n_heads, m.n_heads)
    if isinstance(m, right_families.OneHead):
        nothing = np.eye(m.v.out_features), None
        return Plain(*map(linear, (m.q, m.k, m.v)), nothing, 1, 1)
    if isinstance(m, right_families.Streaming):
        return Plain(*cut(linear(m.qkv), 3), linear(m.o), m.nhead, m.nhead)
    return None


def _placed(m):
    extra: dict[str, Any] = {}
    if isinstance(m, placed.HalfRope) and not isinstance(m, placed.InterleavedRope):
        extra["turn"] = lambda x: turned(x, m.theta, half=True)
    elif isinstance(m, placed.ComplexRope | placed.InterleavedRope):
        extra["turn"] = lambda x: turned(x, 10000.0, half=False)
    elif isinstance(m, placed.PartRope):
        half = m.head_dim // 2
        extra["turn"] = lambda x: np.concatenate(
            [turned(x[..., :half], 10000.0, half=False), x[..., half:]], -1
        )
    if isinstance(m, placed.Alibi):
        extra["slopes"] = {2: [1 / 16, 1 / 256], 4: [1 / 4, 1 / 16, 1 / 64, 1 / 256]}[
            m.n_heads
        ]
    if isinstance(m, placed.Window):
        extra["window"] = m.window_size
    if isinstance(m, placed.Capped):
        extra["cap"] = 6.0
    if isinstance(m, placed.NormedHeads):
        extra["rms"] = array(m.q_norm.weight), array(m.k_norm.weight)
    four = map(linear, (m.wq, m.wk, m.wv, m.wo))
    return Plain(*four, m.n_heads, m.n_heads, extra)


def turned(x, base, half):
    """RoPE, one pair at a time."""
    n, d = x.shape[-2:]
    out = np.empty_like(x)
    for i in range(d // 2):
        a, b = (i, i + d // 2) if half else (2 * i, 2 * i + 1)
        angle = np.arange(n) * base ** (-2 * i / d)
        out[..., a] = x[..., a] * np.cos(angle) - x[..., b] * np.sin(angle)
        out[..., b] = x[..., a] * np.sin(angle) + x[..., b] * np.cos(angle)
    return out


def attend(q, k, v, look, *, scale=None, cap=None, bias=0.0):
    """The formula, one query at a time over the keys that it may look at."""
    q, k, v = (np.asarray(a, F64) for a in (q, k, v))
    scores = np.einsum("...id,...jd->...ij", q, k)
    scores = scores * (q.shape[-1] ** -0.5 if scale is None else scale)
    scores = (scores if cap is None else cap * np.tanh(scores / cap)) + bias
    look = np.broadcast_to(look, scores.shape)
    out = np.zeros((*scores.shape[:-1], v.shape[-1]))
    for where in np.ndindex(*scores.shape[:-1]):
        allowed = look[where]
        if allowed.any():
            e = np.exp(scores[where][allowed] - scores[where][allowed].max())
            out[where] = e / e.sum() @ v[where[:-1]][allowed]
    return out


def multi(plain, x, memory, look):
    """Several heads: x (batch, n_q, d), look (batch, n_q, n_k)."""

    def project(pair, source, heads):
        y = source @ pair[0] + (0.0 if pair[1] is None else pair[1])
        return np.stack(np.split(y, heads, axis=-1), axis=1)

    extra = plain.extra
    q = project(plain.q, x, plain.heads)
    k = project(plain.k, memory, plain.kv_heads)
    v = project(plain.v, memory, plain.kv_heads)
    scale = None
    if "unit" in extra:
        q, k = (a / np.linalg.norm(a, axis=-1, keepdims=True) for a in (q, k))
        scale = extra["unit"]
    if "rms" in extra:
        q, k = (
            a / np.sqrt((a**2).mean(-1, keepdims=True) + 1e-6) * gain
            for a, gain in zip((q, k), extra["rms"], strict=True)
        )
    if "turn" in extra:
        q, k = extra["turn"](q), extra["turn"](k)
    owner = np.arange(plain.heads) // (plain.heads // plain.kv_heads)
    i, j = np.arange(x.shape[1])[:, None], np.arange(memory.shape[1])
    bias = 0.0
    if "slopes" in extra:
        bias = -np.array(extra["slopes"])[:, None, None] * (i - j)
    if "window" in extra:
        look = look & (i - j < extra["window"])
    mixed = attend(
        q,
        k[:, owner],
        v[:, owner],
        look[:, None],
        scale=scale,
        cap=extra.get("cap"),
        bias=bias,
    )
    merged = np.concatenate(list(np.moveaxis(mixed, 1, 0)), axis=-1)
    return merged @ plain.o[0] + (0.0 if plain.o[1] is None else plain.o[1])
