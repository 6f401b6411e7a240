"""Attention to neighbours only, in time and memory O(n w), forward and backward.

A block of queries needs the keys from the first query's left neighbour to the last
one's right neighbour. These are one slab, and plain softmax over it is all there is to
do; the few scores at its edges that lie outside a query's own window are hidden.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from attnlib.nn.slab_inputs import along, check
from attnlib.nn.slabs import Tile, computing
from attnlib.shapes import ShapeError, size

ROWS = 64  # queries in a tile: more compute too much outside, fewer wait for Python

ALIGN = 16  # slabs begin at a multiple of it: products of round sizes are faster


def window_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    left: int,
    right: int = 0,
    n_global: int = 0,
    causal: bool | None = None,
    scale: float | None = None,
) -> Tensor:
    """Let every query look at its neighbours, and at a few tokens that all may see.

    out_i = softmax over j of (q_i k_j / sqrt(d_k)) v_j, with p = n_k - n_q + i and
    p - left <= j <= p + right, or j < n_global, or p < n_global

    It is exactly `scaled_dot_product` with the mask `masks.window(n_q, n_k, left=left,
    right=right) | masks.global_tokens(n_q, n_k, n_global=n_global)`, & `masks.causal`
    where it is causal. A query without a key gets zeros, and so do its gradients.

    Args:
        q: queries, (..., n_heads, n_q, d_k).
        k: keys, (..., n_kv_heads, n_k, d_k). n_heads is a multiple of n_kv_heads, and
            neighbouring query heads share a KV head, which is not repeated.
        v: values, (..., n_kv_heads, n_k, d_v).
        left: how many keys before its own position a query sees.
        right: how many keys after its own position a query sees.
        n_global: how many tokens at the start see all and are seen by all.
        causal: hide what comes after a query, also from and among the global tokens;
            if left out, this is so where right is 0.
        scale: factor on the raw scores; 1 / sqrt(d_k) if left out.

    Returns:
        The result, (..., n_heads, n_q, d_v), in the dtype of q. Half precision is
        computed in float32.

    Raises:
        ShapeError: q, k and v do not fit together, the window is wider than the
            sequence, or there are more global tokens than keys.
        TypeError: q, k or v is not a floating tensor, they differ in dtype or device,
            or a size is not a whole number.
        ValueError: causal with right > 0.
        NotImplementedError: a second derivative is asked for.

    Cost: 2 n_q (63 + left + 1 + right + n_global) (d_k + d_v) FLOPs forward, 2.5
        times that backward; global tokens 2 n_global n_k (d_k + d_v) more. Memory
        grows as n.
    Source: Beltagy et al. 2020 (Longformer), section 3.1; Xiao et al. 2023 for global
        tokens that are causal (attention sinks).
    Lesson: 13.

    >>> q, v = torch.zeros(5, 2), torch.arange(5.0)[:, None]
    >>> window_attention(q, q, v, left=1)[:, 0].tolist()
    [0.0, 0.5, 1.5, 2.5, 3.5]
    """
    group = check(q, k, v)
    n_q, n_k = q.shape[-2], k.shape[-2]
    if causal is None:
        causal = right == 0
    left, right = size("left", left), size("right", right)
    n_global = size("n_global", n_global)
    windows = Windows(n_q, n_k, left, right, n_global, causal, computing(q), q.device)
    windows.check()
    return along(windows, q, k, v, group=group, scale=scale, name="window_attention")


@dataclass(frozen=True)
class Windows:
    """The tiles of a window: called, it yields them one after the other."""

    n_q: int
    n_k: int
    left: int
    right: int
    n_global: int
    causal: bool
    dtype: torch.dtype
    device: torch.device
    _kept: dict[tuple[int, ...], Tensor | None] = field(default_factory=dict)

    def check(self) -> None:
        """Raise where the window makes no sense for these sizes."""
        n = max(self.n_q, self.n_k, 1)
        for name in ("left", "right"):
            if getattr(self, name) >= n:
                raise ShapeError(
                    f"{name}={getattr(self, name)} makes a window wider than the "
                    f"sequence, n_q={self.n_q} and n_k={self.n_k}; {name}={n - 1} "
                    "reaches everything. (The tokens are the last axis but one.)"
                )
        if self.n_global > self.n_k:
            raise ShapeError(
                f"n_global={self.n_global} is more than the n_k={self.n_k} keys."
            )
        if self.causal and self.right:
            raise ValueError(
                f"causal hides what comes after a query, but right={self.right} shows "
                "it; take right=0, or causal=False."
            )

    def __call__(self) -> Iterator[Tile]:
        """First the global queries, which see everything, then the others."""
        n_global = min(max(self.n_global - self.n_k + self.n_q, 0), self.n_q)
        few = max(1, min(ROWS, 2**17 // max(self.n_k, 1)))  # their slabs are long
        for rows in _blocks(0, n_global, few):
            yield from self._tile(rows, slice(0, self._last(rows)))
        for rows in _blocks(n_global, self.n_q, ROWS):
            start = max(0, self._position(rows.start) - self.left)
            start -= start % ALIGN
            stop = min(self.n_k, self._position(rows.stop) + self.right)
            shown = min(self.n_global, self._last(rows))  # global keys
            if shown < start:
                yield from self._tile(rows, slice(0, shown), slice(start, stop))
            elif shown:  # they touch the window, or overlap with it
                yield from self._tile(rows, slice(0, max(stop, shown)))
            else:
                yield from self._tile(rows, slice(start, stop))

    def _position(self, row: int) -> int:
        return self.n_k - self.n_q + row

    def _last(self, rows: slice) -> int:
        """Where the keys end that one of these queries could see at most."""
        return max(0, self._position(rows.stop)) if self.causal else self.n_k

    def _tile(self, rows: slice, *runs: slice) -> Iterator[Tile]:
        runs = tuple(run for run in runs if run.start < run.stop)
        if not runs:
            return
        start, stop = runs[-1].start, runs[-1].stop
        first = self._position(rows.start)
        # Away from the ends all tiles have one bias. Within the global tokens, not.
        key: tuple[int, ...] = (rows.stop - rows.start, first - start, stop - start)
        if start < self.n_global or first < self.n_global:
            key = (*key, start)
        if key not in self._kept:
            self._kept[key] = self._bias(rows, runs)
        yield Tile(rows, runs, self._kept[key])

    def _bias(self, rows: slice, runs: tuple[slice, ...]) -> Tensor | None:
        """0 where a query may look at a key of the slab, -inf elsewhere."""
        first, last = self._position(rows.start), self._position(rows.stop)
        p = torch.arange(first, last, device=self.device)[:, None]
        parts = [torch.arange(r.start, r.stop, device=self.device) for r in runs]
        j = torch.cat(parts)
        look = (p - self.left <= j) & (j <= p + self.right)
        look |= (j < self.n_global) | (p < self.n_global)
        if self.causal:
            look &= j <= p
        if look.all():
            return None
        bias = torch.zeros(look.shape, dtype=self.dtype, device=self.device)
        return bias.masked_fill_(~look, -torch.inf)


def _blocks(start: int, stop: int, step: int) -> Iterator[slice]:
    for first in range(start, stop, step):
        yield slice(first, min(first + step, stop))
