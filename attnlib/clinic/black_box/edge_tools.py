"""What every look at the edge shares: asking, comparing, noting what was shown."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from attnlib.clinic.black_box.exam import Diagnosis, Exam
from attnlib.clinic.black_box.scores import Unforeseen
from attnlib.clinic.black_box.search import Seen, same, tolerances
from attnlib.clinic.case import Faults
from attnlib.clinic.match import HALF_PRECISION
from attnlib.clinic.subject import Answer


@dataclass(frozen=True)
class Shown:
    """One mistake that an extreme question showed."""

    key: str
    question: Any
    answer: Answer
    right: Seen  # what is right there
    number: float | None = None  # a number read off, such as a fill value


@dataclass
class Extras:
    """What the extreme questions showed."""

    mistakes: list[Shown] = field(default_factory=list)
    cautions: list[Shown] = field(default_factory=list)
    laws: list[tuple[str, Shown]] = field(default_factory=list)  # broken, without name
    untested: list[str] = field(default_factory=list)


class Edge:
    """The tools that each look at the edge shares."""

    def __init__(self, exam: Exam, known: Diagnosis, extras: Extras) -> None:
        self.exam, self.known, self.extras = exam, known, extras
        self.base: Faults = known.base or frozenset()

    def ask(self, kind: str) -> tuple[Any, Answer] | None:
        question = self.exam.bench.extreme(kind, self.known.traits)
        if question is None:
            return None
        if self.known.traits.bias is not None and self.out(question) is None:
            return None  # the bias at such places was never seen
        answer = self.exam.bench.ask(question)
        if answer.timed_out:
            self.extras.untested.append(f"{question.name}: it took too long.")
            return None
        return question, answer

    def turned(self, asked: tuple[Any, Answer]) -> tuple[Any, Answer] | None:
        """The same with a mask that says the opposite."""
        question = asked[0]
        parts = ("mask", "padding") if hasattr(question, "padding") else ("mask",)
        turned = {p: getattr(question, p) for p in parts}
        said = {p: ~part for p, part in turned.items() if part is not None}
        other = replace(question, **said)
        answer = self.exam.bench.ask(other)
        return None if answer.timed_out else (other, answer)

    def out(self, question: Any, *more: str, base: Faults | None = None) -> Seen:
        """What the known behaviour, and some mistakes more, give."""
        faults = (self.base if base is None else base) | frozenset(more)
        with np.errstate(all="ignore"):
            try:
                return np.asarray(
                    self.exam.bench.simulate(
                        question, self.known.traits, faults, self.known.found
                    )
                )
            except (ValueError, IndexError, Unforeseen):
                return None

    def fits(self, yours: Seen, *candidates: Seen, rough: bool = False) -> bool:
        """Whether an answer is one of these.

        `rough`: scores are so large that float32, in which many take a softmax, rounds
        them to hundredths; what is wrong there is wrong altogether.
        """
        tolerance = HALF_PRECISION if rough else tolerances([yours])[-1]
        return any(same(yours, other, tolerance) for other in candidates)

    def usual(self, asked: tuple[Any, Answer]) -> bool:
        """Whether the answer is that of the known behaviour."""
        question, answer = asked
        plain = self.out(question), self.out(question, "guarded")
        return self.fits(answer.out, *plain, rough=True)

    def shown(
        self, key: str, asked: tuple[Any, Answer], number: float | None = None
    ) -> Shown:
        question, answer = asked
        return Shown(key, question, answer, self.right(question), number)

    def right(self, question: Any) -> Seen:
        """What is right; queries that may look at nothing get zeros."""
        return self.out(question, "guarded", base=frozenset())

    def mistake(
        self, key: str, asked: tuple[Any, Answer], number: float | None = None
    ) -> None:
        self.extras.mistakes.append(self.shown(key, asked, number))

    def law(self, law: str, asked: tuple[Any, Answer]) -> None:
        self.extras.laws.append((law, self.shown("", asked)))

    def has(self, *keys: str) -> bool:
        """Whether one of these mistakes was found, here or before."""
        found = self.base | {shown.key for shown in self.extras.mistakes}
        return bool(found & set(keys))


AXES = (
    "axis_second_last",
    "axis_heads",
    "softmax_over_heads",
    "axis_zero",
    "axis_table",
    "axis_heads_and_table",
    "axis_batch_and_heads",
    "axis_everything",
    "softmax_missing",
    "sigmoid",
    "not_normalised",
    "log_softmax",
    "divides_by_mean",
)


WEAK = ("mask_fill_10000", "mask_fill_100", "mask_fill_10", "mask_fill_added")


DIVIDED = ("mask_after_divided", "mask_after_divided_safely")


FILLS = (
    "mask_fill_10",
    "mask_fill_100",
    "mask_fill_10000",
    "mask_fill_other",
    "mask_fill_added",
    "mask_fill_zero",
    "mask_fill_one",
    "mask_before_scale",
    "mask_added_before_scale",
)


NATURAL = ("mask_added", "mask_subtracted", "mask_after", "mask_ignored", *FILLS)


UNHIDES = (  # with these, an empty row is not what the subject takes for one
    "mask_inverted",
    "mask_replaced_by_causal",
    "mask_replaced_by_top_left",
    "mask_transposed",
    "mask_times_infinity",
    "causal_dropped_beside_mask",
    "mask_dropped_beside_causal",
    "combined_by_or",
    "padding_missing",
    "padding_on_queries",
    "softmax_missing",
    "softmax_on_out",
    "sigmoid",
    "cap_after_mask",
    "softmax_twice",
    "batch_first",
)


def lost(out: Seen, right: Seen) -> bool:
    """NaN or infinity, or whole rows of zeros, where there should be numbers."""
    if out is None or right is None or out.shape != right.shape:
        return False
    zeros = (out == 0).all(axis=-1) & (right != 0).any(axis=-1)
    return bool(zeros.any() or (not_finite(out) and not not_finite(right)))


def not_finite(out: Seen) -> bool:
    return out is not None and not np.isfinite(out).all()
