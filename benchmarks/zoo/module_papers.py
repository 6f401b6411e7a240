"""Right modules in the style of papers and text books."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F

from .module_kit import Probe, Style, linears


class ScaledDotProduct(nn.Module):
    def __init__(self):
        super().__init__()
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, q, k, v, mask=None):
        d_tensor = k.size(3)
        score = q @ k.transpose(2, 3)
        score = score / math.sqrt(d_tensor)
        if mask is not None:
            score = score.masked_fill(mask == 0, float("-inf"))
        score = self.softmax(score)
        return score @ v, score


class SplitConcat(nn.Module):
    def __init__(self, d_model, n_head):
        super().__init__()
        self.n_head = n_head
        self.attention = ScaledDotProduct()
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_concat = nn.Linear(d_model, d_model)

    def forward(self, q, k, v, mask=None):
        q, k, v = self.w_q(q), self.w_k(k), self.w_v(v)
        q, k, v = self.split(q), self.split(k), self.split(v)
        out, _ = self.attention(q, k, v, mask=mask)
        return self.w_concat(self.concat(out))

    def split(self, tensor):
        batch, length, d_model = tensor.size()
        d = d_model // self.n_head
        return tensor.view(batch, length, self.n_head, d).transpose(1, 2)

    def concat(self, tensor):
        batch, head, length, d = tensor.size()
        return tensor.transpose(1, 2).contiguous().view(batch, length, head * d)


def attention(query, key, value, mask=None, dropout=None):
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    p_attn = F.softmax(scores, dim=-1)
    if dropout is not None:
        p_attn = dropout(p_attn)
    return torch.matmul(p_attn, value), p_attn


class MultiHeadedAttention(nn.Module):
    def __init__(self, h, d_model, dropout=0.1):
        super().__init__()
        self.d_k = d_model // h
        self.h = h
        linear = nn.Linear(d_model, d_model)
        self.linears = nn.ModuleList([copy.deepcopy(linear) for _ in range(4)])
        self.attn = None
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, query, key, value, mask=None):
        if mask is not None:
            mask = mask.unsqueeze(1)
        n = query.size(0)
        query, key, value = [
            lin(x).view(n, -1, self.h, self.d_k).transpose(1, 2)
            for lin, x in zip(self.linears, (query, key, value), strict=False)
        ]
        x, self.attn = attention(query, key, value, mask, self.dropout)
        x = x.transpose(1, 2).contiguous().view(n, -1, self.h * self.d_k)
        return self.linears[-1](x)


class HeadMajor(nn.Module):
    """All heads and batch items on one axis: item 0 of head 0, item 1 of head 0, ..."""

    def __init__(self, n_head, d_model, d_k, d_v):
        super().__init__()
        self.n_head, self.d_k, self.d_v = n_head, d_k, d_v
        self.w_qs = nn.Linear(d_model, n_head * d_k)
        self.w_ks = nn.Linear(d_model, n_head * d_k)
        self.w_vs = nn.Linear(d_model, n_head * d_v)
        self.fc = nn.Linear(n_head * d_v, d_model)
        self.temperature = d_k**0.5

    def forward(self, q, k, v, mask=None):
        sz_b, len_q, len_k = q.size(0), q.size(1), k.size(1)
        q = self.w_qs(q).view(sz_b, len_q, self.n_head, self.d_k)
        k = self.w_ks(k).view(sz_b, len_k, self.n_head, self.d_k)
        v = self.w_vs(v).view(sz_b, len_k, self.n_head, self.d_v)
        q = q.permute(2, 0, 1, 3).reshape(-1, len_q, self.d_k)
        k = k.permute(2, 0, 1, 3).reshape(-1, len_k, self.d_k)
        v = v.permute(2, 0, 1, 3).reshape(-1, len_k, self.d_v)
        attn = torch.bmm(q, k.transpose(1, 2)) / self.temperature
        if mask is not None:
            mask = mask.expand(sz_b, len_q, len_k).repeat(self.n_head, 1, 1)
            attn = attn.masked_fill(~mask, -torch.inf)
        attn = torch.softmax(attn, dim=2)
        output = torch.bmm(attn, v)
        output = output.view(self.n_head, sz_b, len_q, self.d_v)
        output = output.permute(1, 2, 0, 3).reshape(sz_b, len_q, -1)
        return self.fc(output), attn


class BatchMajor(nn.Module):
    """As in a well-known text book: (batch * num_heads, n, d)."""

    def __init__(self, num_hiddens, num_heads, bias=False):
        super().__init__()
        self.num_heads = num_heads
        self.W_q = nn.Linear(num_hiddens, num_hiddens, bias=bias)
        self.W_k = nn.Linear(num_hiddens, num_hiddens, bias=bias)
        self.W_v = nn.Linear(num_hiddens, num_hiddens, bias=bias)
        self.W_o = nn.Linear(num_hiddens, num_hiddens, bias=bias)

    def transpose_qkv(self, X):
        X = X.reshape(X.shape[0], X.shape[1], self.num_heads, -1)
        X = X.permute(0, 2, 1, 3)
        return X.reshape(-1, X.shape[2], X.shape[3])

    def transpose_output(self, X):
        X = X.reshape(-1, self.num_heads, X.shape[1], X.shape[2])
        X = X.permute(0, 2, 1, 3)
        return X.reshape(X.shape[0], X.shape[1], -1)

    def forward(self, queries, keys, values, mask=None):
        queries = self.transpose_qkv(self.W_q(queries))
        keys = self.transpose_qkv(self.W_k(keys))
        values = self.transpose_qkv(self.W_v(values))
        d = queries.shape[-1]
        scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(d)
        if mask is not None:
            mask = mask.expand(-1, scores.shape[1], scores.shape[2])
            mask = torch.repeat_interleave(mask, self.num_heads, dim=0)
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = F.softmax(scores, dim=-1)
        return self.W_o(self.transpose_output(torch.bmm(weights, values)))


def call_qkv(module: Any, probe: Probe, heads: bool = False) -> Any:
    """Call forward(q, k, v, mask) with a mask (batch, n_q, n_k)."""
    memory = probe.x if probe.memory is None else probe.memory
    mask = probe.mask
    if probe.padding is not None:
        padding = probe.padding[:, None, :]
        mask = padding if mask is None else mask & padding
    if mask is not None and heads:
        mask = mask[:, None]
    out = module(probe.x, memory, memory, mask)
    return out[0] if isinstance(out, tuple) else out


SPLIT_CONCAT = Style(
    name="split and concat",
    sources=(ScaledDotProduct, SplitConcat),
    build=lambda cls, d, h: cls(d, h),
    call=lambda module, probe: call_qkv(module, probe, heads=True),
    read=lambda m: linears(m.w_q, m.w_k, m.w_v, m.w_concat),
    intent={"empty_rows": False},
)
ANNOTATED = Style(
    name="annotated transformer",
    sources=(attention, MultiHeadedAttention),
    build=lambda cls, d, h: cls(h, d),
    call=call_qkv,
    read=lambda m: linears(*m.linears),
    intent={"empty_rows": False},
)
HEAD_MAJOR = Style(
    name="head-major bmm",
    sources=(HeadMajor,),
    build=lambda cls, d, h: cls(h, d, d // h, d // h),
    call=call_qkv,
    read=lambda m: linears(m.w_qs, m.w_ks, m.w_vs, m.fc),
    intent={"empty_rows": False},
)
BATCH_MAJOR = Style(
    name="batch-major bmm",
    sources=(BatchMajor,),
    build=lambda cls, d, h: cls(d, h),
    call=call_qkv,
    read=lambda m: linears(m.W_q, m.W_k, m.W_v, m.W_o),
    intent={"empty_rows": False},
)
