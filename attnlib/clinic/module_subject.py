"""Turn any module that takes tokens into a subject: a copy with known weights.

The copy gets weights of a size at which mistakes show: with the small ones that a
module starts with, all weights of a row are nearly equal, whatever is wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlib.clinic.budget import Budget
from attnlib.clinic.draw import draw
from attnlib.clinic.find_weights import Chosen, choose
from attnlib.clinic.function_subject import function_subject
from attnlib.clinic.module_around import take_off
from attnlib.clinic.module_call import ModuleCall
from attnlib.clinic.module_copy import copy_module, move
from attnlib.clinic.module_first import (
    EXAMPLE,
    as_code,
    first_call,
    has_matrices,
    is_lazy,
    plain_text,
    result,
    within,
)
from attnlib.clinic.module_latent import (
    IN_PART,
    JOINED,
    join_latents,
    latent_in_part,
)
from attnlib.clinic.module_mixes import heads_mix, mixes
from attnlib.clinic.module_plan import (
    HEAD_WIDTHS,
    HEADS,
    KV_HEADS,
    attentions_in,
    attribute,
    contradiction,
    fill_in,
    head_count,
    read_plan,
)
from attnlib.clinic.module_swap import make_plain, one_by_one, widen
from attnlib.clinic.module_takes import find_out
from attnlib.clinic.run import run
from attnlib.clinic.subject import (
    FunctionSubject,
    ModuleSubject,
    Refusal,
    Weights,
)
from attnlib.clinic.tensors import torch
from attnlib.clinic.weight_heads import Parts
from attnlib.clinic.weight_layout import Bench
from attnlib.clinic.weight_parts import cut, orient, shake
from attnlib.clinic.words_refused import raised


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
    for told, asked, names in (
        ("n_heads", n_heads, HEADS),
        ("n_kv_heads", n_kv_heads, KV_HEADS),
    ):
        says = contradiction(twin, names, asked)
        if says:
            return Refusal(
                f"{told}={asked} was given, but {name} says of itself {says}. Leave "
                f"{told} out, or mend the one that is wrong."
            )
    signature, roles, problem = read_plan(twin)
    if problem:
        return Refusal(f"{name} cannot be called with tokens: {problem}. {EXAMPLE}")
    if {"q", "k", "v"} <= set(roles) and not (has_matrices(twin) or is_lazy(twin)):
        move(twin, dtype or "float64")
        width = attribute(twin, HEAD_WIDTHS)
        return function_subject(
            twin, name, mask=mask, dtype=dtype, budget=budget, d_k=width
        )
    if not has_matrices(twin) and not is_lazy(twin):
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
    found, alone = first_call(call, name), False
    if isinstance(found, Refusal) and not call.stopped:
        call.module = one_by_one(twin)  # it may take (n, d_model), without a batch
        again = first_call(call, name)
        if isinstance(again, Refusal):
            call.module = twin
        else:
            found, alone = again, True
    if isinstance(found, Refusal):
        return found
    d_model = found
    said = ["It takes one text at a time, without a batch."] if alone else []
    return _with_weights(call, name, d_model, n_heads, n_kv_heads, dtype, seed, said)


def _with_weights(
    call: ModuleCall,
    name: str,
    d_model: int,
    n_heads: int | None,
    n_kv_heads: int | None,
    dtype: str | None,
    seed: int,
    said: list[str],
) -> ModuleSubject | Refusal:
    def joined() -> ModuleSubject | Refusal | None:
        """The same with one matrix where tokens pass two, if they do."""
        if JOINED in said:
            return None
        if join_latents(call, d_model):
            told = [*said, JOINED]
            return _with_weights(
                call, name, d_model, n_heads, n_kv_heads, dtype, seed, told
            )
        in_part = latent_in_part(call, d_model)
        return Refusal(f"{name} holds {IN_PART}.") if in_part else None

    chosen = choose(call.module, _order_of_use(call, d_model))
    if chosen.problem:
        refused = Refusal(f"{name} holds {chosen.problem}. {EXAMPLE}")
        return joined() or refused
    narrow = any(
        len(matrix.shape) == 2 and matrix.shape[0] != d_model
        for role in "qkv"
        for matrix in chosen.parts.get(role, [])
    )
    other = joined() if narrow else None  # unless heads share one, a latent is before
    if other is not None:
        return other
    block = _is_block(chosen, call.module)
    if block:
        return Refusal(f"{name} is more than an attention: {block}.")
    heads = n_heads or head_count(call.module, d_model)
    shared = [
        widen(call.module, matrix, heads or 1, d_model)
        for role, members in chosen.parts.items()
        for matrix in members
        if role in ("q", "k", "v") and len(members) == 1
    ]
    shake(chosen, seed)
    around = []
    if not isinstance(call.module, torch.jit.ScriptModule):
        around = take_off(call, chosen.parts.get("o", []), d_model)
    bench = Bench(lambda x: result(call, x), d_model, call.memory_width, seed)
    orient(chosen, bench)
    kv_heads = n_kv_heads or attribute(call.module, KV_HEADS)
    got = cut(chosen, bench, heads, kv_heads)
    if got.problem and not n_kv_heads and kv_heads:  # that number meant something else
        got = cut(chosen, bench, heads, None)
    other = joined() if got.problem else None
    if other is not None:
        return other
    inside = attentions_in(call.module)
    if got.problem and len(inside) > 1:
        return Refusal(f"{name} holds several attentions. {within(inside)}")
    if got.problem and (n_heads or n_kv_heads) and "heads=" in got.problem:
        return Refusal(
            f"{name} has not the heads that were said: {got.problem}. Leave out what "
            "is not known: it is found out."
        )
    if got.problem:
        return Refusal(
            f"The weights of {name} were not found: {got.problem}. They are known by "
            "names such as W_q, q_proj, to_q, query, qkv, out_proj. Without them, hand "
            "in a function of q, k and v, such as "
            "`lambda q, k, v, mask=None: mine(q, k, v, mask)`."
        )
    got.notes += [*said, *around]
    if any(shared):
        got.notes.append("Its heads share a matrix: examined with one for each.")
    if got.counted:
        count = "1 was" if got.n_heads == 1 else f"{got.n_heads} were"
        got.notes.append(
            f"n_heads was not given, and no attribute says it: {count} counted, from "
            "what it does."
        )
    call.n_heads = got.n_heads

    def read() -> Weights:
        return _weights(got, d_model)

    def write(weights: Weights) -> None:
        _write(got, weights)

    make_plain(call.module, got.weights, got.biases)
    write(draw(read(), seed))
    apart = not mixes(call, d_model)
    if apart and not (got.n_heads > 1 and heads_mix(call, read(), write, d_model)):
        return Refusal(
            f"{name} is no attention: what it gives for a token depends on no other "
            f"token. {EXAMPLE}"
        )
    takes = find_out(call, read, got.notes, seed)
    if dtype not in (None, call.dtype):
        move(call.module, str(dtype))
        call.dtype = str(dtype)
        write(draw(read(), seed))
    return ModuleSubject(name, takes, call.ask, read, write, tuple(got.notes))


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
    return f"it has {layer} besides. Hand in its part `{as_code(inside[0])}`"


def _order_of_use(call: ModuleCall, d_model: int) -> list[Any]:
    """The layers with weights, in the order in which a call uses them."""
    used: list[Any] = []
    if isinstance(call.module, torch.jit.ScriptModule):
        return used  # it takes no hooks
    handles = [
        part.register_forward_pre_hook(lambda part, given: used.append(part))
        for part in call.module.modules()
        if next(part.parameters(recurse=False), None) is not None
    ]
    call.run(plain_text(d_model))
    for handle in handles:
        handle.remove()
    return list(dict.fromkeys(used))
