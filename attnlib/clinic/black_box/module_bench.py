"""A module beside its right version and all its wrong ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from attnlib.clinic.black_box.bench import Signs, gradients_of, signs
from attnlib.clinic.black_box.core import scores_of
from attnlib.clinic.black_box.intent import QK_NORMS
from attnlib.clinic.black_box.module_edges import module_edge
from attnlib.clinic.black_box.module_questions import ModuleMaker, module_questions
from attnlib.clinic.black_box.module_slots import module_slots
from attnlib.clinic.black_box.projected import (
    Asked,
    Heads,
    heads_of,
    project,
    without,
)
from attnlib.clinic.black_box.slots import Slots
from attnlib.clinic.black_box.stages import Stages
from attnlib.clinic.black_box.traits import NOTHING, PLAIN, Found, Traits
from attnlib.clinic.cached import in_two_parts
from attnlib.clinic.case import RIGHT, Faults, Result, View
from attnlib.clinic.families.splits import split_heads
from attnlib.clinic.subject import Answer, ModuleSubject, Weights
from attnlib.shapes import Array, Mask


def _shorter(asked: Asked) -> bool:
    """Whether the memory is shorter than x."""
    return asked.memory is not None and asked.memory.shape[1] < asked.x.shape[1]


def even_norms(module: Any) -> None:
    """Gains of 1 and shifts of 0 in the norms of queries and keys: a copy's own."""
    for name, child in module.named_modules():
        if name.rsplit(".", 1)[-1].lower() not in QK_NORMS:
            continue
        for kind, parameter in child.named_parameters():
            if parameter.ndim == 1:
                parameter.data.fill_(0.0 if kind.endswith("bias") else 1.0)


class ModuleBench:
    """A module that takes tokens."""

    def __init__(
        self,
        subject: ModuleSubject,
        seed: int,
        dtype: str | None = None,
        causal: bool = False,
    ) -> None:
        self.subject, self.takes, self.seed = subject, subject.takes, seed
        self.dtype, self.causal = dtype, causal
        self._set: Weights | None = None
        self.weights = subject.weights
        self.module: Any = getattr(
            getattr(subject.ask, "__self__", None), "module", None
        )
        if self.module is not None:
            even_norms(self.module)
        self.fixed_d_k = self.weights.W_q.shape[1] // self.weights.n_heads
        self.questions: list[Asked] = module_questions(
            np.random.default_rng(seed), subject.takes, self.weights
        )

        if causal:  # with fewer keys than queries, some see nothing at all
            self.questions = [q for q in self.questions if not _shorter(q)]
        self._heads: dict[Asked, dict[Faults, Heads]] = {q: {} for q in self.questions}

    def ask(self, question: Asked, train: bool = False) -> Answer:
        """Call the module with the weights of the question."""
        q = question
        if self._set is not q.weights:  # large ones take long to write
            self.subject.set(q.weights)
            self._set = q.weights
        causal = (q.causal or self.causal) if self.takes.causal else None
        return self.subject.call(
            q.x,
            q.memory,
            values=q.said,
            mask=q.mask,
            padding=q.padding,
            causal=causal,
            train=train,
        )

    def simulate(
        self,
        question: Asked,
        traits: Traits = PLAIN,
        faults: Faults = RIGHT,
        found: Found = NOTHING,
        stages: Stages | None = None,
    ) -> Array:
        """The output of a variant."""
        heads = self._heads.get(question)
        return project(question, traits, faults, found, heads, stages)

    def scores(
        self, question: Asked, traits: Traits, faults: Faults, found: Found
    ) -> Array:
        """(batch, n_heads, n_q, n_k)."""
        w = without(question.weights, faults)
        q, k, v = heads_of(question.x, question.memory, w, faults, question.said)
        return scores_of(q, k, v, traits, faults, found)

    def hides(self, question: Asked) -> bool:
        """Whether a mask is handed in, or asked for."""
        return question.look is not None or question.causal

    def slots(self, traits: Traits) -> Slots:
        """All mistakes of a module with these weights that takes these arguments."""
        takes, w = self.takes, self.weights
        square = w.W_q.shape[0] == w.W_q.shape[1]
        return module_slots(
            traits,
            mask=takes.mask or takes.padding,
            causal=takes.causal,
            memory=takes.memory or takes.values or takes.no_cross,
            grouped=w.n_kv_heads not in (1, w.n_heads),
            square=square,
            projected=w.W_o is not None,
        )

    def view(self, question: Asked, out: Result, traits: Traits) -> View:
        """The weights of every head, where the tokens show them."""
        w = question.weights
        q, k, _ = heads_of(question.x, question.memory, w, RIGHT)
        k = np.repeat(k, w.n_heads // w.n_kv_heads, axis=-3)
        raw = q @ np.swapaxes(k, -1, -2)
        look = np.ones(raw.shape, dtype=bool)
        if question.look is not None:
            look &= question.look
        if question.causal or traits.causal:
            n_q, n_k = raw.shape[-2:]
            look &= np.tri(n_q, n_k, n_k - n_q, dtype=bool)
        weights = None
        d_v = w.W_v.shape[1] // w.n_kv_heads
        if question.xray and out.ndim == 3 and out.shape[-1] >= w.n_heads * d_v:
            heads = split_heads(
                np.asarray(out[..., : w.n_heads * d_v], float), w.n_heads
            )
            shown = heads[..., : raw.shape[-1]]
            weights = shown if shown.shape == raw.shape else None  # axes exchanged, say
        sizes = {
            "n_q": raw.shape[-2],
            "n_k": raw.shape[-1],
            "d_k": self.fixed_d_k,
            "d_v": d_v,
            "d_model": w.d_model,
            "n_heads": w.n_heads,
        }
        return View(weights, raw, q, k, look, sizes)

    def in_two_parts(self) -> tuple[Asked, Answer] | None:
        """Four tokens, then two with the cache: these see six keys."""
        if not self.takes.cache or self.takes.no_self:
            return None
        make = ModuleMaker(
            np.random.default_rng(self.seed + 5), self.takes, self.weights
        )
        whole = make.ask("two tokens after four in the cache", 6)
        self.subject.set(whole.weights)
        self._set = whole.weights
        call = getattr(self.subject.ask, "__self__", None)
        out = in_two_parts(call, whole.x, 4, True if self.takes.causal else None)
        if out is None:
            return None
        asked = replace(whole, x=whole.x[:, 4:], memory=whole.x, causal=True)
        return asked, Answer(out=out)

    def gradients(self, question: Asked) -> Array:
        """Those of all weights."""
        return gradients_of(self.subject, lambda: self.ask(question))

    def signs(self) -> Signs:
        """The last token sees all others, whether it is causal or not."""
        make = ModuleMaker(
            np.random.default_rng(self.seed + 4), self.takes, self.weights
        )
        asked = make.ask("signs", 5)
        keys = asked.x if asked.memory is None else asked.memory
        other = keys.copy()
        other[:, 2:4] = keys[:, 3:1:-1]
        turned = (
            replace(asked, x=other)
            if asked.memory is None
            else replace(asked, memory=other)
        )
        w = asked.weights
        b_q = None if w.b_q is None else w.b_q * 4.0
        louder = replace(asked, weights=replace(w, W_q=w.W_q * 4.0, b_q=b_q))
        twice = replace(asked, x=np.concatenate([asked.x, asked.x], 1))
        if asked.memory is not None:
            two = np.concatenate([asked.memory, asked.memory], 1)
            twice = replace(twice, memory=two)
        outs = [self.ask(one).out for one in (asked, turned, louder, twice)]
        return signs(*outs)

    def sees(self) -> Mask:
        """(n, n): whether the output of token i changes with token j."""
        n = 7
        make = ModuleMaker(
            np.random.default_rng(self.seed + 1), self.takes, self.weights
        )
        asked = make.ask("who sees whom", n)
        before = self.ask(asked).out
        pattern = np.ones((n, n), dtype=bool)
        if before is None or before.ndim != 3 or before.shape[1] != n:
            return pattern
        keys = asked.x if asked.memory is None else asked.memory
        for j in range(n):
            keys[:, j] += 1.0
            after = self.ask(asked).out
            keys[:, j] -= 1.0
            if after is None or after.shape != before.shape:
                return np.ones((n, n), dtype=bool)
            moved = np.abs(after - before).max(axis=(0, 2))
            pattern[:, j] = ~(moved < 1e-9)
        return pattern

    def extreme(self, kind: str, traits: Traits) -> Asked | None:
        """See `module_edges`."""
        return module_edge(kind, self.takes, self.weights, self.seed, traits)
