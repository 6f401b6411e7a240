"""Wrong scale, axis, softmax and roles, in functions on PyTorch tensors."""

# ruff: noqa: RUF059 - people unpack a whole shape and use half of it

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from .made import drawn, fixed


def finish(scores, mask, v):
    """Mask and softmax as they should be; an empty row gives zeros."""
    if mask is None:
        return scores.softmax(-1) @ v
    mask = mask.expand_as(scores)
    seen = mask.any(-1, keepdim=True)
    scores = scores.masked_fill(~mask, float("-inf")).masked_fill(~seen, 0.0)
    return (scores.softmax(-1) * seen) @ v


# M01


def no_scale(q, k, v, mask=None):
    return finish(torch.matmul(q, k.transpose(-2, -1)), mask, v)


def sdpa_scale_one(q, k, v, mask=None):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1.0)


def no_scale_bmm(q, k, v):
    b, h, n, d = q.shape
    flat = [x.reshape(b * h, x.size(2), x.size(3)) for x in (q, k, v)]
    attn = F.softmax(torch.bmm(flat[0], flat[1].transpose(1, 2)), dim=2)
    return torch.bmm(attn, flat[2]).view(b, h, n, -1), attn.view(b, h, n, -1)


# M02


def embed_dim(query, key, value, mask=None):
    heads, head_dim = query.size(1), query.size(-1)
    energy = torch.einsum("nhqd,nhkd->nhqk", query, key)
    return finish(energy / ((heads * head_dim) ** 0.5), mask, value)


def sdpa_embed_dim(q, k, v, mask=None):
    scale = 1 / math.sqrt(q.shape[1] * q.shape[3])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)


def length_baddbmm(q, k, v):
    empty = q.new_empty(q.size(0), q.size(1), k.size(1))
    scores = torch.baddbmm(
        empty, q, k.transpose(1, 2), beta=0, alpha=1 / math.sqrt(q.size(1))
    )
    return torch.bmm(scores.softmax(dim=-1), v)


def written_down(rng):
    scale = float(rng.choice([128, 256, 512, 1024])) ** -0.5

    def attention(q, k, v, mask=None):
        return finish(q @ k.mT * scale, mask, v)

    return attention


# M03


def prescaled_sdpa(q, k, v, mask=None):
    q = q * q.shape[-1] ** -0.5
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def twice_baddbmm(q, k, v):
    d = q.size(-1)
    q = q / math.sqrt(d)
    zeros = torch.zeros(q.size(0), q.size(1), k.size(1), dtype=q.dtype)
    scores = torch.baddbmm(zeros, q, k.mT, alpha=d**-0.5)
    return F.softmax(scores, dim=-1).bmm(v)


def over_d(q, k, v, mask=None):
    return finish(torch.einsum("...id,...jd->...ij", q, k) / k.size(-1), mask, v)


# M04


def dim_one(q, k, v):
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
    b, h, n, m = scores.shape
    return torch.matmul(F.softmax(scores, dim=1), v)


def implicit_dim(q, k, v):
    scores = q @ k.transpose(-1, -2) / q.size(-1) ** 0.5
    return F.softmax(scores) @ v  # 4 axes: over dim 1; 3 axes: over dim 0


def softmax_layer(q, k, v, mask=None):
    softmax = nn.Softmax(dim=-2)
    dots = torch.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5
    if mask is not None:
        dots = dots.masked_fill(~mask, -torch.finfo(dots.dtype).max)
    attn = softmax(dots)
    if mask is not None:
        attn = attn.masked_fill(~mask, 0)
    return torch.einsum("bhij,bhjd->bhid", attn, v)


def dim_zero(q, k, v):
    n, d = q.shape
    weights = torch.softmax(q @ k.t() / d**0.5, dim=0)
    return weights @ v


# M05


def flat_heads(q, k, v):
    """As in DETR's mask head."""
    scores = torch.einsum("bhqd,bhkd->bqhk", q * q.shape[-1] ** -0.5, k)
    weights = F.softmax(scores.flatten(2), dim=-1).view_as(scores)
    return torch.einsum("bqhk,bhkd->bhqd", weights, v)


@dataclass
class Output:
    context: torch.Tensor
    attention: torch.Tensor


def joint_lse(q, k, v, mask=None):
    scores = q @ k.mT / math.sqrt(q.size(-1))
    if scores.dim() != 4:
        raise ValueError("need (batch, heads, n, d)")
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), -1e30)
    log_z = torch.logsumexp(scores, dim=(1, 3), keepdim=True)
    weights = torch.exp(scores - log_z)
    if mask is not None:
        weights = weights * mask
    return Output(weights @ v, weights)


# M06


def naive(q, k, v, mask=None):
    e = torch.exp(q @ k.mT / math.sqrt(q.size(-1)))
    if mask is not None:
        e = e * mask
    return e / e.sum(-1, keepdim=True).clamp_min(1e-30) @ v


def naive_4d(q, k, v):
    b, h, n, d = q.shape
    e = torch.einsum("bhid,bhjd->bhij", q, k).div(d**0.5).exp()
    top, below = torch.einsum("bhij,bhjd->bhid", e, v), e.sum(-1)
    return top / below.unsqueeze(-1)


# M46


def swapped(query, key, value, mask=None):
    scores = torch.matmul(key, query.transpose(-2, -1)) / math.sqrt(query.size(-1))
    return finish(scores, mask, value)


def sdpa_swapped(q, k, v):
    return F.scaled_dot_product_attention(k, q, v)


def sdpa_keys_as_values(q, k, v, mask=None):
    return F.scaled_dot_product_attention(q, k, k, attn_mask=mask)


def einsum_letters(q, k, v):
    attn = (torch.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5).softmax(-1)
    return torch.einsum("bhij,bhid->bhjd", attn, v)  # the weights transposed


def value_scores(q, k, v, mask=None):
    return finish(torch.einsum("...id,...jd->...ij", k, v) / q.size(-1) ** 0.5, mask, v)


# M47


def twice(q, k, v, mask=None):
    scores = q @ k.mT / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = F.softmax(F.softmax(scores, dim=-1), dim=-1)
    if mask is not None:
        weights = weights * mask
        weights = weights / weights.sum(-1, keepdim=True).clamp_min(1e-9)
    return weights @ v


def missing(q, k, v):
    return torch.bmm(torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.size(2)), v)


def log_weights(q, k, v):
    scores = torch.einsum("bhid,bhjd->bhij", q, k) / q.size(-1) ** 0.5
    return F.log_softmax(scores, dim=-1) @ v


SPECIMENS = (
    fixed("M01", "torch matmul", no_scale, "matmul"),
    fixed("M01", "SDPA with scale 1", sdpa_scale_one, "SDPA"),
    fixed("M01", "torch bmm", no_scale_bmm, "bmm"),
    fixed("M02", "embed_dim", embed_dim, "einsum"),
    fixed("M02", "embed_dim, SDPA", sdpa_embed_dim, "SDPA"),
    fixed("M02", "root of n, baddbmm", length_baddbmm, "baddbmm"),
    drawn("M02", "written down, torch", written_down, "constant"),
    fixed("M03", "scaled before SDPA", prescaled_sdpa, "SDPA"),
    fixed("M03", "scaled before baddbmm", twice_baddbmm, "baddbmm"),
    fixed("M03", "divided by d, torch", over_d, "einsum"),
    fixed("M04", "dim=1, 4 axes", dim_one, "matmul"),
    fixed("M04", "no dim given", implicit_dim, "matmul"),
    fixed("M04", "nn.Softmax(dim=-2)", softmax_layer, "einsum"),
    fixed("M04", "dim=0, 2 axes", dim_zero, "matmul"),
    fixed("M05", "flattened heads", flat_heads, "einsum"),
    fixed("M05", "logsumexp over heads", joint_lse, "dataclass"),
    fixed("M06", "torch exp over sum", naive, "matmul"),
    fixed("M06", "torch exp, einsum", naive_4d, "einsum"),
    fixed("M46", "torch k asks q", swapped, "matmul"),
    fixed("M46", "SDPA of k, q", sdpa_swapped, "SDPA"),
    fixed("M46", "SDPA of q, k, k", sdpa_keys_as_values, "SDPA"),
    fixed("M46", "letters of einsum", einsum_letters, "einsum"),
    fixed("M46", "torch k with v", value_scores, "einsum"),
    fixed("M47", "torch softmax twice", twice, "masked_fill"),
    fixed("M47", "torch no softmax", missing, "bmm"),
    fixed("M47", "log_softmax", log_weights, "einsum"),
)
