"""Parts are called by what their arguments are named, and in the order of those."""

from __future__ import annotations

import math

import numpy as np
import parts_right as right
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attnlib.clinic.examine_part import examine_part


def sinusoid_width_first(d_model, length):
    return right.sinusoid_loops(length, d_model)


def sinusoid_1000_width_first(d_model, length):
    t = np.arange(length)[:, None] / 1000 ** (np.arange(d_model) // 2 * 2 / d_model)
    return np.where(np.arange(d_model) % 2, np.cos(t), np.sin(t))


def causal_behind_cache(n, past_len=0):
    return np.tri(n, n + past_len, past_len, dtype=bool)


def causal_cache_forgotten(n, past_len=0):
    return np.tri(n, n + past_len, dtype=bool)


def causal_device(size, device=None):
    return torch.ones(size, size, device=device).tril().bool()


def padding_of_tokens(seq, pad_id=0):
    return (seq != pad_id)[:, None, None, :]


def padding_of_tokens_inverted(src_ids):
    return src_ids == 0


def merge_told(x, n_heads):
    b, h, n, d = x.shape
    assert h == n_heads
    return x.transpose(1, 2).reshape(b, n, h * d)


def merge_told_wrong(x, num_heads):
    b, _, n, d = x.shape
    return x.reshape(b, n, num_heads * d)


def repeat_to(k, n_heads):
    return torch.repeat_interleave(k, n_heads // k.shape[-3], dim=-3)


def repeat_to_tiled(k, num_heads):
    n = num_heads // k.shape[1]
    return torch.cat([k] * n, dim=1)


def norms(q, k):
    return F.normalize(q, dim=-1), F.normalize(k, dim=-1)


def norms_on_tokens(q, k):
    return F.normalize(q, dim=-2), F.normalize(k, dim=-2)


def distil_teacher_first(teacher_logits, student_logits, temperature=2.0):
    return right.distil_kl_div(student_logits, teacher_logits, temperature)


def distil_teacher_first_wrong(teacher, student):
    return right.distil_kl_div(teacher, student)


def bias_heads_last(n_q, n_k, num_heads):
    return right.bias_distances(num_heads, n_q, n_k)


def rope_base(x, base=10000.0):
    return right.rope_neighbours(x, np.arange(x.shape[-2]))


def rope_offset_by_name(x, start_pos):
    places = torch.arange(x.shape[-2]) + start_pos
    return right.rope_rotate_half(x, places)


class Rotary(nn.Module):
    """As in many repositories: built for one width, with a buffer."""

    def __init__(self, head_dim, base=10000.0, sign=1.0):
        super().__init__()
        inv = base ** (-torch.arange(0, head_dim, 2).float() / head_dim)
        self.register_buffer("inv_freq", inv)
        self.sign = sign

    def forward(self, x):
        t = torch.arange(x.shape[-2])[:, None] * self.inv_freq * self.sign
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * t.cos() - b * t.sin(), b * t.cos() + a * t.sin()], -1)


class RMSNorm(nn.Module):
    def __init__(self, width, dim=-1):
        super().__init__()
        self.weight, self.dim = nn.Parameter(torch.ones(width)), dim

    def forward(self, x):
        size = x.pow(2).mean(self.dim, keepdim=True)
        return x * torch.rsqrt(size + 1e-6) * self.weight


RIGHT = [
    ("sinusoidal", sinusoid_width_first),
    ("causal", causal_behind_cache),
    ("causal", causal_device),
    ("causal", nn.Transformer.generate_square_subsequent_mask),
    ("padding", padding_of_tokens),
    ("merge_heads", merge_told),
    ("repeat_kv", repeat_to),
    ("qk_norm", norms),
    ("qk_norm", nn.RMSNorm(10)),
    ("qk_norm", RMSNorm(12)),
    ("qk_norm", nn.LayerNorm(6)),
    ("distillation_loss", distil_teacher_first),
    ("alibi_bias", bias_heads_last),
    ("rope", rope_base),
    ("rope", rope_offset_by_name),
    ("rope", Rotary(16)),
    ("rope", Rotary(6, base=500000.0)),
]
WRONG = [
    ("M30", "sinusoidal", sinusoid_1000_width_first),
    ("M19", "causal", causal_cache_forgotten),
    ("M07", "padding", padding_of_tokens_inverted),
    ("M21", "merge_heads", merge_told_wrong),
    ("M33", "repeat_kv", repeat_to_tiled),
    ("M38", "qk_norm", norms_on_tokens),
    ("M38", "qk_norm", RMSNorm(6, dim=-2)),
    ("M44", "distillation_loss", distil_teacher_first_wrong),
    ("M27", "rope", Rotary(16, sign=-1.0)),
]


@pytest.mark.parametrize(("part", "thing"), RIGHT)
@pytest.mark.parametrize("seed", range(3))
def test_right_parts_are_called_as_they_want(part, thing, seed):
    report = examine_part(thing, part, seed=seed)
    assert report.healthy, str(report)


@pytest.mark.parametrize(("code", "part", "thing"), WRONG)
@pytest.mark.parametrize("seed", range(3))
def test_wrong_parts_are_named_in_any_order_of_arguments(code, part, thing, seed):
    report = examine_part(thing, part, seed=seed)
    assert report.codes == (code,), str(report)


def test_an_attention_is_no_part():
    report = examine_part(F.scaled_dot_product_attention, "split_heads")
    assert not report.healthy

    def attention(q, k, v):
        return q

    refused = examine_part(attention, "online_softmax").refused
    assert refused.endswith("Wrap it in a lambda that has these arguments.")


def test_a_width_can_be_said():
    freqs = 10000.0 ** (-np.arange(4) / 4)

    def rope(x, positions):
        t = np.asarray(positions)[:, None] * freqs
        a, b = np.split(x, 2, axis=-1)
        turned = a * np.cos(t) - b * np.sin(t), b * np.cos(t) + a * np.sin(t)
        return np.concatenate(turned, axis=-1)

    assert examine_part(rope, "rope", d=8).healthy
    assert math.isclose(freqs[0], 1.0)
