"""Turn the matrices that were chosen into slots for W_q, W_k, W_v, W_o and biases."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlib.clinic.find_weights import Chosen, Matrix
from attnlib.clinic.tensors import torch
from attnlib.clinic.weight_heads import (
    Parts,
    count_heads,
    divisors,
    heads_of_axes,
    heads_of_lists,
    kv_heads,
    sizes,
)
from attnlib.clinic.weight_layout import Bench, Cut, find_layout, is_flipped
from attnlib.clinic.weight_slots import Piece, Slot


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
            steps = rng.integers(-50, 51, size=shape, dtype=np.int8)
            tensor.copy_(torch.from_numpy(steps).to(tensor) / (29.0 * np.sqrt(size)))


def orient(chosen: Chosen, bench: Bench) -> None:
    """Find out which matrices are kept as (n_out, n_in): by size, then by behaviour.

    All matrices of one kind are kept one way: if one of them is used the other way
    round, then that is a mistake of the module.
    """
    kinds: dict[str, list[tuple[str, Matrix]]] = {}
    for role, members in chosen.parts.items():
        for matrix in members:
            if type(matrix.owner) is torch.nn.MultiheadAttention:
                matrix.flipped = True
            elif matrix.kind != "linear" and matrix.tensor.ndim == 2:
                kind = type(matrix.owner).__name__ if matrix.kind == "layer" else ""
                kinds.setdefault(kind, []).append((role, matrix))
    for same in kinds.values():
        votes = [
            vote for role, m in same if (vote := _by_size(role, m, bench)) is not None
        ]
        if not votes:
            # A fused or per-head matrix is never square: these are all whole ones.
            found = (is_flipped(bench, m.tensor, role) for role, m in same)
            votes = [vote for vote in found if vote is not None]
        flipped = 2 * sum(votes) > len(votes)
        for role, matrix in same:
            by_size = _by_size(role, matrix, bench)
            matrix.flipped = flipped if by_size is None else by_size


def _by_size(role: str, matrix: Matrix, bench: Bench) -> bool | None:
    first, last = matrix.tensor.shape
    if first == last:
        return None
    if matrix.bias is not None:
        return bool(getattr(*matrix.bias).numel() == first)
    inner = first if role != "o" else last
    width = bench.d_model
    if bench.d_memory is not None and role in ("k", "v", "kv"):
        width = bench.d_memory
    if width in (first, last):
        return bool(inner != width)
    return None


def cut(
    chosen: Chosen, bench: Bench, n_heads: int | None, n_kv_heads: int | None
) -> Parts:
    """The slots of all weights, and how many heads there are."""
    parts = Parts()
    n_heads = n_heads or heads_of_lists(chosen) or heads_of_axes(chosen, bench)
    for letters, members in chosen.parts.items():
        if len(letters) == 1:
            parts.weights[letters] = _whole(letters, members, n_heads, bench)
            bias = _bias(letters, members, chosen)
            if bias is not None:
                parts.biases[letters] = bias
    fused = [(letters, ms) for letters, ms in chosen.parts.items() if len(letters) > 1]
    guesses = [n_heads] if n_heads else divisors(bench.d_model)
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
    _one_bias_for_all(parts, chosen)
    missing = [role for role in "qkv" if role not in parts.weights]
    if missing:
        parts.problem = f"no weight for {', '.join(missing)} was found in it"
        return parts
    parts.counted = not n_heads
    parts.n_heads = n_heads or count_heads(parts, bench)
    sizes(parts, n_kv_heads)
    return parts


def _whole(role: str, members: list[Matrix], n_heads: int | None, bench: Bench) -> Slot:
    """The slot of a weight that is by itself, in one piece or one for each head."""
    pieces = []
    for matrix in members:
        shape = tuple(matrix.tensor.shape)
        if len(shape) == 3:
            turn = _turn(role, shape, bench.d_model)
            pieces.append(Piece(matrix.owner, matrix.name, turn))
        else:
            pieces.append(
                Piece(matrix.owner, matrix.name, matrix.as_rows, matrix.flipped)
            )
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


def _one_bias_for_all(parts: Parts, chosen: Chosen) -> None:
    """in_proj_bias beside q_proj_weight, k_proj_weight, v_proj_weight."""
    where = chosen.biases.get("qkv") or chosen.biases.get("?")
    if (
        where is None
        or set("qkv") & set(parts.biases)
        or not all(role in parts.weights for role in "qkv")
    ):
        return
    widths = [parts.weights[role].shape[1] for role in "qkv"]
    if getattr(*where).numel() != sum(widths):
        return
    start = 0
    for role, width in zip("qkv", widths, strict=True):
        parts.biases[role] = Slot([Piece(*where, _part(start, width))], vector=True)
        start += width


def _part(start: int, width: int) -> Cut:
    return lambda bias: bias.reshape(-1)[start : start + width]


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
    shared = kv_heads(parts, letters, width, heads, n_kv_heads, bench.d_model)
    if shared is None or heads % shared:
        return False
    counts = {"q": heads, "k": shared, "v": shared}
    found = find_layout(bench, lambda: first.as_rows(first.tensor), letters, counts)
    if found is None or (sure_only and not found[1]):
        return False
    cuts = found[0]
    fused_bias = chosen.biases.get(letters) or chosen.biases.get("?")
    for role in letters:
        pieces = [
            Piece(m.owner, m.name, _after(m, cuts[role]), m.flipped) for m in members
        ]
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
