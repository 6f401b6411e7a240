"""From what was found to findings: the name, the number that gave it away, the mend."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from attnlib.clinic.black_box.edge_tools import Shown
from attnlib.clinic.black_box.exam import FILLS, Diagnosis, Exam
from attnlib.clinic.black_box.scores import Unforeseen
from attnlib.clinic.black_box.search import Seen, same
from attnlib.clinic.black_box.slots import HARMLESS
from attnlib.clinic.case import Case, Faults, Outcome, View
from attnlib.clinic.catalogue import get
from attnlib.clinic.evidence import MEASURES, first_difference
from attnlib.clinic.match import SINGLE_PRECISION
from attnlib.clinic.report import Finding
from attnlib.clinic.sight import Sight, number, place

UNASKED = (
    "If your masks always leave each query a key, say empty_rows=False: then it is "
    "not asked."
)
ONLINE = re.compile(r"online_(out|sum|both|wrong|mean)_(\d+)")


def finding(
    key: str,
    evidence: str,
    measured: float | None = None,
    expected: float | None = None,
) -> Finding:
    """A finding of the catalogue's entry for this key."""
    online = ONLINE.fullmatch(key)
    entry = get(f"online_{online[1]}" if online else key)
    unasked = f" {UNASKED}" if entry.code == "M14" else ""
    if online and int(online[2]) > 1:
        evidence = f"with blocks of {online[2]} keys, {evidence}"
    return Finding(
        code=entry.code,
        key=key,
        name=entry.name,
        sentence=entry.sentence,
        evidence=evidence,
        measured=measured,
        expected=expected,
        mend=entry.mend + unasked,
        reports=(entry.report,) if entry.report else (),
    )


def of_base(exam: Exam, known: Diagnosis) -> list[Finding]:
    """The mistakes of the ordinary answers, each with its number."""
    base = known.base or frozenset()
    slots = exam.bench.slots(known.traits)
    order = [key for keys in slots.values() for key in keys]
    real = sorted(
        (key for key in base if key not in HARMLESS),
        key=lambda key: order.index(key) if key in order else -1,
    )
    return [_of_key(exam, known, key, base) for key in real]


def _of_key(exam: Exam, known: Diagnosis, key: str, base: Faults) -> Finding:
    if FILLS.get(key) in known.found:
        value = known.found[FILLS[key]]
        return finding(key, filled(key, value), value, -np.inf)
    shown = []
    for question, answer in zip(known.questions, known.answers, strict=True):
        with_it = _simulated(exam, known, question, base)
        without = _simulated(exam, known, question, base - {key})
        if not same(with_it, without, SINGLE_PRECISION):
            right = _simulated(exam, known, question, frozenset({"guarded"}))
            shown.append((question, answer.out, right))
    if key == "scale_other" and "scale" in known.found and shown:
        return other_scale(exam, known, shown)
    sentence, pair = telling(exam, known, key, shown)
    return finding(key, sentence, *pair)


def other_scale(
    exam: Exam, known: Diagnosis, shown: Sequence[tuple[Any, Seen, Seen]]
) -> Finding:
    """The factor that was read off, and the right one."""
    factor = known.found["scale"]
    views = [
        exam.bench.view(q, out, known.traits) for q, out, _ in shown if out is not None
    ]
    d_k = next((v.sizes["d_k"] for v in views if v.weights is not None), None)
    right, why = known.traits.scale, "what was asked for"
    if right is None:
        d_k = d_k or views[0].sizes["d_k"]
        right, why = d_k**-0.5, f"1/√{d_k}"
    said = (
        f"scores are multiplied by {number(factor)}; {number(right)} = {why} is right."
    )
    return finding("scale_other", said, factor, right)


def _simulated(exam: Exam, known: Diagnosis, question: Any, faults: Faults) -> Seen:
    with np.errstate(all="ignore"):
        try:
            return exam.bench.simulate(question, known.traits, faults, known.found)
        except (ValueError, IndexError, Unforeseen):
            return None


def filled(key: str, value: float) -> str:
    """What a hidden key counts as."""
    if key == "mask_fill_added":
        return f"{number(value)} is added to hidden scores; minus infinity hides them."
    if key == "mask_added_before_scale":
        return (
            f"{number(value)} is added to hidden scores and divided by √d_k with them; "
            "minus infinity stays what it is."
        )
    if key == "mask_before_scale":
        return (
            f"hidden scores are set to {number(value)} and then divided by √d_k; minus "
            "infinity stays what it is."
        )
    return (
        f"a hidden key counts as a score of {number(value)}; minus infinity hides it."
    )


def of_edge(exam: Exam, known: Diagnosis, shown: Shown) -> Finding:
    """The finding of one extreme question."""
    if shown.number is not None and shown.key.startswith("mask_"):
        value = shown.number
        return finding(
            shown.key, filled(shown.key, float(f"{value:.4g}")), value, -np.inf
        )
    out = shown.answer.out
    if shown.key == "nan_through_mask" and out is not None:
        lost = int(np.isnan(out).sum())
        said = f"given {shown.question.name}, {lost} of {out.size} outputs are NaN."
        return finding(shown.key, said)
    seen = [(shown.question, shown.answer.out, shown.right)]
    sentence, pair = telling(exam, known, shown.key, seen)
    return finding(shown.key, sentence, *pair)


Numbers = tuple[float | None, float | None]


def telling(
    exam: Exam,
    known: Diagnosis,
    key: str,
    shown: Sequence[tuple[Any, Seen, Seen]],
) -> tuple[str, Numbers]:
    """The sentence that shows a mistake, and two numbers: measured and right."""
    sights = [_sight(exam, known, *one) for one in shown]
    # Clear ones tell most, x-rays before others.
    sights.sort(key=lambda sight: (_faint(sight), sight.view.weights is None))
    pair = next((p for s in sights if (p := _numbers(s)) != (None, None)), (None, None))
    for measure in (MEASURES.get(key), _output):
        for sight in sights:
            if measure is None:
                continue
            try:
                sentence = measure(sight)
            except (IndexError, KeyError, TypeError, ValueError):
                sentence = None  # a measure of an exercise with other arguments
            if sentence:
                return sentence, pair
    return "", pair


def _sight(
    exam: Exam, known: Diagnosis, question: Any, yours: Seen, right: Seen
) -> Sight:
    mine, good = _outcome(yours), _outcome(right)
    views = [
        exam.bench.view(question, out, known.traits) if out is not None else View()
        for out in (yours, right)
    ]
    return Sight(Case(question.name, case_args(question)), mine, good, *views)


def case_args(question: Any) -> tuple[object, ...]:
    """The arguments of a question as the measures know them."""
    if hasattr(question, "q"):
        given = (question.q, question.k, question.v)
        return given if question.mask is None else (*given, question.mask)
    return (question.x, *(() if question.look is None else (question.look,)))


def _outcome(out: Seen) -> Outcome:
    return Outcome(error="error") if out is None else Outcome((out, out))


def _numbers(sight: Sight) -> Numbers:
    """The output (the weights, on an x-ray) where it is clearly wrong."""
    mine, good = sight.result(), sight.right.arrays[0] if sight.right.arrays else None
    if mine is None or good is None or mine.shape != good.shape:
        return None, None
    at = _wrong(mine, good)
    return (None, None) if at is None else (float(mine[at]), float(good[at]))


def _faint(sight: Sight) -> bool:
    """Whether the two numbers look alike, though they differ."""
    mine, good = _numbers(sight)
    if mine is None or good is None or not np.isfinite([mine, good]).all():
        return False
    return abs(mine - good) < 0.05 * max(abs(mine), abs(good))


def _wrong(mine: npt.NDArray[Any], good: npt.NDArray[Any]) -> tuple[int, ...] | None:
    """The first place that is about as wrong as any."""
    wrong = ~np.isclose(mine, good, rtol=1e-3, atol=1e-4, equal_nan=True)
    if not wrong.any():
        return None
    with np.errstate(invalid="ignore"):
        apart = np.where(wrong, np.abs(mine - good), 0.0)
    apart = np.where(np.isnan(apart), np.inf, apart)
    return tuple(int(i) for i in np.argwhere(apart >= apart.max() / 2)[0])


def _output(sight: Sight) -> str | None:
    """Where the output first differs."""
    mine, good = sight.result(), sight.right.arrays[0] if sight.right.arrays else None
    if mine is None:
        return f"given {sight.case.name}, it raises an error."
    pair = _numbers(sight)
    if good is None or mine.shape != good.shape or pair[0] is None or pair[1] is None:
        return first_difference(sight)
    at = place(_wrong(mine, good) or ())
    what = "the weight" if sight.view.weights is not None else "the output"
    return (
        f"{what} at {at} is {number(pair[0])}, where {number(pair[1])} is right "
        f"({sight.case.name})."
    )
