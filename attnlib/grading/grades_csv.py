"""`grades.csv`: a row for each student and exercise.

What was asked of the class, and could not be read or was not handed in, has rows
without points: that is no zero. The file begins with the mark by which Excel knows
UTF-8; in Python, open it with `encoding="utf-8-sig"`.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence

from attnlib.grading.class_of import Class
from attnlib.grading.grades import Grade, Graded, shown
from attnlib.grading.written import harmless, table

HEAD = ("student", "exercise", "points", "of", "status", "mistakes")
NOT_HANDED_IN = "not handed in"


def content(all_: Class) -> bytes:
    """The whole file. The same grades give the same bytes."""
    return codecs.BOM_UTF8 + table(rows(all_)).encode("utf-8", "replace")


def rows(all_: Class) -> Iterator[Sequence[str]]:
    """The head, and the rows in the order of the students and exercises."""
    yield HEAD
    for one in all_.students():
        student = harmless(one.student)
        for grade in one.grades:
            yield student, *_cells(grade)
        problems = [state(file) for file in one.files if file.status != "graded"]
        there = {grade.exercise for grade in one.grades}
        left = [(name, of) for name, of in all_.worth.items() if name not in there]
        if problems:
            for name, of in left or (("", 0),):
                yield student, name, "", shown(of) if name else "", problems[-1], ""
        elif all_.whole:  # else a second file of theirs may still come
            for name, of in left:
                yield student, name, "", shown(of), NOT_HANDED_IN, ""


def state(one: Graded) -> str:
    """What a file is, in the words of the table."""
    return NOT_HANDED_IN if one.status == "missing" else one.status


def _cells(grade: Grade) -> Sequence[str]:
    points = shown(grade.points) if grade.counts else ""
    mistakes = "; ".join(grade.mistakes)
    name = harmless(grade.exercise)
    return name, points, shown(grade.of), grade.status, harmless(mistakes)
