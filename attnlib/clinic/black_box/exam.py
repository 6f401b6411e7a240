"""Diagnose a subject from its ordinary answers: its kind, and its mistakes.

First the right ways: plain, then with what can be found out (causal by itself, a
window, a softcap, QK-norm, RoPE, ALiBi). Only then single mistakes and pairs. A set of
mistakes counts when it gives every answer, so nothing is named by resemblance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from attnlib.clinic.black_box import influence
from attnlib.clinic.black_box.bench import Bench
from attnlib.clinic.black_box.kinds import Kinds
from attnlib.clinic.black_box.remembered import Known
from attnlib.clinic.black_box.search import Patience, Seen, Variants
from attnlib.clinic.black_box.slots import NAN_ZEROED, WAYS
from attnlib.clinic.black_box.stages import Stages
from attnlib.clinic.black_box.traits import NOTHING, Found, Traits
from attnlib.clinic.case import Faults
from attnlib.clinic.match import HALF_PRECISION
from attnlib.clinic.subject import Answer
from attnlib.shapes import Array

PATIENCE = 60_000  # comparisons of a search that finds nothing
FIRST = 3  # kinds whose rarer ways of writing are tried first
FILLED = ("mask_fill_other", "mask_fill_added", "mask_added_before_scale")
FILLS = {  # what was read off, as the code that puts it there has it
    "mask_fill_other": "fill",
    "mask_fill_added": "fill",
    "mask_before_scale": "fill_before_scale",
    "mask_added_before_scale": "fill_before_scale",
}
SECONDS = 8.0  # of the processor, where each takes long


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
    overflowed: list[tuple[Any, Answer]] = field(default_factory=list)
    _variants: dict[tuple[Traits, tuple[tuple[str, float], ...]], Variants] = field(
        default_factory=dict
    )

    @property
    def _kinds(self) -> Kinds:
        return Kinds(self.bench, self.told, self.guesses)

    def diagnose(self) -> Diagnosis:
        """Ask all ordinary questions, and find what gives these answers."""
        questions, answers, untested = self._answers()
        seen = [answer.out for answer in answers]
        given = [out for out in seen if out is not None]
        if not any(np.nan_to_num(out).any() for out in given):  # blind or too slow
            return Diagnosis(
                self.told, (), NOTHING, tuple(questions), tuple(answers), untested
            )
        kinds = list(dict.fromkeys(self._kinds.likely()))

        def verdict(
            traits: Traits, readings: Sequence[Faults], found: Found = NOTHING
        ) -> Diagnosis:
            return Diagnosis(
                traits,
                tuple(sorted(readings, key=lambda one: _odd(one, found))),
                found,
                tuple(questions),
                tuple(answers),
                untested,
            )

        rare = self._kinds.rare(kinds, questions, answers)
        more: list[Traits] = []
        for traits in chain(kinds, rare, self._kinds.others(kinds, questions, answers)):
            right = self.variants(traits, NOTHING, questions).find(seen, most=0)
            if right:
                return verdict(traits, right)
            more += [traits] if traits.other else []
        late: tuple[Traits, ...] = ()  # it may be meant to be causal, and fail
        if not any(kind.causal for kind in kinds):
            late = tuple(replace(kind, causal=True) for kind in kinds[:1])
        known = tuple(kinds)
        sure = tuple(kind for kind in more if kind.bias)
        read = tuple(kind for kind in more if not kind.bias)
        singles = (
            (1, sure, WAYS),
            (1, (*known, *rare[:8]), WAYS[:2]),
            (1, known[:FIRST], WAYS[2:]),
            (1, () if self.bench.fixed_d_k is None else known[:1], (NAN_ZEROED,)),
            (1, read, WAYS),
            (2, (*sure, *read)[:2], WAYS[:2]),
        )
        pairs = (
            (2, known[:FIRST], WAYS[:2]),
            (1, late, WAYS),
            (2, known[:1], WAYS[2:]),
            (2, known[FIRST:], WAYS[:2]),
            (2, late, WAYS[:2]),
            (2, (*known[1:], *late), WAYS[2:]),
            (1, known[FIRST:], WAYS[2:]),
        )
        read_off: dict[Traits, Found] = {}  # each costs a call of the subject
        for plans in (singles, pairs):
            patience = Patience(PATIENCE, SECONDS)
            for most, tried, ways in plans:
                for traits in tried:
                    if traits not in read_off:
                        numbers = self._kinds.numbers(traits, questions, answers)
                        read_off[traits] = numbers
                    found = read_off[traits]
                    variants = self.variants(traits, found, questions)
                    variants.patience = patience
                    readings = variants.find(seen, most, ways)
                    if readings:
                        return verdict(traits, readings, found)
            if plans is pairs:
                for traits in known[:2]:
                    variants = self.variants(traits, NOTHING, questions)
                    variants.patience = Patience(PATIENCE / 10, SECONDS / 10)
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
        for traits in () if getattr(self.bench, "kept", None) is not None else kinds:
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
                slots["mask"] = (*slots["mask"], *FILLED)

            stages = [Stages() for _ in questions]

            def simulate(number: int, faults: Faults) -> Array:
                asked, common = questions[number], stages[number]
                return self.bench.simulate(asked, traits, faults, found, common)

            plain = self._plain(traits, questions)
            known = None if traits.other else Known(questions, traits, found)
            self._variants[key] = Variants(
                simulate, slots, WAYS, plain, known=known, normed=bool(traits.qk_norm)
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
            if "without overflow" in str(answer.error):  # a fill that is too large
                self.overflowed.append((question, answer))
                continue
            refused = answer.out is None or bool(answer.sentence)
            if question.optional and refused and not answer.timed_out:
                untested.append(f"It does not take {question.name}.")
                continue
            questions.append(question)
            answers.append(answer)
            if answer.timed_out:
                break
        return questions, answers, tuple(untested)


def _odd(reading: Faults, found: Found) -> bool:
    """Whether it takes a fill that nobody types, such as -22.627 for -8 times √8."""
    fills = (found.get(FILLS[key], -10.0) for key in reading & FILLS.keys())
    return not all(influence.is_round(fill) for fill in fills)
