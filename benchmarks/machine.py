"""How fast this machine multiplies matrices, and what else a tile of attention costs.

No attention can be faster than the products it consists of. So their speed is the roof:
what share of it SDPA reaches says how much there is to win.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import torch
from ratios import Row
from torch.nn.functional import scaled_dot_product_attention as sdpa

HEADS, D = 8, 64


def seconds(run: Callable[[], object], repeat: int) -> float:
    """The least of many times: what the machine can do when nothing disturbs."""
    run()
    least = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        least = min(least, time.perf_counter() - start)
    return least


def roof(quick: bool) -> list[Row]:
    """GFLOP/s of products in float32: large ones, those of a tile, and in SDPA."""
    n, repeat = (64, 2) if quick else (2048, 7)
    a, b = torch.randn(n, n), torch.randn(n, n)
    large = 2 * n**3 / seconds(lambda: a @ b, repeat) / 1e9
    rows = [Row(f"product of two {n} x {n} matrices", large)]
    q, k, v = (torch.randn(1, HEADS, n, D) for _ in range(3))
    flops = 4 * HEADS * n * n * D
    with torch.no_grad():
        fast = flops / seconds(lambda: sdpa(q, k, v), repeat) / 1e9
    said = f"{100 * fast / large:.0f} % of the roof"
    rows.append(Row(f"SDPA forward, n={n}, d={D}", fast, detail=said))
    return rows


def shares(quick: bool) -> list[Row]:
    """What part of a tile's time forward is products, exponentials, and the rest."""
    n_q, n_k, repeat = (16, 16, 3) if quick else (1024, 256, 200)
    q, k, v = torch.randn(1, n_q, D), torch.randn(1, n_k, D), torch.randn(1, n_k, D)
    scores, mixed = torch.empty(1, n_q, n_k), torch.zeros(1, n_q, D)
    largest, total = torch.zeros(1, n_q, 1), torch.ones(1, n_q, 1)

    def products() -> None:
        scores.baddbmm_(q, k.mT, beta=0, alpha=0.1)
        mixed.baddbmm_(scores, v, beta=0.5)

    def rest() -> None:
        torch.maximum(largest, scores.amax(-1, keepdim=True))
        scores.sub_(largest)
        total.mul_(largest).add_(scores.sum(-1, keepdim=True))
        mixed.mul_(total)

    parts = {
        "products": seconds(products, repeat),
        "exponentials": seconds(lambda: scores.mul_(0).exp2_(), repeat)
        - seconds(lambda: scores.mul_(0), repeat),
        "the rest": seconds(rest, repeat),
    }
    whole = sum(parts.values())
    return [
        Row(name, 100 * part / whole, detail=f"{1e9 * part / n_q / n_k:.2f} ns a score")
        for name, part in parts.items()
    ]


def half_instructions() -> list[str]:
    """The half-precision types that this CPU multiplies by itself, as far as known."""
    try:
        flags = set(Path("/proc/cpuinfo").read_text().split())
    except OSError:
        return []
    known = {
        "bfloat16": {"avx512_bf16", "amx_bf16", "bf16"},
        "float16": {"avx512_fp16", "amx_fp16", "asimdhp"},
    }
    return [name for name, names in known.items() if names & flags]
