"""Does the same question get the same answer twice? If not, what is behind the chance?

Dropout sets some weights to 0 and divides the others by 1 - p. Values that are one-hot
show the weights themselves, and over some calls each weight is kept at least once: so
the weights without dropout can be put together again, and examined.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from attnlib.clinic.black_box.bench import Bench, Signs
from attnlib.clinic.black_box.exam import Diagnosis
from attnlib.clinic.black_box.findings import finding
from attnlib.clinic.black_box.slots import Slots
from attnlib.clinic.black_box.stages import Stages
from attnlib.clinic.black_box.traits import NOTHING, PLAIN, Found, Traits
from attnlib.clinic.case import RIGHT, Faults, Result, View
from attnlib.clinic.report import Finding
from attnlib.clinic.sight import number
from attnlib.clinic.subject import Answer
from attnlib.clinic.tensors import draw, loaded, settings_put_back
from attnlib.shapes import Array, Mask

SHOWN = "Its output is random: only its weights could be tested."
OFF = "Its output is random: all else was tested with its dropout off."
CALLS = 3
MANY = 24  # calls after which each weight was kept at least once, for p up to a half


def found(bench: Bench) -> Finding | None:
    """Dropout that is never off: two calls with the same numbers differ."""
    question = bench.questions[0]
    outs = [answer.out for answer in again(bench, question, CALLS)]
    first = outs[0]
    if first is None:
        return None
    for other in outs[1:]:
        if other is None or other.shape != first.shape:
            continue
        apart = np.nan_to_num(np.abs(first - other))
        if not apart.max(initial=0.0) > 1e-6:
            continue
        at = tuple(int(i) for i in np.unravel_index(apart.argmax(), apart.shape))
        return finding(
            "dropout_always",
            f"asked twice, the output at {list(at)} is {number(float(first[at]))} and "
            f"then {number(float(other[at]))}.",
            float(first[at]),
            float(other[at]),
        )
    return None


def is_still(bench: Bench) -> bool:
    """Whether equal questions get equal answers now, as when dropout is off."""
    question = bench.questions[0]
    outs = [answer.out for answer in again(bench, question, CALLS)]
    first = outs[0]
    return first is not None and all(
        out is not None and np.array_equal(out, first, equal_nan=True) for out in outs
    )


def again(bench: Bench, question: Any, times: int) -> list[Answer]:
    """The same question several times, with other random numbers each time."""
    answers = []
    with _dice_put_back():
        for _ in range(times):
            draw()
            answers.append(bench.ask(question))
    return answers


@contextmanager
def _dice_put_back() -> Iterator[None]:
    state, dice = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        if loaded():
            with settings_put_back():
                yield
        else:
            yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
        random.setstate(dice)


class WithoutDropout:
    """A bench whose weights are put together from many calls."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.takes = bench, bench.takes
        self.dtype, self.fixed_d_k = bench.dtype, bench.fixed_d_k
        self.questions: Sequence[Any] = [q for q in bench.questions if q.xray]
        self.kept: float | None = None

    def ask(self, question: Any) -> Answer:
        """The weights, each as large as when it was kept; rows sum to 1 unmasked."""
        if not question.xray:
            return Answer(sentence="its output is random")
        answers = again(self.bench, question, MANY)
        outs = [a.out for a in answers if a.out is not None]
        if not outs or any(out.shape != outs[0].shape for out in outs):
            return answers[0]
        whole = np.max(outs, axis=0)
        if self.kept is None:
            weights = self.bench.view(question, whole, PLAIN).weights
            sums = np.abs(whole if weights is None else weights).sum(axis=-1)
            self.kept = float(np.median(sums[sums > 0])) if (sums > 0).any() else 1.0
        return replace(answers[0], out=whole / self.kept)

    def simulate(
        self,
        question: Any,
        traits: Traits = PLAIN,
        faults: Faults = RIGHT,
        found: Found = NOTHING,
        stages: Stages | None = None,
    ) -> Array:
        """What a variant gives."""
        return self.bench.simulate(question, traits, faults, found, stages)

    def scores(
        self, question: Any, traits: Traits, faults: Faults, found: Found
    ) -> Array:
        """As the subject's."""
        return self.bench.scores(question, traits, faults, found)

    def hides(self, question: Any) -> bool:
        """As the subject's."""
        return self.bench.hides(question)

    def slots(self, traits: Traits) -> Slots:
        """Those of the subject."""
        return self.bench.slots(traits)

    def view(self, question: Any, out: Result, traits: Traits) -> View:
        """That of the subject."""
        return self.bench.view(question, out, traits)

    def in_two_parts(self) -> None:
        """Nothing at the edge is asked."""
        return None

    def gradients(self, question: Any) -> Array:
        """By chance."""
        return np.zeros(0)

    def signs(self) -> Signs:
        """Unknown."""
        return Signs()

    def sees(self) -> Mask:
        """Unknown: by chance, any output changes."""
        return np.ones((9, 9), dtype=bool)

    def extreme(self, kind: str, traits: Traits) -> None:
        """Nothing at the edge is asked."""
        return None


def same_ones(bench: Bench, known: Diagnosis) -> Finding | None:
    """Dropout that draws the same each time: weights are 0, or larger by one factor."""
    for question, answer in zip(known.questions, known.answers, strict=True):
        if not question.xray or answer.out is None or bench.hides(question):
            continue
        right = bench.view(question, bench.simulate(question), PLAIN).weights
        mine = bench.view(question, answer.out, PLAIN).weights
        if mine is None or right is None or mine.shape != right.shape:
            continue
        kept = mine != 0
        if kept.all() or not kept.any():
            continue
        factors = mine[kept] / right[kept]
        factor = float(np.median(factors))
        if factor < 1 + 1e-3 or np.abs(factors - factor).max() > 1e-3 * factor:
            continue
        return finding(
            "dropout_same",
            f"{int((~kept).sum())} of {kept.size} weights are 0, and the others are "
            f"{number(factor)} times the right ones.",
            factor,
            1.0,
        )
    return None
