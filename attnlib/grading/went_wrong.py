"""What went wrong in a class: mistakes by name, and answers where none was named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from attnlib.clinic import catalogue
from attnlib.grading.class_of import Whole
from attnlib.grading.page import chart, inline, rows
from attnlib.grading.pages import named
from attnlib.grading.sentences import counted

MOST = 12  # bars in a chart; the table beside it holds all
SHOW = "`attnlib mistakes M02` shows the one of that number, beside a right attention."
NOTHING_WRONG = ("passed", "not started", "missing")
STATUSES = {
    "law": "breaks a law that every right answer keeps",
    "differs": "other numbers than expected; no name is known",
    "wrong": "another value than expected",
    "raised": "raised an error",
    "shape": "a result of another shape",
    "type": "something else than was asked for",
    "nan": "gave NaN or infinity",
    "mutates": "changed what it was given",
    "usage": "is no answer that can be called",
    "syntax": "no Python: a syntax error",
    "timeout": "ran too long",
    "memory": "took too much memory",
    "output": "printed or returned far too much",
    "ended": "ended its process",
    "killed": "its process was ended by force, or crashed",
    "broke": "wrote over what it should hand back",
}


def content(students: Sequence[Whole]) -> Iterator[str]:
    """Mistakes by name, how many students made each, and what has no name."""
    made: Counter[str] = Counter()
    where: dict[str, set[str]] = {}
    for student in students:
        own: dict[str, set[str]] = {}
        for grade in student.grades:
            for key in grade.mistakes:
                own.setdefault(key, set()).add(grade.exercise)
        made.update(own.keys())
        for key, names in own.items():
            where.setdefault(key, set()).update(names)
    if not made:
        yield "<p>None that has a name.</p>"
        yield from _without_name(students)
        return
    order = sorted(made, key=lambda key: (-made[key], key))
    total = sum(one.is_graded for one in students)
    yield chart(
        [(named(key), made[key], str(made[key])) for key in order[:MOST]],
        total,
        f"How many of {counted(total, 'student')} made each mistake",
    )
    if len(order) > MOST:
        yield f'<p class="soft">The {MOST} most frequent; the table holds all.</p>'
    body = [
        (_numbered(key), str(made[key]), ", ".join(sorted(where[key])), key)
        for key in order
    ]
    yield rows(("mistake", "students", "in", "key"), body, [1])
    if any(_numbered(key) != named(key) for key in order):
        yield f'<p class="soft">{inline(SHOW)}</p>'
    yield from _without_name(students)


def _numbered(key: str) -> str:
    """A mistake by its name, with the number by which it can be shown."""
    mistake = catalogue.catalogue().get(key)
    return f"{named(key)} ({mistake.code})" if mistake and mistake.code else named(key)


def _without_name(students: Sequence[Whole]) -> Iterator[str]:
    """Answers that did not pass, and in which no mistake was named."""
    found: dict[str, Counter[str]] = {}
    for student in students:
        for grade in student.grades:
            wrong = grade.counts and grade.status not in NOTHING_WRONG
            if wrong and not grade.mistakes:
                found.setdefault(grade.status, Counter())[grade.exercise] += 1
    if found:
        yield "<p>Other answers that did not pass:</p>"
        order = sorted(found, key=lambda status: (-found[status].total(), status))
        body = [
            (STATUSES.get(s, s), str(found[s].total()), ", ".join(sorted(found[s])))
            for s in order
        ]
        yield rows(("what happened", "answers", "in"), body, [1])
