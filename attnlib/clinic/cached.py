"""Call a module in two parts: first the earlier tokens, then the rest, with a cache."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from attnlib.clinic.function_call import read_answer
from attnlib.clinic.handing import hand_in
from attnlib.clinic.run import Ran, run
from attnlib.clinic.signature import arrange
from attnlib.clinic.tensors import torch
from attnlib.shapes import Array

USE = ("use_cache", "return_cache", "use_kv_cache")
DEEP = 3


def in_two_parts(
    call: Any, x: Array, split: int, causal: bool | None = None
) -> Array | None:
    """The output of the tokens from `split` on; None where no cache could be used.

    Args:
        call: the ModuleCall of the examiner's copy.
        x: tokens, (batch, n, d_model).
        split: how many tokens go first.
        causal: what its flag says in both calls, if it has one. With a cache, too,
            True means that a token sees those before it and itself.
    """
    if "cache" not in call.roles:
        return None
    for start in _starts(call):
        kept = copy.deepcopy(start)
        first = _call(call, x[:, :split], start, causal)
        if first.error is not None:
            continue
        for holder in (_filled(start, kept), _present(first.value, split)):
            if holder is None:
                continue
            second = _call(call, x[:, split:], holder, causal)
            tail = x[:, split:]
            shape = (*tail.shape[:-1], call.width)
            if not call.batch_first:
                shape = (shape[1], shape[0], shape[2])
            answer = read_answer(
                second, call.places, shape, (tail.shape[1], x.shape[1])
            )
            if answer.out is not None and answer.out.shape == shape:
                out = answer.out
                return out if call.batch_first else np.swapaxes(out, 0, 1)
    return None


def _starts(call: Any) -> Iterator[object]:
    """What an empty cache may be."""
    yield None
    yield []
    yield {}
    module = sys.modules.get(type(call.module).__module__)
    for name, thing in sorted(vars(module).items() if module else ()):
        if isinstance(thing, type) and "cache" in name.lower():
            made = run(thing, ())
            if made.error is None:
                yield made.value


def _call(call: Any, x: Array, cache: object, causal: bool | None) -> Ran:
    device = next(call.module.parameters()).device
    tokens = hand_in(
        x if call.batch_first else np.swapaxes(x, 0, 1), call.dtype, True, device
    )
    given: dict[str, object] = dict(call.filled)
    if call.fill is not None:
        given |= call.fill(x.shape[1])
    for role in ("x", "q", "k", "v"):
        if role in call.roles:
            given[call.roles[role]] = tokens
    given[call.roles["cache"]] = cache
    if causal is not None and "causal" in call.roles:
        given[call.roles["causal"]] = causal
    names = {parameter.name for parameter in call.signature.parameters}
    given |= {name: True for name in USE if name in names}
    arranged = arrange(call.signature, given)

    def inside() -> object:
        if call.dtype == "float64":
            torch.set_default_dtype(torch.float64)
        return call.module(*arranged.args, **arranged.named)

    return _run_in_place(inside)


def _run_in_place(inside: Any) -> Ran:
    """`run` copies arguments; a cache must be changed in place, so it has none."""
    return run(inside, ())


def _filled(start: object, before: object) -> object | None:
    """The cache that was handed in, if the first call put something into it."""
    if start is None:
        return None
    if isinstance(start, (list, dict)):
        return start if len(start) else None
    return start if repr(vars(start)) != repr(vars(before)) else None


def _present(value: object, n: int, depth: int = DEEP) -> object | None:
    """What a call returned besides its output: keys and values of n tokens."""
    if _holds_keys(value, n):
        return value
    parts: list[object] = []
    if depth and isinstance(value, (tuple, list)):
        parts = list(value)
    elif depth and isinstance(value, dict):
        parts = list(value.values())
    elif depth and hasattr(value, "__dict__") and not isinstance(value, torch.Tensor):
        parts = list(vars(value).values())
    found = (_present(part, n, depth - 1) for part in parts)
    return next((one for one in found if one is not None), None)


def _holds_keys(value: object, n: int) -> bool:
    if isinstance(value, torch.Tensor):  # keys and values stacked, as in GPT-2
        return value.ndim == 5 and len(value) == 2 and n in value.shape[2:4]
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        return False
    return all(
        isinstance(part, torch.Tensor) and part.ndim >= 3 and n in part.shape[1:3]
        for part in value
    ) and all(part.ndim == 4 for part in value)
