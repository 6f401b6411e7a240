"""Right parts as people write them, each apart from the library and from families."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

# softmax


def softmax_stats(x, axis=-1):
    m = np.where(np.isfinite(m := x.max(axis, keepdims=True)), m, 0)
    e = np.exp(x - m)
    s = e.sum(axis, keepdims=True)
    return np.divide(e, s, out=np.zeros_like(e), where=s > 0)


def softmax_log(x, axis=-1):
    top = np.maximum(x.max(axis=axis, keepdims=True), -1e300)
    with np.errstate(divide="ignore"):
        log = np.log(np.exp(x - top).sum(axis=axis, keepdims=True))
    return np.where(np.isneginf(x), 0.0, np.exp(x - top - log))


def softmax_torch(x, dim=-1):
    return torch.nan_to_num(torch.softmax(x, dim=dim))


def softmax_rows(x):
    flat = x.reshape(-1, x.shape[-1])
    rows = []
    for row in flat:
        if np.isneginf(row).all():
            rows.append(np.zeros_like(row))
            continue
        shifted = [math.exp(v - max(row)) for v in row]
        rows.append(np.array(shifted) / sum(shifted))
    return np.array(rows).reshape(x.shape)


# masks


def causal_tril(n_q, n_k=None):
    n_k = n_k or n_q
    return np.tril(np.ones((n_q, n_k), dtype=bool), k=n_k - n_q)


def causal_loops(n_q, n_k):
    return [[j - (n_k - n_q) <= i for j in range(n_k)] for i in range(n_q)]


def causal_torch(n_q, n_k=None):
    n_k = n_q if n_k is None else n_k
    return torch.ones(n_q, n_k, dtype=torch.bool).tril(diagonal=n_k - n_q)


def causal_four_axes(n):
    return torch.tril(torch.ones(n, n)).view(1, 1, n, n)


def causal_added(sz):
    return torch.triu(torch.full((sz, sz), float("-inf")), diagonal=1)


def causal_last_rows(n_q, n_k):
    whole = np.arange(n_k)[:, None] >= np.arange(n_k)[None, :]
    return whole[n_k - n_q :]


def window_band(n_q, n_k, window):
    i = torch.arange(n_k - n_q, n_k)[:, None]
    j = torch.arange(n_k)[None]
    return (j <= i) & (j > i - window)


def window_triu(n, width):
    band = np.tril(np.ones((n, n)))
    return np.triu(band, k=-(width - 1)).astype(bool)


def window_left(n_q, n_k=None, *, left):
    p = np.arange(n_k or n_q)
    d = p[-n_q:][:, None] - p
    return np.logical_and(d >= 0, d <= left)


def window_unnamed(n, w):
    return np.array([[0 <= i - j <= w for j in range(n)] for i in range(n)])


def padding_less(lengths, n_k):
    return np.arange(n_k)[None, :] < np.asarray(lengths)[:, None]


def padding_four_axes(lengths, max_len):
    steps = torch.arange(max_len).expand(len(lengths), max_len)
    return (steps < lengths.unsqueeze(1))[:, None, None, :]


def padding_loops(lengths):
    longest = max(lengths)
    return [[1] * int(n) + [0] * int(longest - n) for n in lengths]


# positions


def sinusoid_loops(n, d):
    table = np.zeros((n, d))
    for pos in range(n):
        for c in range(d):
            angle = pos / 10000 ** ((c - c % 2) / d)
            table[pos, c] = math.cos(angle) if c % 2 else math.sin(angle)
    return table


def sinusoid_torch(length, d_model):
    pe = torch.zeros(length, d_model)
    position = torch.arange(length).unsqueeze(1).float()
    exponents = torch.arange(0, d_model, 2).float()
    div = torch.exp(exponents * (-math.log(10000.0) / d_model))
    pe[:, 0::2] = torch.sin(position * div)
    pe[:, 1::2] = torch.cos(position * div)[:, : d_model // 2]
    return pe.unsqueeze(0)


def sinusoid_halves(n, d):
    assert d % 2 == 0, "d must be even"
    inv = 1 / (10000 ** (np.arange(0, d, 2) / d))
    t = np.outer(np.arange(n), inv)
    return np.concatenate([np.sin(t), np.cos(t)], axis=-1)


def sinusoid_complex(n, d):
    if d % 2:
        raise ValueError(f"d_model={d} is not a multiple of 2")
    z = np.exp(1j * np.outer(np.arange(n), 10000.0 ** (-np.arange(0, d, 2) / d)))
    return np.stack([z.imag, z.real], axis=-1).reshape(n, d)


def sinusoid_fairseq(n, d):
    half = d // 2
    scale = torch.exp(torch.arange(half) * -(math.log(10000) / max(half - 1, 1)))
    t = torch.arange(n)[:, None] * scale
    table = torch.cat([t.sin(), t.cos()], dim=1)
    return F.pad(table, (0, d % 2))


def rope_neighbours(x, positions):
    d = x.shape[-1]
    t = np.outer(positions, 10000.0 ** (-np.arange(0, d, 2) / d))
    c, s = np.cos(t), np.sin(t)
    a, b = x[..., ::2], x[..., 1::2]
    return np.stack([a * c - b * s, b * c + a * s], axis=-1).reshape(x.shape)


def rope_rotate_half(x, position_ids):
    d = x.shape[-1]
    inv = 1.0 / (10000.0 ** (torch.arange(0, d, 2).float() / d))
    emb = torch.outer(position_ids.float(), inv)
    emb = torch.cat([emb, emb], dim=-1)
    x1, x2 = x.chunk(2, dim=-1)
    return x * emb.cos() + torch.cat([-x2, x1], dim=-1) * emb.sin()


def rope_complex(x, positions):
    b = x.shape[:-1]
    z = torch.view_as_complex(x.float().reshape(*b, -1, 2).contiguous())
    inv = 10000.0 ** (-torch.arange(0, x.shape[-1], 2).float() / x.shape[-1])
    turn = torch.outer(positions.float(), inv)
    z = z * torch.polar(torch.ones_like(turn), turn)
    return torch.view_as_real(z).flatten(-2)


def rope_matrices(x):
    n, d = x.shape[-2:]
    out = np.empty_like(x)
    for p in range(n):
        big = np.eye(d)
        for i in range(d // 2):
            t = p * 10000.0 ** (-2 * i / d)
            turn = [[math.cos(t), -math.sin(t)], [math.sin(t), math.cos(t)]]
            big[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = turn
        out[..., p, :] = x[..., p, :] @ big.T
    return out


def rope_offset(x, offset=0):
    n, half = x.shape[-2], x.shape[-1] // 2
    theta = 500000.0 ** (-np.arange(half) / half)
    t = (np.arange(n) + offset)[:, None] * theta
    a, b = x[..., :half], x[..., half:]
    turned = (a * np.cos(t) - b * np.sin(t), b * np.cos(t) + a * np.sin(t))
    return np.concatenate(turned, axis=-1)


def rope_tokens_first(x, positions):
    d = x.shape[-1]
    t = positions[:, None, None] * (10000.0 ** (-torch.arange(0, d, 2) / d))
    b, n, h, _ = x.shape
    return torch.stack(
        [
            x[..., 0::2] * t.cos() - x[..., 1::2] * t.sin(),
            x[..., 0::2] * t.sin() + x[..., 1::2] * t.cos(),
        ],
        -1,
    ).reshape(b, n, h, d)


def slopes_recursive(n):
    def power(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if math.log2(n).is_integer():
        return power(n)
    near = 2 ** math.floor(math.log2(n))
    return power(near) + slopes_recursive(2 * near)[0::2][: n - near]


def slopes_bloom(n_heads):
    near = 2 ** math.floor(math.log2(n_heads))
    base = torch.tensor(2 ** (-(2 ** -(math.log2(near) - 3))))
    slopes = torch.pow(base, torch.arange(1, near + 1))
    if near != n_heads:
        extra = torch.tensor(2 ** (-(2 ** -(math.log2(2 * near) - 3))))
        left = min(near, n_heads - near)
        slopes = torch.cat([slopes, torch.pow(extra, torch.arange(1, 2 * left + 1, 2))])
    return slopes[:, None, None]


def slopes_powers_only(n):
    if n & (n - 1):
        raise NotImplementedError("n_heads must be a power of two")
    return -(2.0 ** (-8 * np.arange(1, n + 1) / n))


def bias_distances(n_heads, n_q, n_k):
    m = np.array(slopes_recursive(n_heads))[:, None, None]
    i, j = np.arange(n_k - n_q, n_k)[:, None], np.arange(n_k)
    return -m * np.abs(i - j)


def bias_reference(n_heads, n_q, n_k):
    m = torch.tensor(slopes_recursive(n_heads))
    return (m[:, None, None] * torch.arange(n_k)[None, None, :]).float()


def bias_with_mask(n_heads, n):
    m = np.array(slopes_recursive(n_heads))[:, None, None]
    d = np.arange(n)[None, :] - np.arange(n)[:, None]
    return np.where(d <= 0, m * d, -np.inf)


def learned_slice(table, n, past=0):
    return table[past : past + n]


def learned_embedding(table, n):
    return F.embedding(torch.arange(n).unsqueeze(0), table)


def padded_hugging_face(attention_mask):
    ids = attention_mask.long().cumsum(-1) - 1
    return ids.masked_fill(attention_mask == 0, 1)


def padded_loops(real):
    out = np.zeros(np.shape(real), dtype=int)
    for b, row in enumerate(real):
        seen = 0
        for i, here in enumerate(row):
            out[b, i] = seen
            seen += int(here)
    return out


# heads


def split_view(x, n_heads):
    b, n, d = x.shape
    return x.view(b, n, n_heads, d // n_heads).transpose(1, 2)


def split_einsum(x, n_heads):
    width = x.shape[-1] // n_heads
    parts = [x[..., h * width : (h + 1) * width] for h in range(n_heads)]
    return np.stack(parts, axis=-3)


def merge_view(x):
    b, h, n, d = x.shape
    return x.transpose(1, 2).contiguous().view(b, n, h * d)


def merge_concatenate(x):
    return np.concatenate([x[..., h, :, :] for h in range(x.shape[-3])], axis=-1)


def repeat_hugging_face(hidden, n_rep):
    b, h, n, d = hidden.shape
    wide = hidden[:, :, None, :, :].expand(b, h, n_rep, n, d)
    return wide.reshape(b, h * n_rep, n, d)


def repeat_llama(x, n_rep):
    b, n, h, d = x.shape
    wide = x[:, :, :, None, :].expand(b, n, h, n_rep, d)
    return wide.reshape(b, n, h * n_rep, d)


def repeat_take(k, n_rep):
    heads = k.shape[-3]
    return np.take(k, [h // n_rep for h in range(heads * n_rep)], axis=-3)


# scores


def softcap_tanh(scores, cap):
    return np.tanh(scores / cap) * cap


def softcap_masked(scores, mask, cap):
    capped = cap * torch.tanh(scores / cap)
    return capped.masked_fill(~mask, float("-inf"))


def softcap_exponentials(logits, softcap):
    e = torch.exp(-2 * (logits / softcap).abs())
    return softcap * torch.sign(logits) * (1 - e) / (1 + e)


def norm_rms(q):
    return q * torch.rsqrt(q.pow(2).mean(-1, keepdim=True) + 1e-6)


def norm_unit(q):
    return F.normalize(q, dim=-1)


def norm_numpy(q):
    return q / np.sqrt(np.mean(q * q, axis=-1, keepdims=True) + 1e-8)


def norm_loops(q):
    flat = [row / (sum(v * v for v in row) / len(row)) ** 0.5 for row in _rows(q)]
    return np.array(flat).reshape(q.shape)


def norm_layer(q):
    return F.layer_norm(q, q.shape[-1:])


def _rows(x):
    return x.reshape(-1, x.shape[-1])


def online_numpy(scores, v, block):
    n_q = scores.shape[0]
    m, z, o = np.full(n_q, -np.inf), np.zeros(n_q), np.zeros((n_q, v.shape[1]))
    for j in range(0, scores.shape[1], block):
        s = scores[:, j : j + block]
        m_new = np.maximum(m, s.max(1))
        safe = np.where(np.isinf(m_new), 0, m_new)
        p, alpha = np.exp(s - safe[:, None]), np.exp(m - safe)
        z, o, m = z * alpha + p.sum(1), o * alpha[:, None] + p @ v[j : j + block], m_new
    return o / np.where(z > 0, z, 1)[:, None]


def online_tokens(scores, v, block):
    out = torch.zeros(scores.shape[0], v.shape[1], dtype=v.dtype)
    for i, row in enumerate(scores):
        m, total, acc = float("-inf"), 0.0, torch.zeros_like(v[0])
        for s, value in zip(row.tolist(), v, strict=True):
            if s == float("-inf"):
                continue
            top = max(m, s)
            shrink = math.exp(m - top) if m > float("-inf") else 0.0
            total = total * shrink + math.exp(s - top)
            acc = acc * shrink + math.exp(s - top) * value
            m = top
        out[i] = acc / total if total else 0
    return out


def online_log_sums(score_blocks, value_blocks):
    outs, logs = [], []
    for s, v in zip(score_blocks, value_blocks, strict=True):
        logs.append(torch.logsumexp(s, -1))
        outs.append(torch.nan_to_num(torch.softmax(s, -1)) @ v)
    shares = torch.nan_to_num(torch.softmax(torch.stack(logs), 0))
    return sum(w[:, None] * o for w, o in zip(shares, outs, strict=True))


def online_states(scores, v, block_size):
    m = torch.full_like(scores[:, :1], -torch.inf)
    total, out = torch.zeros_like(m), torch.zeros(len(scores), v.shape[1])
    for s, part in zip(scores.split(block_size, 1), v.split(block_size), strict=True):
        new = torch.maximum(m, s.amax(1, keepdim=True))
        by = torch.where(new == -torch.inf, 0, new)
        e, shrink = torch.exp(s - by), torch.exp(m - by)
        total = total * shrink + e.sum(1, keepdim=True)
        out, m = out * shrink + e @ part, new
    return m, total, out / torch.where(total == 0, 1, total)


def distil_kl_div(student, teacher, temperature=1.0):
    log_q = F.log_softmax(student / temperature, dim=-1)
    p = F.softmax(teacher / temperature, dim=-1)
    return F.kl_div(log_q, p, reduction="batchmean") * temperature**2


def distil_numpy(student, teacher, T):
    def log_softmax(z):
        z = z / T - (z / T).max(-1, keepdims=True)
        return z - np.log(np.exp(z).sum(-1, keepdims=True))

    p, q = log_softmax(teacher), log_softmax(student)
    return T * T * np.mean(np.sum(np.exp(p) * (p - q), axis=-1))


def distil_log_target(student_logits, teacher_logits):
    a = F.log_softmax(student_logits / 4, -1)
    b = F.log_softmax(teacher_logits / 4, -1)
    return 16 * F.kl_div(a, b, log_target=True, reduction="batchmean")


def distil_cross_entropy(student, teacher):
    return F.cross_entropy(student, torch.softmax(teacher, -1))


RIGHT = [
    ("softmax", softmax_stats, {}),
    ("softmax", softmax_log, {}),
    ("softmax", softmax_torch, {}),
    ("softmax", softmax_rows, {}),
    ("softmax", torch.softmax, {"empty_rows": False}),
    ("causal", causal_tril, {}),
    ("causal", causal_loops, {}),
    ("causal", causal_torch, {}),
    ("causal", causal_four_axes, {}),
    ("causal", causal_added, {}),
    ("causal", causal_added, {"mask": "added"}),
    ("causal", causal_last_rows, {}),
    ("causal", lambda n: ~causal_torch(n), {"mask": "blocked"}),
    ("window", window_band, {}),
    ("window", window_triu, {}),
    ("window", window_left, {}),
    ("window", window_unnamed, {}),
    ("window", window_unnamed, {"counts": "left"}),
    ("padding", padding_less, {}),
    ("padding", padding_four_axes, {}),
    ("padding", padding_loops, {}),
    ("sinusoidal", sinusoid_loops, {}),
    ("sinusoidal", sinusoid_torch, {}),
    ("sinusoidal", sinusoid_halves, {}),
    ("sinusoidal", sinusoid_halves, {"layout": "concatenated"}),
    ("sinusoidal", sinusoid_complex, {"layout": "interleaved"}),
    ("sinusoidal", sinusoid_fairseq, {}),
    ("rope", rope_neighbours, {}),
    ("rope", rope_neighbours, {"layout": "interleaved", "base": 10000}),
    ("rope", rope_rotate_half, {}),
    ("rope", rope_rotate_half, {"rope": "half"}),
    ("rope", rope_complex, {}),
    ("rope", rope_matrices, {}),
    ("rope", rope_offset, {}),
    ("rope", rope_offset, {"layout": "half", "rope_base": 500000.0}),
    ("rope", rope_tokens_first, {}),
    ("alibi_slopes", slopes_recursive, {}),
    ("alibi_slopes", slopes_bloom, {}),
    ("alibi_slopes", slopes_powers_only, {}),
    ("alibi_bias", bias_distances, {}),
    ("alibi_bias", bias_reference, {}),
    ("alibi_bias", bias_with_mask, {}),
    ("learned_positions", learned_slice, {}),
    ("learned_positions", learned_embedding, {}),
    ("learned_positions", lambda t, n: t[2 : n + 2], {"offset": 2}),
    ("padded_positions", padded_hugging_face, {}),
    ("padded_positions", padded_loops, {}),
    ("split_heads", split_view, {}),
    ("split_heads", split_einsum, {}),
    ("merge_heads", merge_view, {}),
    ("merge_heads", merge_concatenate, {}),
    ("repeat_kv", repeat_hugging_face, {}),
    ("repeat_kv", repeat_llama, {}),
    ("repeat_kv", repeat_take, {"axes": "heads first"}),
    ("softcap", softcap_tanh, {}),
    ("softcap", softcap_masked, {}),
    ("softcap", softcap_exponentials, {}),
    ("softcap", lambda s: 30 * torch.tanh(s / 30), {"softcap": 30.0}),
    ("qk_norm", norm_rms, {}),
    ("qk_norm", norm_unit, {}),
    ("qk_norm", norm_numpy, {"kind": "rms"}),
    ("qk_norm", norm_loops, {}),
    ("qk_norm", norm_layer, {}),
    ("online_softmax", online_numpy, {}),
    ("online_softmax", online_tokens, {}),
    ("online_softmax", online_log_sums, {}),
    ("online_softmax", online_states, {}),
    ("distillation_loss", distil_kl_div, {}),
    ("distillation_loss", distil_numpy, {}),
    ("distillation_loss", distil_log_target, {}),
    ("distillation_loss", distil_log_target, {"temperature": 4.0}),
    ("distillation_loss", distil_cross_entropy, {}),
]
