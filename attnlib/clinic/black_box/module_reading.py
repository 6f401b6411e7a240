"""Read what a module adds to its scores, with weights of the examiner's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from attnlib.clinic.black_box.added import Extra
from attnlib.clinic.black_box.module_bench import ModuleBench
from attnlib.clinic.black_box.module_questions import ModuleMaker
from attnlib.clinic.black_box.projected import Asked
from attnlib.clinic.families.splits import split_heads
from attnlib.clinic.subject import Weights
from attnlib.shapes import Array

ZERO = 1e-6


def zero(array: Array | None) -> Array | None:
    """Zeros in place of a bias, if there is one."""
    return None if array is None else np.zeros_like(array)


def quiet(w: Weights) -> Weights | None:
    """Weights with which nothing is asked or said, and W_o changes nothing."""
    if w.W_o is not None and w.W_o.shape[0] > w.W_o.shape[1]:
        return None
    return replace(
        w,
        W_q=np.zeros_like(w.W_q),
        W_v=np.zeros_like(w.W_v),
        W_o=None if w.W_o is None else np.eye(*w.W_o.shape),
        b_q=zero(w.b_q),
        b_v=zero(w.b_v),
        b_o=zero(w.b_o),
    )


def _asked(bench: ModuleBench, n: int) -> Asked:
    make = ModuleMaker(
        np.random.default_rng(bench.seed + 6), bench.takes, bench.weights
    )
    return make.ask("queries of zero", n)


def heads(bench: ModuleBench, asked: Asked) -> Array | None:
    """The output of each head, (batch, n_heads, n, d_v)."""
    w = asked.weights
    width = w.n_heads * (w.W_v.shape[1] // w.n_kv_heads)
    out = bench.ask(asked).out
    if out is None or out.ndim != 3 or out.shape[-1] < width:
        return None
    if out.shape[:2] != asked.x.shape[:2]:
        return None
    return np.asarray(split_heads(np.asarray(out[..., :width], float), w.n_heads))


def weights(bench: ModuleBench, n: int, *, loud: bool = False) -> Array | None:
    """The weights of every head, a few keys at a time, for queries of zero or `loud`.

    None if the module does not take so many tokens, or says something by itself.
    """
    asked = _asked(bench, n)
    w = quiet(asked.weights)
    if w is None:
        return None
    d_v = w.W_v.shape[1] // w.n_kv_heads
    room = min(d_v, w.W_v.shape[0])
    W_v = np.zeros_like(w.W_v)
    for head in range(w.n_kv_heads):
        for t in range(room):
            W_v[t, head * d_v + t] = 1.0
    silent = heads(bench, replace(asked, weights=w))
    if silent is None or not np.abs(silent).max(initial=0.0) < ZERO:
        return None
    shown = replace(w, W_v=W_v)
    if loud:
        W_q = bench.weights.W_q.copy()
        W_q[:room] = 0.0  # the marks of keys ask nothing
        shown = replace(shown, W_q=W_q, b_q=bench.weights.b_q)
    parts = []
    for start in range(0, n, room):
        keys = (asked.x if asked.memory is None else asked.memory).copy()
        if keys.shape[-1] < room:
            return None
        keys[..., :room] = 0.0
        for t in range(min(room, n - start)):
            keys[:, start + t, t] = 1.0
        tagged = (
            replace(asked, x=keys, weights=shown)
            if asked.memory is None
            else replace(asked, memory=keys, weights=shown)
        )
        seen = heads(bench, tagged)
        if seen is None:
            return None
        parts.append(seen[..., : min(room, n - start)])
    return np.concatenate(parts, axis=-1)


def extra(bench: ModuleBench) -> Extra | None:
    """A learned key and value beside those of the tokens, as `add_bias_kv` has them."""
    w = bench.weights
    d_k = w.W_q.shape[1] // w.n_heads
    n = 12
    asked = _asked(bench, n)
    still = quiet(w)
    if still is None:
        return None
    still = replace(still, W_k=np.zeros_like(w.W_k), b_k=zero(w.b_k))
    said = heads(bench, replace(asked, weights=still))
    if said is None or not np.isfinite(said).all():
        return None
    if np.abs(said - said[:1, :, :1]).max() > ZERO * np.abs(said).max():
        return None  # it depends on the place: a causal one, or another kind
    values = said[0, :, 0] * (n + 1)
    loud = replace(still, W_q=w.W_q, b_q=w.b_q)
    heard = heads(bench, replace(asked, weights=loud))
    if heard is None or (np.abs(values).max(axis=-1) < 1e-3).any():
        return None
    asks = asked.x @ w.W_q + (0 if w.b_q is None else w.b_q)
    q = split_heads(np.asarray(asks), w.n_heads)
    power = (values**2).sum(axis=-1)[:, None]
    rest = (heard * values[:, None]).sum(axis=-1) / power
    if (rest <= 0).any() or (rest >= 1).any():
        return None
    logits = np.log(rest * n / (1 - rest))  # (batch, n_heads, n)
    keys = np.zeros((w.n_heads, d_k))
    for head in range(w.n_heads):
        a, b = q[:, head].reshape(-1, d_k), logits[:, head].ravel()
        keys[head] = np.linalg.lstsq(a, b, rcond=None)[0]
        if np.abs(a @ keys[head] - b).max() > 1e-3:
            return None
    return Extra(np.zeros(1), keys, values)
