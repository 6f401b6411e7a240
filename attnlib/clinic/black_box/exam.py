"""Diagnose a subject from its ordinary answers: its kind, and its mistakes.

First the right ways: plain, then with what can be found out (causal by itself, a
window, a softcap, QK-norm, RoPE, ALiBi). Only then single mistakes and pairs. A set of
mistakes counts when it gives every answer, so nothing is named by resemblance.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from attnlib.clinic.black_box import influence
from attnlib.clinic.black_box.bench import Bench
from attnlib.clinic.black_box.scores import normed
from attnlib.clinic.black_box.search import Seen, Variants
from attnlib.clinic.black_box.slots import WAYS
from attnlib.clinic.black_box.traits import NORMS, NOTHING, Found, Traits
from attnlib.clinic.case import RIGHT, Faults
from attnlib.clinic.match import HALF_PRECISION
from attnlib.clinic.subject import Answer
from attnlib.shapes import Array

BASES = (10000.0, 500000.0, 1000000.0, 100.0)  # of RoPE, as models have them
PATIENCE = 4.0  # CPU seconds for a search that finds nothing


@dataclass(frozen=True)
class Diagnosis:
    """What the ordinary answers of a subject fit."""

    traits: Traits
    readings: tuple[Faults, ...]  # empty: nothing fits; (RIGHT,): nothing is wrong
    found: Found
    questions: tuple[Any, ...]
    answers: tuple[Answer, ...]
    untested: tuple[str, ...] = ()

    @property
    def base(self) -> Faults | None:
        """The simplest reading, with ways of writing that are no mistakes."""
        return self.readings[0] if self.readings else None

    @property
    def seen(self) -> tuple[Seen, ...]:
        """The outputs; None where a call raised."""
        return tuple(answer.out for answer in self.answers)


@dataclass
class Exam:
    """One subject and the intent with which it is examined."""

    bench: Bench
    told: Traits  # what it is meant to do
    guesses: tuple[Traits, ...] = ()  # other kinds it may be, read off its attributes
    _variants: dict[tuple[Traits, tuple[tuple[str, float], ...]], Variants] = field(
        default_factory=dict
    )

    def diagnose(self) -> Diagnosis:
        """Ask all ordinary questions, and find what gives these answers."""
        questions, answers, untested = self._answers()
        seen = [answer.out for answer in answers]
        numbers = [out for out in seen if out is not None]
        if not any(np.nan_to_num(out).any() for out in numbers):  # blind or too slow
            return Diagnosis(
                self.told, (), NOTHING, tuple(questions), tuple(answers), untested
            )
        kinds = list(dict.fromkeys(self._kinds()))

        def verdict(
            traits: Traits, readings: Sequence[Faults], found: Found = NOTHING
        ) -> Diagnosis:
            return Diagnosis(
                traits,
                tuple(readings),
                found,
                tuple(questions),
                tuple(answers),
                untested,
            )

        rare = self._rare(kinds, questions, answers)
        for traits in (*kinds, *rare):
            right = self.variants(traits, NOTHING, questions).find(seen, most=0)
            if right:
                return verdict(traits, right)
        until = time.process_time() + PATIENCE
        late: tuple[Traits, ...] = ()  # it may be meant to be causal, and fail
        if not any(kind.causal for kind in kinds):
            late = tuple(replace(kind, causal=True) for kind in kinds[:1])
        known = tuple(kinds)
        singles = (1, (*known, *rare[:8]), WAYS[:2]), (1, known, WAYS[2:])
        pairs = (
            (2, known[:3], WAYS[:2]),
            (1, late, WAYS),
            (2, known[:3], WAYS[2:]),
            (2, known[3:], WAYS),
            (2, late, WAYS),
        )
        for plans in (singles, pairs):
            for most, tried, ways in plans:
                for traits in tried:
                    found = self._numbers(traits, questions, answers)
                    variants = self.variants(traits, found, questions)
                    variants.until = until
                    readings = variants.find(seen, most, ways)
                    if readings:
                        return verdict(traits, readings, found)
            if plans is pairs:
                for traits in known[:2]:
                    variants = self.variants(traits, NOTHING, questions)
                    readings = variants.find(seen, 2, WAYS[:2], beside="online")
                    if readings:
                        return verdict(traits, readings)
            rough = self._roughly(kinds, questions, seen) if plans is singles else None
            if rough is not None:
                return verdict(*rough)
        return verdict(kinds[0], ())

    def _roughly(
        self, kinds: Sequence[Traits], questions: Sequence[Any], seen: Sequence[Seen]
    ) -> tuple[Traits, list[Faults]] | None:
        """A kind that is right, as far as half precision goes."""
        for traits in kinds:
            variants = self.variants(traits, NOTHING, questions)
            for way in WAYS:
                if variants.fits(way, seen, HALF_PRECISION):
                    # A norm adds a small number to what it divides by: no mistake.
                    more = frozenset() if traits.qk_norm else frozenset({"half_inside"})
                    return traits, [way | more]
        return None

    def variants(
        self, traits: Traits, found: Found, questions: Sequence[Any]
    ) -> Variants:
        """All variants of one kind, kept for the next question about them."""
        key = (traits, tuple(sorted(found.items())))
        if key not in self._variants:
            slots = dict(self.bench.slots(traits))
            if "scale" in found:
                slots["scale"] = (*slots["scale"], "scale_other")
            if "slope_0" in found:
                slots["alibi"] = (*slots["alibi"], "slopes_other")
            if "cap" in found and "cap" in slots:
                slots["cap"] = (*slots["cap"], "cap_other")
            if "fill" in found and "mask" in slots:
                slots["mask"] = (*slots["mask"], "mask_fill_other", "mask_fill_added")

            def simulate(number: int, faults: Faults) -> Array:
                return self.bench.simulate(questions[number], traits, faults, found)

            self._variants[key] = Variants(
                simulate, slots, WAYS, self._plain(traits, questions)
            )
        return self._variants[key]

    def _plain(self, traits: Traits, questions: Sequence[Any]) -> frozenset[int]:
        """Questions in which nothing is hidden."""
        if traits.causal or traits.window is not None:
            return frozenset()
        hidden = (self.bench.hides(question) for question in questions)
        return frozenset(i for i, hides in enumerate(hidden) if not hides)

    def _answers(self) -> tuple[list[Any], list[Answer], tuple[str, ...]]:
        questions, answers, untested = [], [], []
        for question in self.bench.questions:
            answer = self.bench.ask(question)
            refused = answer.out is None or bool(answer.sentence)
            if question.optional and refused and not answer.timed_out:
                untested.append(f"It does not take {question.name}.")
                continue
            questions.append(question)
            answers.append(answer)
            if answer.timed_out:
                break
        return questions, answers, tuple(untested)

    def _kinds(self) -> list[Traits]:
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
            kinds = [k for kind in kinds for k in (kind, *self._placed(kind))]
        if signs.normed and not self.told.qk_norm:
            kinds = [k for kind in kinds for k in (kind, *self._normed(kind))]
        return kinds

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

    def _rare(
        self,
        kinds: Sequence[Traits],
        questions: Sequence[Any],
        answers: Sequence[Answer],
    ) -> list[Traits]:
        """Kinds with a number that only the outputs tell, and RoPE as few have it."""
        return [*self._numbered(kinds, questions, answers), *self._turned(kinds)]

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

    def _numbers(
        self, traits: Traits, questions: Sequence[Any], answers: Sequence[Answer]
    ) -> dict[str, float]:
        """A scale and a fill value, as the outputs show them."""
        found: dict[str, float] = {}
        if traits.softcap is not None:
            value = self._cap(replace(traits, softcap=None))
            if value is not None:
                found["cap"] = value
        for _, view in self._xray(questions, answers, traits):
            weights, allowed = view.weights, np.asarray(view.allowed)
            if traits.alibi and "slope_0" not in found:
                slopes = influence.slopes(
                    weights, view.raw_scores * view.sizes["d_k"] ** -0.5, allowed
                )
                if slopes is not None:
                    found |= {f"slope_{h}": float(s) for h, s in enumerate(slopes)}
            if "scale" not in found and allowed.all():
                for value in influence.scales(weights, view.q, view.k):
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
