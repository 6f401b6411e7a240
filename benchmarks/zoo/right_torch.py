"""Right attentions as functions on torch tensors."""

import math

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right
from torch.nn.attention.flex_attention import flex_attention

from attnlib.nn.attention import scaled_dot_product

from .draw import function as made


def sdpa(q, k, v, mask=None):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def sdpa_math(query, key, value, attn_mask=None):
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(query, key, value, attn_mask)


def sdpa_prescaled(q, k, v, mask=None):
    q = q / math.sqrt(q.size(-1))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1.0)


def sdpa_float_bias(q, k, v, mask=None):
    bias = None
    if mask is not None:
        bias = torch.zeros(mask.shape, dtype=q.dtype).masked_fill(~mask, -torch.inf)
    return F.scaled_dot_product_attention(q, k, v, bias)


def sdpa_without_mask(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


def sdpa_causal(q, k, v):
    if q.size(-2) != k.size(-2):  # is_causal would align the mask at the top left
        raise ValueError("self attention: as many queries as keys")
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def sdpa_lower_right(q, k, v):
    bias = causal_lower_right(q.size(-2), k.size(-2))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def sdpa_grouped(q, k, v, mask=None):
    return F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True)


def masked_fill(q, k, v, mask=None):
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask.any(-1, keepdim=True), 0.0)
    return torch.matmul(weights, v)


def nan_to_num(q, k, v, mask=None):
    scores = q @ k.mT * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), -torch.inf)
    return torch.nan_to_num(scores.softmax(-1)) @ v


def where_minimum(q, k, v, mask=None):
    sim = torch.einsum("...id,...jd->...ij", q, k) * q.shape[-1] ** -0.5
    if mask is not None:
        sim = torch.where(mask, sim, torch.finfo(sim.dtype).min)
    attn = sim.softmax(dim=-1)
    if mask is not None:
        attn = attn * mask
    return torch.einsum("...ij,...jd->...id", attn, v)


def baddbmm(q, k, v, mask=None):
    """On (batch, n, d), the mask as a bias, the scale as alpha."""
    bias = q.new_zeros(q.size(0), q.size(1), k.size(1))
    if mask is not None:
        bias = bias.masked_fill(~mask, -torch.inf)
    scores = torch.baddbmm(bias, q, k.transpose(1, 2), alpha=q.size(-1) ** -0.5)
    empty = scores.isneginf().all(-1, keepdim=True)
    weights = scores.masked_fill(empty, 0).softmax(-1).masked_fill(empty, 0)
    return torch.bmm(weights, v)


def softmax_in_float32(q, k, v, mask=None):
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
    if mask is not None:
        weights = weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0)
    return weights @ v


def half_safe(q, k, v, mask=None):
    """Scaled first and softmax in float32, so that float16 does not overflow."""
    root = q.size(-1) ** -0.25
    scores = ((q * root) @ (k * root).mT).float()
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = scores.softmax(-1).nan_to_num(0.0).to(v.dtype)
    return weights @ v


def flex(q, k, v, mask=None):
    """FlexAttention, not compiled; hides with a score_mod."""
    if mask is None:
        return flex_attention(q, k, v)
    look = mask.expand(q.size(0), q.size(1), q.size(2), k.size(2))

    def score_mod(score, b, h, i, j):
        return torch.where(look[b, h, i, j], score, -torch.inf)

    return flex_attention(q, k, v, score_mod=score_mod)


def flex_causal(q, k, v):
    ahead = k.size(-2) - q.size(-2)

    def causal(score, b, h, i, j):
        return torch.where(i + ahead >= j, score, -float("inf"))

    return flex_attention(q, k, v, score_mod=causal)


class Attend(torch.autograd.Function):
    """Forward and backward by hand."""

    @staticmethod
    def forward(ctx, q, k, v, mask):
        scores = q @ k.mT / q.size(-1) ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        top = scores.amax(-1, keepdim=True)
        p = torch.exp(scores - top.masked_fill(top.isneginf(), 0))
        p = p / p.sum(-1, keepdim=True).clamp_min(1e-30)
        ctx.save_for_backward(q, k, v, p)
        return p @ v

    @staticmethod
    def backward(ctx, d_out):
        q, k, v, p = ctx.saved_tensors
        d_p = d_out @ v.mT
        d_s = p * (d_p - (d_p * p).sum(-1, keepdim=True)) / q.size(-1) ** 0.5
        return d_s @ k, d_s.mT @ q, p.mT @ d_out, None


def autograd_function(q, k, v, mask=None):
    return Attend.apply(q, k, v, mask)


def one_query(query, keys, values, look):
    scores = keys @ query / query.shape[0] ** 0.5
    weights = torch.softmax(torch.where(look, scores, -torch.inf), 0)
    return torch.where(look.any(), weights, 0.0) @ values


def vmapped(q, k, v, mask=None):
    lead = q.shape[:-2]
    look = torch.ones((), dtype=torch.bool) if mask is None else mask
    look = look.expand(*lead, q.size(-2), k.size(-2))
    attend = torch.vmap(one_query, in_dims=(0, None, None, 0))
    for _ in lead:
        attend = torch.vmap(attend)
    return attend(q, k, v, look)


def gradient_of_log_sum_exp(q, k, v, mask=None):
    """Softmax is the gradient of log-sum-exp: torch.func takes it."""
    scores = q @ k.mT / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e30)
    weights = torch.func.grad(lambda s: torch.logsumexp(s, -1).sum())(scores)
    return (weights if mask is None else weights * mask) @ v


def chunked_queries(size):
    def attention(q, k, v, mask=None):
        parts = []
        for start in range(0, q.size(-2), size):
            part = mask
            if mask is not None and mask.size(-2) > 1:
                part = mask[..., start : start + size, :]
            parts.append(masked_fill(q[..., start : start + size, :], k, v, part))
        return torch.cat(parts, dim=-2)

    return attention


def ours(q, k, v, mask=None):
    return scaled_dot_product(q, k, v, mask).out


def ours_causal(q, k, v, mask=None, causal=False):
    return scaled_dot_product(q, k, v, mask, causal=causal)


def returns_weights(query, key, value, mask=None, dropout=None):
    """The Annotated Transformer's function, in structure; empty rows are zeroed."""
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    p_attn = scores.softmax(dim=-1)
    if mask is not None:
        p_attn = p_attn * mask.any(-1, keepdim=True)
    if dropout is not None:
        p_attn = dropout(p_attn)
    return torch.matmul(p_attn, value), p_attn


def loops(q, k, v, mask=None):
    out = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype)
    for i in range(q.shape[-2]):
        scores = (q[..., i, None, :] * k).sum(-1) / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask[..., i, :], -torch.inf)
        weights = torch.exp(torch.log_softmax(scores, -1)).nan_to_num(0.0)
        out[..., i, :] = (weights[..., None] * v).sum(-2)
    return out


def blocked(q, k, v, attn_mask=None):
    """The mask of nn.MultiheadAttention: True is hidden."""
    return masked_fill(q, k, v, None if attn_mask is None else ~attn_mask)


def added(q, k, v, attn_mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    if attn_mask is not None:
        scores = scores + attn_mask
    empty = scores.isneginf().all(-1, keepdim=True)
    weights = torch.where(empty, 0.0, scores).softmax(-1)
    return torch.where(empty, 0.0, weights) @ v


def window(q, k, v):
    """Each token reads itself and the three before it."""
    n = q.size(-2)
    band = torch.ones(n, n, dtype=torch.bool).tril().triu(-3)
    return F.scaled_dot_product_attention(q, k, v, band)


def _right(name, function, style, **intent):
    return made(f"torch, {name}", lambda rng: function, style, **intent)


SPECIMENS = (
    _right("SDPA", sdpa, "sdpa"),
    _right("SDPA, math backend", sdpa_math, "sdpa"),
    _right("SDPA, scale=1 and q pre-scaled", sdpa_prescaled, "sdpa"),
    _right("SDPA with a float bias", sdpa_float_bias, "sdpa"),
    _right("SDPA without mask", sdpa_without_mask, "sdpa"),
    _right("SDPA is_causal", sdpa_causal, "sdpa", causal=True),
    _right("SDPA causal_lower_right", sdpa_lower_right, "sdpa", causal=True),
    _right("SDPA enable_gqa", sdpa_grouped, "sdpa"),
    _right("masked_fill", masked_fill, "matmul"),
    _right("nan_to_num", nan_to_num, "matmul"),
    _right("finfo.min, multiplied", where_minimum, "einsum"),
    _right("baddbmm", baddbmm, "baddbmm"),
    _right("softmax in float32", softmax_in_float32, "dtype"),
    _right("safe in float16", half_safe, "dtype", dtype="float16"),
    _right("flex_attention", flex, "flex"),
    _right("flex_attention, causal", flex_causal, "flex", causal=True),
    _right("autograd.Function", autograd_function, "autograd"),
    _right("vmap of one query", vmapped, "vmap"),
    _right("gradient of log-sum-exp", gradient_of_log_sum_exp, "torch.func"),
    made(
        "torch, queries in chunks",
        lambda rng: chunked_queries(int(rng.integers(1, 5))),
        "chunks",
    ),
    _right("attnlib.nn.attention", ours, "attnlib"),
    _right("attnlib.nn.attention, all stages", ours_causal, "attnlib"),
    _right("out and weights", returns_weights, "annotated transformer"),
    _right("a loop over queries", loops, "loops"),
    _right("mask says what is blocked", blocked, "masks", mask="blocked"),
    _right("mask is added", added, "masks", mask="added"),
    _right("window of 4", window, "window", window=4),
)
