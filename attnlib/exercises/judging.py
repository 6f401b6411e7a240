"""Judge an answer: look in a fixed order, and say the first thing that helps.

Not started, raised, wrong type or shape, input changed, NaN, a named mistake, a law,
the first differing case, passed. A named mistake may speak earlier: an answer that
raises or overflows just as a known mistake does is told its name as well.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from attnlib.clinic.case import Result
from attnlib.clinic.catalogue import Mistake, get
from attnlib.clinic.evidence import evidence
from attnlib.clinic.limit import Clock
from attnlib.clinic.match import Match, Table, close
from attnlib.clinic.run import LIMIT
from attnlib.exercises import compare, explain, frames, pattern, shares, stubs, text
from attnlib.exercises.afar import is_afar
from attnlib.exercises.asking import Answer, ask, call
from attnlib.exercises.exercise import UNSEEN, Exercise, Law
from attnlib.exercises.read import Read
from attnlib.exercises.shares import Shares

Status = Literal[
    "not started",
    "raised",
    "timeout",
    "type",
    "shape",
    "nan",
    "mutates",
    "mistake",
    "law",
    "differs",
    "wrong",
    "passed",
    "usage",
]


@dataclass(frozen=True)
class Verdict:
    """What an answer is, in one word, in a learner's sentences, and by mistakes."""

    status: Status
    text: str
    mistakes: tuple[Mistake, ...] = ()
    shares: Shares | None = None  # how much is right, where that was asked for

    @property
    def passed(self) -> bool:
        """Whether the exercise is done."""
        return self.status == "passed"


def judge_function(
    exercise: Exercise,
    answer: object,
    seed: int = 0,
    limit: float = LIMIT,
    counted: bool = False,
) -> Verdict:
    """Judge a function. Deterministic: no state is kept between two calls.

    `counted`: how much is right is counted as well, for those who give points.
    """
    name = exercise.name
    if stubs.is_stub(answer):
        return Verdict("not started", text.not_started(name))
    wrong = _not_callable(answer)
    if wrong or not callable(answer):
        return Verdict("type", text.not_yet(name, wrong))
    table = exercise.table(seed)
    handed = exercise.handed(table.cases[0])
    arguments = stubs.wrong_arguments(exercise.solution, answer, handed)
    if arguments:
        return Verdict("type", text.not_yet(name, arguments))
    clock = Clock(limit)
    seen = ask(exercise, answer, table, clock)
    if explain.says_unfinished(seen.runs[0].error):
        return Verdict("not started", text.not_started(name))

    @functools.cache  # who counts asks all laws, and the verdict some of them before
    def broken(law: Law) -> _Found | None:
        return _broken(exercise, law, seen.function, clock, right=True)

    status, sentence, mistakes = _verdict(exercise, seen, table, clock, broken)
    whole = text.passed if status == "passed" else text.not_yet
    result = whole(name, sentence)
    outside = frames.outer_numbers(answer)
    if outside and status not in ("passed", "mistake"):
        result += "\n" + text.outside(outside)
    characters = sum(r.printed for r in seen.runs)
    if characters:
        result += "\n" + text.printed(characters)
    counts = _counted(exercise, seen, table, status, broken) if counted else None
    return Verdict(status, result, mistakes, counts)


def _counted(
    exercise: Exercise, seen: Answer, table: Table, status: Status, broken: _Broken
) -> Shares:
    if status == "passed":
        return shares.ALL
    kept = [False] * len(exercise.laws)
    if status in ("law", "timeout") and all(table.agrees(seen.outcomes)):
        kept = [broken(law) is None for law in exercise.laws]
        laws = list(zip(exercise.laws, kept, strict=True))
        if any(law.room is not None and not well for law, well in laws):
            # Then meters that ran beside the answer have said what is not so.
            kept = [well and law.slower <= 1 for law, well in laws]
    return shares.of_cases(seen, table, kept)


def _not_callable(answer: object) -> str:
    if answer is None:
        return text.ANSWER_NONE
    if issubclass(type(answer), type):
        return text.ANSWER_CLASS
    if not callable(answer):
        kind = text.a(type(answer).__name__)
        if issubclass(type(answer), (np.ndarray, np.generic, tuple, list, float, int)):
            return text.ANSWER_CALLED.format(what=kind)
        return text.answer_is(kind)
    return ""


class _LawTimedOut(Exception): ...


_Found = tuple[Status, str, tuple[Mistake, ...]]
_Broken = Callable[[Law], _Found | None]


def _verdict(
    exercise: Exercise, seen: Answer, table: Table, clock: Clock, broken: _Broken
) -> _Found:
    if seen.runs[-1].timed_out:
        case = table.cases[len(seen.runs) - 1]
        return "timeout", text.timed_out(clock.limit, case.name), ()
    match = table.match(seen.outcomes)
    if match.readings:
        return _named(exercise, match, seen, table)
    slip = _first_slip(exercise, seen, table)
    if slip is not None:
        return slip
    if not match.right:
        return _unnamed(exercise, seen, table, clock)
    first = next(filter(None, map(broken, exercise.laws)), None)
    return first or ("passed", exercise.why, ())


def _named(exercise: Exercise, match: Match, seen: Answer, table: Table) -> _Found:
    """The name of the mistake, and the number that gave it away."""
    readings = [[get(key) for key in sorted(reading)] for reading in match.readings]
    order = list(table.family.faults)
    for reading in readings:
        reading.sort(key=lambda mistake: order.index(mistake.key))
    mistakes = tuple(readings[0])
    lines = [text.TWO_MISTAKES] if len(mistakes) > 1 else []
    for i, found in enumerate(mistakes):
        one = len(mistakes) == 1
        lines.append(f"{found.name}." if one else text.one_of_two(i, found.name))
        number = evidence(found.key, table, seen.outcomes, match.readings[0])
        lines.append(text.gave_away(number) if number else "")
        lines += [found.sentence, found.mend]
    if len(readings) > 1:
        lines.append(text.other_reading([m.name for m in readings[1]]))
    raised = next((i for i, ran in enumerate(seen.runs) if ran.error is not None), None)
    if raised is not None and "it raises" not in "".join(lines):
        kind = type(seen.runs[raised].error).__name__
        lines.append(text.raises_too(kind, table.cases[raised].name))
    lines.append(_changed_input(exercise, seen, table))
    codes = list(dict.fromkeys(m.code for m in mistakes if m.code))
    reports = list(dict.fromkeys(m.report for m in mistakes if m.report))
    lines.append(text.not_the_first(codes, reports))
    said = dict.fromkeys(line for line in lines if line)  # each line once
    return "mistake", "\n".join(said), mistakes


def _first_slip(exercise: Exercise, seen: Answer, table: Table) -> _Found | None:
    """What goes wrong in the first case that goes wrong: raised, type or shape.

    After all cases: changed input, then NaN.
    """
    triples = list(zip(table.cases, seen.outcomes, table.right, strict=True))
    for i, (case, yours, right) in enumerate(triples):
        error = seen.runs[i].error
        if error is not None:
            advice, torch = exercise.advice, exercise.tensors
            said = explain.raised(error, seen.function, case.name, advice, torch)
            return "raised", said, ()
        if seen.sentences[i]:
            said = seen.sentences[i]
            if said == text.RETURNS_NONE:
                called = exercise.called(exercise.solution)
                none = stubs.none_arguments(called, case.args)
                said = explain.returned_none(seen.function, none)
            return "type", text.returned(said, case.name), ()
        for part, mine, good in zip(
            exercise.returns, yours.arrays, right.arrays, strict=True
        ):
            form = compare.wrong_form(part, mine, good, case)
            if form is not None:
                return form[0], form[1], ()
    changed = _changed_input(exercise, seen, table)
    if changed:
        return "mutates", changed, ()
    for ran, (case, yours, right) in zip(seen.runs, triples, strict=True):
        for part, mine, good in zip(
            exercise.returns, yours.arrays, right.arrays, strict=True
        ):
            bad = ~np.isfinite(mine.astype(float)) & np.isfinite(good.astype(float))
            if bad.any():
                first = tuple(int(i) for i in np.argwhere(bad)[0])
                place = str(list(first)) if first else "its only place"
                what = "NaN" if np.isnan(mine[first]) else "infinity"
                said = text.not_finite(part.name, what, place, case.name)
                empty = ran.empty_mean
                why = explain.why_not_finite(case.args, seen.function, empty)
                if what == "infinity" and why == text.EMPTY_ROW:
                    why = ""  # which speaks of NaN alone
                return "nan", said + why, ()
    return None


def _changed_input(exercise: Exercise, seen: Answer, table: Table) -> str:
    for case, ran in zip(table.cases, seen.runs, strict=True):
        if ran.changed:
            changed = [exercise.names[i] for i in ran.changed]
            return text.mutates(changed, case.name)
    return ""


def _unnamed(exercise: Exercise, seen: Answer, table: Table, clock: Clock) -> _Found:
    simple = pattern.plain(seen.outcomes, table.right)
    chance = "" if simple else _random(exercise, seen, table, clock)
    simple = simple or chance or pattern.scale(table, seen.outcomes)
    asked = chance or not simple
    each = (_broken(exercise, law, seen.function, clock) for law in exercise.laws)
    broken = next(filter(None, each), None) if asked else None
    # Where numbers are drawn, laws break by chance, but for one that is about that.
    if broken and (not chance or pattern.TWICE in broken[1]):
        return broken
    simple = simple or pattern.everywhere(seen.outcomes, table.right)
    names_of_parts = [part.name for part in exercise.returns]
    simple = simple or pattern.by_part(names_of_parts, seen.outcomes, table.right)
    for case, yours, right in zip(table.cases, seen.outcomes, table.right, strict=True):
        for part, mine, good in zip(
            exercise.returns, yours.arrays, right.arrays, strict=True
        ):
            wrong = ~close(mine, good)
            if wrong.any():
                names = exercise.names
                said = compare.difference(part, mine, good, wrong, case, names)
                return "differs", said.replace(text.UNKNOWN, simple or text.UNKNOWN), ()
    return "differs", text.value_wrong(), ()


def _random(exercise: Exercise, seen: Answer, table: Table, clock: Clock) -> str:
    """That the same inputs give other numbers each time, if they do."""
    for case, before in zip(table.cases, seen.outcomes, strict=True):
        ran = call(exercise, seen.function, case.args, clock, drawn=True)
        after = ran.value.arrays if isinstance(ran.value, Read) else ()
        if ran.timed_out or len(after) != len(before.arrays):
            return ""
        pairs = list(zip(before.arrays, after, strict=True))
        if any(a.shape != b.shape for a, b in pairs):
            return ""
        if not all(close(a, b).all() for a, b in pairs):
            return pattern.RANDOM
    return ""


def _broken(
    exercise: Exercise,
    law: Law,
    function: Callable[..., object],
    clock: Clock,
    right: bool = False,
) -> _Found | None:
    """How a law is broken; `right`: all numbers were, so it is not asked in vain."""
    strict = right and is_afar(function)
    if law.room is not None and not strict:
        return None  # here no one could be stopped who takes more
    own = clock.slowed(law.slower)

    def call_it(*args: object) -> tuple[Result, ...] | None:
        ran = call(exercise, function, args, own, room=law.room)
        if ran.timed_out:
            raise _LawTimedOut
        return ran.value.arrays or None if isinstance(ran.value, Read) else None

    try:
        with np.errstate(all="ignore"):  # an answer may hold numbers of any size
            sentence = law.broken(call_it)
    except _LawTimedOut:
        return "timeout", text.timed_out(own.limit, law.name), ()
    if sentence == UNSEEN and strict:
        sentence = text.UNSEEN
    return ("law", text.law(law.name, sentence, law.opening), ()) if sentence else None
