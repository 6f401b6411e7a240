"""Examine a part of an attention: a mask, positions, a split, a softmax, ...

The same engine as for exercises: the answers to all cases are matched with those of
every wrong version. What matches none is held against the laws of the part.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from attnlib.clinic import part_reports as reports
from attnlib.clinic.case import Case
from attnlib.clinic.make_subject import name_of
from attnlib.clinic.match import Table
from attnlib.clinic.part import Form, Meant, Part, Takes
from attnlib.clinic.part_calls import Caller, Calls, Format, formats, said, takes
from attnlib.clinic.part_tables import agrees, name_it, tables, tidied
from attnlib.clinic.parts import PARTS
from attnlib.clinic.report import Report
from attnlib.clinic.run import LIMIT, Ran
from attnlib.clinic.words import listed

# What `examine` calls an option, and what the parts call it.
ALIASES = {"rope": "layout", "rope_base": "base", "softcap": "cap"}
# Keywords of `examine` that say nothing to a part at these values.
NOTHING_SAID = {"mask": "may look", "empty_rows": True}
FLOATS = ("float32", "float64")


def examine_part(
    thing: object,
    part: str,
    *,
    seed: int = 0,
    seconds: float = 20.0,
    dtype: str | None = None,
    **options: object,
) -> Report:
    """Examine a function as one part of attention, and name its mistakes.

    Args:
        thing: the function, or a module; it takes NumPy arrays or torch tensors.
        part: which part it is meant to be, a key of `attnlib.clinic.parts.PARTS`.
        seed: draws the numbers of the cases.
        seconds: how long all calls together may take.
        dtype: "float32" or "float64": what it is handed; found out if left out.
        options: what is meant where there are several conventions; see the part's
            `options`. What is left out is found out, and never blamed.

    Returns:
        The report. Bad input gives one with `refused`, no error.

    Raises:
        ValueError: there is no such part.

    >>> print(examine_part(lambda n: [2.0**-h for h in range(n)], "alibi_slopes").codes)
    ('M31',)
    """
    subject = name_of(thing)
    known = PARTS.get(part)
    if known is None:
        names = ", ".join(map(repr, sorted(PARTS)))
        raise ValueError(f"part must be one of {names}, but it is {part!r}.")
    wrong = _wrong_thing(thing, known)
    if wrong or not callable(thing):
        return Report(subject, refused=wrong)
    kept, wrong = _options(known, options)
    if not wrong and dtype is not None and dtype not in FLOATS:
        wrong = f"A part is examined in {listed(FLOATS)}, not in {dtype!r}."
    if wrong:
        return Report(subject, refused=wrong)
    signature = takes(thing) or Takes((), 0, any_number=True)
    forms = known.forms(kept, signature)
    if not forms:
        return Report(subject, refused=_cannot_call(known, signature))
    caller = Caller(thing, seconds, LIMIT)
    calls = _ask(caller, forms, formats(dtype), seed)
    if not any(outcome.arrays for outcome in calls.outcomes):
        return Report(subject, refused=_nothing_came(known, calls))
    options_said = tuple(sorted(kept.items()))

    def report(index: int, calls: Calls) -> Report:
        found = tables(part, options_said, signature, index, seed)
        return _report(subject, known, calls, caller, found)

    index = next(i for i, form in enumerate(forms) if form is calls.form)
    first = report(index, calls)
    if first.unknown is None or calls.failed:
        return first
    for i, form in enumerate(forms):
        if i > index and form.largest and not caller.out_of_time:
            cases = form.cases(np.random.default_rng(seed))
            other = report(i, caller.ask(form, calls.format, cases, None))
            return first if other.unknown else other
    return first


def _wrong_thing(thing: object, part: Part) -> str:
    if inspect.isclass(thing):
        return f"{name_of(thing)} is a class. Hand in an object of it, or a function."
    if not callable(thing):
        kind = type(thing).__name__
        return f"A function {part.call} is wanted, and this is of type {kind}."
    return ""


def _options(part: Part, given: Mapping[str, object]) -> tuple[dict[str, object], str]:
    """The options that say something, under the names the part has for them."""
    kept: dict[str, object] = {}
    for name, value in given.items():
        own = name if name in part.options else ALIASES.get(name, name)
        if value is None:
            continue
        if name not in part.options and NOTHING_SAID.get(name) == value:
            continue
        if own not in part.options:
            has = listed(sorted(part.options)) or "none"
            return {}, f"The part {part.name} has no option {name!r}; it has {has}."
        allowed = part.options[own]
        choices = [c.strip("'") for c in allowed.split(" | ")]
        if "'" in allowed and value not in choices:
            return {}, f"The option {name} of {part.name} is {allowed}, not {value!r}."
        if "'" not in allowed and not _number(value):
            return {}, f"The option {name} of {part.name} is {allowed}, not {value!r}."
        kept[own] = value
    return kept, ""


def _number(value: object) -> bool:
    return isinstance(value, (bool, int, float, np.number)) and np.isfinite(value)


def _cannot_call(part: Part, signature: Takes) -> str:
    names = listed(signature.names) or "nothing"
    return (
        f"It cannot be called as {part.call}: it takes {names}. "
        "Wrap it in a lambda that has these arguments."
    )


def _nothing_came(part: Part, calls: Calls) -> str:
    first = calls.runs[0]
    if first.timed_out:
        return f"Given {calls.cases[0].name}, it did not end within {LIMIT:.0f} s."
    if first.error is not None:
        return (
            f"Called as {calls.form.call} with {calls.format.words} "
            f"({calls.cases[0].name}), it raises {said(first.error)}."
        )
    got = calls.sentences[0]
    more = " Is there a `return`?" if got == "None" else ""
    return f"It should return {part.returns}, and returns {got}.{more}"


def _ask(
    caller: Caller, forms: tuple[Form, ...], ways: tuple[Format, ...], seed: int
) -> Calls:
    """The first form and format in which every call gives numbers; else the best."""
    best: Calls | None = None
    for form in forms:
        cases = form.cases(np.random.default_rng(seed))
        format, first = _first(caller, form, cases, ways)
        calls = caller.ask(form, format, cases, first)
        if not calls.failed or (form.strict and not calls.refusing):
            return calls
        if best is None or calls.failed < best.failed:
            best = calls
        if caller.out_of_time:
            break
    assert best is not None
    return best


def _first(
    caller: Caller, form: Form, cases: tuple[Case, ...], ways: tuple[Format, ...]
) -> tuple[Format, Ran]:
    """The first format in which the first case gives numbers."""
    tried: list[tuple[Format, Ran]] = []
    for format in ways:
        ran = caller.call(cases[0].args, format, form)
        if isinstance(ran.value, np.ndarray):
            return format, ran
        tried.append((format, ran))
        if ran.timed_out:
            break
    return tried[0]


def _report(
    subject: str,
    part: Part,
    calls: Calls,
    caller: Caller,
    known: Sequence[Table],
) -> Report:
    """What an answer is: too slow, random, right, a mistake with a name, or unknown."""
    cautions, untested = reports.cautions(part, calls), calls.form.untested
    begun = Report(subject, cautions=cautions, untested=untested)
    if calls.failed and len(calls.outcomes) < len(calls.cases):
        case = calls.cases[len(calls.outcomes) - 1]
        return replace(begun, unknown=reports.slow(case))
    again = caller.call(calls.cases[0].args, calls.format, calls.form)
    if not reports.same(again.value, calls.outcomes[0]):
        return replace(begun, unknown=reports.random(calls, again.value))
    meanings = calls.form.meant
    answers = [tidied(meant, calls) for meant in meanings]
    for meant, table, answer in zip(meanings, known, answers, strict=True):
        if agrees(answer, table.right):
            return replace(begun, features=_features(meant))
    named = name_it(known, answers)
    if named is None:
        best = reports.nearest(known, answers)
        unknown = reports.unknown(
            part, calls, known[best], answers[best], caller, meanings[best]
        )
        return replace(begun, unknown=unknown)
    (first, *others), reading = named
    findings = reports.findings(part, calls, known[first], answers[first], reading)
    features = () if others else _features(meanings[first])
    return replace(begun, mistakes=tuple(findings), features=features)


def _features(meant: Meant) -> tuple[str, ...]:
    return (meant.feature,) if meant.feature else ()
