"""Cutting tensors into heads and joining them: `attnlib.heads` for torch."""

from __future__ import annotations

from torch import Tensor


def split_heads(x: Tensor, n_heads: int, d: int) -> Tensor:
    """Cut (..., n, n_heads * d) into (..., n_heads, n, d)."""
    # The width is named, not left to -1: with no tokens, -1 could be anything.
    return x.reshape(*x.shape[:-1], n_heads, d).transpose(-3, -2)


def merge_heads(x: Tensor) -> Tensor:
    """Join (..., n_heads, n, d) to (..., n, n_heads * d)."""
    return x.transpose(-3, -2).flatten(-2)


def per_group(rows: Tensor, shared: Tensor) -> Tensor:
    """Compute rows @ shared, where neighbouring heads of rows share a head of shared.

    The rows of a group are put below each other, (..., n_kv_heads, group * n, d), so
    that a shared head is read once for all of them, and never repeated in memory.
    """
    if rows.ndim < 3 or shared.ndim < 3 or rows.shape[-3] == shared.shape[-3]:
        return rows @ shared
    n_heads, n, n_kv_heads = rows.shape[-3], rows.shape[-2], shared.shape[-3]
    group = n_heads // n_kv_heads
    below = rows.reshape(*rows.shape[:-3], n_kv_heads, group * n, rows.shape[-1])
    found = below @ shared
    return found.reshape(*found.shape[:-3], n_heads, n, found.shape[-1])
