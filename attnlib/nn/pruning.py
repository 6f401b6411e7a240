"""Which heads are needed: take them away, ask the gradient, and cut out the others.

Nothing is changed for good until `prune_heads` makes a smaller module: heads are
turned off by `heads_off`, as long as a block runs. A head of several attentions is
named by two numbers, (which attention, which head).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attnlib.nn.multihead import MultiHeadAttention
from attnlib.nn.switches import Attentions, Head, all_heads, heads_off, scaled_heads
from attnlib.shapes import ShapeError, size

__all__ = [
    "Pruned",
    "head_ablation",
    "head_gradients",
    "heads_off",
    "prune_heads",
    "prune_to_budget",
    "scaled_heads",
]


@dataclass(frozen=True)
class Pruned:
    """What `prune_to_budget` found."""

    kept: tuple[Head, ...]  #    in rising order
    removed: tuple[Head, ...]  # the first to go stands first
    losses: tuple[float, ...]  # with all heads, then after each removal


@torch.no_grad()
def head_ablation(
    attentions: Attentions, loss: Callable[[], Tensor | float]
) -> tuple[Tensor, ...]:
    """Measure what each head is worth: how much worse it gets without that one.

    worth_h = loss without head h - loss with all heads

    It asks for one head at a time. Two heads that do the same are each worth nothing
    by this, and much together.

    Args:
        attentions: of one model. No shape.
        loss: gives the loss of that model on texts that stay the same; low is good.

    Returns:
        For each attention a tensor, (n_heads,).

    Raises:
        Nothing of its own.

    Cost: one forward pass a head, and one more.
    Source: Michel et al. 2019, section 3.2.
    Lesson: 14.

    >>> attention = MultiHeadAttention(6, n_heads=3, bias=False)
    >>> loss = lambda: attention(torch.ones(4, 6)).abs().mean()
    >>> [len(worth) for worth in head_ablation([attention], loss)]
    [3]
    """
    whole = float(loss())
    found = []
    for number, attention in enumerate(attentions):
        worth = []
        for head in range(attention.n_heads):
            with heads_off(attentions, {(number, head)}):
                worth.append(float(loss()) - whole)
        found.append(torch.tensor(worth, dtype=torch.float64))
    return tuple(found)


def head_gradients(
    attentions: Attentions, losses: Callable[[], Tensor]
) -> tuple[Tensor, ...]:
    """Estimate what all heads are worth at once, from one backward pass.

    importance_h = mean over texts of |d loss(text) / d factor_h|, at factors of 1

    The size is taken text by text: a head that helps one text and harms another one
    matters for both. Every text has factors of its own, so that one pass tells all.

    Args:
        attentions: of one model. No shape.
        losses: gives the loss of each text, (batch,), on texts that stay the same; the
            model reads them as a batch on its first axis.

    Returns:
        For each attention a tensor, (n_heads,), of numbers of at least 0.

    Raises:
        ShapeError: losses are not one number a text.

    Cost: two forward passes and a backward pass.
    Source: Michel et al. 2019, equation 2.
    Lesson: 14.

    >>> attention = MultiHeadAttention(6, n_heads=3)
    >>> losses = lambda: attention(torch.ones(2, 4, 6)).mean((1, 2))
    >>> head_gradients([attention], losses)[0].shape
    torch.Size([3])
    """
    with torch.no_grad():
        found = losses()
    if found.ndim != 1:
        raise ShapeError(
            "losses must give one number a text, (batch,), but their shape is "
            f"{tuple(found.shape)}."
        )
    factors = [
        torch.ones(len(found), a.n_heads, dtype=found.dtype, device=found.device)
        for a in attentions
    ]
    with torch.enable_grad(), ExitStack() as stack:
        for attention, own in zip(attentions, factors, strict=True):
            stack.enter_context(scaled_heads(attention, own.requires_grad_()))
        gradients = torch.autograd.grad(losses().sum(), factors)
    return tuple(gradient.abs().mean(0) for gradient in gradients)


@torch.no_grad()
def prune_to_budget(
    attentions: Attentions,
    budget: int,
    loss: Callable[[], Tensor | float],
    *,
    report: Callable[[int, float], object] | None = None,
) -> Pruned:
    """Choose which heads to keep: take one away after the other, and look anew.

    in each round: of all heads that are left, remove the one that is missed least

    Every round measures without those that are gone already, so of two heads that do
    the same only one goes. The best set of all it need not find. No module is changed;
    `prune_heads` cuts.

    Args:
        attentions: of one model. No shape.
        budget: how many heads to keep, in all attentions together.
        loss: gives the loss of that model on texts that stay the same; low is good.
        report: called after every round with how many rounds are done and the loss.

    Returns:
        The heads that are kept, those removed in their order, and the losses.

    Raises:
        ShapeError: the budget is negative, or larger than the number of heads.
        TypeError: the budget is not a whole number.

    Cost: for n heads about (n^2 - budget^2) / 2 forward passes.
    Source: backward elimination; Voita et al. 2019 and Michel et al. 2019 on why.
    Lesson: 14.

    >>> attention = MultiHeadAttention(6, n_heads=3, bias=False)
    >>> loss = lambda: attention(torch.ones(4, 6)).abs().mean()
    >>> found = prune_to_budget([attention], 1, loss)
    >>> len(found.kept), len(found.removed), len(found.losses)
    (1, 2, 3)
    """
    left = list(all_heads(attentions))
    if size("budget", budget) > len(left):
        raise ShapeError(f"budget={budget} is larger than n_heads={len(left)} in all.")
    removed: list[Head] = []
    losses = [float(loss())]
    while len(left) > budget:
        tried = []
        for head in left:
            with heads_off(attentions, {*removed, head}):
                tried.append(float(loss()))
        least = min(range(len(left)), key=tried.__getitem__)
        removed.append(left.pop(least))
        losses.append(tried[least])
        if report is not None:
            report(len(removed), losses[-1])
    return Pruned(tuple(left), tuple(removed), tuple(losses))


@torch.no_grad()
def prune_heads(
    attention: MultiHeadAttention, keep: Sequence[int]
) -> MultiHeadAttention:
    """Make a smaller attention of the heads that are kept; it gives the same.

    W_q, W_k, W_v lose the columns of all other heads, W_o their rows

    Where query heads share keys and values, kept heads go on sharing as far as they
    stand side by side in equal groups; else each gets a copy. A head of keys and values
    that nobody reads any more goes, too.

    Args:
        attention: it is not changed. No shape.
        keep: the heads to keep, in the order that they are to have.

    Returns:
        A new module with len(keep) heads, of the same d_k and d_v; its result is that
        of the old one with all other heads off.

    Raises:
        ShapeError: no head is kept.
        TypeError: one of the four matrices is no plain nn.Linear.
        ValueError: there is no such head, or one is kept twice.

    Cost: the weights that remain are copied.
    Source: Michel et al. 2019, section 4.
    Lesson: 14.

    >>> attention, x = MultiHeadAttention(8, n_heads=4), torch.ones(1, 3, 8)
    >>> small = prune_heads(attention, [0, 3])
    >>> with heads_off([attention], {(0, 1), (0, 2)}):
    ...     bool(torch.allclose(small(x), attention(x), atol=1e-6))
    True
    """
    heads = [size("a head to keep", head) for head in keep]
    if not heads:
        raise ShapeError("prune_heads keeps at least one head, but keep is empty.")
    if len(set(heads)) < len(heads) or max(heads) >= attention.n_heads:
        raise ValueError(
            f"keep must name different heads from 0 to {attention.n_heads - 1}, but it "
            f"is {heads}."
        )
    for name in ("W_q", "W_k", "W_v", "W_o"):
        kind = type(getattr(attention, name))
        if kind is not nn.Linear:
            raise TypeError(
                f"prune_heads cuts plain nn.Linear, but {name} is a {kind.__name__}."
            )
    shared = [head * attention.n_kv_heads // attention.n_heads for head in heads]
    group = _group(shared)
    small = copy.deepcopy(attention)
    small.n_heads, small.n_kv_heads = len(heads), len(heads) // group
    _keep_columns(small.W_q, _places(heads, small.d_k))
    _keep_columns(small.W_k, _places(shared[::group], small.d_k))
    _keep_columns(small.W_v, _places(shared[::group], small.d_v))
    rows = _places(heads, small.d_v)
    small.W_o.in_features = len(rows)
    small.W_o.weight = _parameter(small.W_o.weight, small.W_o.weight[:, rows])
    return small


def _keep_columns(linear: nn.Linear, columns: list[int]) -> None:
    """Of W in x @ W; an nn.Linear keeps it turned over, so that they are its rows."""
    linear.out_features = len(columns)
    linear.weight = _parameter(linear.weight, linear.weight[columns])
    if linear.bias is not None:
        linear.bias = _parameter(linear.bias, linear.bias[columns])


def _parameter(old: Tensor, new: Tensor) -> nn.Parameter:
    return nn.Parameter(new.contiguous(), requires_grad=old.requires_grad)


def _places(heads: Sequence[int], width: int) -> list[int]:
    return [head * width + i for head in heads for i in range(width)]


def _group(shared: Sequence[int]) -> int:
    """How many neighbours share one head of keys, as many in each group."""
    n = len(shared)
    for group in range(n, 1, -1):
        cut = [set(shared[i : i + group]) for i in range(0, n, group)]
        if n % group == 0 and all(len(part) == 1 for part in cut):
            return group
    return 1
