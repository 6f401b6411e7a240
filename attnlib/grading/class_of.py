"""All grades of a class, in the order of the students."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from attnlib import exercises
from attnlib.grading import letters
from attnlib.grading.grades import Grade, Graded
from attnlib.grading.plan import Person


@dataclass(frozen=True)
class Whole:
    """One student, with all files: most have one."""

    student: str
    files: tuple[Graded, ...]

    @property
    def grades(self) -> tuple[Grade, ...]:
        """The grades of all files."""
        return tuple(grade for file in self.files for grade in file.grades)

    @property
    def points(self) -> int:
        """All points, in hundredths."""
        return sum(file.points for file in self.files)

    @property
    def of(self) -> int:
        """What could be reached."""
        return sum(file.of for file in self.files)

    @property
    def has_grades(self) -> bool:
        """Whether there is anything to count: no file, no zero."""
        return any(grade.counts for grade in self.grades)

    def of_lesson(self, lesson: int) -> tuple[Grade, ...]:
        """The grades for one lesson; none where nothing was read of it."""
        return tuple(one for one in self.grades if lesson_of(one) == lesson)


@dataclass(frozen=True)
class Class:
    """All that is known of a class; `whole` is False while some are not graded yet."""

    graded: tuple[Graded, ...]
    people: dict[str, Person]
    asked: tuple[tuple[str, int], ...] = ()  # what everybody was asked, and its worth
    notes: tuple[str, ...] = ()
    title: str = "Attention by Hand"
    whole: bool = True

    def students(self) -> Iterator[Whole]:
        """Each student once, by name."""
        files: dict[str, list[Graded]] = {}
        for one in in_order(self.graded):
            files.setdefault(one.student, []).append(one)
        for student, there in files.items():
            yield Whole(student, tuple(there))

    def lessons(self) -> list[int]:
        """The lessons that half of those with grades handed in, or more of them.

        What fewer handed in may be a slip of theirs: to the others nothing is missing.
        """
        return self._lessons

    @cached_property
    def _lessons(self) -> list[int]:
        own = [
            {lesson_of(grade) for grade in student.grades}
            for student in self.students()
            if student.has_grades
        ]
        count = Counter(lesson for lessons in own for lesson in lessons)
        return sorted(n for n in count if n is not None and 2 * count[n] >= len(own))

    def person(self, student: str) -> Person:
        """Who a student is to a school's system."""
        return self.people.get(student, Person(student, student))


def lesson_of(grade: Grade) -> int | None:
    """The lesson of an exercise; None if nobody knows it any more."""
    known = grade.exercise in exercises.names()
    return exercises.get(grade.exercise).lesson if known else None


def in_order(graded: Iterable[Graded]) -> list[Graded]:
    """By name, however they came."""
    return sorted(graded, key=lambda g: (letters.key(g.student), g.student, g.where))
