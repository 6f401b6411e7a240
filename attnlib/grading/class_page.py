"""`class.html`: what a class does not understand yet, for the one who teaches it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from attnlib.grading import separates
from attnlib.grading.class_of import Class, Whole
from attnlib.grading.grades import Graded, shown
from attnlib.grading.grades_csv import state
from attnlib.grading.page import inline, page, rows, safe
from attnlib.grading.pages import named
from attnlib.grading.separates import Separates

PART = "This is not all: {done} of the class are graded so far."
KINDS = ("passed", "in part", "not yet", "not started", "not found", "not graded")
MOST = 12  # bars in a chart; the table beside it holds all
WIDE, HIGH, RIGHT = 480, 46, 64  # of a chart, in its own units


def content(all_: Class) -> bytes:
    """The page of a class."""
    return page(f"{all_.title}: the class", _body(all_))


def _body(all_: Class) -> Iterator[str]:
    students = list(all_.students())
    yield f'<p class="soft">{safe(all_.title)}</p>'
    yield "<h1>The class</h1>"
    yield f"<p>{_summary(students)}</p>"
    if not all_.whole:
        yield f'<p class="some">{PART.format(done=len(students))}</p>'
    yield from _not_graded(all_.graded)
    yield '<h2 class="part">Which mistakes were made</h2>'
    yield from _mistakes(students)
    found = separates.of_class(all_)
    if found:
        yield '<h2 class="part">How each exercise went</h2>'
        yield from _exercises(students, found)
        yield '<h2 class="part">Which exercise tells students apart</h2>'
        yield from _separates(found)
    yield '<h2 class="part">All students</h2>'
    yield _students(students)
    notes = [*all_.notes, *_of_files(students), *_of_answers(students)]
    if notes:
        yield '<h2 class="part">Worth knowing</h2>'
        items = "".join(f"<li>{inline(note)}</li>" for note in notes)
        yield f"<ul>{items}</ul>"


def _of_files(students: Sequence[Whole]) -> Iterator[str]:
    """Files in which nothing stands that was asked for."""
    for student in students:
        for file in student.files:
            if file.grades and all(one.status == "missing" for one in file.grades):
                yield (
                    f"{student.student}: none of the exercises is in {file.where}. "
                    "Is it another lesson?"
                )


def _of_answers(students: Sequence[Whole]) -> Iterator[str]:
    """What was seen in answers that have points, such as what they took ready-made."""
    for student in students:
        for one in student.grades:
            if one.points and one.notes:
                said = " ".join(one.notes)
                yield f"{student.student}, {one.exercise}: {said}"


def _summary(students: Sequence[Whole]) -> str:
    graded = [one for one in students if one.has_grades]
    said = f"{_count(len(students), 'student')}, {len(graded)} graded."
    if graded:
        shares = sorted(one.points * 100 // one.of for one in graded if one.of)
        said += (
            f" Half of them have {shares[len(shares) // 2]} % of the points or more."
        )
    return said


def _not_graded(graded: Sequence[Graded]) -> Iterator[str]:
    """What needs somebody to look at, first of all."""
    for status, title in (
        ("unreadable", "Could not be read"),
        ("missing", "Not handed in"),
    ):
        there = sorted((g for g in graded if g.status == status), key=_by_name)
        if there:
            yield f'<h2 class="part">{title}: {len(there)}</h2>'
            body = [(one.student, one.where, one.problem) for one in there]
            yield rows(("student", "file", "why"), body)
    failed = [
        (one.student, grade.exercise, grade.text)
        for one in sorted(graded, key=_by_name)
        for grade in one.grades
        if not grade.counts
    ]
    if failed:
        yield f'<h2 class="part">Not graded, by a fault of the grader: {len(failed)}'
        yield "</h2>"
        yield rows(("student", "exercise", "why"), failed)


def _by_name(one: Graded) -> tuple[str, str]:
    return one.student.casefold(), one.where


def _mistakes(students: Sequence[Whole]) -> Iterator[str]:
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
        return
    order = sorted(made, key=lambda key: (-made[key], key))
    total = sum(one.has_grades for one in students)
    yield chart(
        [(named(key), made[key], str(made[key])) for key in order[:MOST]],
        total,
        f"How many of {_count(total, 'student')} made each mistake",
    )
    if len(order) > MOST:
        yield f'<p class="soft">The {MOST} most frequent; the table holds all.</p>'
    body = [
        (named(key), str(made[key]), ", ".join(sorted(where[key])), key)
        for key in order
    ]
    yield rows(("mistake", "students", "in", "key"), body, [1])


def _exercises(students: Sequence[Whole], found: Sequence[Separates]) -> Iterator[str]:
    yield chart(
        [(one.exercise, one.mean, f"{100 * one.mean:.0f} %") for one in found],
        1.0,
        "Share of the points that the class has, for each exercise",
    )
    count: dict[str, Counter[str]] = {one.exercise: Counter() for one in found}
    for student in students:
        for grade in student.grades:
            if grade.exercise in count:
                count[grade.exercise][_kind(grade.status, grade.points)] += 1
    kinds = [kind for kind in KINDS if any(count[e][kind] for e in count)]
    body = [
        (
            one.exercise,
            f"{100 * one.mean:.0f} %",
            *(str(count[one.exercise][kind]) for kind in kinds),
        )
        for one in found
    ]
    head = ("exercise", "points", *kinds)
    yield rows(head, body, range(1, len(head)))


def _kind(status: str, points: int) -> str:
    if status in ("passed", "not started"):
        return status
    if status == "missing":
        return "not found"
    if status == "ungraded":
        return "not graded"
    return "in part" if points else "not yet"


def _separates(found: Sequence[Separates]) -> Iterator[str]:
    yield (
        '<p class="soft">How the points for one exercise go with those for all others: '
        "1 is always together, 0 is not at all. A class is small, so r is uncertain: "
        "the two numbers behind it say how much (95 %).</p>"
    )
    yield rows(("exercise", ""), [(one.exercise, one.sentence) for one in found])


def _students(students: Sequence[Whole]) -> str:
    """The ones to look at first: unreadable, missing, then by name."""
    order = {"unreadable": 0, "missing": 1, "graded": 2}
    body = []
    for one in sorted(students, key=lambda s: min(order[f.status] for f in s.files)):
        states = ", ".join(dict.fromkeys(state(file) for file in one.files))
        passed = sum(grade.status == "passed" for grade in one.grades)
        points = shown(one.points) if one.has_grades else ""
        of = shown(one.of) if one.has_grades else ""
        done = f"{passed} of {len(one.grades)}" if one.grades else ""
        body.append((one.student, states, points, of, done))
    head = ("student", "status", "points", "of", "passed")
    return rows(head, body, [2, 3, 4])


def chart(bars: Sequence[tuple[str, float, str]], whole: float, title: str) -> str:
    """Bars as SVG: the name above its bar, the number behind it.

    Args:
        bars: a name, a length, and the number as it is written.
        whole: the length of a full bar.
        title: what it shows.
    """
    room = WIDE - RIGHT
    lines = []
    for place, (name, length, number) in enumerate(bars):
        top = place * HIGH
        width = room * length / whole if whole else 0.0
        short = name if len(name) <= 64 else name[:63] + "…"
        lines.append(
            f'<text x="0" y="{top + 16}">{safe(short)}</text>'
            f'<rect class="rest" x="0" y="{top + 23}" width="{room}" height="14" '
            f'rx="3"/><rect class="bar" x="0" y="{top + 23}" width="{width:.1f}" '
            f'height="14" rx="3"/>'
            f'<text x="{room + 8}" y="{top + 35}">{safe(number)}</text>'
        )
    return (
        f'<svg width="{WIDE}" viewBox="0 0 {WIDE} {len(bars) * HIGH}" role="img" '
        f'aria-label="{safe(title)}"><title>{safe(title)}</title>{"".join(lines)}</svg>'
    )


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
