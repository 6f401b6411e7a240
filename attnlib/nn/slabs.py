"""Attention where a block of queries looks at a slab of keys, not at all of them.

A pattern is a list of tiles: some neighbouring queries, and the runs of keys that they
look at. The keys of a tile are put side by side, and there it is plain softmax. What
the pattern leaves out is never computed, and only one tile is in memory at a time: the
weights are computed again in the backward pass, from the logarithm of each row's sum.

Inside, queries have the axes (heads, group, n_q, d): a group shares one KV head, and
its rows are put below each other, so that keys are read once and never repeated. Keys
and values have (heads, n_k, d). Scores are kept times log2(e), because exp2 takes half
the time of exp on many processors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

LOG2E = math.log2(math.e)
SCORES = 2**18  # of all heads in one tile: 1 MB in float32, what a core keeps near


@dataclass(frozen=True)
class Tile:
    """Some queries, and the keys that they look at."""

    rows: slice
    runs: tuple[slice, ...]  # of keys, without overlaps
    bias: Tensor | None  # (rows, keys), added to the scores: 0, or -inf where hidden

    @property
    def n_scores(self) -> int:
        """How many scores one head computes here."""
        n_keys: int = sum(run.stop - run.start for run in self.runs)
        return n_keys * int(self.rows.stop - self.rows.start)


Plan = Callable[[], Iterator[Tile]]  # called once forward and once backward


class Slabs(torch.autograd.Function):
    """Softmax attention along a plan; q (heads, group, n_q, d_k), k (heads, n_k, d_k).

    A query that no tile gives a key gets zeros.
    """

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, plan: Plan, scale: float, name: str
    ) -> Tensor:
        """Compute the result, (heads, group, n_q, d_v)."""
        out = v.new_zeros(*q.shape[:-1], v.shape[-1])
        log_sum = q.new_zeros(q.shape[:-1], dtype=computing(q))
        for tile in plan():
            for heads in _parts(tile, q):
                rows, keys = _rows(q, heads, tile), _keys(k, heads, tile)
                scores = _scores(rows, keys, tile, scale * LOG2E)
                # -inf - -inf is NaN: of a row hidden throughout subtract a number.
                largest = scores.amax(-1, keepdim=True).clamp_(min=LEAST)
                total = scores.sub_(largest).exp2_().sum(-1, keepdim=True)
                total.clamp_(min=TINY)  # 0 only where all is hidden: 0 / TINY is 0
                at = (heads, slice(None), tile.rows)
                shape = (*out[at].shape[:-1], -1)
                mixed = torch.bmm(scores, _keys(v, heads, tile))
                torch.div(mixed.view(shape), total.view(shape), out=out[at])
                log_sum[at] = total.log2_().add_(largest).view(shape)[..., 0]
        ctx.save_for_backward(q, k, v, log_sum)
        ctx.plan, ctx.scale, ctx.name = plan, scale, name
        return out

    @staticmethod
    def backward(ctx: Any, *d_out: Tensor) -> tuple[Tensor | None, ...]:
        """Compute the three gradients, by a function that has none itself."""
        saved = (*ctx.saved_tensors, d_out[0])
        found = Gradients.apply(*saved, ctx.plan, ctx.scale, ctx.name)  # type: ignore[no-untyped-call]
        return (*found, None, None, None)


class Gradients(torch.autograd.Function):
    """The gradients of `Slabs`, with the weights computed a second time."""

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        log_sum: Tensor,
        d_out: Tensor,
        plan: Plan,
        scale: float,
        name: str,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """d_v = P^T d_out; d_scores = P * (d_out v^T - its mean weighted with P)."""
        ctx.name = name
        wide = computing(q)
        d_q, d_k, d_v = (torch.zeros_like(x, dtype=wide) for x in (q, k, v))
        for tile in plan():
            for heads in _parts(tile, q):
                rows, d_rows = (_rows(x, heads, tile) for x in (q, d_out))
                keys, values = (_keys(x, heads, tile) for x in (k, v))
                weights = _scores(rows, keys, tile, scale * LOG2E)
                weights.sub_(_rows(log_sum[..., None], heads, tile)).exp2_()
                _add(d_v, heads, tile, weights, d_rows)
                d_scores = torch.bmm(d_rows, values.mT).mul_(weights)
                shared = d_scores.sum(-1, keepdim=True)  # a whole row lies in one slab
                d_scores.addcmul_(weights, shared, value=-1)
                _add(d_k, heads, tile, d_scores, rows, scale)
                at = (heads, slice(None), tile.rows)
                step = torch.bmm(d_scores, keys).mul_(scale)
                d_q[at] = step.view(d_q[at].shape)
        return d_q.to(q.dtype), d_k.to(k.dtype), d_v.to(v.dtype)

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> Any:
        """Say that there is no second derivative."""
        raise NotImplementedError(
            f"{ctx.name} has no second derivative; attnlib.nn.scaled_dot_product with "
            "a mask has one."
        )


LEAST, TINY = torch.finfo(torch.float32).min, torch.finfo(torch.float32).tiny


def computing(tensor: Tensor) -> torch.dtype:
    """What is computed in: float32 at least."""
    return torch.promote_types(tensor.dtype, torch.float32)


def _parts(tile: Tile, q: Tensor) -> Iterator[slice]:
    """The heads, as many at a time as fit."""
    n_heads, group = q.shape[:2]
    step = max(1, SCORES // max(1, group * tile.n_scores))
    for first in range(0, n_heads, step):
        yield slice(first, min(first + step, n_heads))


def _rows(x: Tensor, heads: slice, tile: Tile) -> Tensor:
    """The queries of a tile, those of a group below each other, in the wide type."""
    return x[heads, :, tile.rows].flatten(1, 2).to(computing(x))


def _keys(x: Tensor, heads: slice, tile: Tile) -> Tensor:
    """The slab: the runs of keys side by side, in the wide type."""
    runs = [x[heads, run] for run in tile.runs]
    slab = runs[0] if len(runs) == 1 else torch.cat(runs, dim=1)
    return slab.to(computing(x))


def _scores(rows: Tensor, keys: Tensor, tile: Tile, scale: float) -> Tensor:
    """scale * rows keys^T + bias, (heads, group * rows, keys)."""
    if tile.bias is None:
        return torch.bmm(rows * scale, keys.mT)
    n_rows, n_keys = tile.bias.shape
    group = rows.shape[1] // n_rows
    bias = tile.bias if group == 1 else tile.bias.repeat(group, 1)
    bias = bias.expand(len(rows), group * n_rows, n_keys)
    return torch.baddbmm(bias, rows, keys.mT, alpha=scale)


def _add(
    total: Tensor,
    heads: slice,
    tile: Tile,
    weights: Tensor,
    rows: Tensor,
    scale: float = 1.0,
) -> None:
    """Add scale * weights^T rows to the keys that the slab is made of."""
    at = 0
    for run in tile.runs:
        width = run.stop - run.start
        part = weights[:, :, at : at + width]
        total[heads, run].baddbmm_(part.mT, rows, alpha=scale)
        at += width
