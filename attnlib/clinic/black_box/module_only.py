"""What only a module can do wrong: no output projection, training unlike evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from attnlib.clinic.black_box.bench import Bench
from attnlib.clinic.black_box.exam import Diagnosis
from attnlib.clinic.black_box.findings import finding
from attnlib.clinic.black_box.module_bench import ModuleBench
from attnlib.clinic.black_box.search import same
from attnlib.clinic.match import SINGLE_PRECISION
from attnlib.clinic.report import Finding
from attnlib.clinic.sight import number

DROPS = ("p", "dropout", "dropout_p", "attn_dropout", "attention_dropout", "drop")


def found(bench: Bench, known: Diagnosis) -> list[Finding]:
    """The mistakes of a module beside those of its attention."""
    if not isinstance(bench, ModuleBench):
        return []
    mistakes = []
    w = bench.weights
    if w.W_o is None and w.n_heads > 1 and "W_o_missing" not in (known.base or ()):
        n = w.n_heads
        mistakes.append(
            finding(
                "W_o_none",
                f"the results of {n} heads come out side by side: no matrix after them "
                "was found, where one is right.",
                0.0,
                1.0,
            )
        )
    other = _training(bench, known)
    return mistakes if other is None else [*mistakes, other]


def _training(bench: ModuleBench, known: Diagnosis) -> Finding | None:
    for question, answer in zip(known.questions, known.answers, strict=True):
        with _no_dropout(bench.module):
            first = bench.ask(question, train=True).out
        if first is None or answer.out is None or first.shape != answer.out.shape:
            continue
        if same(first, answer.out, SINGLE_PRECISION):
            continue
        apart = np.nan_to_num(np.abs(first - answer.out), nan=np.inf)
        at = tuple(int(i) for i in np.unravel_index(apart.argmax(), apart.shape))
        return finding(
            "train_differs",
            f"given {question.name}, the output at {list(at)} is "
            f"{number(float(first[at]))} in training and "
            f"{number(float(answer.out[at]))} in evaluation.",
            float(first[at]),
            float(answer.out[at]),
        )
    return None


def of_eval_only(bench: Bench, known: Diagnosis) -> Finding | None:
    """What has no name in evaluation, where all is right in training: one mistake."""
    if not isinstance(bench, ModuleBench) or not _right_in_training(bench, known):
        return None
    return _training(bench, known)


def _right_in_training(bench: ModuleBench, known: Diagnosis) -> bool:
    """Whether all that it answers in training is right.

    An error there says nothing: in evaluation, where forms of masks are tried, one that
    it never reads may have any form. But a mask must have been read, if there are any.
    """
    hides = {bench.hides(question): False for question in known.questions}
    for question in known.questions:
        with _no_dropout(bench.module):
            trained = bench.ask(question, train=True).out
        if trained is None:
            continue
        hides[bench.hides(question)] = True
        right = bench.simulate(question, known.traits, frozenset({"guarded"}))
        if not same(trained, right, SINGLE_PRECISION):
            return False
    return all(hides.values())


def of_eval_alone(bench: Bench, known: Diagnosis, mistake: Finding) -> bool:
    """Whether a mistake of evaluation is not there in training: it is one mistake."""
    if mistake.key in ("train_differs", "W_o_none") or not isinstance(
        bench, ModuleBench
    ):
        return False
    return _right_in_training(bench, known)


@contextmanager
def _no_dropout(module: Any) -> Iterator[None]:
    """The rates of all dropouts at 0, in the copy that is examined."""
    kept = [
        (part, name, getattr(part, name))
        for part in module.modules()
        for name in DROPS
        if isinstance(getattr(part, name, None), float)
    ]
    try:
        for part, name, _ in kept:
            setattr(part, name, 0.0)
        yield
    finally:
        for part, name, rate in kept:
            setattr(part, name, rate)
