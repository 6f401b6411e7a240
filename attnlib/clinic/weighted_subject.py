"""A function that is handed its weights, such as (x, W_q, W_k, W_v, W_o, n_heads).

It is a subject like a module: the weights are kept for it and handed in at each call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from attnlib.clinic.budget import Budget
from attnlib.clinic.draw import draw
from attnlib.clinic.guess import wants_tensors
from attnlib.clinic.handing import hand_in, keep
from attnlib.clinic.module_call import ModuleCall
from attnlib.clinic.module_first import find_result, plain_text
from attnlib.clinic.module_plan import HEADS, KV_HEADS
from attnlib.clinic.module_takes import find_out
from attnlib.clinic.signature import Parameter, Signature, plain, read_signature
from attnlib.clinic.subject import ModuleSubject, Refusal, Weights
from attnlib.clinic.weight_names import bias_roles, roles_of
from attnlib.clinic.words_refused import raised
from attnlib.shapes import Array

D_MODEL, N_HEADS, D_K, D_V = 24, 4, 5, 7
ROLES = ("x", "q", "k", "v", "memory", "mask", "padding", "causal")


class Weighted:
    """A function with the weights that it is handed; called like a module."""

    def __init__(self, function: Callable[..., object], names: dict[str, str]) -> None:
        self.function, self.names = function, names
        self.weights: Weights | None = None
        self.given: dict[str, Any] = {}
        self.flipped = False
        self.tensors = False

    def set(self, weights: Weights, dtype: str) -> None:
        """Keep weights, in the form in which they are handed in."""
        self.weights, self.given = weights, {}
        for role, name in self.names.items():
            if role == "n_heads":
                self.given[name] = weights.n_heads
            elif role == "n_kv_heads":
                self.given[name] = weights.n_kv_heads
            else:
                array = np.asarray(getattr(weights, role))
                if self.flipped and array.ndim == 2:
                    array = array.T
                self.given[name] = hand_in(array, dtype, self.tensors)

    def __call__(self, *args: Any, **named: Any) -> object:
        given = {name: keep(thing) for name, thing in self.given.items()}
        return self.function(*args, **named, **given)

    def train(self, mode: bool = True) -> None:
        """There is no such mode."""

    eval = train

    def parameters(self) -> Iterator[Any]:
        """Those of torch: none."""
        return iter(())

    buffers = modules = named_modules = children = parameters


def weight_names(signature: Signature) -> dict[str, str]:
    """Which arguments are weights: W_q -> its name; empty if not all of q, k, v are."""
    names: dict[str, str] = {}
    for p in signature.parameters:
        name = plain(p.name)
        if name in HEADS.split() and p.role != "x":
            names.setdefault("n_heads", p.name)
        elif name in KV_HEADS.split():
            names.setdefault("n_kv_heads", p.name)
        elif name.startswith("b") and p.role in ("", "bias"):
            roles = bias_roles(name)
            if len(roles) == 1 and roles != ("?",) and p.required:
                names.setdefault(f"b_{roles[0]}", p.name)
        elif "w" in name or "proj" in name:
            roles = roles_of(name)
            if len(roles) == 1 and roles != ("?",):
                names.setdefault(f"W_{roles[0]}", p.name)
    return names if {"W_q", "W_k", "W_v"} <= set(names) else {}


def weighted_subject(
    function: Callable[..., object],
    name: str,
    *,
    n_heads: int | None,
    n_kv_heads: int | None,
    mask: str,
    dtype: str | None,
    seed: int,
    budget: Budget,
) -> ModuleSubject | Refusal | None:
    """A subject of a function that is handed its weights; None if it is not."""
    signature = read_signature(function)
    names = weight_names(signature)
    if not names:
        return None
    taken = set(names.values())
    left = tuple(p for p in signature.parameters if p.name not in taken)
    if not left:
        return None
    roles = _roles(left)
    missing = [p.name for p in left if p.required and p.name not in roles.values()]
    if missing:
        return Refusal(
            f"{name} must be given {missing[0]} besides tokens and weights. Hand in a "
            f"function that gives it, such as `lambda x, W_q, W_k, W_v, W_o, n_heads: "
            f"{name}(x, W_q, W_k, W_v, W_o, n_heads, {missing[0]}=...)`."
        )
    inner = Weighted(function, names)
    signature = replace(signature, parameters=left)
    call = ModuleCall(inner, signature, roles, mask, budget)
    heads = n_heads or (N_HEADS if "n_heads" in names else 1)
    kv_heads = n_kv_heads or heads
    error = _first_call(call, inner, heads, kv_heads, seed)
    if error:
        return Refusal(f"{name} {error}")
    call.n_heads = heads

    def read() -> Weights:
        assert inner.weights is not None
        return inner.weights

    def write(weights: Weights) -> None:
        inner.set(weights, call.dtype)

    notes: list[str] = []
    takes = find_out(call, read, notes, seed)
    if dtype is not None:
        call.dtype = dtype
        write(read())
    return ModuleSubject(name, takes, call.ask, read, write, tuple(notes))


def _roles(parameters: tuple[Parameter, ...]) -> dict[str, str]:
    """Which of the other arguments is what."""
    found: dict[str, str] = {}
    for p in parameters:
        if p.role in ROLES:
            found.setdefault(p.role, p.name)
    if {"q", "k"} <= set(found):
        return found
    tokens = found.get("x") or found.get("q") or parameters[0].name
    kept = {r: n for r, n in found.items() if r not in "qkv" and n != tokens}
    return {"x": tokens, **kept}


def _first_call(
    call: ModuleCall, inner: Weighted, heads: int, kv_heads: int, seed: int
) -> str:
    """Find out how the weights are to be; or say why no way works."""
    first = wants_tensors(inner.function)
    kinds = (
        [True, False] if first else [False, *([True] if "torch" in sys.modules else [])]
    )
    said = ""
    for widths in ((D_K, D_V), (D_MODEL // heads, D_MODEL // heads)):
        for inner.flipped in (False, True):
            for tensors in kinds:
                inner.tensors = call.tensors = tensors
                shapes = _shapes(inner.names, heads, kv_heads, *widths)
                inner.set(draw(shapes, seed), call.dtype)
                ran, _, _ = call.run(plain_text(D_MODEL))
                if ran.timed_out:
                    return "did not come to an end in time, for 5 tokens."
                if ran.error is None and find_result(call, ran):
                    # The usual sizes, with which the usual mistakes are made.
                    usual = (D_MODEL // heads,) * 2
                    shapes = _shapes(inner.names, heads, kv_heads, *usual)
                    inner.set(draw(shapes, seed), call.dtype)
                    find_result(call, call.run(plain_text(D_MODEL))[0])
                    return ""
                if not said and ran.error is not None:
                    said = f"raised {raised(ran.error)}"
    shapes_said = f"x (2, 5, {D_MODEL}) and W_q ({D_MODEL}, {heads * D_K})"
    said = said or "returned no array of shape (2, 5, d_model)"
    return f"{said}, when it was given {shapes_said}."


def _shapes(
    names: dict[str, str], heads: int, kv_heads: int, d_k: int, d_v: int
) -> Weights:
    """Weights of the right shapes, with zeros."""
    sizes: dict[str, tuple[int, ...]] = {
        "W_q": (D_MODEL, heads * d_k),
        "W_k": (D_MODEL, kv_heads * d_k),
        "W_v": (D_MODEL, kv_heads * d_v),
        "W_o": (heads * d_v, D_MODEL),
        "b_q": (heads * d_k,),
        "b_k": (kv_heads * d_k,),
        "b_v": (kv_heads * d_v,),
        "b_o": (D_MODEL,),
    }
    made: dict[str, Array | None] = {
        role: np.zeros(shape) if role in names else None
        for role, shape in sizes.items()
    }
    return Weights(**made, n_heads=heads, n_kv_heads=kv_heads, d_model=D_MODEL)  # type: ignore[arg-type]
