"""The Triton kernel against SDPA, and against our own flash attention, on a GPU.

Forward alone, 16 heads of 64 and of 128. Every ratio is the time of ours divided by
that of SDPA in the same round, the GPU having finished; below 1, ours is faster. No
time is aimed at. Before anything is timed, the results are compared with float64. Where
there is no CUDA device or no triton, one sentence says so. A full run writes
benchmarks/results/triton_flash.json.
"""

# The file must not be called triton.py: `import triton` would find it.

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from ratios import Row, compare, row, threads
from tables import Tables
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention as sdpa

from attnlib.nn import flash_attention, triton_attention

RESULTS = Path(__file__).resolve().parent / "results" / "triton_flash.json"
Attend = Callable[..., Tensor]


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    device: str = "cuda"
    heads: int = 16
    widths: tuple[int, ...] = (64, 128)
    lengths: tuple[int, ...] = (512, 1024, 2048, 4096, 8192)
    tokens: int = 2**15  # in all sequences together
    checked: int = 1024  # tokens of the sequence that is compared with float64
    rounds: int = 7

    def inputs(self, n: int, d: int, dtype: torch.dtype, batch: int) -> list[Tensor]:
        """q, k and v, always the same."""
        draw = torch.Generator().manual_seed(n)
        shape = (batch, self.heads, n, d)
        made = (torch.randn(shape, generator=draw) for _ in range(3))
        return [x.to(self.device, dtype) for x in made]


QUICK = Sizes(
    device="cuda" if torch.cuda.is_available() else "cpu",
    heads=1,
    widths=(16,),
    lengths=(40,),
    tokens=40,
    checked=40,
    rounds=1,
)


def missing() -> str | None:
    """Why nothing can be measured here, if so."""
    if not torch.cuda.is_available():
        return "There is no CUDA device here: this benchmark needs one."
    if importlib.util.find_spec("triton") is None:
        return "The package triton is missing: `python -m pip install triton`."
    return None


def finished(attend: Attend, *inputs: Tensor) -> Tensor:
    """A call that ends when the GPU has done its work, not when it has been asked."""
    with torch.no_grad():
        out = attend(*inputs)
    if out.is_cuda:
        torch.cuda.synchronize()
    return out


def error(found: Tensor, exact: Tensor) -> float:
    """The error of all numbers together, as a part of their size."""
    return ((found.double() - exact).norm() / exact.norm()).item()


def times(sizes: Sizes, dtype: torch.dtype, d: int) -> Iterator[Row]:
    """Ratios and TFLOP/s for one dtype."""
    for n in sizes.lengths:
        batch = max(1, sizes.tokens // n)
        given = sizes.inputs(n, d, dtype, batch)
        for causal in (False, True):
            runs = {
                "triton": partial(triton_attention, causal=causal),
                "ours": partial(flash_attention, causal=causal),
                "sdpa": partial(sdpa, is_causal=causal),
            }
            calls = {key: partial(finished, f, *given) for key, f in runs.items()}
            found = compare(calls, "sdpa", rounds=sizes.rounds)
            flops = 4 * batch * sizes.heads * n**2 * d / (1 + causal)
            kind = "causal" if causal else "full"
            for name, label in (("triton", "Triton"), ("ours", "in PyTorch")):
                each = row(f"n={n} {kind} {label}", found, name)
                speed = f"{flops / found[name].seconds / 1e12:.1f} TFLOP/s"
                yield replace(each, detail=f"{each.detail}  {speed}")


def errors(sizes: Sizes, dtype: torch.dtype, d: int) -> Iterator[Row]:
    """How far from float64, as a multiple of SDPA's own error."""
    given = sizes.inputs(sizes.checked, d, dtype, 1)
    for causal in (False, True):
        exact = sdpa(*(x.double() for x in given), is_causal=causal)
        ours = error(finished(partial(triton_attention, causal=causal), *given), exact)
        theirs = error(finished(partial(sdpa, is_causal=causal), *given), exact)
        label = f"n={sizes.checked} {'causal' if causal else 'full'}"
        said = f"Triton {ours:.1e}  SDPA {theirs:.1e}"
        # One rounding more or less is no fault; a tile in the wrong place is.
        yield Row(label, ours / max(theirs, 1e-12), 5.0, detail=said)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes, no aims")
    parser.add_argument("--out", type=Path, help="write the numbers there as JSON")
    given = parser.parse_args(arguments)
    why = missing()
    if why:
        print(why)
        return 0
    sizes = QUICK if given.quick else Sizes()
    tables = Tables(aims=not given.quick)
    with threads(2):  # on more than one, it is the clock on the wall that counts
        for dtype in (torch.float16, torch.bfloat16, torch.float32):
            name = str(dtype).removeprefix("torch.")
            for d in sizes.widths:
                for what, measure in (("error", errors), ("time", times)):
                    rows = list(measure(sizes, dtype, d))
                    tables.show(f"{name}, d = {d}: {what} / SDPA's", rows)
    return tables.write(given.out or (None if given.quick else RESULTS))


if __name__ == "__main__":
    raise SystemExit(main())
