"""Join two matrices that tokens pass one after the other, as in latent attention (MLA).

Their product has less freedom than a matrix of its own: not every W can be put there,
and weights are what an examination has to choose. The attention behind them is the same
with one matrix, so the first becomes an identity, and the second takes whole tokens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from attnlib.clinic.module_call import ModuleCall
from attnlib.clinic.module_first import plain_text, result
from attnlib.clinic.module_swap import swap
from attnlib.clinic.signature import plain
from attnlib.clinic.tensors import torch

JOINED = (
    "Its tokens pass a latent, two matrices one after the other: examined is the "
    "attention with one in their place."
)
IN_PART = (
    "a latent of which only a part goes on to the next matrix, as in multi-head latent "
    "attention with positions of their own: it cannot be examined as a whole. Hand in "
    "what comes after, as a function of the q, k and v that the heads get"
)


@dataclass
class Latent:
    """What comes out of one matrix, and goes into others."""

    first: Any  # nn.Linear, whose input are the tokens
    norms: list[Any] = field(default_factory=list)  # between the two
    second: list[Any] = field(default_factory=list)
    whole: bool = True  # whether all of it goes on


def join_latents(call: ModuleCall, d_model: int) -> str:
    """Put one matrix in the place of two; what was done, or "" if there are no two."""
    if isinstance(call.module, torch.jit.ScriptModule):
        return ""
    found = _latents(call, d_model)
    if not found or not all(latent.whole for latent in found):
        return ""
    names = {part: path for path, part in call.module.named_modules()}
    swapped: list[tuple[Any, Any]] = []
    for latent in found:
        for part in (latent.first, *latent.norms):
            swapped.append((part, torch.nn.Identity()))
        for part in latent.second:
            new = torch.nn.Linear(
                latent.first.in_features, part.out_features, part.bias is not None
            ).to(part.weight)
            new.stands_for = _without_up(names[part])
            swapped.append((part, new))
    for old, new in swapped:
        swap(call.module, old, new)
    if result(call, plain_text(d_model)) is not None:
        return JOINED
    for old, new in swapped:
        swap(call.module, new, old)
    return ""


def latent_in_part(call: ModuleCall, d_model: int) -> bool:
    """Whether a part of a latent goes on, so that no matrix can stand for the two."""
    if isinstance(call.module, torch.jit.ScriptModule):
        return False
    return not all(latent.whole for latent in _latents(call, d_model))


def _without_up(path: str) -> str:
    """The name of the second matrix, without what says that it is one: W_uk, kv_up."""
    words = re.split(r"[_\d]+", plain(path.rpartition(".")[2]))
    words = [re.sub(r"^u(?=[qkv]+$)", "", word) for word in words]
    return "_".join(word for word in words if word not in ("up", "b", "")) or path


def _latents(call: ModuleCall, d_model: int) -> list[Latent]:
    """Matrices of the tokens whose result is what other matrices get."""
    seen: dict[Any, tuple[Any, Any]] = {}  # a part: what went in, and what came out

    def through(part: Any, given: Any, out: Any) -> None:
        if given and all(isinstance(a, torch.Tensor) for a in (given[0], out)):
            seen.setdefault(part, (given[0].detach(), out.detach()))

    parts = [part for part in call.module.modules() if not list(part.children())]
    handles = [part.register_forward_hook(through) for part in parts]
    text = plain_text(d_model)
    try:
        call.run(text)
    finally:
        for handle in handles:
            handle.remove()
    memory = call.memory_of(text, None)
    tokens = [torch.from_numpy(a) for a in (text, memory) if a is not None]
    if not call.batch_first:
        tokens = [array.transpose(0, 1) for array in tokens]
    linear = [part for part in seen if isinstance(part, torch.nn.Linear)]
    found = []
    for first in linear:
        given, out = seen[first]
        if not any(_equal(given, array.to(given)) for array in tokens):
            continue
        latent, outs = Latent(first), [out]
        for part, (given, came) in seen.items():
            if "Norm" in type(part).__name__ and any(_begins(a, given) for a in outs):
                latent.norms.append(part)
                latent.whole &= any(_equal(a, given) for a in outs)
                outs.append(came)
        for part in linear:
            given = seen[part][0]
            if part is not first and any(_begins(a, given) for a in outs):
                latent.second.append(part)
                latent.whole &= any(_equal(a, given) for a in outs)
        if latent.second:
            found.append(latent)
    return found


def _equal(a: Any, b: Any) -> bool:
    return a.shape == b.shape and bool(torch.equal(a, b))


def _begins(whole: Any, part: Any) -> bool:
    """Whether `part` is made of the first features of `whole`."""
    if whole.shape[:-1] != part.shape[:-1] or part.shape[-1] > whole.shape[-1]:
        return False
    return bool(torch.equal(whole[..., : part.shape[-1]], part))
