"""Turn any module that takes tokens into a subject: a copy with known weights.

The copy gets weights of a size at which mistakes show: with the small ones that a
module starts with, all weights of a row are nearly equal, whatever is wrong.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from attnlib.clinic.budget import Budget
from attnlib.clinic.find_weights import Chosen, choose
from attnlib.clinic.function_subject import function_subject
from attnlib.clinic.handing import Places, parts, says_what
from attnlib.clinic.module_call import ModuleCall
from attnlib.clinic.module_copy import copy_module, move
from attnlib.clinic.module_plan import (
    HEAD_WIDTHS,
    KV_HEADS,
    attentions_in,
    attribute,
    fill_in,
    head_count,
    read_plan,
    widths,
)
from attnlib.clinic.module_takes import find_out
from attnlib.clinic.run import Ran, run
from attnlib.clinic.subject import (
    FunctionSubject,
    ModuleSubject,
    Refusal,
    Weights,
)
from attnlib.clinic.tensors import torch
from attnlib.clinic.weight_layout import Bench
from attnlib.clinic.weight_parts import Parts, cut, orient, shake
from attnlib.clinic.words_refused import raised
from attnlib.shapes import Array

EXAMPLE = (
    "Hand in a module that is called with tokens (batch, n, d_model), or a function of "
    "q, k and v, such as `lambda q, k, v, mask=None: mine(q, k, v, mask)`."
)
TRIED = 8  # widths of a token that are tried
Way = tuple[bool, int | None, int | None]  # a mask, the widths of memory and values
Way = tuple[bool, int | None, int | None]  # a mask, the widths of memory and values


def module_subject(
    module: Any,
    name: str,
    *,
    n_heads: int | None,
    n_kv_heads: int | None,
    mask: str,
    dtype: str | None,
    seed: int,
    budget: Budget,
) -> FunctionSubject | ModuleSubject | Refusal:
    """Copy a module, and find out how it is called and where its weights are."""
    ran = run(lambda: copy_module(module), (), max(budget.for_one, 3.0))
    if ran.error is not None:
        return Refusal(f"{name} could not be copied: {raised(ran.error)}. {EXAMPLE}")
    twin: Any = ran.value
    if any(p.is_meta for p in twin.parameters()):
        return Refusal(f"{name} is on the meta device: it has no numbers. {EXAMPLE}")
    signature, roles, problem = read_plan(twin)
    if problem:
        return Refusal(f"{name} cannot be called with tokens: {problem}. {EXAMPLE}")
    if {"q", "k", "v"} <= set(roles) and not _has_matrices(twin):
        move(twin, dtype or "float64")
        width = attribute(twin, HEAD_WIDTHS)
        return function_subject(
            twin, name, mask=mask, dtype=dtype, budget=budget, d_k=width
        )
    if not _has_matrices(twin) and not _is_lazy(twin):
        return Refusal(f"{name} has no weight matrices. {EXAMPLE}")
    fixed, fill, missing = fill_in(signature, roles, twin)
    if missing:
        return Refusal(
            f"{name} must be given {missing} besides its tokens. Hand in a module that "
            f"gives it by itself. {EXAMPLE}"
        )
    is_mha = isinstance(twin, torch.nn.MultiheadAttention)
    call = ModuleCall(
        twin,
        signature,
        roles,
        "blocked" if is_mha else mask,
        budget,
        batch_first=bool(getattr(twin, "batch_first", True)),
        filled=fixed,
        fill=fill,
    )
    found = _first_call(call, name)
    if isinstance(found, Refusal):
        return found
    d_model = found
    return _with_weights(call, name, d_model, n_heads, n_kv_heads, dtype, seed)


def _with_weights(
    call: ModuleCall,
    name: str,
    d_model: int,
    n_heads: int | None,
    n_kv_heads: int | None,
    dtype: str | None,
    seed: int,
) -> ModuleSubject | Refusal:
    chosen = choose(call.module, _order_of_use(call, d_model))
    if chosen.problem:
        return Refusal(f"{name} holds {chosen.problem}. {EXAMPLE}")
    block = _is_block(chosen, call.module)
    if block:
        return Refusal(f"{name} is more than an attention: {block}. {EXAMPLE}")
    shake(chosen, seed)
    bench = Bench(lambda x: _out(call, x), d_model, seed)
    orient(chosen, bench)
    heads = n_heads or head_count(call.module, d_model)
    kv_heads = n_kv_heads or attribute(call.module, KV_HEADS)
    got = cut(chosen, bench, heads, kv_heads)
    if got.problem and not n_kv_heads and kv_heads:  # that number meant something else
        got = cut(chosen, bench, heads, None)
    if got.problem:
        return Refusal(f"The weights of {name} were not found: {got.problem}.")
    if got.counted:
        got.notes.append(f"It does not say how many heads it has: {got.n_heads}.")
    call.n_heads = got.n_heads

    def read() -> Weights:
        return _weights(got, d_model)

    def write(weights: Weights) -> None:
        _write(got, weights)

    write(draw(read(), seed))
    takes = find_out(call, read, got.notes, seed)
    if dtype not in (None, call.dtype):
        move(call.module, str(dtype))
        call.dtype = str(dtype)
        write(draw(read(), seed))
    return ModuleSubject(name, takes, call.ask, read, write, tuple(got.notes))


def draw(weights: Weights, seed: int) -> Weights:
    """Weights of a size at which mistakes show, on a grid that float32 holds exactly.

    Each number of a query or key has a spread of about 1.2, so that scores have one
    of about 1.4.
    """
    rng = np.random.default_rng(seed)

    def matrix(like: Array | None, size: float) -> Array | None:
        if like is None:
            return None
        spread = size / np.sqrt(like.shape[0])
        grid = 2.0 ** np.floor(np.log2(spread / 16))
        drawn = rng.normal(size=like.shape) * spread
        return np.asarray(np.round(drawn / grid) * grid)

    def bias(like: Array | None) -> Array | None:
        if like is None:
            return None
        return np.asarray(np.round(rng.normal(size=like.shape) * 4) / 8)

    W_q, W_k = matrix(weights.W_q, 1.2), matrix(weights.W_k, 1.2)
    W_v, W_o = matrix(weights.W_v, 1.0), matrix(weights.W_o, 1.0)
    assert W_q is not None
    assert W_k is not None
    assert W_v is not None
    return Weights(
        W_q,
        W_k,
        W_v,
        W_o,
        bias(weights.b_q),
        bias(weights.b_k),
        bias(weights.b_v),
        bias(weights.b_o),
        weights.n_heads,
        weights.n_kv_heads,
        weights.d_model,
    )


def _weights(got: Parts, d_model: int) -> Weights:
    W = {role: slot.read() for role, slot in got.weights.items()}
    b = {role: slot.read() for role, slot in got.biases.items()}
    return Weights(
        W["q"],
        W["k"],
        W["v"],
        W.get("o"),
        b.get("q"),
        b.get("k"),
        b.get("v"),
        b.get("o"),
        got.n_heads,
        got.n_kv_heads,
        d_model,
    )


def _write(got: Parts, weights: Weights) -> None:
    for role in "qkvo":
        for slots, name in ((got.weights, f"W_{role}"), (got.biases, f"b_{role}")):
            array = getattr(weights, name)
            if array is None and role in slots and name.startswith("b"):
                array = np.zeros(slots[role].shape)
            if array is not None and role in slots:
                slots[role].write(array)
            elif array is not None:
                raise ValueError(f"The module has no {name}.")


def _has_matrices(module: Any) -> bool:
    return any(p.ndim > 1 for p in module.parameters() if not _lazy(p))


def _lazy(parameter: Any) -> bool:
    return bool(torch.nn.parameter.is_lazy(parameter))


def _is_lazy(module: Any) -> bool:
    return any(_lazy(p) for p in module.parameters())


def _first_call(call: ModuleCall, name: str) -> int | Refusal:
    """The width of a token with which the module works, tried out."""
    tried = list(widths(call.module))[:TRIED]
    first: Ran | None = None
    for dtype in ("float64", "float32"):
        if not _is_lazy(call.module):
            move(call.module, dtype)
        call.dtype = dtype
        for width in tried:
            for call.must_mask, call.memory_width, call.values_width in _ways(
                call, width, tried
            ):
                ran, _, _ = call.run(_text(width))
                if ran.timed_out or call.budget.left == 0:
                    return Refusal(
                        f"{name} did not come to an end in time, for 5 tokens of "
                        f"{width} numbers. Hand in one that does."
                    )
                first = first or ran
                if ran.error is None and _read(call, ran):
                    if _is_lazy(call.module):
                        continue
                    move(call.module, dtype)
                    finite = _out(call, _text(width))
                    if finite is not None and not np.isfinite(finite).any():
                        return Refusal(
                            f"{name} returned NaN everywhere for plain tokens, so that "
                            "there is nothing to examine. Look for 0/0, inf - inf, or "
                            "weights that were never filled."
                        )
                    return width
    return _refused(call, name, first, tried)


def _ways(call: ModuleCall, width: int, tried: list[int]) -> Iterator[Way]:
    """With and without a mask, and with a memory of another width."""
    masks = [False, True] if "mask" in call.roles and call._must("mask") else [False]
    for mask in masks:
        yield mask, None, None
    if call.takes_memory:
        others = [n for n in tried if n != width]
        for mask in masks:
            if "memory" in call.roles and not call._must("memory"):
                yield mask, width, None
            yield from ((mask, other, None) for other in others)
            if "v" in call.roles:
                pairs = itertools.product(tried, tried)
                yield from ((mask, a, b) for a, b in pairs if a != b)


def _text(width: int, n: int = 5, batch: int = 2) -> Array:
    rng = np.random.default_rng(3)
    return np.round(rng.normal(size=(batch, n, width)) * 8) / 8


def _read(call: ModuleCall, ran: Ran) -> bool:
    """Find the result: what is returned first with an axis for items and for tokens."""
    front = (2, 5) if call.batch_first else (5, 2)
    arrays = list(parts(ran.value))
    found = [(p, a) for p, a in arrays if a.ndim == 3 and a.shape[:2] == front]
    if not found:
        return False
    path, out = found[0]
    weights = [p for p, a in arrays if a.shape[-2:] == (5, 5) and p != path]
    call.places = Places(path, weights[0] if weights else None)
    call.width = out.shape[-1]
    return True


def _out(call: ModuleCall, x: Array) -> Array | None:
    return call.ask(x).out


def _refused(call: ModuleCall, name: str, ran: Ran | None, tried: list[int]) -> Refusal:
    inside = attentions_in(call.module)
    if ran is None:
        return Refusal(f"{name} does not say how wide its tokens are. {EXAMPLE}")
    error = raised(ran.error) if ran.error is not None else ""
    tokens = "indices" in error or "Embedding" in error or "embedding" in error
    kinds = [type(part).__name__ for part in call.module.modules()]
    if inside and (tokens or any("Embedding" in kind for kind in kinds)):
        return Refusal(
            f"{name} is a whole model, and an attention is wanted: hand in one of its "
            f"parts, such as `model.{_as_code(inside[0])}`."
        )
    if ran.error is not None:
        return Refusal(
            f"{name} raised {error}, when it was given tokens (2, 5, {tried[0]}). "
            f"{EXAMPLE}"
        )
    return Refusal(
        f"{name} {says_what(ran.value)}, when it was given tokens (2, 5, {tried[0]}), "
        f"and (2, 5, d_model) was expected. {EXAMPLE}"
    )


def _as_code(path: str) -> str:
    steps = [f"[{s}]" if s.isdigit() else f".{s}" for s in path.split(".")]
    return "".join(steps).lstrip(".")


def _is_block(chosen: Chosen, module: Any) -> str:
    """Whether there are other layers around the attention, as in a block."""
    inside = attentions_in(module)
    other = [m for m in chosen.left if m.kind == "linear"]
    outside = [
        m for m in other if not any(m.path.startswith(path + ".") for path in inside)
    ]
    if not inside or not outside:
        return ""
    layer = outside[0].path
    return f"it has {layer} besides. Hand in its part `{_as_code(inside[0])}`"


def _order_of_use(call: ModuleCall, d_model: int) -> list[Any]:
    """The layers with weights, in the order in which a call uses them."""
    used: list[Any] = []
    handles = [
        part.register_forward_pre_hook(lambda part, given: used.append(part))
        for part in call.module.modules()
        if next(part.parameters(recurse=False), None) is not None
    ]
    call.run(_text(d_model))
    for handle in handles:
        handle.remove()
    return list(dict.fromkeys(used))
