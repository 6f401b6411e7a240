"""What an exam needs to know of a subject: questions, answers, and what is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from attnlib.clinic.black_box.core import attend, scores_of
from attnlib.clinic.black_box.edges import function_edge
from attnlib.clinic.black_box.questions import Maker, Question, function_questions
from attnlib.clinic.black_box.slots import Slots, function_slots
from attnlib.clinic.black_box.stages import Stages
from attnlib.clinic.black_box.traits import NOTHING, PLAIN, Found, Traits
from attnlib.clinic.case import RIGHT, Faults, Result, View
from attnlib.clinic.subject import Answer, FunctionSubject, ModuleSubject, Takes
from attnlib.shapes import Array, Mask


@dataclass(frozen=True)
class Signs:
    """What a few calls say about the kind of an attention."""

    places: bool = False  # keys in another order give another output
    normed: bool = False  # queries several times as large change nothing


class Bench(Protocol):
    """A subject beside its right version and all its wrong ones."""

    @property
    def takes(self) -> Takes:
        """What the subject can be handed."""

    @property
    def dtype(self) -> str | None:
        """The float type in which it must work."""

    @property
    def fixed_d_k(self) -> int | None:
        """d_k, where the subject has one of its own."""

    @property
    def questions(self) -> Sequence[Any]:
        """The ordinary questions, each with a name."""

    def ask(self, question: Any) -> Answer:
        """Put a question to the subject."""

    def simulate(
        self,
        question: Any,
        traits: Traits = PLAIN,
        faults: Faults = RIGHT,
        found: Found = NOTHING,
        stages: Stages | None = None,
    ) -> Array:
        """What a variant would answer; `stages` are those of this kind and question."""

    def scores(
        self, question: Any, traits: Traits, faults: Faults, found: Found
    ) -> Array:
        """The scores of a variant, as they meet the mask."""

    def hides(self, question: Any) -> bool:
        """Whether the question hides something from somebody."""

    def slots(self, traits: Traits) -> Slots:
        """All mistakes that this kind of attention can hold."""

    def view(self, question: Any, out: Result, traits: Traits) -> View:
        """What one answer lets us see."""

    def in_two_parts(self) -> tuple[Any, Answer] | None:
        """The last tokens with a cache of the first, and the question they answer."""

    def gradients(self, question: Any) -> Array:
        """All gradients of the sum of the output, one after another; none in NumPy."""

    def signs(self) -> Signs:
        """Whether places count, and whether the lengths of queries do not."""

    def sees(self) -> Mask:
        """(n, n): whether the output of token i changes with token j."""

    def extreme(self, kind: str, traits: Traits) -> Any | None:
        """A question at the edge; None where the subject cannot be asked it."""


def signs(
    plain: Array | None,
    turned: Array | None,
    louder: Array | None,
    twice: Array | None = None,
) -> Signs:
    """Compare the last token's outputs.

    With the keys in another order, and with all tokens twice over, one after another:
    the second shows places that only the queries are turned by.
    """

    def moved(other: Array | None) -> bool:
        if plain is None or other is None or 0 in (plain.size, other.size):
            return False
        last, its = plain[..., -1, :], other[..., -1, :]
        return last.shape == its.shape and not np.abs(last - its).max() < 1e-3

    placed = moved(turned) or moved(twice)
    return Signs(placed, louder is not None and not moved(louder))


def gradients_of(
    subject: FunctionSubject | ModuleSubject, ask: Callable[[], Answer]
) -> Array:
    """The gradients of one call; nothing where there are none, or the call fails."""
    call: Any = getattr(subject.ask, "__self__", None)
    if call is None or not getattr(call, "tensors", True):
        return np.zeros(0)
    call.differentiate, call.grads = True, ()
    try:
        answer = ask()
    finally:
        call.differentiate = False
    if answer.out is None or not call.grads:
        return np.zeros(0)
    return np.concatenate([np.ravel(grad) for grad in call.grads])


class FunctionBench:
    """A function of q, k and v."""

    fixed_d_k = None

    def __init__(
        self,
        subject: FunctionSubject,
        seed: int,
        dtype: str | None = None,
        causal: bool = False,
    ) -> None:
        self.subject, self.takes, self.dtype = subject, subject.takes, dtype
        self.seed, self.causal = seed, causal
        self.must_half = dtype == "float16"
        call = getattr(subject.ask, "__self__", None)
        if self.must_half and getattr(call, "dtype", None) == "float64":
            self.dtype = None  # its fill value does not fit: the rest is seen so
        self.questions: list[Question] = function_questions(
            np.random.default_rng(seed), subject.takes
        )

    def ask(self, question: Question) -> Answer:
        """Call the function."""
        q = question
        causal = (q.causal or self.causal) if self.takes.causal else None
        dtype = "float16" if q.half else self.dtype
        return self.subject.call(q.q, q.k, q.v, q.mask, causal=causal, dtype=dtype)

    def simulate(
        self,
        question: Question,
        traits: Traits = PLAIN,
        faults: Faults = RIGHT,
        found: Found = NOTHING,
        stages: Stages | None = None,
    ) -> Array:
        """The output of a variant, (..., n_q, d_v)."""
        q = question
        _, out = attend(
            q.q,
            q.k,
            q.v,
            q.mask,
            q.causal,
            traits=traits,
            faults=faults,
            found=found,
            stages=stages,
        )
        return out

    def scores(
        self, question: Question, traits: Traits, faults: Faults, found: Found
    ) -> Array:
        """(..., n_q, n_k)."""
        return scores_of(question.q, question.k, question.v, traits, faults, found)

    def hides(self, question: Question) -> bool:
        """Whether a mask is handed in, or asked for."""
        return question.mask is not None or question.causal

    def slots(self, traits: Traits) -> Slots:
        """All mistakes of a function that takes these arguments."""
        takes = self.takes
        return function_slots(
            traits,
            mask=takes.mask or takes.padding,
            causal=takes.causal,
            grouped=takes.grouped,
        )

    def view(self, question: Question, out: Result, traits: Traits) -> View:
        """The weights, where the values are one-hot."""
        q, k = question.q, question.k
        raw = q @ np.swapaxes(k, -1, -2) if q.shape[-3:-2] == k.shape[-3:-2] else None
        allowed = None
        if raw is not None:
            look = np.ones(raw.shape, bool)
            if question.mask is not None:
                look &= question.mask
            if question.causal or traits.causal:
                n_q, n_k = raw.shape[-2:]
                look &= np.tri(n_q, n_k, n_k - n_q, dtype=bool)
            allowed = look
        weights = (
            out
            if question.xray and raw is not None and out.shape == raw.shape
            else None
        )
        sizes = {
            "n_q": q.shape[-2],
            "n_k": k.shape[-2],
            "d_k": q.shape[-1],
            "d_v": question.v.shape[-1],
            "n_heads": q.shape[-3] if q.ndim > 2 else 1,
            "d_model": q.shape[-1] * (q.shape[-3] if q.ndim > 2 else 1),
        }
        return View(weights, raw, q, k, allowed, sizes)

    def in_two_parts(self) -> None:
        """A function has no cache."""
        return None

    def gradients(self, question: Question) -> Array:
        """Those of q, k and v, where they are tensors."""
        return gradients_of(self.subject, lambda: self.ask(question))

    def signs(self) -> Signs:
        """The last query sees all keys, whether it is causal or not."""
        make = Maker(np.random.default_rng(self.seed + 4), self.takes)
        asked = make.ask("signs", 5, 5, 6, 4)
        k, v = asked.k.copy(), asked.v.copy()
        k[..., 2:4, :], v[..., 2:4, :] = (
            asked.k[..., 3:1:-1, :],
            asked.v[..., 3:1:-1, :],
        )
        plain = self.ask(asked).out
        turned = self.ask(replace(asked, k=k, v=v)).out
        louder = self.ask(replace(asked, q=asked.q * 4.0)).out
        q, k, v = (np.concatenate([a, a], -2) for a in (asked.q, asked.k, asked.v))
        twice = self.ask(replace(asked, q=q, k=k, v=v)).out
        return signs(plain, turned, louder, twice)

    def sees(self) -> Mask:
        """(n, n): whether the output of query i changes with the value of key j."""
        n = 10
        make = Maker(np.random.default_rng(self.seed + 1), self.takes)
        asked = make.xray("who sees whom", n, n, 4)
        out = self.ask(asked).out
        if out is None or out.shape != (*asked.q.shape[:-1], n):
            return np.ones((n, n), dtype=bool)
        return np.asarray((out.reshape(-1, n, n) != 0).any(axis=0))  # NaN counts

    def extreme(self, kind: str, traits: Traits) -> Question | None:
        """See `edges`."""
        return function_edge(kind, self.takes, self.seed, traits, half=self.must_half)
