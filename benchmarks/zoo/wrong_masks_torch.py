"""Wrong masks, in functions on PyTorch tensors."""

import math

import torch
import torch.nn.functional as F

from .made import drawn, fixed

NO_EMPTY = {"empty_rows": False}


def scaled(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))


def seen(mask, scores):
    return mask.expand_as(scores).any(-1, keepdim=True)


# M07


def filled_where_allowed(q, k, v, mask=None):
    scores = scaled(q, k)
    if mask is not None:
        scores = scores.masked_fill(mask, float("-inf"))
    return F.softmax(scores, dim=-1) @ v


def sdpa_inverted(q, k, v, mask=None):
    mask = None if mask is None else ~mask
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def bias_inverted(q, k, v, mask=None):
    bias = 0.0
    if mask is not None:
        bias = torch.zeros(mask.shape, dtype=q.dtype).masked_fill(mask, -1e9)
    return (scaled(q, k) + bias).softmax(-1) @ v


def handed_to_sdpa(q, k, v, key_blocked=None):
    """Blocked is True here, but SDPA reads True as allowed."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=key_blocked)


# M08


def float_mask_to_sdpa(q, k, v, mask=None):
    bias = None if mask is None else mask.to(q.dtype)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def bool_plus_scores(q, k, v, mask=None):
    scores = torch.einsum("...id,...jd->...ij", q, k) * q.size(-1) ** -0.5
    if mask is not None:
        scores = scores + mask
    return torch.softmax(scores, -1) @ v


# M09


def multiplied(q, k, v, mask=None):
    scores = scaled(q, k)
    if mask is not None:
        scores = scores * mask.float()
    return F.softmax(scores, dim=-1) @ v.to(scores.dtype)


def tiny_fill(rng):
    fill = float(rng.choice([1e-9, 0.0, torch.finfo(torch.float32).tiny]))

    def attention(q, k, v, mask=None):
        scores = scaled(q, k)
        if mask is None:
            return scores.softmax(-1) @ v
        weights = scores.masked_fill(mask == 0, fill).softmax(-1)
        return (weights * seen(mask, scores)) @ v

    return attention


# M10


def filled_after(q, k, v, mask=None):
    attn = F.softmax(scaled(q, k), dim=-1)
    if mask is not None:
        attn = attn.masked_fill(mask == 0, 0.0)
    return torch.matmul(attn, v), attn


def values_hidden(q, k, v, mask=None):
    attn = F.softmax(scaled(q, k), dim=-1)
    if mask is None:
        return attn @ v
    return torch.einsum("...ij,...ij,...jd->...id", attn, mask.to(attn.dtype), v)


# M11


def weak_fill(fill):
    def attention(q, k, v, mask=None):
        scores = scaled(q, k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, fill)
        return F.softmax(scores, dim=-1) @ v

    return lambda rng: attention


def weak_bias(rng):
    fill = float(rng.choice([-10.0, -30.0, -1e3, -1e4, -10000.0]))

    def attention(q, k, v, mask=None):
        bias = None if mask is None else (1 - mask.to(q.dtype)) * fill
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)

    return attention


# M12


def fill_then_scale(rng):
    fill = float(rng.choice([-20.0, -100.0, -1e3, -1e4]))

    def attention(q, k, v, mask=None):
        energy = torch.einsum("...id,...jd->...ij", q, k)
        if mask is None:
            return torch.softmax(energy / q.size(-1) ** 0.5, dim=-1) @ v
        energy = energy.masked_fill(~mask, fill)
        weights = torch.softmax(energy / q.size(-1) ** 0.5, dim=-1)
        return (weights * seen(mask, weights)) @ v

    return attention


def bias_in_baddbmm(rng):
    fill = float(rng.choice([-20.0, -100.0, -1e4]))

    def attention(q, k, v, mask=None):
        n_q, n_k = q.size(1), k.size(1)
        bias = q.new_zeros(q.size(0), n_q, n_k)
        if mask is not None:
            bias = bias.masked_fill(~mask, fill)
        scores = torch.baddbmm(bias, q, k.mT) / math.sqrt(q.size(-1))
        return scores.softmax(-1).bmm(v)

    return attention


# M14


def the_tutorial(query, key, value, mask=None):
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    p_attn = scores.softmax(dim=-1)
    return torch.matmul(p_attn, value), p_attn


def minus_infinity(q, k, v, mask=None):
    scores = scaled(q, k)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return torch.softmax(scores, dim=-1) @ v


def lowest_number(q, k, v, mask=None):
    if mask is not None:
        lowest = torch.finfo(q.dtype).min
        mask = torch.zeros(mask.shape, dtype=q.dtype).masked_fill(~mask, lowest)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def bias_of(mask, like):
    return torch.zeros(mask.shape, dtype=like.dtype).masked_fill(~mask, -torch.inf)


def gradient_of_nan(q, k, v, mask=None):
    """The rows are zero, but the gradient goes through the NaN under them."""
    scores = scaled(q, k)
    if mask is None:
        return scores.softmax(-1) @ v
    weights = (scores + bias_of(mask, scores)).softmax(-1)
    return torch.where(seen(mask, scores), weights, torch.zeros_like(weights)) @ v


def gradient_of_nan_result(q, k, v, mask=None):
    scores = scaled(q, k)
    if mask is None:
        return scores.softmax(-1) @ v
    out = scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v
    return out.masked_fill(~seen(mask, scores), 0.0)


def nan_to_num_of_biased(q, k, v, mask=None):
    """Leaves a NaN in the gradient of an empty row."""
    scores = scaled(q, k)
    if mask is not None:
        scores = scores + bias_of(mask, scores)
    return torch.nan_to_num(F.softmax(scores, dim=-1)) @ v


def nan_to_num_of_result(q, k, v, mask=None):
    scores = torch.einsum("bhid,bhjd->bhij", q, k) / q.size(-1) ** 0.5
    if mask is not None:
        scores = scores + bias_of(mask, scores)
    return torch.einsum("bhij,bhjd->bhid", scores.softmax(-1), v).nan_to_num(nan=0.0)


# M45


def nan_to_num_after_sdpa(q, k, v, mask=None):
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return out.nan_to_num(0.0)


SPECIMENS = (
    fixed("M07", "masked_fill(mask)", filled_where_allowed, "masked_fill", **NO_EMPTY),
    fixed("M07", "SDPA of ~mask", sdpa_inverted, "SDPA"),
    fixed("M07", "bias of -1e9, turned", bias_inverted, "additive", **NO_EMPTY),
    fixed("M07", "padding mask to SDPA", handed_to_sdpa, "SDPA", mask="blocked"),
    fixed("M08", "float mask to SDPA", float_mask_to_sdpa, "SDPA", **NO_EMPTY),
    fixed("M08", "scores + mask", bool_plus_scores, "additive", **NO_EMPTY),
    fixed("M09", "torch scores * mask", multiplied, "matmul", **NO_EMPTY),
    drawn("M09", "torch fill of 1e-9", tiny_fill, "masked_fill"),
    fixed("M10", "torch fill after softmax", filled_after, "masked_fill"),
    fixed("M10", "mask in the last einsum", values_hidden, "einsum"),
    *(
        drawn(
            "M11", f"masked_fill {fill:g}", weak_fill(fill), "masked_fill", **NO_EMPTY
        )
        for fill in (-10.0, -50.0, -100.0, -1e3, -1e4)
    ),
    drawn("M11", "bias to SDPA", weak_bias, "SDPA", **NO_EMPTY),
    drawn("M12", "masked_fill, then scale", fill_then_scale, "masked_fill"),
    drawn("M12", "bias in baddbmm", bias_in_baddbmm, "baddbmm", **NO_EMPTY),
    fixed("M14", "the tutorial's -1e9", the_tutorial, "masked_fill"),
    fixed("M14", "torch NaN", minus_infinity, "masked_fill"),
    fixed("M14", "finfo.min to SDPA", lowest_number, "SDPA"),
    fixed("M14", "NaN in the gradient, where", gradient_of_nan, "where"),
    fixed("M14", "NaN in the gradient, fill", gradient_of_nan_result, "masked_fill"),
    fixed("M14", "torch nan_to_num, bias", nan_to_num_of_biased, "nan_to_num"),
    fixed("M14 M45", "torch nan_to_num of result", nan_to_num_of_result, "einsum"),
    fixed("M45", "nan_to_num after SDPA", nan_to_num_after_sdpa, "SDPA"),
)
