"""Examine any attention as a black box, and name its mistakes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from attnlib.clinic.black_box import (
    chance,
    extremes,
    findings,
    laws,
    module_only,
    readings,
    recovered,
    remembered,
    unlike,
)
from attnlib.clinic.black_box.bench import Bench, FunctionBench
from attnlib.clinic.black_box.edge_tools import Shown
from attnlib.clinic.black_box.exam import Exam
from attnlib.clinic.black_box.intent import Intent
from attnlib.clinic.black_box.module_bench import ModuleBench
from attnlib.clinic.dropout_off import dropout_off
from attnlib.clinic.make_subject import name_of
from attnlib.clinic.report import Finding, Report, Unknown
from attnlib.clinic.settle import settled
from attnlib.clinic.subject import FunctionSubject, ModuleSubject, Refusal, make_subject

SLOW = (
    "{} did not come to an end in the time that all calls together may take. Give it "
    "more with seconds=..., or hand in one that is faster."
)
FAULT = (
    "The examination itself failed ({}: {}). That is a fault of the clinic, not of "
    "what was handed in: please report it."
)


def examine(
    attention: object,
    *,
    n_heads: int | None = None,
    n_kv_heads: int | None = None,
    scale: float | None = None,
    mask: str = "may look",
    causal: bool | None = None,
    window: int | None = None,
    softcap: float | None = None,
    qk_norm: bool | None = None,
    rope: str | None = None,
    rope_base: float | None = None,
    alibi: bool | None = None,
    empty_rows: bool = True,
    dtype: str | None = None,
    part: str | None = None,
    seed: int = 0,
    seconds: float = 20.0,
) -> Report:
    """Name the mistakes of an attention, with the number that gave each away.

    healthy = every answer is that of softmax(q k^T / sqrt(d_k)) v, or of a known kind

    The attention is called some dozens of times on small arrays with random numbers.
    What it gives is compared with a right attention, then with one wrong in one known
    way, then in two. Nothing is named by resemblance: a mistake counts when it gives
    every answer. A module is copied first; its weights, its mode, its hooks and the
    random state stay as they are.

    Args:
        attention: a function (q, k, v, mask=None) of NumPy arrays or tensors, with or
            without a mask, or an nn.Module of tokens (batch, n, d_model). For another
            signature hand in a lambda.
        n_heads: how many heads a module has that does not say so itself.
        n_kv_heads: how many heads its keys have; as many as n_heads if left out.
        scale: the factor on the scores that is meant; 1 / sqrt(d_k) if left out.
        mask: what its mask means: "may look" (True = may look), "blocked" (True = must
            not look) or "added" (0 and minus infinity, added to the scores).
        causal: True: it is meant to hide the future by itself. Left out: found out.
        window: how many keys, its own position counted, a query is meant to see.
        softcap: the cap that is meant.
        qk_norm: True: queries and keys are meant to be normed.
        rope: the layout that is meant, "interleaved" or "half".
        rope_base: the base of its frequencies; 10000 if left out.
        alibi: True: ALiBi is meant.
        empty_rows: False: no query is ever left without keys, so do not ask.
        dtype: a float type in which it must work, such as "float16".
        part: examine a part of attention instead, such as "alibi_slopes".
        seed: draws the numbers of the questions.
        seconds: how long all calls together may take.

    Returns:
        The report: healthy or not, mistakes, cautions, what is wrong without a name,
        what could not be tested. Bad input is a report, too: `refused` says why.

    Raises:
        ValueError: a keyword that has no such value.

    Cost: some hundred calls on arrays of a few hundred numbers; under a second.
    Source: the course's own; the mistakes are those of public reports.
    Lesson: 10.

    >>> import numpy as np
    >>> def attention(q, k, v):
    ...     scores = q @ np.swapaxes(k, -1, -2)
    ...     e = np.exp(scores - scores.max(-1, keepdims=True))
    ...     return e / e.sum(-1, keepdims=True) @ v
    >>> report = examine(attention)
    >>> report.healthy, report.codes
    (False, ('M01',))
    """
    intent = Intent(
        scale, causal, window, softcap, qk_norm, rope, rope_base, alibi, empty_rows
    )
    intent.check(mask, dtype, n_heads, n_kv_heads, seed, seconds)
    if part is not None:
        from attnlib.clinic.examine_part import examine_part

        return examine_part(
            attention,
            part,
            seed=seed,
            seconds=seconds,
            dtype=dtype,
            mask=mask,
            causal=causal,
            window=window,
            softcap=softcap,
            rope=rope,
            rope_base=rope_base,
            empty_rows=empty_rows,
            n_heads=n_heads,
            n_kv_heads=n_kv_heads,
            scale=scale,
            qk_norm=qk_norm,
            alibi=alibi,
        )
    return _examine(
        attention,
        intent,
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        mask=mask,
        dtype=dtype,
        seed=seed,
        seconds=seconds,
    )


def _examine(
    attention: object, intent: Intent, *, settle: bool = True, **asked: Any
) -> Report:
    """Examine a whole attention; once more if its answers can be read in two ways."""
    subject = make_subject(attention, **asked)
    if isinstance(subject, Refusal):
        return Report(subject=name_of(attention), refused=subject.sentence)
    bench = make_bench(subject, asked["seed"], asked["dtype"], bool(intent.causal))
    try:
        with np.errstate(all="ignore"):
            meant = intent.with_attributes(attention)
            report = without_chance(attention, subject, bench, meant, **asked)
    except Exception as error:  # a fault of the clinic is no verdict on anybody
        return Report(subject.name, refused=FAULT.format(type(error).__name__, error))
    finally:
        remembered.forget()
    again = readings.another(subject, report, asked["mask"], asked["dtype"])
    if again:
        other = _examine(attention, intent, **(asked | again))
        blamed = {one.key for one in other.mistakes} & readings.DOUBTED
        if not blamed and other.unknown is None:
            why = readings.WHY[next(iter(again))]
            return replace(other, untested=(*other.untested, why))
    if settle:
        other_of = functools.partial(_examine, intent=intent, settle=False, **asked)
        report = settled(report, attention, subject, other_of)
    report = readings.with_meaning(report, asked["mask"])
    return readings.of_torch(report) if readings.is_sdpa(attention) else report


def make_bench(
    subject: FunctionSubject | ModuleSubject,
    seed: int,
    dtype: str | None,
    causal: bool = False,
) -> Bench:
    """The questions that fit a subject."""
    if isinstance(subject, FunctionSubject):
        return FunctionBench(subject, seed, dtype, causal)
    return ModuleBench(subject, seed, dtype, causal)


def without_chance(
    attention: object, subject: Any, bench: Any, intent: Intent, **asked: Any
) -> Report:
    """Examine it; if its answers are random, with dropout off, or by its weights."""
    random = chance.found(bench)
    if random is None:
        return examined(subject, bench, intent)
    with dropout_off():
        quiet = make_subject(attention, **asked)
        if not isinstance(quiet, Refusal):
            still = make_bench(quiet, bench.seed, bench.dtype, bench.causal)
            if chance.is_still(still):
                return examined(quiet, still, intent, random)
    return examined(subject, chance.WithoutDropout(bench), intent, random)


SLIPS = ("AttributeError", "NameError", "UnboundLocalError")  # in the code for masks


def examined(
    subject: FunctionSubject | ModuleSubject,
    bench: Bench,
    intent: Intent,
    random: Finding | None = None,
) -> Report:
    """Put all questions, and write the report."""
    shown = isinstance(bench, chance.WithoutDropout)
    exam = Exam(bench, intent.traits(), intent.guesses())
    known = exam.diagnose()
    if any(answer.timed_out for answer in known.answers):
        return Report(subject=subject.name, refused=SLOW.format(subject.name))
    notes = [*subject.notes, *known.untested]
    slip = next((n for n in subject.notes if any(kind in n for kind in SLIPS)), None)
    mistakes: list[Finding] = []
    cautions: list[Finding] = []
    unknown: Unknown | None = None
    if random is not None:
        mistakes.append(random)
        notes.append(chance.SHOWN if shown else chance.OFF)
    for question, answer in exam.overflowed[:1]:
        shown_there = Shown("fill_billion", question, answer, None)
        mistakes.append(findings.of_edge(exam, known, shown_there))
    if known.base is None:
        dropped = chance.same_ones(bench, known)
        dropped = dropped or module_only.of_eval_only(bench, known)
        if dropped is not None:
            mistakes.append(dropped)
        elif not shown:
            unknown = unlike.described(bench, laws.broken(bench, known.traits))
    else:
        named = findings.of_base(exam, known)
        notes += readings.or_else(known)
        if bench.fixed_d_k is not None:
            unknown = _other_scale(named)
        mistakes += [
            one for one in named if unknown is None or one.key != "scale_other"
        ]
        mistakes += module_only.found(bench, known)
        if any(one.key == "train_differs" for one in mistakes):
            mistakes = [
                one
                for one in mistakes
                if not module_only.of_eval_alone(bench, known, one)
            ]
        extras = extremes.extremes(exam, known, empty_rows=intent.empty_rows)
        mistakes += [findings.of_edge(exam, known, one) for one in extras.mistakes]
        if any(one.key.startswith("mask_") for one in mistakes):
            mistakes = [one for one in mistakes if one.key != "half_inside"]
        cautions += [findings.of_edge(exam, known, one) for one in extras.cautions]
        notes += extras.untested
        if unknown is None and extras.laws and not mistakes:
            unknown = laws.at_edge(*extras.laws[0])
    if intent.rope_base is not None and not known.traits.rope:
        notes.append("No RoPE was found, so that rope_base says nothing.")
    if not (bench.takes.mask or bench.takes.padding):
        notes.append("It takes no mask, so masks were not tested.")
    changed = {name for answer in known.answers for name in answer.changed}
    if changed and unknown is None:
        names = " and ".join(sorted(changed))
        said = (
            f"It writes into {names}: the caller's own numbers are others afterwards."
        )
        unknown = Unknown("what is handed in stays as it is", said)
    if slip is not None and unknown is None:
        unknown = Unknown("a mask can be handed in", slip)
    weights, right = recovered.weights(exam, known)
    told, found = intent.told_and_found(known.traits)
    return Report(
        subject=subject.name,
        mistakes=tuple(_once(mistakes)),
        cautions=tuple(cautions),
        unknown=unknown,
        untested=tuple(dict.fromkeys(notes)),
        features=found if known.base is not None else (),
        meant=told,
        weights=weights,
        right_weights=right,
    )


def _once(mistakes: Sequence[Finding]) -> list[Finding]:
    return list({mistake.key: mistake for mistake in mistakes}.values())


def _other_scale(named: Sequence[Finding]) -> Unknown | None:
    """A scale that is no known slip is wrong, and has no name."""
    other = next((one for one in named if one.key == "scale_other"), None)
    if other is None:
        return None
    return Unknown("scores are divided by √d_k", other.evidence)
