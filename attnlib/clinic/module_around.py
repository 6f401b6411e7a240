"""Take off a copy what people put around an attention: norms, and x added to it.

Many write `norm(x + dropout(W_o(...)))` into one module. What is examined is what lies
between: the norms of the copy become identities, and the added tokens are taken away.
"""

from __future__ import annotations

from typing import Any

from attnlib.clinic.find_weights import Matrix
from attnlib.clinic.module_call import ModuleCall
from attnlib.clinic.module_first import plain_text
from attnlib.clinic.tensors import torch

CLOSE = 1e-6


def take_off(call: ModuleCall, last: list[Matrix], d_model: int) -> list[str]:
    """Take norms and a residual off; what was taken off, as sentences.

    `last` is W_o: norms whose input is what it gives, with or without x, come after it.
    """
    layer = last[0].owner if len(last) == 1 and last[0].kind != "parameter" else None
    for part in call.module.modules():  # PyTorch's never calls its out_proj
        if isinstance(part, torch.nn.MultiheadAttention) and part.out_proj is layer:
            layer = part
    seen = _look(call, layer, d_model)
    notes = []
    before = [norm for norm in seen.norms if seen.all_are(norm, seen.tokens)]
    after = [
        norm
        for norm in seen.norms
        if norm not in before and seen.all_are(norm, seen.ends)
    ]
    _replace(call.module, [*before, *after])
    if before:
        notes.append("It norms its tokens first: examined is the attention without.")
    if after:
        notes.append("It norms its result: examined is the attention without.")
    if layer is not None and _adds_tokens(call, layer, d_model):
        call.residual = True
        notes.append("It adds its tokens to the result: examined is what it adds.")
    return notes


class _Seen:
    """What went through the parts in one call."""

    def __init__(self) -> None:
        self.inputs: dict[int, list[Any]] = {}
        self.norms: list[Any] = []
        self.tokens: list[Any] = []
        self.ends: list[Any] = []  # what W_o gives, and that with the tokens added
        self.result: list[Any] = []

    def all_are(self, part: Any, wanted: list[Any]) -> bool:
        """Whether all that went into a part is one of those."""
        given = self.inputs.get(id(part), [])
        return bool(given) and all(
            any(_same(one, other) for other in wanted) for one in given
        )


def _same(one: Any, other: Any) -> bool:
    if one.shape != other.shape:
        return False
    return bool(torch.allclose(one, other.to(one), atol=CLOSE, rtol=CLOSE))


def _look(call: ModuleCall, layer: Any, d_model: int) -> _Seen:
    seen = _Seen()

    def went_in(part: Any, given: Any) -> None:
        if given and isinstance(given[0], torch.Tensor):
            seen.inputs.setdefault(id(part), []).append(given[0].detach().clone())

    def came_out(part: Any, given: Any, result: Any) -> None:
        if isinstance(part, torch.nn.MultiheadAttention):
            result = result[0]
        if isinstance(result, torch.Tensor):
            seen.result.append(result.detach().clone())

    handles = []
    for part in call.module.modules():
        if "Norm" in type(part).__name__ and not list(part.children()):
            seen.norms.append(part)
            handles.append(part.register_forward_pre_hook(went_in))
    if layer is not None:
        handles.append(layer.register_forward_hook(came_out))
    try:
        text = plain_text(d_model)
        call.run(text)
    finally:
        for handle in handles:
            handle.remove()
    memory = call.memory_of(text, None)
    arrays = [text] if memory is None else [text, memory]
    seen.tokens = [torch.from_numpy(array) for array in arrays]
    if not call.batch_first:
        seen.tokens = [tokens.transpose(0, 1) for tokens in seen.tokens]
    seen.ends = list(seen.result)
    for end in seen.result:
        if end.shape == seen.tokens[0].shape:
            seen.ends.append(end + seen.tokens[0].to(end))
    return seen


def _adds_tokens(call: ModuleCall, layer: Any, d_model: int) -> bool:
    """Whether the result is what W_o gives, and x."""
    seen = _look(call, layer, d_model)
    out = call.ask(plain_text(d_model)).out
    if out is None or len(seen.result) != 1:
        return False
    whole = torch.from_numpy(out)
    if not call.batch_first:
        whole = whole.transpose(0, 1)
    end = seen.result[0].to("cpu", torch.float64)
    alike = end.shape == whole.shape == seen.tokens[0].shape
    return alike and _same(whole, end + seen.tokens[0])


def _replace(module: Any, norms: list[Any]) -> None:
    for parent in module.modules():
        for name, part in list(parent._modules.items()):
            if any(part is norm for norm in norms):
                parent._modules[name] = torch.nn.Identity()
