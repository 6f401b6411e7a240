"""`class.html`: what a class does not understand yet, for the one who teaches it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from attnlib.grading import filenames, separates, went_wrong
from attnlib.grading.class_of import Class, Whole, in_order, lesson_of
from attnlib.grading.grades import Grade, Graded, shown
from attnlib.grading.grades_csv import state
from attnlib.grading.page import Link, chart, inline, page, rows, safe
from attnlib.grading.sentences import counted
from attnlib.grading.separates import Separates

PART = "This is not all: {done} of the class are graded so far."
KINDS = ("passed", "in part", "not yet", "not started", "not found", "not graded")
FEEDBACK = "feedback"  # the folder of the students' pages, beside this one


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
    yield from _in_part(students, all_.lessons())
    yield '<h2 class="part">Which mistakes were made</h2>'
    yield from went_wrong.content(students)
    found = separates.of_class(all_)
    if found:
        yield '<h2 class="part">How each exercise went</h2>'
        yield from _exercises(students, found)
        yield '<h2 class="part">Which exercise tells students apart</h2>'
        yield from _separates(found)
    yield '<h2 class="part">All students</h2>'
    yield _students(students, all_.lessons())
    notes = [*all_.notes, *_of_files(students, all_.lessons())]
    notes += _of_answers(students)
    if notes:
        yield '<h2 class="part">Worth knowing</h2>'
        items = "".join(f"<li>{inline(note)}</li>" for note in notes)
        yield f"<ul>{items}</ul>"


def _of_files(students: Sequence[Whole], lessons: Sequence[int]) -> Iterator[str]:
    """Files in which nothing stands that was asked for, and those of another lesson."""
    class_ = " and ".join(f"{number:02}" for number in lessons)
    for student in students:
        for file in student.files:
            own = {n for n in map(lesson_of, file.grades) if n is not None}
            if lessons and own and own.isdisjoint(lessons):
                yield (
                    f"{student.student}: {file.where} is graded for lesson "
                    f"{min(own):02}, and the class handed in {class_}. "
                    "Is it the right file?"
                )
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
    graded = [one for one in students if one.is_graded]
    said = f"{counted(len(students), 'student')}, {len(graded)} graded."
    shares = sorted(one.points * 100 // one.of for one in graded if one.of)
    if shares:
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
        there = [one for one in in_order(graded) if one.status == status]
        if there:
            yield f'<h2 class="part">{title}: {len(there)}</h2>'
            body = [(one.student, one.where, one.problem) for one in there]
            yield rows(("student", "file", "why"), body)
    failed = [
        (one.student, grade.exercise, grade.text)
        for one in in_order(graded)
        for grade in one.grades
        if not grade.counts
    ]
    if failed:
        yield f'<h2 class="part">Not graded, by a fault of the grader: {len(failed)}'
        yield "</h2>"
        yield rows(("student", "exercise", "why"), failed)


def _in_part(students: Sequence[Whole], lessons: Sequence[int]) -> Iterator[str]:
    """Who has no grade of a lesson that others have one of."""
    there = [
        (one.student, ", ".join(f"{n:02}" for n in lessons if not one.of_lesson(n)))
        for one in students
        if one.is_graded
    ]
    there = [row for row in there if row[1]]
    if there:
        yield f'<h2 class="part">Handed in only in part: {len(there)}</h2>'
        yield rows(("student", "nothing read of lesson"), there)


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
    if all(one.students < separates.FEWEST for one in found):
        yield f"<p>{max(found, key=lambda one: one.students).sentence}</p>"
        return
    yield rows(("exercise", ""), [(one.exercise, one.sentence) for one in found])


def _students(students: Sequence[Whole], lessons: Sequence[int]) -> str:
    """The ones to look at first: unreadable, missing, then by name."""
    files = filenames.of(one.student for one in students)
    each = lessons if len(lessons) > 1 else ()
    order = {"unreadable": 0, "missing": 1, "graded": 2}
    body: list[list[str | Link]] = []
    for one in sorted(students, key=lambda s: min(order[f.status] for f in s.files)):
        states = ", ".join(
            dict.fromkeys(state(file) for file in one.files if file.status != "graded")
        )
        passed = sum(grade.status == "passed" for grade in one.grades)
        points = f"{shown(one.points)} of {shown(one.of)}" if one.has_grades else "–"
        done = f"{passed} of {len(one.grades)}" if one.grades else ""
        page_of = Link(one.student, f"{FEEDBACK}/{files[one.student]}.html")
        parts = [_points(one.of_lesson(number)) for number in each]
        body.append([page_of, states, *parts, points, done])
    of_each = (f"lesson {number:02}" for number in each)
    head = ("student", "status", *of_each, "points", "passed")
    return rows(head, body, range(2, len(head)))


def _points(grades: Sequence[Grade]) -> str:
    """Points, such as 12 of 30; where nothing counts, no zero."""
    there = [grade for grade in grades if grade.counts]
    if not there:
        return "–"
    points, of = sum(one.points for one in there), sum(one.of for one in there)
    return f"{shown(points)} of {shown(of)}"
