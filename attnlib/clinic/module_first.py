"""The first calls of a module: how wide its tokens are, and where the result stands."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from attnlib.clinic.handing import Places, parts, says_what
from attnlib.clinic.module_call import ModuleCall
from attnlib.clinic.module_copy import move
from attnlib.clinic.module_plan import attentions_in, widths
from attnlib.clinic.run import Ran
from attnlib.clinic.subject import Refusal
from attnlib.clinic.tensors import torch
from attnlib.clinic.words_refused import raised
from attnlib.shapes import Array

EXAMPLE = (
    "Hand in a module that is called with tokens (batch, n, d_model), or a function of "
    "q, k and v, such as `lambda q, k, v, mask=None: mine(q, k, v, mask)`."
)


TYPES = re.compile("dtype|scalar type|Float|Double|Half")  # errors about types
TRIED = 6  # widths of a token that are tried


Way = tuple[str, int | None, int | None]  # a mask, the widths of memory and values


def has_matrices(module: Any) -> bool:
    return any(p.ndim > 1 for p in module.parameters() if not _lazy(p))


def _lazy(parameter: Any) -> bool:
    return bool(torch.nn.parameter.is_lazy(parameter))


def is_lazy(module: Any) -> bool:
    return any(_lazy(p) for p in module.parameters())


def first_call(call: ModuleCall, name: str) -> int | Refusal:
    """The width of a token with which the module works, tried out."""
    tried = list(widths(call.module))[:TRIED]
    first: Ran | None = None
    if is_lazy(call.module):  # the first call makes its parameters
        call.dtype = "float32"
        for width in tried:
            call.run(plain_text(width))
            if not is_lazy(call.module):
                break
        tried = list(widths(call.module))[:TRIED]
    errors: list[str] = []
    for dtype in ("float64", "float32"):
        if dtype == "float32" and not any(TYPES.search(text) for text in errors):
            break
        move(call.module, dtype)
        call.dtype = dtype
        for width in tried:
            for way in _ways(call, width, tried):
                call.must_mask, call.memory_width, call.values_width = way
                ran, _, _ = call.run(plain_text(width))
                if ran.timed_out or call.budget.left == 0:
                    call.stopped = True
                    return Refusal(
                        f"{name} did not come to an end in time, for 5 tokens of "
                        f"{width} numbers. Give it more with seconds=..., or hand in "
                        "one that is faster."
                    )
                first = first or ran
                errors.append(str(ran.error))
                if ran.error is None and find_result(call, ran):
                    finite = result(call, plain_text(width))
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
    must = "mask" in call.roles and call._must("mask")
    masks = ["", "b1qk", "bqk", "qk", "bk"] if must else [""]
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


def plain_text(width: int, n: int = 5, batch: int = 2) -> Array:
    rng = np.random.default_rng(3)
    return np.round(rng.normal(size=(batch, n, width)) * 8) / 8


def find_result(call: ModuleCall, ran: Ran) -> bool:
    """Find the result: what is returned first with an axis for items and for tokens."""
    front = (2, 5) if call.batch_first else (5, 2)
    arrays = list(parts(ran.value))
    three = [(p, a) for p, a in arrays if a.ndim == 3]
    found = [(p, a) for p, a in three if a.shape[:2] == front]
    # With items and tokens turned it is wrong, and the examination is to say so.
    found = found or [(p, a) for p, a in three if a.shape[1::-1] == front]
    if not found:
        return False
    path, out = found[0]
    weights = [p for p, a in arrays if a.shape[-2:] == (5, 5) and p != path]
    call.places = Places(path, weights[0] if weights else None)
    call.width = out.shape[-1]
    return True


def result(call: ModuleCall, x: Array) -> Array | None:
    return call.ask(x).out


def _refused(call: ModuleCall, name: str, ran: Ran | None, tried: list[int]) -> Refusal:
    inside = attentions_in(call.module)
    if ran is None:
        return Refusal(f"{name} does not say how wide its tokens are. {EXAMPLE}")
    error = raised(ran.error) if ran.error is not None else ""
    wrong = "indices" in error or "Embedding" in error or "embedding" in error
    inner = call.module.named_modules()
    embeds = [path for path, part in inner if "Embedding" in type(part).__name__]
    if wrong and embeds:
        return Refusal(
            f"{name} takes whole numbers, which `{as_code(embeds[0])}` turns into "
            f"tokens, and an attention takes the tokens themselves. {within(inside)}"
        )
    if inside and (wrong or embeds):
        return Refusal(
            f"{name} is a whole model, and an attention is wanted. {within(inside)}"
        )
    todo = within(inside) if inside else EXAMPLE
    if ran.error is not None and _takes_images(call.module):
        todo = f"It seems to take images, and tokens are wanted. {todo}"
    if ran.error is not None:
        return Refusal(
            f"{name} raised {error}, when it was given tokens (2, 5, {tried[0]}). "
            f"{todo}"
        )
    return Refusal(
        f"{name} {says_what(ran.value)}, when it was given tokens (2, 5, {tried[0]}), "
        f"and (2, 5, d_model) was expected. {todo}"
    )


def _takes_images(module: Any) -> bool:
    return any(isinstance(part, torch.nn.Conv2d) for part in module.modules())


def within(inside: list[str]) -> str:
    """What to hand in instead of a model: the attentions that are in it, by name."""
    if not inside:
        return (
            "No part of it has a name like an attention's: hand in the part that is "
            "called with tokens (batch, n, d_model), or a function of q, k and v."
        )
    first = f"`{as_code('model.' + inside[0])}`"
    if len(inside) == 1:
        return f"Hand in the attention within: {first}."
    return f"Hand in one of the {len(inside)} attentions within, such as {first}."


def as_code(path: str) -> str:
    steps = [f"[{s}]" if s.isdigit() else f".{s}" for s in path.split(".")]
    return "".join(steps).lstrip(".")
