"""Peak memory of flash attention and of SDPA, each point in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import torch
from memory import peak, slope
from ratios import Row
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention as sdpa

from attnlib.nn import flash_attention

HEADS, D = 8, 64
EVEN = ("full", "causal")  # where forward must need no more than SDPA


class Points(Protocol):
    """Which lengths, and whether there are aims."""

    memory: tuple[int, ...]
    kinds: tuple[str, ...]
    phases: tuple[bool, ...]  # whether backward, too

    def aim(self, most: float | None) -> float | None: ...


def prepared(name: str, kind: str, both: bool, n: int) -> Callable[[], object]:
    """One call, after a small one has warmed up what torch needs only once."""
    call(name, kind, both, 64)()
    return call(name, kind, both, n)


def call(name: str, kind: str, both: bool, n: int) -> Callable[[], object]:
    q, k, v, upstream = (torch.randn(1, HEADS, n, D) for _ in range(4))
    padding = torch.arange(n).view(1, 1, 1, n) < n * 3 // 4

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if name == "ours":
            mask = padding if kind == "padding" else None
            drop = 0.1 if kind == "dropout" else 0.0
            causal = kind == "causal"
            return flash_attention(q, k, v, mask=mask, causal=causal, dropout=drop)
        mask = padding.expand(1, 1, n, n).contiguous() if kind == "padding" else None
        return sdpa(q, k, v, mask, 0.1 if kind == "dropout" else 0.0, kind == "causal")

    def once() -> object:
        if not both:
            with torch.no_grad():
                return attention(q, k, v)
        inputs = [x.requires_grad_() for x in (q, k, v)]
        return torch.autograd.grad(attention(*inputs), inputs, upstream)

    return once


def middle(name: str, kind: str, both: bool, n: int) -> float:
    """The middle of three processes: one and the same call differs by half a MB.

    One is enough where the aim leaves room for that, and a call may take long.
    """
    processes = 3 if kind in EVEN and not both else 1
    found = sorted(peak(prepared, name, kind, both, n) for _ in range(processes))
    return found[processes // 2]


def memory(points: Points) -> Iterator[Row]:
    """How it grows with n, and ours beside SDPA's."""
    lengths = points.memory
    last = lengths[-1]
    for kind in points.kinds:
        for both in points.phases:
            of_n = {n: middle("ours", kind, both, n) for n in lengths}
            phase = "forward + backward" if both else "forward"
            said = "  ".join(f"n={n}: {mb:.1f}" for n, mb in of_n.items())
            power, aim = slope(of_n), points.aim(1.05)
            yield Row(f"{kind} {phase}: power of n", power, aim, detail=said)
            if kind == "dropout":  # SDPA would need n x n numbers for every head
                continue
            theirs = middle("sdpa", kind, both, last)
            said, ratio = f"SDPA: {theirs:.1f}", of_n[last] / max(theirs, 1e-3)
            label = f"{kind} {phase}, n={last}: ours / SDPA"
            most = 0.1 if kind == "padding" and not both else None
            if kind in EVEN and not both:
                most = 1.0
            yield Row(label, ratio, points.aim(most), detail=said)
