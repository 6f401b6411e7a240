"""What a module is asked at the edge: empty rows, huge scores, a shift of all, NaN."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from attnlib.clinic.black_box.edges import LONG, SHIFT
from attnlib.clinic.black_box.module_questions import ModuleMaker
from attnlib.clinic.black_box.projected import Asked
from attnlib.clinic.black_box.traits import Traits
from attnlib.clinic.subject import Takes, Weights
from attnlib.shapes import Array


def module_edge(
    kind: str, takes: Takes, weights: Weights, seed: int, traits: Traits
) -> Asked | None:
    """One extreme question; None where the module cannot be asked it."""
    make = ModuleMaker(np.random.default_rng(seed + 2), takes, weights)
    if kind == "empty":
        return _empty(make, traits)
    if kind in ("long", "long mask"):
        return _long(make, kind, traits)
    if kind == "planted in a key":  # a token is key and value in one
        kind = "planted in sight"
    if kind in ("planted", "planted in sight", "none planted"):
        return _planted(make, kind, traits)
    if kind == "wide":
        asked = make.xray(make.ask("wide scores", min(4, make.d_v)))
        return None if asked is None else _louder(asked, 6.0)
    if kind in ("huge", "huge for half", "thousands"):
        asked = make.ask("scores of many thousands", 4)
        if kind == "thousands":  # beyond every exp, and their raw scores fit float16
            return _louder(asked, 2048.0)
        if traits.rope or traits.qk_norm or kind == "huge for half":
            return _louder(asked, 65536.0 if kind == "huge" else 512.0)
        return _moved(make, asked, -(2.0**17), louder=4096.0)
    if kind == "half":
        return _half(make)
    if traits.rope or kind in ("planted in a query", "many equal"):
        return None  # a rotation would turn the constant
    if kind == "shifted":
        return _moved(
            make, make.ask("all scores below -1 million", 4), 2.0**22, louder=2.0**18
        )
    hidden = _hiding(make, traits, kind)
    if hidden is None:
        return None
    if kind == "shifted mask":
        return _moved(make, replace(hidden, name="all scores below -60000"), SHIFT)
    if kind == "above":
        named = replace(hidden, name="a hidden score 60000 above the others")
        return _moved(make, named, SHIFT, lifted=True)
    how, by, _ = kind.split()
    shown = make.xray(hidden)
    if shown is None:
        return None
    return _moved(make, shown, float(by), lifted=how == "lifted", louder=1.0)


def _louder(asked: Asked, times: float) -> Asked:
    w = asked.weights
    b_q = None if w.b_q is None else w.b_q * times
    return replace(asked, weights=replace(w, W_q=w.W_q * times, b_q=b_q))


def _hiding(make: ModuleMaker, traits: Traits, kind: str) -> Asked | None:
    """A few tokens of which some hide the last from others."""
    n = (
        min(4, make.d_v)
        if " " in kind and kind.split()[0] in ("moved", "lifted")
        else 4
    )
    n = max(n, 2)
    if make.takes.mask:
        return make.ask("a mask", n, mask=np.tri(n, dtype=bool))
    if make.takes.padding:
        padding = np.broadcast_to(np.arange(n) < n - 1, (make.batch, n)).copy()
        return make.ask("padding", n, padding=padding)
    if make.takes.causal:
        return make.ask("causal", n, causal=True)
    return make.ask("causal by itself", n) if traits.causal else None


def _moved(
    make: ModuleMaker,
    asked: Asked,
    by: float,
    *,
    lifted: bool = False,
    louder: float = 8192.0,
) -> Asked:
    """All scores moved down by a constant, or those of the last key lifted.

    The first feature of every token is 1, and the first column of each head takes it
    alone: a product of two constants.
    """
    asked = _louder(asked, louder)
    w, d_k = asked.weights, make.d_k
    W_q, W_k = w.W_q.copy(), w.W_k.copy()
    b_q = None if w.b_q is None else w.b_q.copy()
    b_k = None if w.b_k is None else w.b_k.copy()
    root, sign = float(abs(by) * d_k**0.5) ** 0.5, 1.0 if by > 0 else -1.0
    for W, b, n_heads in ((W_q, b_q, w.n_heads), (W_k, b_k, w.n_kv_heads)):
        for head in range(n_heads):
            W[:, head * d_k] = 0.0
            if b is not None:
                b[head * d_k] = 0.0
    W_q[0, [h * d_k for h in range(w.n_heads)]] = root
    W_k[0, [h * d_k for h in range(w.n_kv_heads)]] = root if lifted else -root * sign
    x, memory = asked.x.copy(), asked.memory
    x[..., 0] = 1.0
    if memory is not None:
        memory = memory.copy()
        memory[..., 0] = 1.0
    keys = x if memory is None else memory
    if lifted:  # queries read a feature of their own, so that only the last key counts
        W_k[0] = 0.0
        W_k[1, [h * d_k for h in range(w.n_kv_heads)]] = root
        keys[..., 1] = np.arange(keys.shape[-2]) == keys.shape[-2] - 1
    weights = replace(w, W_q=W_q, W_k=W_k, b_q=b_q, b_k=b_k)
    return replace(asked, x=x, memory=memory, weights=weights)


def _empty(make: ModuleMaker, traits: Traits) -> Asked | None:
    n = 4
    if make.takes.mask:
        mask = make.holes(n, n)
        mask[1] = False
        asked = make.ask("a query that may look at nothing", n, mask=mask)
    elif make.takes.padding:
        padding = np.ones((make.batch, n), dtype=bool)
        padding[1] = False
        asked = make.ask("an item of padding alone", n, padding=padding)
    else:
        return None
    return make.xray(asked) or asked


def _long(make: ModuleMaker, kind: str, traits: Traits) -> Asked | None:
    """Many tokens; scores rise along them, so that the largest keeps growing."""
    mask = None
    if kind == "long mask":
        if not make.takes.mask or traits.causal or traits.window is not None:
            return None
        mask = np.broadcast_to(np.arange(LONG) >= LONG - 20, (LONG, LONG)).copy()
    if make.weights.d_model > 1024 or make.weights.d_model < 3:
        return None
    make.batch = 1
    asked = make.ask(f"{LONG} tokens with rising scores", LONG, mask=mask)
    if traits.rope or traits.alibi:
        return asked
    up = _moved(make, asked, 10.0 * make.d_k**0.5, lifted=True, louder=1.0)
    keys = up.x if up.memory is None else up.memory
    keys[..., 1] = np.arange(LONG) / LONG
    return up


def _planted(make: ModuleMaker, kind: str, traits: Traits) -> Asked | None:
    n = 4
    if kind == "planted":
        asked = _hiding(make, traits, kind)
        if asked is None:
            return None
        where, value, name = n - 1, np.nan, "a NaN in a hidden token"
    else:
        asked = make.ask("a NaN in a token", n)
        value = np.nan if kind == "planted in sight" else 1e6
        where, name = 1, asked.name
    keys = (asked.x if asked.memory is None else asked.memory).copy()
    keys[..., where, 0] = value
    if asked.memory is None:
        return replace(asked, name=name, x=keys)
    return replace(asked, name=name, memory=keys)


def _half(make: ModuleMaker) -> Asked:
    """Queries and keys whose product passes what float16 can hold."""
    asked = make.ask("scores beyond 65504 before they are scaled", 4)
    w, size = make.weights, float(np.sqrt(80000.0 / make.d_k))
    x = asked.x.copy()
    x[..., 0] = 1.0
    memory = None
    if asked.memory is not None:
        memory = asked.memory.copy()
        memory[..., 0] = 1.0
    W_q, W_k = np.zeros_like(w.W_q), np.zeros_like(w.W_k)
    W_q[0], W_k[0] = np.round(size), np.round(size)
    zero: Callable[[Array | None], Array | None] = lambda b: (  # noqa: E731
        None if b is None else np.zeros_like(b)
    )
    weights = replace(w, W_q=W_q, W_k=W_k, b_q=zero(w.b_q), b_k=zero(w.b_k))
    return replace(asked, x=x, memory=memory, weights=weights)
