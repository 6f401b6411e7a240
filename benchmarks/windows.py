"""Attention along windows and blocks against PyTorch's own, forward and backward.

Eight heads of 64 in float32. A dense mask hides what a window leaves out, and computes
it first; flex_attention, compiled, skips it as we do, and has no backward pass on a
CPU. `--quick` takes short sequences and aims at nothing; a full run takes ten minutes
and writes benchmarks/results/windows.json.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from memory import peak, slope
from ratios import Row, compare, row, threads
from tables import Tables
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention as sdpa

from attnlib import masks, sparse
from attnlib.nn import block_sparse_attention, window_attention

RESULTS = Path(__file__).resolve().parent / "results" / "windows.json"
HEADS, D, LEFT, BLOCK = 8, 64, 255, 128
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


def inputs(n: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(1, HEADS, n, D, generator=generator) for _ in range(3)]


def forward(attend: Attend, n: int) -> Callable[[], object]:
    tensors = inputs(n)

    def call() -> object:
        with torch.no_grad():
            return attend(*tensors)

    return call


def both(attend: Attend, n: int) -> Callable[[], object]:
    """Forward, then backward."""
    tensors = [x.requires_grad_() for x in inputs(n)]
    upstream = torch.ones(1, HEADS, n, D)
    return lambda: torch.autograd.grad(attend(*tensors), tensors, upstream)


def window(left: int) -> Attend:
    return lambda q, k, v: window_attention(q, k, v, left=left)


def masked(left: int, n: int) -> Attend:
    mask = torch.from_numpy(masks.window(n, left=left))
    return lambda q, k, v: sdpa(q, k, v, attn_mask=mask)


def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return sdpa(q, k, v, is_causal=True)


def flex(left: int, n: int) -> Attend | None:
    """Compiled flex_attention, or None where it cannot be compiled."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def look(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return (j <= i) & (i - j <= left)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            blocks = create_block_mask(look, None, None, n, n, device="cpu")
            compiled = torch.compile(flex_attention)
            with torch.no_grad():
                compiled(*inputs(n), block_mask=blocks)
    except Exception as error:  # no compiler, or a torch without it
        print(f"flex_attention is left out: {str(error).splitlines()[0]}")
        return None
    return lambda q, k, v: compiled(q, k, v, block_mask=blocks)


def windows(n: int, left: int, rounds: int, quick: bool) -> list[Row]:
    """Against the dense mask, which computes all; against causal, which has no window.

    What takes a second or more for one call is measured in fewer rounds.
    """
    how = {"window": window(left), "mask": masked(left, n), "causal": causal}
    found = compare({k: forward(f, n) for k, f in how.items()}, "mask", rounds=rounds)
    title = f"window {left + 1}, n {n}"
    rows = [
        row(f"{title}: forward, times faster than masked", found, "window", 12, more=1),
        row("  causal without a window, likewise", found, "causal", more=True),
    ]
    few = min(rounds, 3)
    del how["causal"]
    found = compare({k: both(f, n) for k, f in how.items()}, "mask", rounds=few)
    label = f"{title}: forward and backward, times faster"
    rows.append(row(label, found, "window", 15, more=True))
    other = None if quick else flex(left, n)
    if other is not None:
        pair = {"window": window(left), "flex": other}
        found = compare(
            {k: forward(f, n) for k, f in pair.items()}, "flex", rounds=rounds
        )
        rows.append(row(f"{title}: forward / flex compiled", found, "window", 1))
    return rows


def growth(n: int, left: int, rounds: int) -> list[Row]:
    """How the time grows when n doubles."""
    rows = []
    for label, make in (("forward", forward), ("forward and backward", both)):
        runs = {"n": make(window(left), n), "2 n": make(window(left), 2 * n)}
        found = compare(runs, "n", rounds=rounds)
        rows.append(row(f"n {n} to {2 * n}: {label}, times", found, "2 n", 2.2))
    return rows


def blocks(n: int, rounds: int) -> list[Row]:
    """BigBird's pattern with one global block, against full attention."""
    rng = np.random.default_rng(0)
    block = min(BLOCK, n // 8)
    pattern = sparse.bigbird_blocks(n // block, n_global=1, rng=rng)
    title = f"blocks of {block}, density {pattern.mean():.3f}, n {n}"

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return block_sparse_attention(q, k, v, pattern, block=block)

    rows = []
    for label, make in (("forward", forward), ("forward and backward", both)):
        runs = {"blocks": make(attend, n), "full": make(sdpa, n)}
        found = compare(runs, "full", rounds=min(rounds, 3))
        rows.append(row(f"{title}: {label} / full", found, "blocks", 0.3))
    return rows


def prepare(kind: str, n: int, left: int) -> Callable[[], object]:
    both(window(1), 64)()  # what a first call loads is not what it needs
    both(masked(1, 64), 64)()
    return both(window(left) if kind == "window" else masked(left, n), n)


def memories(sizes: list[int], left: int) -> list[Row]:
    """Peak memory of forward and backward, each in a process of its own."""
    ours = {n: peak(prepare, "window", n, left) for n in sizes}
    theirs = {n: peak(prepare, "mask", n, left) for n in sizes[:3]}
    said = ", ".join(f"{n}: {mb:.0f}" for n, mb in ours.items())
    masked_said = ", ".join(f"{n}: {mb:.0f}" for n, mb in theirs.items())
    return [
        Row("memory grows as n to the power", slope(ours), 1.05, detail=f"MB {said}"),
        Row("  with the dense mask", slope(theirs), detail=f"MB {masked_said}"),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes, no aims")
    parser.add_argument("--out", type=Path, help="write the numbers there as JSON")
    given = parser.parse_args(arguments)
    quick = given.quick
    n, left, rounds = (512, 63, 1) if quick else (10240, LEFT, 5)
    tables = Tables(aims=not quick)
    for number in (1,) if quick else (1, 2):
        with threads(number):
            rows = windows(n, left, rounds, quick or number > 1)
            rows += growth(n // 2, left, rounds)
            rows += blocks(512 if quick else 8192, rounds)
            title = f"{number} thread{'s' * (number > 1)}"
            tables.show(title, rows, counts=number == 1)
    sizes = [256, 512] if quick else [2048, 4096, 8192, 16384]
    tables.show("peak memory, forward and backward", memories(sizes, left))
    return tables.write(given.out or (None if quick else RESULTS))


if __name__ == "__main__":
    raise SystemExit(main())
