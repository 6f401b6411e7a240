"""Wrong parts as people write them: for each mistake at least two, in two styles.

Written apart from the families in `attnlib/clinic`: an engine that knows a behaviour
must name it in any code.
"""

from __future__ import annotations

import math

import numpy as np
import parts_right as right
import torch
import torch.nn.functional as F
from parts_right import slopes_recursive

WRONG: list[tuple[str, str, object, dict[str, object]]] = []


def wrong(code, part, **options):
    """Add a function to the list of wrong ones."""

    def add(function):
        WRONG.append((code, part, function, options))
        return function

    return add


# M04, M06, M14: softmax


@wrong("M04", "softmax")
def softmax_axis_0(x, axis=-1):
    x = np.where(np.isneginf(x), -1e300, x)
    e = np.exp(x - x.max(0))
    return e / e.sum(0)


@wrong("M04", "softmax")
def softmax_all_axes(x):
    top = x[torch.isfinite(x)].max()
    e = torch.exp(x - top)
    return e / e.sum()


@wrong("M06", "softmax")
def softmax_bare(x, axis=-1):
    e = np.exp(x)
    s = e.sum(axis=axis, keepdims=True)
    return e / np.where(s == 0, 1, s)


@wrong("M06", "softmax")
def softmax_bare_torch(x, dim=-1):
    e = x.exp()
    s = e.sum(dim, keepdim=True)
    return e / torch.where(s == 0, 1.0, s)


@wrong("M14", "softmax")
def softmax_naive_rows(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


wrong("M14", "softmax")(torch.softmax)

# M18, M19: causal


@wrong("M18", "causal")
def causal_strict(n_q, n_k=None):
    n_k = n_k or n_q
    return np.tril(np.ones((n_q, n_k), bool), n_k - n_q - 1)


@wrong("M18", "causal")
def causal_one_ahead(n):
    return torch.triu(torch.full((n, n), -torch.inf), diagonal=2)


@wrong("M18", "causal")
def causal_strict_loops(n_q, n_k):
    allowed = torch.zeros(n_q, n_k, dtype=torch.bool)
    for i in range(n_q):
        allowed[i, : n_k - n_q + i] = True
    return allowed


@wrong("M19", "causal")
def causal_top_left(n_q, n_k=None):
    return torch.tril(torch.ones(n_q, n_k or n_q, dtype=torch.bool))


@wrong("M19", "causal")
def causal_top_left_compared(n_q, n_k=None):
    return np.arange(n_q)[:, None] >= np.arange(n_k or n_q)


@wrong("M07", "causal")
def causal_triu(n):
    return torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=1)


@wrong("M07", "causal", mask="blocked")
def causal_tril_for_blocked(n_q, n_k):
    return np.tri(n_q, n_k, n_k - n_q, dtype=bool)


# M32: window


@wrong("M32", "window")
def window_one_more(n_q, n_k, window):
    i, j = torch.arange(n_k)[-n_q:, None], torch.arange(n_k)
    return (j <= i) & (i - j <= window)


@wrong("M32", "window")
def window_one_more_band(n, window_size):
    m = np.tri(n, dtype=bool)
    return m & ~np.tri(n, k=-window_size - 1, dtype=bool)


@wrong("M32", "window")
def window_one_less(n_q, n_k, width):
    i, j = np.arange(n_k - n_q, n_k)[:, None], np.arange(n_k)
    return (j <= i) & (i - j < width - 1)


@wrong("M32", "window")
def window_left_less(n_q, n_k=None, *, left):
    i, j = torch.arange(n_k)[-n_q:, None], torch.arange(n_k)
    return (j <= i) & (i - j < left)


@wrong("M32", "window", causal=True)
def window_both_sides(n_q, n_k, width):
    i, j = np.arange(n_k - n_q, n_k)[:, None], np.arange(n_k)
    return np.abs(i - j) < width


@wrong("M32", "window", causal=True)
def window_no_end(n, width):
    return torch.triu(torch.ones(n, n), diagonal=1 - width).bool()


# M07, M15, M17: padding


@wrong("M07", "padding")
def padding_inverted(lengths, n_k):
    return np.arange(n_k) >= lengths[:, None]


@wrong("M07", "padding")
def padding_inverted_torch(lengths, n_k):
    return (torch.arange(n_k)[None] >= lengths[:, None])[:, None, None]


@wrong("M15", "padding")
def padding_on_rows(lengths, n_k):
    return (np.arange(n_k) < lengths[:, None])[:, None, :, None]


@wrong("M15", "padding")
def padding_on_rows_torch(lengths, n_k):
    return (torch.arange(n_k)[None] < lengths[:, None]).unsqueeze(-1)


@wrong("M17", "padding")
def padding_of_longest(lengths, n_k):
    return np.broadcast_to(np.arange(n_k) < max(lengths), (len(lengths), n_k))


@wrong("M17", "padding")
def padding_of_first(lengths, n_k):
    real = torch.arange(n_k) < lengths[0]
    return real.repeat(len(lengths), 1)


# M30: sinusoid


@wrong("M30", "sinusoidal")
def sinusoid_odd_columns(n, d):
    position = np.arange(n)[:, None]
    table = position / np.power(10000, np.arange(d)[None] / d)
    table[:, 0::2], table[:, 1::2] = np.sin(table[:, 0::2]), np.cos(table[:, 1::2])
    return table


@wrong("M30", "sinusoidal")
def sinusoid_two_i(n, d):
    pe = torch.zeros(n, d)
    for pos in range(n):
        for i in range(0, d, 2):
            pe[pos, i] = math.sin(pos / (10000 ** (i / d)))
            if i + 1 < d:
                pe[pos, i + 1] = math.cos(pos / (10000 ** ((2 * (i + 1)) / d)))
    return pe


@wrong("M30", "sinusoidal")
def sinusoid_two_i_both(n, d):
    pe = np.zeros((n, d))
    for i in range(0, d, 2):
        pe[:, i] = np.sin(np.arange(n) / 10000 ** (2 * i / d))
        if i + 1 < d:
            pe[:, i + 1] = np.cos(np.arange(n) / 10000 ** (2 * (i + 1) / d))
    return pe


@wrong("M30", "sinusoidal")
def sinusoid_next_pair(n, d):
    pe = np.zeros((n, d))
    for i in range(0, d, 2):
        pe[:, i] = np.sin(np.arange(n) / 10000 ** (i / d))
        if i + 1 < d:
            pe[:, i + 1] = np.cos(np.arange(n) / 10000 ** ((i + 2) / d))
    return pe


@wrong("M30", "sinusoidal")
def sinusoid_1000(n, d_model):
    div = torch.exp(torch.arange(0, d_model, 2) * (-math.log(1000.0) / d_model))
    t = torch.arange(n)[:, None] * div
    return torch.stack([t.sin(), t.cos()], -1).flatten(1)[:, :d_model]


@wrong("M30", "sinusoidal")
def sinusoid_1000_halves(n, d):
    t = np.outer(np.arange(n), 1000.0 ** (-np.arange((d + 1) // 2) * 2 / d))
    return np.concatenate([np.sin(t), np.cos(t)[:, : d // 2]], 1)


@wrong("M30", "sinusoidal")
def sinusoid_odd_breaks(n, d_model):
    pe = torch.zeros(n, d_model)
    div = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    t = torch.arange(n).unsqueeze(1) * div
    pe[:, 0::2], pe[:, 1::2] = torch.sin(t), torch.cos(t)
    return pe


@wrong("M30", "sinusoidal")
def sinusoid_odd_breaks_numpy(n, d):
    t = np.arange(n)[:, None] / 10000 ** (np.arange(0, d, 2) / d)
    table = np.zeros((n, d))
    table[:, ::2] = np.sin(t)
    table[:, 1::2] = np.cos(t)
    return table


@wrong("M30", "sinusoidal")
def sinusoid_odd_cut(n, d):
    t = np.outer(np.arange(n), 10000.0 ** (-2 * np.arange(d // 2) / d))
    return np.stack([np.sin(t), np.cos(t)], axis=-1).reshape(n, -1)


@wrong("M30", "sinusoidal")
def sinusoid_odd_grows(n, d):
    t = torch.outer(torch.arange(n), 10000.0 ** (-torch.arange(0, d, 2) / d))
    return torch.stack([t.sin(), t.cos()], dim=-1).flatten(1)


@wrong("M30", "sinusoidal")
def sinusoid_degrees(n, d):
    table = np.zeros((n, d))
    for c in range(d):
        t = np.radians(np.arange(n) / 10000 ** ((c // 2) * 2 / d))
        table[:, c] = np.cos(t) if c % 2 else np.sin(t)
    return table


@wrong("M30", "sinusoidal")
def sinusoid_degrees_torch(n, d):
    i = torch.arange(d) // 2
    t = torch.deg2rad(torch.arange(n)[:, None] * 10000.0 ** (-2 * i / d))
    return torch.where(torch.arange(d) % 2 == 0, t.sin(), t.cos())


@wrong("M30", "sinusoidal", layout="interleaved")
def sinusoid_halves_not_meant(n, d):
    t = np.outer(np.arange(n), 10000.0 ** (-np.arange((d + 1) // 2) * 2 / d))
    return np.concatenate([np.sin(t), np.cos(t)[:, : d // 2]], 1)


# M26, M27: RoPE


def _angles(positions, d, base=10000.0):
    return np.asarray(positions)[:, None] * base ** (-np.arange(0, d, 2) / d)


def _tangles(positions, d):
    return positions[:, None] * 10000.0 ** (-torch.arange(0, d, 2) / d)


wrong("M26", "rope", layout="half")(right.rope_neighbours)
wrong("M26", "rope", layout="half")(right.rope_complex)
wrong("M26", "rope", layout="interleaved")(right.rope_rotate_half)


@wrong("M26", "rope", layout="interleaved")
def rope_halves(x, positions):
    a, b = np.split(x, 2, axis=-1)
    t = _angles(positions, x.shape[-1])
    return np.concatenate(
        [a * np.cos(t) - b * np.sin(t), b * np.cos(t) + a * np.sin(t)], -1
    )


@wrong("M26", "rope")
def rope_tiled_angles_neighbours(x, positions):
    t = np.tile(_angles(positions, x.shape[-1]), 2)
    turned = np.stack([-x[..., 1::2], x[..., 0::2]], axis=-1).reshape(x.shape)
    return x * np.cos(t) + turned * np.sin(t)


@wrong("M26", "rope")
def rope_repeated_angles_halves(x, positions):
    t = _tangles(positions, x.shape[-1]).repeat_interleave(2, dim=-1)
    a, b = x.chunk(2, dim=-1)
    return x * t.cos() + torch.cat([-b, a], -1) * t.sin()


@wrong("M27", "rope")
def rope_from_one(x, positions):
    return right.rope_neighbours(x, positions + 1)


@wrong("M27", "rope")
def rope_from_one_torch(x):
    n, d = x.shape[-2:]
    t = _tangles(torch.arange(1, n + 1), d)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * t.cos() - b * t.sin(), b * t.cos() + a * t.sin()], -1)


@wrong("M27", "rope")
def rope_ignores_positions(x, positions):
    return right.rope_neighbours(x, np.arange(x.shape[-2]))


@wrong("M27", "rope")
def rope_ignores_offset(x, offset):
    return rope_halves(x, np.arange(x.shape[-2]))


@wrong("M27", "rope")
def rope_along_heads(x):
    t = np.arange(x.shape[1])[:, None, None] * 10000.0 ** (
        -np.arange(0, x.shape[-1], 2) / x.shape[-1]
    )
    a, b = x[..., 0::2], x[..., 1::2]
    both = [a * np.cos(t) - b * np.sin(t), a * np.sin(t) + b * np.cos(t)]
    return np.stack(both, -1).reshape(x.shape)


@wrong("M27", "rope")
def rope_along_heads_torch(x):
    _, seq_len, _, d = x.shape
    t = _tangles(torch.arange(seq_len), d)[None, :, None, :]
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * t.cos() - b * t.sin(), b * t.cos() + a * t.sin()], -1)


@wrong("M27", "rope")
def rope_twice(x, positions):
    once = right.rope_rotate_half(x, positions)
    return right.rope_rotate_half(once, positions)


@wrong("M27", "rope")
def rope_twice_numpy(x):
    p = np.arange(x.shape[-2])
    return right.rope_neighbours(right.rope_neighbours(x, p), p)


@wrong("M27", "rope")
def rope_backwards(x, positions):
    return right.rope_neighbours(x, -positions)


@wrong("M27", "rope")
def rope_backwards_torch(x, positions):
    a, b = x.chunk(2, dim=-1)
    t = _tangles(positions, x.shape[-1])
    return torch.cat([a * t.cos() + b * t.sin(), b * t.cos() - a * t.sin()], -1)


@wrong("M27", "rope")
def rope_one_sign(x, positions):
    a, b = x[..., 0::2], x[..., 1::2]
    t = _angles(positions, x.shape[-1])
    both = [a * np.cos(t) + b * np.sin(t), b * np.cos(t) + a * np.sin(t)]
    return np.stack(both, -1).reshape(x.shape)


@wrong("M30", "rope", layout="half")
def rope_exponent_halved(x, positions):
    half = x.shape[-1] // 2
    t = positions[:, None] * 10000.0 ** (-torch.arange(half) / (2 * half))
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * t.cos() - b * t.sin(), b * t.cos() + a * t.sin()], -1)


@wrong("M30", "rope", rope_base=500000.0)
def rope_other_base(x, positions):
    return right.rope_neighbours(x, positions)


# M31: ALiBi


@wrong("M31", "alibi_slopes")
def slopes_formula(n):
    return [2 ** (-8 * (h + 1) / n) for h in range(n)]


@wrong("M31", "alibi_slopes")
def slopes_formula_torch(n_heads):
    return torch.pow(2.0, -8.0 * torch.arange(1, n_heads + 1) / n_heads)[:, None, None]


@wrong("M31", "alibi_slopes")
def slopes_from_one(n):
    near = 2 ** int(np.log2(n))
    first = 2.0 ** (-8 * np.arange(near) / near)
    more = 2.0 ** (-8 * np.arange(2 * near) / (2 * near))
    return np.concatenate([first, more[0::2][: n - near]])


@wrong("M31", "alibi_slopes")
def slopes_from_one_powers(n):
    assert n & (n - 1) == 0
    return torch.tensor([2 ** (-8 * h / n) for h in range(n)])


@wrong("M31", "alibi_slopes")
def slopes_sorted(n):
    return sorted(slopes_recursive(n), reverse=True)


@wrong("M31", "alibi_slopes")
def slopes_from_twice(n):
    near = 2 ** math.floor(math.log2(n))
    return torch.tensor(slopes_recursive(near) + slopes_recursive(2 * near)[: n - near])


@wrong("M31", "alibi_slopes")
def slopes_always_halved(n):
    return [1 / 2**h for h in range(1, n + 1)]


@wrong("M31", "alibi_slopes")
def slopes_halved_from_one(n):
    return 0.5 ** np.arange(n)


@wrong("M31", "alibi_bias")
def bias_sign(n_heads, n_q, n_k):
    return -right.bias_distances(n_heads, n_q, n_k)


@wrong("M31", "alibi_bias")
def bias_sign_torch(n_heads, n):
    m = torch.tensor(slopes_recursive(n_heads))[:, None, None]
    return m * (torch.arange(n)[:, None] - torch.arange(n)).abs()


@wrong("M31", "alibi_bias")
def bias_top_left(n_heads, n_q, n_k):
    m = np.array(slopes_recursive(n_heads))[:, None, None]
    return -m * np.abs(np.arange(n_q)[:, None] - np.arange(n_k))


@wrong("M31", "alibi_bias")
def bias_formula(n_heads, n_q, n_k):
    m = torch.tensor(slopes_formula(n_heads))[:, None, None]
    return m * torch.arange(1 - n_k, 1)


# M29, M28


@wrong("M29", "learned_positions")
def learned_opt(table, n, past=0):
    return table[past + 2 : past + 2 + n]


@wrong("M29", "learned_positions")
def learned_opt_torch(weight, n):
    return F.embedding(torch.arange(n) + 2, weight)


@wrong("M29", "learned_positions", offset=2)
def learned_without_offset(table, n, past):
    return table[past : past + n]


@wrong("M29", "learned_positions")
def learned_no_past(table, n, past):
    return table[:n]


@wrong("M29", "learned_positions")
def learned_no_past_torch(weight, n, past_length):
    return F.embedding(torch.arange(n), weight)


@wrong("M29", "learned_positions")
def learned_from_one(table, n, past=0):
    return np.take(table, range(past + 1, past + n + 1), axis=0)


@wrong("M29", "learned_positions")
def learned_past_short(table, n, past):
    start = max(past - 1, 0)
    return table[start : start + n]


@wrong("M28", "padded_positions")
def padded_arange(mask):
    return torch.arange(mask.shape[1]).expand(mask.shape)


@wrong("M28", "padded_positions")
def padded_arange_numpy(mask):
    return np.arange(mask.shape[1]) * np.asarray(mask)


@wrong("M28", "padded_positions")
def padded_cumsum_only(mask):
    return np.cumsum(mask, axis=1)


@wrong("M28", "padded_positions")
def padded_cumsum_only_torch(mask):
    return mask.long().cumsum(1) * mask


@wrong("M28", "padded_positions")
def padded_axis_0(mask):
    return np.cumsum(mask, axis=0) - 1


# M20, M21, M22: heads


@wrong("M20", "split_heads")
def split_reshape(x, n_heads):
    b, n, d = x.shape
    return x.reshape(b, n_heads, n, d // n_heads)


@wrong("M20", "split_heads")
def split_view(x, n_heads):
    return x.view(x.size(0), n_heads, x.size(1), -1)


@wrong("M22", "split_heads")
def split_strided(x, n_heads):
    return np.stack([x[..., h::n_heads] for h in range(n_heads)], axis=-3)


@wrong("M22", "split_heads")
def split_strided_torch(x, n_heads):
    b, n, d = x.shape
    return x.view(b, n, d // n_heads, n_heads).permute(0, 3, 1, 2)


@wrong("M21", "merge_heads")
def merge_reshape(x):
    b, h, n, d = x.shape
    return x.reshape(b, n, h * d)


@wrong("M21", "merge_heads")
def merge_view(x):
    return x.contiguous().view(x.size(0), -1, x.size(1) * x.size(3))


@wrong("M22", "merge_heads")
def merge_strided(x):
    *b, h, n, d = x.shape
    return np.moveaxis(x, -3, -1).reshape(*b, n, h * d)


@wrong("M22", "merge_heads")
def merge_strided_torch(x):
    b, h, n, d = x.shape
    return x.permute(0, 2, 3, 1).reshape(b, n, d * h)


# M33


@wrong("M33", "repeat_kv")
def repeat_tile(k, n_rep):
    return np.concatenate([k] * n_rep, axis=-3)


@wrong("M33", "repeat_kv")
def repeat_torch(k, n_rep):
    return k.repeat(1, n_rep, 1, 1)


@wrong("M33", "repeat_kv", axes="heads first")
def repeat_tokens(k, n_rep):
    return k.repeat_interleave(n_rep, dim=2)


@wrong("M33", "repeat_kv", axes="heads first")
def repeat_tokens_numpy(k, n_rep):
    return np.repeat(k, n_rep, axis=-2)


@wrong("M33", "repeat_kv")
def repeat_new_axis_first(k, n_rep):
    b, h, n, d = k.shape
    return k[:, None].expand(b, n_rep, h, n, d).reshape(b, n_rep * h, n, d)


# M37


@wrong("M37", "softcap")
def softcap_nothing(scores, cap):
    return scores


@wrong("M37", "softcap")
def softcap_forgotten(scores, mask, cap):
    return scores.masked_fill(~mask, float("-inf"))


@wrong("M37", "softcap")
def softcap_after_mask(scores, mask, cap):
    return np.tanh(np.where(mask, scores, -np.inf) / cap) * cap


@wrong("M37", "softcap")
def softcap_after_mask_torch(scores, cap, mask):
    scores = scores.masked_fill(mask.logical_not(), -torch.inf)
    return cap * torch.tanh(scores / cap)


@wrong("M37", "softcap")
def softcap_clip(scores, cap):
    return np.clip(scores, -cap, cap)


# M38


@wrong("M38", "qk_norm")
def norm_nothing(q):
    return q * 1.0


@wrong("M38", "qk_norm")
def norm_never_called(q):
    norm = torch.nn.Identity()
    return norm(q)


@wrong("M38", "qk_norm")
def norm_tokens(q):
    return q / np.sqrt((q**2).mean(axis=-2, keepdims=True))


@wrong("M38", "qk_norm")
def norm_default_dim(q):
    return F.normalize(q)


@wrong("M38", "qk_norm")
def norm_heads_and_features(q):
    b, h, n, d = q.shape
    flat = q.transpose(1, 2).reshape(b, n, h * d)
    flat = flat * torch.rsqrt(flat.pow(2).mean(-1, keepdim=True) + 1e-6)
    return flat.reshape(b, n, h, d).transpose(1, 2)


@wrong("M38", "qk_norm")
def norm_whole(q):
    return q / np.sqrt(np.mean(q**2))


@wrong("M38", "qk_norm")
def norm_no_root(q):
    return q / (q * q).mean(-1, keepdims=True)


# M36


def _blocks(s, block):
    return range(0, s.shape[1], block)


@wrong("M36", "online_softmax")
def online_no_rescale(s, v, block):
    m = np.full((len(s), 1), -np.inf)
    total, out = 0, 0
    for i in _blocks(s, block):
        b = s[:, i : i + block]
        m = np.maximum(m, b.max(1, keepdims=True))
        e = np.exp(b - np.where(np.isinf(m), 0, m))
        total, out = total + e.sum(1, keepdims=True), out + e @ v[i : i + block]
    return out / np.where(total == 0, 1, total)


@wrong("M36", "online_softmax")
def online_no_rescale_torch(score_blocks, value_blocks):
    rows = score_blocks[0].shape[0]
    m = torch.full((rows, 1), -torch.inf, dtype=score_blocks[0].dtype)
    total, out = torch.zeros_like(m), torch.zeros_like(m)
    for s, v in zip(score_blocks, value_blocks, strict=True):
        m = torch.maximum(m, s.amax(1, keepdim=True))
        e = torch.nan_to_num(torch.exp(s - m))
        total, out = total + e.sum(1, keepdim=True), out + e @ v
    return torch.where(total == 0, 0.0, out / total)


def _running(s, v, block, start=-np.inf, of_out=True, of_sum=True, guard=True):
    m = np.full((len(s), 1), start)
    total, out = np.zeros_like(m), np.zeros((len(s), v.shape[1]))
    for i in _blocks(s, block):
        b = s[:, i : i + block]
        new = np.maximum(m, b.max(1, keepdims=True))
        by = np.where(np.isinf(new), 0, new) if guard else new
        e, a = np.exp(b - by), np.exp(m - by)
        total = total * (a if of_sum else 1) + e.sum(1, keepdims=True)
        out = out * (a if of_out else 1) + e @ v[i : i + block]
        m = new
    return out / np.where(total == 0, 1, total)


@wrong("M36", "online_softmax")
def online_out_kept(s, v, block):
    return _running(s, v, block, of_out=False)


@wrong("M36", "online_softmax")
def online_sum_kept(s, v, block):
    return _running(s, v, block, of_sum=False)


@wrong("M36", "online_softmax")
def online_from_zero(s, v, block):
    return _running(s, v, block, start=0.0)


@wrong("M36", "online_softmax")
def online_from_10000(s, v, block):
    return _running(s, v, block, start=-1e4)


@wrong("M36", "online_softmax")
def online_nan(s, v, block):
    return _running(s, v, block, guard=False)


@wrong("M36", "online_softmax")
def online_zero_torch(s, v, block):
    m = torch.zeros(len(s), 1, dtype=s.dtype)
    total, out = torch.zeros_like(m), torch.zeros(len(s), v.shape[1], dtype=s.dtype)
    for i in _blocks(s, block):
        b = s[:, i : i + block]
        new = torch.maximum(m, b.max(1, keepdim=True).values)
        e, a = torch.exp(b - new), torch.exp(m - new)
        total = total * a + e.sum(1, keepdim=True)
        out, m = out * a + e @ v[i : i + block], new
    return out / total.clamp(min=1e-300 if s.dtype == torch.float64 else 1e-38)


@wrong("M36", "online_softmax")
def online_10000_torch(score_blocks, value_blocks):
    rows = score_blocks[0].shape[0]
    m = torch.full((rows, 1), -1e4, dtype=score_blocks[0].dtype)
    total, out = torch.zeros_like(m), torch.zeros_like(m)
    for s, v in zip(score_blocks, value_blocks, strict=True):
        new = torch.maximum(m, s.amax(1, keepdim=True))
        e, a = torch.exp(s - new), torch.exp(m - new)
        total, out, m = total * a + e.sum(1, keepdim=True), out * a + e @ v, new
    return torch.where(total == 0, torch.zeros_like(out), out / total)


@wrong("M36", "online_softmax")
def online_nan_torch(score_blocks, value_blocks):
    rows = score_blocks[0].shape[0]
    m = torch.full((rows, 1), -torch.inf, dtype=score_blocks[0].dtype)
    total, out = torch.zeros_like(m), torch.zeros_like(m)
    for s, v in zip(score_blocks, value_blocks, strict=True):
        new = torch.maximum(m, s.amax(1, keepdim=True))
        e, a = torch.exp(s - new), torch.exp(m - new)
        total, out, m = total * a + e.sum(1, keepdim=True), out * a + e @ v, new
    return out / total


@wrong("M36", "online_softmax")
def online_averaged(score_blocks, value_blocks):
    zipped = zip(score_blocks, value_blocks, strict=True)
    outs = [torch.nan_to_num(torch.softmax(s, -1)) @ v for s, v in zipped]
    return torch.stack(outs).mean(0)


# M44


def _ls(x, t=1.0):
    return F.log_softmax(x / t, dim=-1)


def _np(x, t=1.0):
    z = x / t
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@wrong("M44", "distillation_loss")
def distil_no_log(student, teacher):
    return F.kl_div(student.softmax(-1), teacher.softmax(-1), reduction="batchmean")


@wrong("M44", "distillation_loss")
def distil_no_log_numpy(student, teacher):
    p, q = _np(teacher), _np(student)
    return (p * (np.log(p) - q)).sum(-1).mean()


@wrong("M44", "distillation_loss")
def distil_log_target(student, teacher):
    return F.kl_div(_ls(student), _ls(teacher), reduction="batchmean")


@wrong("M44", "distillation_loss")
def distil_log_target_numpy(student, teacher):
    p, q = np.log(_np(teacher)), np.log(_np(student))
    return (p * (np.log(p) - q)).sum(-1).mean()


@wrong("M44", "distillation_loss")
def distil_exchanged(student, teacher, T=1.0):
    return (
        F.kl_div(_ls(teacher, T), _ls(student, T).exp(), reduction="batchmean") * T * T
    )


@wrong("M44", "distillation_loss")
def distil_exchanged_numpy(student, teacher):
    p, q = _np(teacher), _np(student)
    return np.mean(np.sum(q * np.log(q / p), axis=-1))


@wrong("M44", "distillation_loss")
def distil_mean(student, teacher):
    return F.kl_div(_ls(student), teacher.softmax(-1))


@wrong("M44", "distillation_loss")
def distil_mean_numpy(student, teacher, temperature):
    p, q = _np(teacher, temperature), _np(student, temperature)
    return temperature**2 * np.mean(p * np.log(p / q))


@wrong("M44", "distillation_loss")
def distil_not_squared(student, teacher, temperature):
    log_q, p = _ls(student, temperature), (teacher / temperature).softmax(-1)
    return F.kl_div(log_q, p, reduction="batchmean")


@wrong("M44", "distillation_loss", temperature=4.0)
def distil_not_squared_numpy(student, teacher):
    p, q = _np(teacher, 4), _np(student, 4)
    return np.mean(np.sum(p * np.log(p / q), axis=-1))


@wrong("M44", "distillation_loss")
def distil_one_softened(student, teacher, temperature):
    log_q, p = _ls(student), (teacher / temperature).softmax(-1)
    return F.kl_div(log_q, p, reduction="batchmean") * temperature**2


@wrong("M44", "distillation_loss")
def distil_labels(student, teacher):
    return F.cross_entropy(student, teacher.argmax(-1))
