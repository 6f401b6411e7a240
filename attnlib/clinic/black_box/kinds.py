"""The kinds of attention that a subject may be, and the numbers that it holds.

A few calls say who sees whom, whether places count and whether lengths do; weights that
an output shows say a scale, a cap, a fill, a slope.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attnlib.clinic.black_box import influence, others
from attnlib.clinic.black_box.bench import Bench
from attnlib.clinic.black_box.scores import normed
from attnlib.clinic.black_box.traits import NORMS, Traits
from attnlib.clinic.case import RIGHT
from attnlib.clinic.subject import Answer

LIKELY = 3  # kinds of which another with places or norms is tried
BASES = (10000.0, 500000.0, 1000000.0, 100.0)  # of RoPE, as models have them


@dataclass(frozen=True)
class Kinds:
    """What one subject may be, given what it is meant to do."""

    bench: Bench
    told: Traits
    guesses: tuple[Traits, ...]

    def likely(self) -> list[Traits]:
        """Kinds that fit who sees whom, whether places count and whether lengths do."""
        first = (self.told, *self.guesses)
        kinds = list(first)
        if self.told.window is not None and not self.told.causal:
            ahead = bool(np.triu(self.bench.sees(), 1).any())
            kinds.sort(
                key=lambda kind: kind.both_sides != ahead or kind.causal == ahead
            )
        elif not self.told.causal:
            sees = self.bench.sees()
            kinds = [k for traits in first for k in influence.kinds(sees, traits)]
        signs = self.bench.signs()
        wide = self.told.window is None or self.told.window > 2
        if signs.places and wide and not (self.told.rope or self.told.alibi):
            kinds += [k for kind in kinds[:LIKELY] for k in self._placed(kind)]
        if signs.normed and not self.told.qk_norm and self._compares():
            kinds += [k for kind in kinds[:LIKELY] for k in self._normed(kind)]
        return kinds

    def _compares(self) -> bool:
        """Whether the last query sees several keys; one alone hides all lengths."""
        return bool(self.bench.sees()[-1].sum() > 1)

    def _placed(self, kind: Traits) -> Iterator[Traits]:
        """The same with RoPE or ALiBi."""
        for layout in ("half", "interleaved"):
            yield replace(kind, rope=layout)
        yield replace(kind, alibi=True)

    def _normed(self, kind: Traits) -> Iterator[Traits]:
        """The same with queries and keys normed."""
        for norm in NORMS:
            for scale in dict.fromkeys((self.told.scale, None, 1.0)):
                yield replace(kind, qk_norm=norm, scale=scale)

    def rare(
        self,
        kinds: Sequence[Traits],
        questions: Sequence[Any],
        answers: Sequence[Answer],
    ) -> list[Traits]:
        """Kinds with a number that only the outputs tell, and RoPE as few have it."""
        return [*self._numbered(kinds, questions, answers), *self._turned(kinds)]

    def others(
        self,
        kinds: Sequence[Traits],
        questions: Sequence[Any],
        answers: Sequence[Answer],
    ) -> Iterator[Traits]:
        """Kinds with numbers of their own beside the weights, or without softmax."""
        yield from others.others(
            self.bench, self.told, kinds, (questions[0], answers[0])
        )

    def _turned(self, kinds: Sequence[Traits]) -> Iterator[Traits]:
        width = self.bench.fixed_d_k or 0
        for kind in kinds:
            if not kind.rope:
                continue
            for base in BASES:
                if base != kind.rope_base:
                    yield replace(kind, rope_base=base)
            for part in (width // 2, width // 4):
                if part % 2 == 0 < part:
                    yield replace(kind, rope_width=part)

    def _numbered(
        self,
        kinds: Sequence[Traits],
        questions: Sequence[Any],
        answers: Sequence[Answer],
    ) -> Iterator[Traits]:
        for traits in dict.fromkeys(replace(k, scale=self.told.scale) for k in kinds):
            if self.told.softcap is None and not traits.rope and not traits.qk_norm:
                value = self._cap(traits)
                if value is not None:
                    yield replace(traits, softcap=value)
            if traits.qk_norm:
                for scale in self._norm_scales(
                    traits.qk_norm, traits, questions, answers
                ):
                    yield replace(traits, scale=scale)

    def _xray(
        self, questions: Sequence[Any], answers: Sequence[Answer], traits: Traits
    ) -> Iterator[tuple[Any, Any]]:
        """Questions whose output is the weights, and what is seen there."""
        for question, answer in zip(questions, answers, strict=True):
            if question.xray and answer.out is not None:
                view = self.bench.view(question, answer.out, traits)
                if view.weights is not None and view.raw_scores is not None:
                    yield question, view

    def numbers(
        self, traits: Traits, questions: Sequence[Any], answers: Sequence[Answer]
    ) -> dict[str, float]:
        """A scale and a fill value, as the outputs show them."""
        found: dict[str, float] = {}
        if traits.softcap is not None:
            value = self._cap(replace(traits, softcap=None))
            if value is not None:
                found["cap"] = value
        views = [view for _, view in self._xray(questions, answers, traits)]
        views.sort(key=lambda view: not np.all(view.allowed))
        views += [
            replace(view, weights=once)
            for view in views
            if (once := influence.once(view.weights)) is not None
        ]
        for view in views:
            weights, allowed = view.weights, np.asarray(view.allowed)
            if traits.alibi and "slope_0" not in found:
                slopes = influence.slopes(
                    weights, view.raw_scores * view.sizes["d_k"] ** -0.5, allowed
                )
                if slopes is not None:
                    found |= {f"slope_{h}": float(s) for h, s in enumerate(slopes)}
            if "scale" not in found:
                for value in influence.scales(weights, view.q, view.k, allowed):
                    found["scale"] = value
                    break
            if allowed.all():
                continue
            d_k = view.sizes["d_k"]
            for factor in (d_k**-0.5, found.get("scale")):
                if factor is None or "fill" in found:
                    continue
                put = influence.fill(weights, view.raw_scores * factor, allowed)
                if put is not None:
                    found["fill"] = put[0]
                    found["fill_before_scale"] = put[0] * d_k**0.5
        return found

    def _cap(self, traits: Traits) -> float | None:
        question = self.bench.extreme("wide", traits)
        if question is None:
            return None
        answer = self.bench.ask(question)
        if answer.out is None:
            return None
        view = self.bench.view(question, answer.out, traits)
        if view.weights is None or view.raw_scores is None:
            return None
        d_k = view.sizes["d_k"]
        return influence.cap(view.weights, view.raw_scores / d_k**0.5)

    def _norm_scales(
        self,
        norm: str,
        traits: Traits,
        questions: Sequence[Any],
        answers: Sequence[Answer],
    ) -> Iterator[float]:
        for _, view in self._xray(questions, answers, traits):
            if (
                np.asarray(view.allowed).all()
                and view.q.shape[-3:-2] == view.k.shape[-3:-2]
            ):
                q, k = normed(view.q, view.k, norm, RIGHT)
                yield from list(influence.scales(view.weights, q, k))[:1]
                return
