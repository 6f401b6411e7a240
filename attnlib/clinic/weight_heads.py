"""How many heads there are: from lists, axes and sizes, and else from what they do."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from attnlib.clinic.find_weights import Chosen
from attnlib.clinic.weight_layout import Bench
from attnlib.clinic.weight_slots import Slot


@dataclass
class Parts:
    """Slots for the weights ("q", "k", "v", "o") and their biases."""

    weights: dict[str, Slot] = field(default_factory=dict)
    biases: dict[str, Slot] = field(default_factory=dict)
    n_heads: int = 1
    n_kv_heads: int = 1
    counted: bool = False  # the number of heads was found out by behaviour
    notes: list[str] = field(default_factory=list)
    problem: str = ""


def heads_of_lists(chosen: Chosen) -> int | None:
    counts = [len(ms) for key, ms in chosen.parts.items() if "q" in key and len(ms) > 1]
    return counts[0] if counts else None


def heads_of_axes(chosen: Chosen, bench: Bench) -> int | None:
    """W_q of (n_heads, d_model, d_k), or (d_model, n_heads, d_k)."""
    for matrix in chosen.parts.get("q", []):
        shape = tuple(matrix.tensor.shape)
        if len(shape) == 3:
            return int(shape[1] if shape[0] == bench.d_model else shape[0])
    return None


def divisors(n: int) -> list[int]:
    return [h for h in (1, 2, 4, 8, 3, 6, 12, 16, 5, 10, 20, 32, 64) if n % h == 0]


def kv_heads(
    parts: Parts,
    letters: str,
    width: int,
    heads: int,
    n_kv_heads: int | None,
    d_model: int,
) -> int | None:
    """How many heads keys and values have in a fused matrix of so many columns."""
    if n_kv_heads and heads > 1:
        return n_kv_heads
    if letters != "qkv":
        if "q" in letters or "q" not in parts.weights:
            return heads
        d_k, rest = divmod(parts.weights["q"].shape[1], heads)
        return None if rest or width % (2 * d_k) else width // (2 * d_k)
    if width % (3 * heads) == 0 and width >= 3 * d_model:
        return heads
    d_k, rest = divmod(d_model, heads)
    if rest or width % d_k:
        return heads if width % (3 * heads) == 0 else None
    left = width // d_k - heads
    return left // 2 if left > 1 and left % 2 == 0 else None


def count_heads(parts: Parts, bench: Bench) -> int:
    """How many heads there are, from the number of different weights in a row.

    The values of token 0 are 1 and all others 0, so that each number of the result is
    the weight that its head gives to token 0.
    """
    slots = [parts.weights.get("v"), parts.weights.get("o")]
    slots += [parts.biases.get("v"), parts.biases.get("o")]
    before = [(slot, slot.read()) for slot in slots if slot is not None]
    try:
        for slot, array in before:
            slot.write(np.zeros_like(array))
        values = np.zeros(parts.weights["v"].shape)
        values[0] = 1.0
        parts.weights["v"].write(values)
        if "o" in parts.weights:
            parts.weights["o"].write(
                np.eye(parts.weights["o"].shape[0], parts.weights["o"].shape[1])
            )
        text = bench.tokens(4)
        text[0, :, 0] = (1.0, 0.0, 0.0, 0.0)
        out = bench.out(text)
        if out is None or not np.isfinite(out).all():
            return 0
        count = len(set(np.round(out[0, -1], 7).tolist()))
        fits = parts.weights["q"].shape[1] % count == 0
        return count if fits else 0
    finally:
        for slot, array in before:
            slot.write(array)


def sizes(parts: Parts, n_kv_heads: int | None) -> None:
    """Check that the sizes fit, and read off how many heads the keys have."""
    n_q, n_k, n_v = (parts.weights[r].shape[1] for r in "qkv")
    heads = parts.n_heads
    if not heads or n_q % heads:
        said = f"n_heads={heads} does not divide its {n_q} query features"
        parts.problem = (
            said
            if heads
            else "how many heads it has was not found (say it with n_heads=)"
        )
        return
    d_k = n_q // heads
    parts.n_kv_heads = n_kv_heads or n_k // d_k
    if not parts.n_kv_heads or heads % parts.n_kv_heads:
        parts.problem = (
            f"n_kv_heads={parts.n_kv_heads} does not divide its n_heads={heads}"
        )
        return
    wide, out = heads * (n_v // parts.n_kv_heads), parts.weights.get("o")
    if out is not None and out.shape[0] != wide:
        parts.problem = (
            f"its W_o takes {out.shape[0]} features, and {wide} would come from "
            f"n_heads={heads} and n_kv_heads={parts.n_kv_heads}"
        )
        return
    if n_k != parts.n_kv_heads * d_k or n_v % parts.n_kv_heads:
        parts.problem = (
            f"{n_q} query, {n_k} key and {n_v} value features do not fit "
            f"n_heads={heads} and n_kv_heads={parts.n_kv_heads}"
        )
