"""How the wrong modules of the zoo are made: a right class, and one line changed.

A style is a right module as people write it. A wrong one is the same source with a
few lines replaced, so that each mistake can be read as a change. The examiner sees
neither: it gets the module.
"""

from __future__ import annotations

import inspect
import linecache
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .specimen import Specimen

SIZES = (
    *((12, 2), (12, 3), (12, 4), (16, 2), (16, 4), (16, 8), (24, 2), (24, 3), (24, 6)),
    *((24, 8), (30, 3), (30, 6), (48, 4), (48, 8), (64, 2), (64, 4), (64, 8)),
)
GROUPED = ((16, 4), (24, 4), (24, 6), (48, 6), (48, 8), (64, 8))  # two KV heads
# Where d_k is no square, a round number filled in before scaling shows as such.
NO_SQUARE = tuple((d, h) for d, h in SIZES if d // h not in (4, 9, 16))
EVEN = tuple((d, h) for d, h in SIZES if d // h >= 4 and d // h % 2 == 0)


@dataclass(frozen=True)
class Probe:
    """One question to a module: tokens, and who may look at whom."""

    x: Tensor  # (batch, n_q, d_model)
    memory: Tensor | None = None  # (batch, n_k, d_model)
    mask: Tensor | None = None  # (batch, n_q, n_k) boolean, True = may look
    padding: Tensor | None = None  # (batch, n_k) boolean, True = real


@dataclass(frozen=True)
class Style:
    """A right module: how it is built, called and read, and what it is meant to do."""

    name: str
    sources: tuple[Any, ...]  # classes and functions; the last one is the module
    build: Callable[[Any, int, int], nn.Module]  # (class, d_model, n_heads)
    call: Callable[[Any, Probe], Any]  # -> the result; None: it does not take this
    read: Callable[[Any], dict[str, Any]]  # W_q, W_k, W_v, W_o: x @ W; b_q, ...
    intent: Mapping[str, Any] = field(default_factory=dict)
    sizes: tuple[tuple[int, int], ...] = SIZES
    features: Callable[[Any], dict[str, Any]] = lambda module: {}

    def right(self, rng: np.random.Generator, dtype: str, size: Any = None) -> Any:
        """The right module, its weights drawn from rng."""
        return self._make(self.sources[-1], rng, dtype, size)

    def wrong(
        self,
        codes: str,
        what: str,
        *changes: tuple[str, str],
        sizes: tuple[tuple[int, int], ...] | None = None,
        intent: Mapping[str, Any] | None = None,
        without: tuple[str, ...] = (),
    ) -> ModuleSpecimen:
        """A specimen with some lines changed; `without` leaves out some intents."""
        cls = mutant(self.sources, changes)
        choice = sizes or self.sizes
        meant = {k: v for k, v in self.intent.items() if k not in without}

        def make(rng: np.random.Generator, dtype: str) -> nn.Module:
            return self._make(cls, rng, dtype, _one(choice, rng))

        return ModuleSpecimen(
            name=f"module {self.name}, {codes}: {what}".replace(", : ", ", "),
            codes=frozenset(codes.split()),
            make=make,
            intent={**meant, **(intent or {})},
            style=self.name,
            of=self,
            cls=cls,
            choice=choice,
        )

    def _make(
        self, cls: Any, rng: np.random.Generator, dtype: str, size: Any
    ) -> nn.Module:
        d_model, n_heads = size or _one(self.sizes, rng)
        return seeded(lambda: self.build(cls, d_model, n_heads), rng, dtype)


@dataclass(frozen=True)
class ModuleSpecimen(Specimen):
    """A wrong module, and the style that it spoils."""

    of: Any = None  # Style
    cls: Any = None
    choice: tuple[tuple[int, int], ...] = SIZES


def _one(choice: tuple[tuple[int, int], ...], rng: np.random.Generator) -> Any:
    return choice[int(rng.integers(len(choice)))]


def mutant(sources: tuple[Any, ...], changes: tuple[tuple[str, str], ...]) -> Any:
    """The last of the sources, after each old text was replaced by a new one."""
    if not changes:
        return sources[-1]
    text = "\n\n".join(textwrap.dedent(inspect.getsource(part)) for part in sources)
    for old, new in changes:
        found = text.count(old)
        if found != 1:
            raise ValueError(f"{old!r} stands {found} times in {sources[-1].__name__}.")
        text = text.replace(old, new)
    filename = f"<{sources[-1].__name__}: {changes!r}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    space = dict(vars(sys.modules[sources[-1].__module__]))
    exec(compile(text, filename, "exec", dont_inherit=True), space)
    return space[sources[-1].__name__]


def seeded(
    build: Callable[[], nn.Module], rng: np.random.Generator, dtype: str
) -> nn.Module:
    """Build a module, and draw its weights from rng and from nothing else."""
    with torch.random.fork_rng(devices=[]):
        module = build()
    generator = torch.Generator().manual_seed(int(rng.integers(2**31)))
    spread = float(rng.choice([0.02, 0.58, 1.0]))  # GPT-2's, nn.Linear's, LeCun's
    draw_weights(module, generator, spread, bias=0.0 if spread < 0.5 else 0.1)
    return module.to(getattr(torch, dtype)).eval()


def draw_weights(
    module: nn.Module, generator: torch.Generator, spread: float, bias: float
) -> None:
    """Matrices of N(0, spread² / n_in), vectors of N(0, bias²), norms near 1."""
    with torch.no_grad():
        for name, value in module.named_parameters():
            noise = torch.randn(value.shape, generator=generator, dtype=torch.float64)
            if value.ndim >= 2:
                std = spread if spread < 0.5 else spread * value.shape[-1] ** -0.5
                value.copy_(noise * std)
            elif "norm" in name:
                value.copy_(1 + 0.1 * noise)
            else:
                value.copy_(noise * bias)


def linears(q: Any, k: Any, v: Any, o: Any) -> dict[str, Any]:
    """Four nn.Linear, as matrices for x @ W."""
    parts = {"q": q, "k": k, "v": v, "o": o}
    matrices = {f"W_{name}": part.weight.T for name, part in parts.items()}
    return matrices | {f"b_{name}": part.bias for name, part in parts.items()}


def fused(qkv: Any, o: Any) -> dict[str, Any]:
    """One nn.Linear for q, k, v side by side, and one for the output."""
    matrices = dict(zip(("W_q", "W_k", "W_v"), qkv.weight.T.chunk(3, 1), strict=True))
    biases = (None,) * 3 if qkv.bias is None else qkv.bias.chunk(3)
    vectors = dict(zip(("b_q", "b_k", "b_v"), biases, strict=True))
    return {**matrices, **vectors, "W_o": o.weight.T, "b_o": o.bias}
