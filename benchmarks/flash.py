"""`attnlib.nn.flash_attention` against torch's SDPA: `python course.py bench flash`.

Every ratio is the time, or the memory, of ours divided by that of SDPA in the same
round; below 1, ours needs less. Each aim stands beside what was reached. With --quick
the sizes are tiny and nothing is aimed at; it shows that the benchmark runs. A full run
takes about a quarter of an hour and writes benchmarks/results/flash.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

import torch  # noqa: E402
from flash_memory import memory  # noqa: E402
from machine import half_instructions, roof, shares  # noqa: E402
from ratios import Row, compare, numbers, row, table, threads  # noqa: E402
from torch import Tensor  # noqa: E402
from torch.nn.functional import scaled_dot_product_attention as sdpa  # noqa: E402

from attnlib.nn import flash_attention  # noqa: E402

RESULTS = HERE / "results" / "flash.json"
HEADS, D = 8, 64
# What makes torch and its libraries behave as on a CPU of 2013 to 2017.
OLDER = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
}
Attention = Callable[..., Tensor]


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    lengths: tuple[int, ...] = (1024, 2048, 4096, 8192)
    half: tuple[int, ...] = (1024, 2048)
    special: int = 2048
    memory: tuple[int, ...] = (2048, 4096, 8192, 16384)
    kinds: tuple[str, ...] = ("full", "causal", "padding", "dropout")
    phases: tuple[bool, ...] = (False, True)  # whether backward, too
    rounds: int = 7
    aims: bool = True

    def aim(self, most: float | None) -> float | None:
        """An aim, unless the sizes are too small for any."""
        return most if self.aims else None

    def turns(self, n: int) -> int:
        """Fewer rounds where one takes long."""
        return min(self.rounds, {4096: 5, 8192: 3}.get(n, self.rounds))


QUICK = Sizes((32,), (32,), 32, (32, 64), ("padding",), (True,), 2, aims=False)


def tensors(n: int, dtype: torch.dtype = torch.float32, d_v: int = D) -> list[Tensor]:
    """q, k, v and what comes down from above, always the same."""
    draw = torch.Generator().manual_seed(n)
    return [
        torch.randn(1, HEADS, n, d, generator=draw).to(dtype)
        for d in (D, D, d_v, d_v)
    ]  # fmt: skip


def forward(attention: Attention, q: Tensor, k: Tensor, v: Tensor, _: Tensor) -> None:
    with torch.no_grad():
        attention(q, k, v)


def both_ways(
    attention: Attention, q: Tensor, k: Tensor, v: Tensor, upstream: Tensor
) -> list[Tensor]:
    """Forward and backward: out, and the gradients."""
    inputs = [x.detach().requires_grad_() for x in (q, k, v)]
    out = attention(*inputs)
    return [out, *torch.autograd.grad(out, inputs, upstream)]


PHASES = {"forward": forward, "forward + backward": both_ways}


def single(sizes: Sizes) -> Iterator[Row]:
    """float32, full and causal."""
    aims = {
        ("forward", True): 1.15,
        ("forward", False): 1.25,
        ("forward + backward", True): 1.05,
        ("forward + backward", False): 1.1,
    }
    if torch.get_num_threads() > 1:
        aims = dict.fromkeys(aims, 1.2)
    for n in sizes.lengths:
        given = tensors(n)
        for phase, run in PHASES.items():
            for causal in (True, False):
                found = compare(
                    {
                        "ours": partial(
                            run, partial(flash_attention, causal=causal), *given
                        ),
                        "sdpa": partial(run, partial(sdpa, is_causal=causal), *given),
                    },
                    "sdpa",
                    rounds=sizes.turns(n),
                )
                kind = "causal" if causal else "full"
                aim = sizes.aim(aims[phase, causal])
                yield row(f"n={n} {kind} {phase}", found, "ours", aim)


def half(sizes: Sizes, aimed: Sequence[str]) -> Iterator[Row]:
    """bfloat16 and float16: time, and error against float64."""
    for dtype in (torch.bfloat16, torch.float16):
        name = str(dtype).removeprefix("torch.")
        for n in sizes.half:
            given = tensors(n, dtype)
            runs = {
                kind: partial(both_ways, attention, *given)
                for kind, attention in (("ours", flash_attention), ("sdpa", sdpa))
            }
            found = compare(runs, "sdpa", rounds=sizes.turns(n))
            aim = sizes.aim(0.25) if name in aimed else None
            yield row(f"n={n} {name} forward + backward", found, "ours", aim)
        errors = {kind: worst_error(run(), given) for kind, run in runs.items()}
        ratio = errors["ours"] / errors["sdpa"]
        said = "  to  ".join(f"{kind} {error:.1e}" for kind, error in errors.items())
        yield Row(f"n={n} {name} error", ratio, sizes.aim(1.0), detail=said)


def worst_error(found: Sequence[Tensor], given: Sequence[Tensor]) -> float:
    """The largest relative error of out and the gradients, against float64."""
    exact = both_ways(sdpa, *(x.double() for x in given))
    pairs = zip(found, exact, strict=True)
    errors = [(x.double() - y).norm() / y.norm() for x, y in pairs]
    return max(error.item() for error in errors)


def special(sizes: Sizes) -> Iterator[Row]:
    """Where SDPA leaves its fast path on a CPU: forward + backward."""
    n = sizes.special
    given, wide = tensors(n), tensors(n, d_v=2 * D)
    bias = torch.randn(n, n).requires_grad_()

    def biased(attention: Attention) -> None:
        inputs = [x.detach().requires_grad_() for x in given[:3]]
        torch.autograd.grad(attention(*inputs), [*inputs, bias], given[3])

    pairs = {
        "a bias with a gradient": (
            partial(biased, partial(flash_attention, bias=bias)),
            partial(biased, partial(sdpa, attn_mask=bias)),
            0.7,
        ),
        f"d_v = {2 * D}": (
            partial(both_ways, flash_attention, *wide),
            partial(both_ways, sdpa, *wide),
            0.7,
        ),
        "dropout 0.1": (
            partial(both_ways, partial(flash_attention, dropout=0.1, seed=0), *given),
            partial(both_ways, partial(sdpa, dropout_p=0.1), *given),
            None,
        ),
    }
    for name, (ours, theirs, aim) in pairs.items():
        found = compare({"ours": ours, "sdpa": theirs}, "sdpa", rounds=sizes.turns(n))
        yield row(f"n={n} {name}", found, "ours", sizes.aim(aim))


def older(quick: bool) -> list[Row]:
    """`half` once more, in a process that must do without such instructions."""
    command = [sys.executable, __file__, "--half", *(["--quick"] if quick else [])]
    done = subprocess.run(
        command, env=os.environ | OLDER, capture_output=True, text=True, check=True
    )
    return [Row(**each) for each in json.loads(done.stdout.splitlines()[-1])]


def show(title: str, rows: Sequence[Row], into: dict[str, object]) -> bool:
    print(table(title, rows), flush=True)
    into[title] = numbers(rows)
    return all(each.met for each in rows)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes, no aims")
    parser.add_argument("--half", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help="write the numbers there as JSON")
    given = parser.parse_args(arguments)
    sizes = QUICK if given.quick else Sizes()
    kept: dict[str, object] = {}
    fine = True
    with threads(1):
        if given.half:
            print(json.dumps([vars(x) for x in half(sizes, ("bfloat16", "float16"))]))
            return 0
        native = half_instructions()
        slow = [name for name in ("bfloat16", "float16") if name not in native]
        show("The machine, one thread, GFLOP/s", roof(given.quick), kept)
        show("Where the time of a tile goes, %", shares(given.quick), kept)
        for title, rows in (
            ("float32, one thread: ours / SDPA", single(sizes)),
            ("Half precision, one thread: ours / SDPA", half(sizes, slow)),
            ("Off SDPA's fast path, one thread: ours / SDPA", special(sizes)),
        ):
            fine &= show(title, list(rows), kept)
    if native:
        print(f"This CPU has instructions for {' and '.join(native)}. Without them:")
        title = "Half precision as on an AVX2 CPU: ours / SDPA"
        fine &= show(title, older(given.quick), kept)
    with threads(2):
        show("float32, two threads: ours / SDPA", list(single(sizes)), kept)
    fine &= show("Memory, MB above the inputs", list(memory(sizes)), kept)
    target = given.out or (None if given.quick else RESULTS)
    if target is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(kept, indent=1) + "\n")
        print(f"written: {target}")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
