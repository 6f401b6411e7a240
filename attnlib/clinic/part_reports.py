"""What a report on a part says: findings, cautions, and the smallest example."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import Case, Faults, Outcome, Result
from attnlib.clinic.catalogue import get
from attnlib.clinic.evidence import evidence
from attnlib.clinic.match import SINGLE_PRECISION, Table
from attnlib.clinic.part import Call, Meant, Part
from attnlib.clinic.part_calls import FAILED, Caller, Calls, said
from attnlib.clinic.report import Finding, Unknown
from attnlib.clinic.sight import number, place
from attnlib.clinic.words import listed

SHOWN = 24  # numbers of an array in an example; of a larger one, only its shape


def close(mine: Outcome, good: Outcome, tolerance: tuple[float, float]) -> bool:
    """Whether two outcomes are the same: errors, shapes, kinds and numbers."""
    if mine.error != good.error or len(mine.arrays) != len(good.arrays):
        return False
    return all(
        a.shape == b.shape
        and (a.dtype.kind == "b") == (b.dtype.kind == "b")
        and bool(_near(a, b, tolerance).all())
        for a, b in zip(mine.arrays, good.arrays, strict=True)
    )


def _near(
    mine: Result, good: Result, tolerance: tuple[float, float]
) -> npt.NDArray[np.bool_]:
    rtol, atol = tolerance
    a, b = mine.astype(np.float64), good.astype(np.float64)
    size = np.abs(a[np.isfinite(a)]).max(initial=1.0)
    return np.asarray(
        np.isclose(a, b, rtol=rtol, atol=atol * size, equal_nan=True), bool
    )


def same(value: object, outcome: Outcome) -> bool:
    """Whether a second call gave what the first one gave."""
    if not isinstance(value, np.ndarray):
        return not outcome.arrays
    return close(Outcome((value,)), outcome, SINGLE_PRECISION)


def findings(
    part: Part, calls: Calls, table: Table, answer: Sequence[Outcome], reading: Faults
) -> list[Finding]:
    """One finding a mistake, in the order of the family."""
    order = list(table.family.faults)
    found = []
    for key in sorted(reading, key=order.index):
        mistake = get(key)
        yours, right = _first_numbers(table, answer)
        found.append(
            Finding(
                mistake.code or part.code,
                key,
                mistake.name,
                mistake.sentence,
                _evidence(key, calls, table, answer, reading),
                yours,
                right,
                mistake.mend,
                (mistake.report,) if mistake.report else (),
            )
        )
    return found


def _evidence(
    key: str, calls: Calls, table: Table, answer: Sequence[Outcome], reading: Faults
) -> str:
    """The number that gave it away; an error under the name that it had."""
    sentence = evidence(key, table, answer, reading)
    raised = next((ran.error for ran in calls.runs if ran.error is not None), None)
    return sentence.replace(FAILED, said(raised))


def _first_numbers(
    table: Table, answer: Sequence[Outcome]
) -> tuple[float | None, float | None]:
    """The first number that is wrong, and the right one."""
    for yours, right in zip(answer, table.right, strict=True):
        for mine, good in zip(yours.arrays, right.arrays, strict=False):
            if mine.shape != good.shape:
                continue
            wrong = ~_near(mine, good, SINGLE_PRECISION)
            if wrong.any():
                where = tuple(np.argwhere(wrong)[0])
                return float(mine[where]), float(good[where])
    return None, None


def cautions(part: Part, calls: Calls) -> tuple[Finding, ...]:
    """What is no mistake, and should be known: arguments that are changed in place."""
    changed = sorted({i for ran in calls.runs for i in ran.changed})
    if not changed:
        return ()
    inside = calls.form.call.partition("(")[2].rstrip(")").split(", ")
    names = [inside[i] if i < len(inside) else f"argument {i + 1}" for i in changed]
    return (
        Finding(
            "",
            "input_changed",
            f"It changes what it is given: {listed(names)}",
            "Whoever calls it still holds that array, and finds other numbers in it.",
            "",
            mend="Work on a copy: x = x - m, and not x -= m.",
        ),
    )


def nearest(tables: Sequence[Table], answers: Sequence[tuple[Outcome, ...]]) -> int:
    """Which meaning agrees in the most cases."""
    hits = [
        sum(
            close(mine, good, SINGLE_PRECISION)
            for mine, good in zip(answer, table.right, strict=True)
        )
        for table, answer in zip(tables, answers, strict=True)
    ]
    return hits.index(max(hits))


def unknown(
    part: Part,
    calls: Calls,
    table: Table,
    answer: tuple[Outcome, ...],
    caller: Caller,
    meant: Meant,
) -> Unknown:
    """The law that is broken, else the smallest case that differs."""
    for i, outcome in enumerate(answer):
        if not outcome.arrays and table.right[i].arrays:
            why = calls.sentences[i] or f"raises {said(calls.runs[i].error)}"
            does = f"it returns {why}" if calls.sentences[i] else f"it {why}"
            name = calls.cases[i].name
            return Unknown(
                f"{part.call} gives {part.returns}",
                f"Given {name}, {does}.",
                _arguments(calls.cases[i], calls.form.call),
            )
    for law in part.laws:
        with np.errstate(all="ignore"):
            broken = law.broken(_caller(calls, caller, meant))
        if broken is not None:
            return Unknown(law.name, broken.sentence, broken.example)
    return _differs(part, calls, table, answer)


def _caller(calls: Calls, caller: Caller, meant: Meant) -> Call:
    def call(*args: object) -> Result | None:
        value = caller.call(args, calls.format, calls.form).value
        if not isinstance(value, np.ndarray):
            return None
        try:
            return meant.tidy(Case("", args), value)
        except (ValueError, IndexError, TypeError):
            return None

    return call


def _differs(
    part: Part, calls: Calls, table: Table, answer: tuple[Outcome, ...]
) -> Unknown:
    """The smallest case in which the result is another one."""
    wrong = [
        i
        for i, (mine, good) in enumerate(zip(answer, table.right, strict=True))
        if not close(mine, good, SINGLE_PRECISION)
    ]
    i = min(wrong, key=lambda i: _size(calls.cases[i], table.right[i]))
    mine, good = answer[i].arrays[0], table.right[i].arrays[0]
    law = f"{part.call} gives {part.returns}"
    if mine.shape != good.shape:
        sentence = (
            f"Given {calls.cases[i].name}, the result has the shape {mine.shape}; "
            f"{good.shape} is right."
        )
    elif (mine.dtype.kind == "b") != (good.dtype.kind == "b"):
        kinds = "True and False" if good.dtype.kind == "b" else "numbers"
        sentence = f"The result holds {mine.dtype}, where {kinds} are right."
    else:
        where = tuple(np.argwhere(~_near(mine, good, SINGLE_PRECISION))[0])
        at = f" at {place(where)}" if where else ""
        yours, right = float(mine[where]), float(good[where])
        words = number(yours), number(right)
        if words[0] == words[1]:
            words = f"{yours:.8g}", f"{right:.8g}"
        sentence = (
            f"Given {calls.cases[i].name}, it gives {words[0]}{at}, where {words[1]} "
            "is right."
        )
    shown = [_arguments(calls.cases[i], calls.form.call)]
    shown += [f"yours: {text(mine)}", f"right: {text(good)}"]
    return Unknown(law, sentence, "\n".join(shown))


def slow(case: Case) -> Unknown:
    """A call that did not end."""
    return Unknown(
        "it ends", f"Given {case.name}, it did not end in time.", _arguments(case, "")
    )


def random(calls: Calls, again: object) -> Unknown:
    """Two equal calls with two results."""
    case = calls.cases[0]
    lines = [_arguments(case, calls.form.call)]
    for name, value in (("first", calls.outcomes[0].arrays), ("second", (again,))):
        array = value[0] if value else None
        shown = text(array) if isinstance(array, np.ndarray) else "no numbers"
        lines.append(f"{name}: {shown}")
    return Unknown(
        "the same arguments give the same result",
        f"Called twice with {case.name}, it gives two results.",
        "\n".join(lines),
    )


def _size(case: Case, right: Outcome) -> int:
    given = sum(np.size(arg) for arg in case.args if isinstance(arg, np.ndarray))
    return given + sum(array.size for array in right.arrays)


def _arguments(case: Case, call: str) -> str:
    """The arguments of a call, as one could type them."""
    inside = call.partition("(")[2].rstrip(")")
    names = [n for n in inside.split(", ") if n] if inside else []
    lines = []
    for i, arg in enumerate(case.args):
        name = names[i] if i < len(names) else f"argument {i + 1}"
        lines.append(f"{name} = {text(arg)}")
    return "\n".join(lines)


def text(value: object) -> str:
    """A value on one line, where it is small; else its shape."""
    if isinstance(value, np.ndarray):
        if value.size > SHOWN:
            return f"an array of shape {value.shape}"
        if value.ndim == 0:
            return number(float(value))
        shown = np.array2string(value, precision=4, suppress_small=True, separator=", ")
        return " ".join(shown.split())
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return repr(value)
