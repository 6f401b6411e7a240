"""What is seen of an attention that is none of the known kinds, and holds no known
mistake: that it is another kind, or wrong, and in what it is unlike the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attnlib.clinic.black_box import module_reading
from attnlib.clinic.black_box.bench import Bench, FunctionBench
from attnlib.clinic.black_box.module_bench import ModuleBench
from attnlib.clinic.black_box.module_questions import ModuleMaker
from attnlib.clinic.black_box.questions import Maker
from attnlib.clinic.report import Unknown
from attnlib.clinic.sight import number
from attnlib.shapes import Array

EITHER = "It is another kind of attention, or wrong"
CLOSE = 1e-4
SURELY_WRONG = ("It raises", "Its output has the shape", "the items of a batch")


def described(bench: Bench, unknown: Unknown | None) -> Unknown | None:
    """The same, said as what it is: another kind of attention, or wrong."""
    if unknown is None or unknown.sentence.startswith(SURELY_WRONG):
        return unknown
    if not unknown.sentence or unknown.law.startswith(SURELY_WRONG):
        return unknown
    looks = _of_module if isinstance(bench, ModuleBench) else _of_function
    looked = looks(bench)
    seen = None if looked is None else looked.sentence()
    said = EITHER if seen is None else f"{EITHER}: {seen}"
    return replace(unknown, sentence=f"{said}. {unknown.sentence}")


@dataclass(frozen=True)
class Looked:
    """What a few calls show.

    ones: what comes out, (batch, n_heads, n, d_v), if all values are 1.
    moved: the same where all tokens but the last are others.
    silent: what comes out if all values are 0.
    crossed: whether a head's output changes with another head's queries.
    weights: of each key, where they can be seen.
    """

    ones: Array
    moved: Array
    silent: Array
    crossed: bool
    weights: Array | None

    def sentence(self) -> str | None:
        """In what it is unlike the attentions that are known, if that is seen."""
        if not all(np.isfinite(a).all() for a in (self.ones, self.moved, self.silent)):
            return None
        if np.abs(self.silent).max(initial=0.0) > CLOSE:
            return "something comes out even where all values are 0"
        if self.crossed:
            return "what one head asks changes what another gives, so heads are mixed"
        if self.weights is not None and _both_signs(self.weights):
            least = number(float(self.weights.min()))
            return (
                f"some weights are negative (down to {least}), as in a difference of "
                "two softmaxes"
            )
        if np.abs(self.ones - 1).max() < CLOSE:
            return None
        low, high = (number(float(f(self.ones))) for f in (np.min, np.max))
        alone = np.abs(self.ones - self.moved)[..., -1, :].max() < CLOSE
        if not alone:
            return (
                f"the weights of a row do not sum to 1, but to {low} up to {high} here"
            )
        each = " feature" if np.ptp(self.ones, axis=-1).max() > CLOSE else ""
        if np.ptp(self.ones, axis=-2).max() < CLOSE:
            what = f"by numbers of each head{' and' + each if each else ''}"
        else:
            what = f"{'feature by feature ' if each else ''}by something that depends "
            what += "on the query"
        return f"each head's output is multiplied {what} (by {low} to {high} here)"


def _both_signs(weights: Array) -> bool:
    """Whether a row holds numbers below 0 and above."""
    return bool(((weights < -CLOSE).any(-1) & (weights > CLOSE).any(-1)).any())


def _of_module(bench: Any) -> Looked | None:
    w = module_reading.quiet(bench.weights)
    if w is None:
        return None
    w = replace(w, W_q=bench.weights.W_q, b_q=bench.weights.b_q)
    make = ModuleMaker(np.random.default_rng(bench.seed + 7), bench.takes, w)
    asked = make.ask("values of 1", 5)
    keys = asked.x if asked.memory is None else asked.memory
    keys[..., 0] = 1.0
    W_v = np.zeros_like(w.W_v)
    W_v[0] = 1.0
    loud = replace(w, W_v=W_v)
    x, memory = asked.x.copy(), asked.memory
    x[:, :-1, 1:] += 1.0
    if memory is not None:
        memory = memory.copy()
        memory[..., 1:] += 1.0
    d_k = w.W_q.shape[1] // w.n_heads
    W_q = w.W_q.copy()
    W_q[:, :d_k] = 0.0
    said = replace(bench.weights, W_o=w.W_o, b_o=w.b_o)
    outs = [
        module_reading.heads(bench, one)
        for one in (
            replace(asked, weights=loud),
            replace(asked, x=x, memory=memory, weights=loud),
            replace(asked, weights=w),
            replace(asked, weights=said),
            replace(asked, weights=replace(said, W_q=W_q)),
        )
    ]
    if any(a is None for a in outs):
        return None
    ones, moved, silent, before, after = (np.asarray(a) for a in outs)
    crossed = np.abs(before[:, 1:] - after[:, 1:]).max(initial=0.0) > CLOSE
    seen = module_reading.weights(bench, 4, loud=True)
    return Looked(ones, moved, silent, bool(crossed), seen)


def _of_function(bench: Any) -> Looked | None:
    if not isinstance(bench, FunctionBench):
        return None
    make = Maker(np.random.default_rng(bench.seed + 7), bench.takes)
    asked = make.xray("values that show the weights", 5, 5, 6)
    if asked.q.ndim < 3:
        return None
    k = asked.k.copy()
    k[..., :-1, :] += 1.0
    q = asked.q.copy()
    q[:, :1] = 0.0
    ones = np.ones_like(asked.v)
    outs = [
        bench.ask(one).out
        for one in (
            replace(asked, v=ones),
            replace(asked, v=ones, k=k),
            replace(asked, v=0 * ones),
            asked,
            replace(asked, q=q),
        )
    ]
    if any(a is None or a.shape != asked.v.shape for a in outs):
        return None
    one, moved, silent, before, after = (np.asarray(a) for a in outs)
    crossed = before.ndim == 4 and np.abs((before - after)[:, 1:]).max() > CLOSE
    return Looked(one, moved, silent, bool(crossed), before)
