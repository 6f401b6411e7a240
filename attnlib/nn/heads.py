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


def repeat_heads(x: Tensor, group: int) -> Tensor:
    """Hand each KV head to `group` query heads: head h reads KV head h // group."""
    return x if group == 1 else x.repeat_interleave(group, dim=-3)
