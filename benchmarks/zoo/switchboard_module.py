"""Single mistakes and pairs of mistakes of one module with switches.

A pair counts only if it can be told from the right module and from each of its two
mistakes alone: `HIDDEN` lists those that cannot, and tests/test_zoo_modules.py works
that list out anew with `tells`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import nn

from .module_kit import EVEN, GROUPED, NO_SQUARE, SIZES, draw_weights, seeded
from .specimen import Specimen
from .switched_attention import SwitchedAttention

BOARDS = {
    "plain": {},
    "groups and RoPE": {"n_kv_heads": 2, "causal": True, "rope": "half"},
    "window and cap": {"causal": True, "window": 3, "softcap": 4.0, "qk_norm": True},
    "ALiBi": {"causal": True, "alibi": True},
}
MEANT = {  # what `examine` is told about each board
    "plain": {},
    "groups and RoPE": {"causal": True, "rope": "half"},
    "window and cap": {"causal": True, "window": 3, "softcap": 4.0, "qk_norm": True},
    "ALiBi": {"causal": True, "alibi": True},
}
CHOICES = {
    "plain": tuple(size for size in SIZES if size[1] > 1),
    "groups and RoPE": tuple(size for size in GROUPED if size in EVEN),
    "window and cap": EVEN,
    "ALiBi": ((12, 3), (24, 3), (24, 6), (30, 3), (30, 6), (48, 6)),
}
Wrong = tuple[str, str, str]  # slot, value, code
ANYWHERE: tuple[Wrong, ...] = (
    *(("scale", "none", "M01"), ("scale", "dim", "M02"), ("scale", "twice", "M03")),
    *(("axis", "queries", "M04"), ("axis", "heads and keys", "M05")),
    *(("softmax", "bare exp", "M06"), ("mask", "added", "M08")),
    *(("mask", "multiplied", "M09"), ("mask", "after the softmax", "M10")),
    *(("mask", "weak", "M11"), ("mask", "filled before scaling", "M12")),
    *(("split", "no transpose", "M20"), ("split", "interleaved", "M22")),
    *(("merge", "no transpose", "M21"), ("batch", "second", "M23")),
    *(("dropout", "always", "M34"), ("mode", "other scale in training", "M43")),
    *(("roles", "k asks", "M46"), ("roles", "keys are said", "M46")),
    *(("roles", "transposed weights", "M46"), ("again", "softmax", "M47")),
    *(("out", "missing", "M47"), ("out", "no bias", "M47")),
)
COMMON = tuple(
    wrong
    for wrong in ANYWHERE
    if wrong[1] in ("none", "queries", "no transpose", "k asks", "softmax", "missing")
    or wrong[2] in ("M05", "M10", "M11", "M22", "M23")
)
MASKED: tuple[Wrong, ...] = (
    *(("mask", "turned round", "M07"), ("empty", "not thought of", "M14")),
    *(("padding", "on the queries", "M15"), ("combine", "or", "M16")),
    *(("combine", "padding dropped", "M16"), ("order", "repeat", "M17")),
    *(("causal", "strict", "M18"), ("causal", "one ahead", "M18")),
    ("causal", "top left", "M19"),
)
OWN: dict[str, tuple[Wrong, ...]] = {
    "plain": (),
    "groups and RoPE": (
        *(("groups", "tiled", "M33"), ("rope", "k by pairs", "M26")),
        *(("rope", "both by pairs", "M26"), ("rope", "only q", "M27")),
        ("rope", "k one ahead", "M27"),
    ),
    "window and cap": (
        *(("window", "more", "M32"), ("window", "less", "M32"), ("cap", "none", "M37")),
        *(("cap", "after the mask", "M37"), ("norm", "never", "M38")),
        *(("norm", "k not", "M38"), ("norm", "over tokens", "M38")),
    ),
    "ALiBi": (("slopes", "one formula", "M31"), ("slopes", "sign", "M31")),
}


def built(board: str, size: tuple[int, int], switches: Mapping[str, str]) -> nn.Module:
    """The module of a board, with some switches moved."""
    return SwitchedAttention(*size, BOARDS[board], **switches)


def combined(board: str) -> list[tuple[Wrong, ...]]:
    """Singles and pairs of a board, hidden ones among them: of the plain board's half.

    Away from the plain board, one of the two mistakes is about what the board has.
    """
    if board == "plain":
        wrong = ANYWHERE + MASKED
        return [(w,) for w in wrong] + _pairs(wrong, wrong)[::2]
    own = OWN[board]
    return [(w,) for w in own] + _pairs(own, own + COMMON)


def _pairs(
    own: tuple[Wrong, ...], others: tuple[Wrong, ...]
) -> list[tuple[Wrong, ...]]:
    return [
        (a, b)
        for a, b in combinations(others, 2)
        if a[0] != b[0] and a[2] != b[2] and (a in own or b in own)
    ]


def key(board: str, wrong: tuple[Wrong, ...]) -> str:
    """The name of a combination."""
    return f"{board}: " + " and ".join(f"{slot} {value}" for slot, value, _ in wrong)


def specimen(board: str, wrong: tuple[Wrong, ...]) -> Specimen:
    """A module with these mistakes; its size is drawn from what the board allows."""
    switches = {slot: value for slot, value, _ in wrong}
    choice = CHOICES[board]
    if "filled before scaling" in switches.values():
        choice = tuple(size for size in choice if size in NO_SQUARE)

    def make(rng: np.random.Generator, dtype: str) -> nn.Module:
        size = choice[int(rng.integers(len(choice)))]
        return seeded(lambda: built(board, size, switches), rng, dtype)

    return Specimen(
        name=f"switched module, {key(board, wrong)}",
        codes=frozenset(code for _, _, code in wrong),
        make=make,
        intent=MappingProxyType(MEANT[board]),
        style="switched module",
    )


def answers(board: str, wrong: tuple[Wrong, ...], seed: int = 0) -> list[Any]:
    """What it answers to many questions, in float64; None where it raises."""
    d_model, n_heads = 24, 6
    module = built(board, (d_model, n_heads), {w[0]: w[1] for w in wrong}).double()
    generator = torch.Generator().manual_seed(seed)
    draw_weights(module, generator, spread=1.2, bias=0.3)
    found = []
    for x, memory, mask, padding, causal, train in questions(board, d_model, generator):
        torch.manual_seed(seed)  # for dropout
        module.train(train)
        try:
            with torch.no_grad():
                found.append(module(x, memory, mask, padding, causal).numpy())
        except (RuntimeError, IndexError):
            found.append(None)
    return found


def questions(board: str, d_model: int, generator: torch.Generator) -> list[Any]:
    """(x, memory, mask, padding, causal, train): all that the board can be asked."""

    def draw(n: int, size: float = 1.0) -> Any:
        x = torch.randn(5, n, d_model, generator=generator, dtype=torch.float64)
        return size * x

    mask = torch.rand(5, 7, 7, generator=generator) < 0.6
    mask |= torch.eye(7, dtype=torch.bool)
    wide = mask[:, :4] | (torch.arange(7) == 1)
    few = mask.clone()
    few[1, 2] = few[3] = False
    real = torch.arange(7) < torch.tensor([7, 3, 5, 1, 6])[:, None]
    none = (None, None, None, False)
    asked: list[Any] = [(draw(7), *none, False), (draw(7), *none, True)]
    asked += [(draw(7, size), *none, False) for size in (40.0, 1000.0)]
    asked += [
        (draw(7, size), None, mask, None, False, False) for size in (1.0, 6.0, 40.0)
    ]
    asked += [(draw(7), None, None, real, causal, False) for causal in (False, True)]
    asked += [(draw(7), None, mask, real, True, False)]
    asked += [(draw(7), None, few, None, False, False)]
    asked += [(draw(7), None, None, None, True, False)]
    if board == "plain":
        asked += [(draw(4), draw(7), *rest) for rest in ((None, None, False, False),)]
        asked += [(draw(4), draw(7), wide, None, False, False)]
        asked += [(draw(4), draw(7), None, None, True, False)]
    return asked


def tells(one: list[Any], other: list[Any]) -> bool:
    """Whether two lists of answers differ somewhere by more than rounding."""
    for a, b in zip(one, other, strict=True):
        if (a is None) != (b is None):
            return True
        if a is not None and not (
            a.shape == b.shape and np.allclose(a, b, 1e-6, 1e-9, True)
        ):
            return True
    return False


def hidden() -> set[str]:
    """The combinations that cannot be told from the right one or a part of them."""
    found = set()
    for board in BOARDS:
        known = {wrong: answers(board, wrong) for wrong in combined(board)}
        known[()] = answers(board, ())
        for wrong in combined(board):
            parts = [(), *((w,) for w in wrong if len(wrong) > 1)]
            for part in parts:
                if part not in known:
                    known[part] = answers(board, part)
                if not tells(known[wrong], known[part]):
                    found.add(key(board, wrong))
    return found


HIDDEN = frozenset(
    {
        "plain: axis heads and keys and mask weak",
        "plain: batch second and order repeat",
        "plain: mask filled before scaling and batch second",
        "plain: mask weak and batch second",
        "plain: roles k asks and causal top left",
        "plain: roles transposed weights and causal top left",
        "plain: scale dim and mode other scale in training",
        "window and cap: cap after the mask and mask after the softmax",
        "window and cap: cap after the mask and mask weak",
        "window and cap: cap none and mask weak",
        "window and cap: norm k not and mask weak",
        "window and cap: norm never and mask weak",
        "window and cap: norm over tokens and mask weak",
        "window and cap: window less and mask weak",
        "window and cap: window more and mask weak",
    }
)
SPECIMENS = tuple(
    specimen(board, wrong)
    for board in BOARDS
    for wrong in combined(board)
    if key(board, wrong) not in HIDDEN
)
