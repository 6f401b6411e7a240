"""A class with made-up grades, for the tests of tables and pages."""

from __future__ import annotations

from attnlib.grading.class_of import Class
from attnlib.grading.grades import Grade, Graded
from attnlib.grading.plan import Person

ASKED = (("softmax", 1000), ("entropy", 500))


def grade(name="softmax", points=1000, of=1000, status="passed", text="", **more):
    return Grade(name, points, of, status, text or f"{name}: {status}.", **more)


WRONG = grade(
    points=76,
    status="mistake",
    text="softmax: not yet. The scores are not scaled.\nWhat gave it away: <b>&",
    mistakes=("scale_missing",),
    hint="Look at `d_k`.",
    cell=4,
    begins=" (`def softmax(x):`)",
)


def graded(student, *grades, where="", **more):
    more.setdefault("status", "graded")
    where = where or f"{student}.ipynb"
    return Graded(student, where, grades=tuple(grades), **more)


def a_class(*all_, people=None, **more):
    return Class(tuple(all_), people or {}, more.pop("asked", ()), **more)


SMALL = a_class(
    graded("zoe", grade(), grade("entropy", 250, 500, "law")),
    graded("Ada", WRONG, grade("entropy", 0, 500, "ungraded", "no processes left")),
    graded("mia", status="missing", problem="Nothing was handed in.", where=""),
    graded("bob", status="unreadable", problem="The file ends in the middle."),
    people={
        "Ada": Person("Ada", "Ada Lovelace", "1815", "77"),
        "zoe": Person("zoe", "Zoë", "1816"),
    },
    asked=ASKED,
    title="Attention by Hand, lesson 01",
    notes=("Not on the list, but graded: zoe.",),
)
