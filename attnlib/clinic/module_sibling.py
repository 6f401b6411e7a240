"""Make another of a module's class, of another size: there two mistakes may differ.

Where d_k = √d_model, dividing by d_k and by √d_model is the same. What a module was
made with is read off its attributes; where that does not work, there is no sibling.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from typing import Any

from attnlib.clinic.module_class import LONG, WIDE
from attnlib.clinic.module_plan import HEAD_WIDTHS, HEADS, KV_HEADS
from attnlib.clinic.run import run
from attnlib.clinic.signature import plain
from attnlib.clinic.subject import Weights

HEAD_SIZES = (12, 20, 6, 10)  # even, no squares
TRIES = 2
SECONDS = 3.0
Simple = bool, int, float, str


def siblings(attention: object, weights: Weights) -> Iterator[tuple[Any, int, int]]:
    """One or two of the same class, of other sizes: (module, d_model, n_heads)."""
    cls = attention if isinstance(attention, type) else type(attention)
    module = None if attention is cls else attention
    if cls.__module__.startswith("torch."):
        return  # its arguments are no attributes, and it is right
    own = weights.W_q.shape[1] // weights.n_heads
    fitting = [d for d in HEAD_SIZES if d not in (own, weights.n_heads)]
    for d_k in fitting[:TRIES]:
        given = _arguments(cls, module, weights, d_k)
        if given is None:
            return
        ran = run(functools.partial(cls, **given), (), SECONDS)
        if ran.error is None and isinstance(ran.value, cls):
            yield ran.value, d_k * weights.n_heads, weights.n_heads


def _arguments(
    cls: type, module: object, weights: Weights, d_k: int
) -> dict[str, object] | None:
    """What to make it with; None if one of the arguments is not known."""
    sizes: dict[str, object] = {}
    sizes |= dict.fromkeys(WIDE.split(), d_k * weights.n_heads)
    sizes |= dict.fromkeys(HEADS.split(), weights.n_heads)
    sizes |= dict.fromkeys(KV_HEADS.split(), weights.n_kv_heads)
    sizes |= dict.fromkeys(HEAD_WIDTHS.split(), d_k) | {"d_v": d_k}
    long = dict.fromkeys(LONG.split(), 64)
    neutral = {"dropout": 0.0, "p": 0.0, "bias": True, "qkv_bias": True}
    try:
        parameters = list(inspect.signature(cls).parameters.values())
    except (ValueError, TypeError):
        return None
    given: dict[str, object] = {}
    for p in parameters:
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        name, needed = plain(p.name), p.default is p.empty
        grouped = name in KV_HEADS.split() and weights.n_kv_heads != weights.n_heads
        recorded = _recorded(module, p.name)
        if name in sizes and (needed or grouped or _whole(p.default)):
            given[p.name] = sizes[name]
        elif name in sizes:
            continue
        elif recorded is not None:
            given[p.name] = recorded
        elif needed and name in long | neutral:
            given[p.name] = (long | neutral)[name]
        elif needed:
            return None
    return given


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _recorded(module: object, name: str) -> object | None:
    """What a module keeps under the name of an argument, if that is a plain value."""
    value = getattr(module, name, None) if module is not None else None
    return value if isinstance(value, Simple) else None
