"""Turn the matrices that were chosen into slots for W_q, W_k, W_v, W_o and biases."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attnlib.clinic.find_weights import Chosen, Matrix
from attnlib.clinic.tensors import torch
from attnlib.clinic.weight_layout import Bench, Cut, find_layout, is_flipped
from attnlib.clinic.weight_slots import Piece, Slot


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


def shake(chosen: Chosen, seed: int) -> None:
    """Give all matrices and biases numbers of a size at which each has an influence."""
    rng = np.random.default_rng(seed)
    tensors = [getattr(m.owner, m.name) for ms in chosen.parts.values() for m in ms]
    tensors += [getattr(*m.bias) for ms in chosen.parts.values() for m in ms if m.bias]
    tensors += [getattr(*where) for where in chosen.biases.values()]
    with torch.no_grad():
        for tensor in tensors:
            shape = tuple(tensor.shape)
            size = min(shape[-2:]) if len(shape) > 1 else 4
            drawn = rng.normal(size=shape) / np.sqrt(size)
            tensor.copy_(torch.from_numpy(drawn).to(tensor))


def orient(chosen: Chosen, bench: Bench) -> None:
    """Find out which matrices are kept as (n_out, n_in): by size, then by behaviour.

    All matrices of one kind are kept one way: if one of them is used the other way
    round, then that is a mistake of the module.
    """
    kinds: dict[str, list[tuple[str, Matrix]]] = {}
    for role, members in chosen.parts.items():
        for matrix in members:
            if matrix.kind != "linear" and matrix.tensor.ndim == 2:
                kind = type(matrix.owner).__name__ if matrix.kind == "layer" else ""
                kinds.setdefault(kind, []).append((role, matrix))
    for members in kinds.values():
        votes = [
            vote
            for role, m in members
            if (vote := _by_size(role, m, bench)) is not None
        ]
        if not votes:
            # A fused or per-head matrix is never square: these are all whole ones.
            found = (is_flipped(bench, m.tensor, role) for role, m in members)
            votes = [vote for vote in found if vote is not None]
        flipped = 2 * sum(votes) > len(votes)
        for role, matrix in members:
            by_size = _by_size(role, matrix, bench)
            matrix.flipped = flipped if by_size is None else by_size


def _by_size(role: str, matrix: Matrix, bench: Bench) -> bool | None:
    first, last = matrix.tensor.shape
    if first == last:
        return None
    if matrix.bias is not None:
        return bool(getattr(*matrix.bias).numel() == first)
    inner = first if role != "o" else last
    if bench.d_model in (first, last):
        return bool(inner != bench.d_model)
    return None


def cut(
    chosen: Chosen, bench: Bench, n_heads: int | None, n_kv_heads: int | None
) -> Parts:
    """The slots of all weights, and how many heads there are."""
    parts = Parts()
    n_heads = n_heads or _heads_of_lists(chosen) or _heads_of_axes(chosen, bench)
    for letters, members in chosen.parts.items():
        if len(letters) == 1:
            parts.weights[letters] = _whole(letters, members, n_heads, bench)
            bias = _bias(letters, members, chosen)
            if bias is not None:
                parts.biases[letters] = bias
    fused = [(letters, ms) for letters, ms in chosen.parts.items() if len(letters) > 1]
    guesses = [n_heads] if n_heads else _divisors(bench.d_model)
    for letters, members in fused:
        done = False
        for sure_only in (True, False):
            for guess in guesses:
                done = _fused(
                    parts, chosen, letters, members, bench, guess, n_kv_heads, sure_only
                )
                if done:
                    break
            if done:
                break
        if not done:
            parts.problem = (
                f"its {members[0].path} of shape {members[0].shape} cannot be cut into "
                f"{', '.join(letters)} for n_heads={n_heads}"
            )
            return parts
    missing = [role for role in "qkv" if role not in parts.weights]
    if missing:
        parts.problem = f"no weight for {', '.join(missing)} was found in it"
        return parts
    parts.counted = not n_heads
    parts.n_heads = n_heads or _count_heads(parts, bench)
    _sizes(parts, n_kv_heads)
    return parts


def _heads_of_lists(chosen: Chosen) -> int | None:
    counts = [len(ms) for key, ms in chosen.parts.items() if "q" in key and len(ms) > 1]
    return counts[0] if counts else None


def _heads_of_axes(chosen: Chosen, bench: Bench) -> int | None:
    """W_q of (n_heads, d_model, d_k), or (d_model, n_heads, d_k)."""
    for matrix in chosen.parts.get("q", []):
        shape = tuple(matrix.tensor.shape)
        if len(shape) == 3:
            return int(shape[1] if shape[0] == bench.d_model else shape[0])
    return None


def _divisors(n: int) -> list[int]:
    return [h for h in (1, 2, 4, 8, 3, 6, 12, 16, 5, 10, 20, 32, 64) if n % h == 0]


def _whole(role: str, members: list[Matrix], n_heads: int | None, bench: Bench) -> Slot:
    """The slot of a weight that is by itself, in one piece or one for each head."""
    pieces = []
    for matrix in members:
        shape = tuple(matrix.tensor.shape)
        if len(shape) == 3:
            turn = _turn(role, shape, bench.d_model)
            pieces.append(Piece(matrix.owner, matrix.name, turn))
        else:
            pieces.append(Piece(matrix.owner, matrix.name, matrix.as_rows))
    three = len(members[0].tensor.shape) == 3
    return Slot(pieces, 0 if role == "o" and (three or len(pieces) > 1) else -1)


def _turn(role: str, shape: tuple[int, ...], d_model: int) -> Cut:
    """Bring (n_heads, d_model, d_k) and its relatives to (d_model, n_heads, d_k)."""
    if role == "o":  # to (n_heads, d_v, d_model)
        order = (0, 1, 2) if shape[2] == d_model else (1, 2, 0)
    elif shape[1] == d_model and shape[0] != d_model:
        order = (1, 0, 2)
    elif shape[2] == d_model and shape[0] != d_model:
        order = (2, 0, 1)
    else:
        order = (0, 1, 2)
    return lambda tensor: tensor.permute(*order)


def _bias(role: str, members: list[Matrix], chosen: Chosen) -> Slot | None:
    own = chosen.biases.get(role)
    if own is not None:
        return Slot([Piece(*own, _as_it_is)], vector=True)
    pieces = [Piece(*m.bias, _as_it_is) for m in members if m.bias is not None]
    return Slot(pieces, vector=True) if pieces else None


def _as_it_is(tensor: Any) -> Any:
    return tensor


def _fused(
    parts: Parts,
    chosen: Chosen,
    letters: str,
    members: list[Matrix],
    bench: Bench,
    n_heads: int,
    n_kv_heads: int | None,
    sure_only: bool,
) -> bool:
    """Cut a fused matrix; False if it cannot be, with so many heads."""
    first = members[0]
    if first.tensor.ndim == 3:
        return _stacked(parts, letters, first)
    per_head = len(members) > 1
    heads = 1 if per_head else n_heads
    width = first.shape[1]
    kv_heads = _kv_heads(parts, letters, width, heads, n_kv_heads, bench.d_model)
    if kv_heads is None or heads % kv_heads:
        return False
    counts = {"q": heads, "k": kv_heads, "v": kv_heads}
    found = find_layout(bench, lambda: first.as_rows(first.tensor), letters, counts)
    if found is None or (sure_only and not found[1]):
        return False
    cuts = found[0]
    fused_bias = chosen.biases.get(letters) or chosen.biases.get("?")
    for role in letters:
        pieces = [Piece(m.owner, m.name, _after(m, cuts[role])) for m in members]
        parts.weights[role] = Slot(pieces)
        own = chosen.biases.get(role)
        biases = [m.bias for m in members if m.bias is not None]
        if not biases and fused_bias and getattr(*fused_bias).numel() == width:
            biases = [fused_bias]
        if own is not None:
            parts.biases[role] = Slot([Piece(*own, _as_it_is)], vector=True)
        elif biases:
            cut_bias = _of_row(cuts[role])
            parts.biases[role] = Slot(
                [Piece(*bias, cut_bias) for bias in biases], vector=True
            )
    return True


def _stacked(parts: Parts, letters: str, matrix: Matrix) -> bool:
    """(3, d_model, d_model): one matrix for each letter."""
    if matrix.tensor.shape[0] != len(letters):
        return False
    for i, role in enumerate(letters):
        parts.weights[role] = Slot([Piece(matrix.owner, matrix.name, _at(i))])
    return True


def _at(i: int) -> Cut:
    return lambda tensor: tensor[i]


def _after(matrix: Matrix, cut_columns: Cut) -> Cut:
    return lambda tensor: cut_columns(matrix.as_rows(tensor))


def _of_row(cut_columns: Cut) -> Cut:
    return lambda bias: cut_columns(bias.reshape(1, -1))


def _kv_heads(
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


def _count_heads(parts: Parts, bench: Bench) -> int:
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
            parts.weights["o"].write(np.eye(*parts.weights["o"].shape))
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


def _sizes(parts: Parts, n_kv_heads: int | None) -> None:
    """Check that the sizes fit, and read off how many heads the keys have."""
    n_q, n_k, n_v = (parts.weights[r].shape[1] for r in "qkv")
    heads = parts.n_heads
    if not heads or n_q % heads:
        said = f"n_heads={heads} does not divide its {n_q} query features"
        parts.problem = (
            said if heads else "how many heads it has was not found: say n_heads=..."
        )
        return
    d_k = n_q // heads
    parts.n_kv_heads = n_kv_heads or n_k // d_k
    if n_k != parts.n_kv_heads * d_k or n_v % parts.n_kv_heads:
        parts.problem = (
            f"{n_q} query, {n_k} key and {n_v} value features do not fit "
            f"n_heads={heads} and n_kv_heads={parts.n_kv_heads}"
        )
