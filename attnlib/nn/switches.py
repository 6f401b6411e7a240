"""Turn heads off, or up and down, while a block runs: a factor before `W_o`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn

from attnlib.nn.multihead import MultiHeadAttention
from attnlib.nn.shapes import check_tensor
from attnlib.shapes import ShapeError

Head = tuple[int, int]  # (which attention, which of its heads)
Attentions = Sequence[MultiHeadAttention]


@contextmanager
def scaled_heads(attention: MultiHeadAttention, factors: Tensor) -> Iterator[None]:
    """Multiply what each head mixes by a factor, before W_o, while the block runs.

    out = merge(factor_h mixed_h for each head h) W_o + b_o

    Args:
        attention: its parameters are not touched. No shape.
        factors: one a head, (n_heads,), or one a head of each text, (batch, n_heads).
            They may want a gradient.

    Returns:
        A context manager.

    Raises:
        ShapeError: the last axis of factors is not n_heads.
        TypeError: factors are not a floating tensor.

    Cost: one product a number of mixed.
    Source: the gates of Michel et al. 2019, section 2.3.
    Lesson: 14.

    >>> attention = MultiHeadAttention(6, n_heads=3, bias=False)
    >>> with scaled_heads(attention, torch.zeros(3)):
    ...     attention(torch.ones(4, 6)).abs().max().item()
    0.0
    """
    check_tensor("factors", factors)
    if not factors.ndim or factors.shape[-1] != attention.n_heads:
        raise ShapeError(
            f"factors must end in n_heads={attention.n_heads}, but their shape is "
            f"{tuple(factors.shape)}."
        )

    def scale(module: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor]:
        each = factors[..., None, :].repeat_interleave(attention.d_v, -1)
        return (given[0] * each.to(given[0].dtype),)

    handle = attention.W_o.register_forward_pre_hook(scale)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def heads_off(attentions: Attentions, off: Collection[Head]) -> Iterator[None]:
    """Turn some heads off while the block runs.

    out = the sum of what all other heads write, and b_o

    Args:
        attentions: of a model, in any order. No shape.
        off: pairs (which attention, which head), counted from 0.

    Returns:
        A context manager.

    Raises:
        ValueError: there is no such head.

    Cost: that of `scaled_heads`.
    Source: Michel et al. 2019, section 3.
    Lesson: 14.

    >>> attention = MultiHeadAttention(6, n_heads=3, bias=False)
    >>> with heads_off([attention], {(0, 0), (0, 1), (0, 2)}):
    ...     attention(torch.ones(4, 6)).abs().max().item()
    0.0
    """
    there = set(all_heads(attentions))
    if unknown := sorted(set(off) - there):
        raise ValueError(
            f"there is no head {unknown[0]}; the last one is {max(there, default=None)}"
            ", as (which attention, which head)."
        )
    with ExitStack() as stack:
        for number, attention in enumerate(attentions):
            gone = [head for which, head in off if which == number]
            if gone:
                like = attention.W_o.weight
                factors = torch.ones(
                    attention.n_heads, dtype=like.dtype, device=like.device
                )
                factors[gone] = 0.0
                stack.enter_context(scaled_heads(attention, factors))
        yield


def all_heads(attentions: Attentions) -> Iterator[Head]:
    """Name the heads of several attentions, in their order.

    (0, 0), (0, 1), ..., (1, 0), ...

    Args:
        attentions: of one model. No shape.

    Returns:
        Pairs (which attention, which head).

    Raises:
        Nothing.

    Cost: none.
    Source: the names of the course.
    Lesson: 14.

    >>> list(all_heads([MultiHeadAttention(4, 2), MultiHeadAttention(3, 1)]))
    [(0, 0), (0, 1), (1, 0)]
    """
    for number, attention in enumerate(attentions):
        for head in range(attention.n_heads):
            yield number, head
