"""All grades of a class, in the order of the students."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
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
    asked: Mapping[str, int] = field(default_factory=dict)  # of the class; its worth

    @property
    def grades(self) -> tuple[Grade, ...]:
        """The grades of all files."""
        return tuple(grade for file in self.files for grade in file.grades)

    @property
    def points(self) -> int:
        """The points for what was asked of the class, in hundredths."""
        return sum(grade.points for grade in self.counted)

    @property
    def of(self) -> int:
        """What could be reached: as much as all others, but for faults not their own.

        Those are a file that could not be read, and what the grader could not do.
        """
        unread = any(file.status == "unreadable" for file in self.files)
        there = {grade.exercise: grade.counts for grade in self.grades}
        return sum(of for e, of in self.asked.items() if there.get(e, not unread))

    @property
    def counted(self) -> tuple[Grade, ...]:
        """The grades for what was asked of the class."""
        return tuple(g for g in self.grades if g.counts and g.exercise in self.asked)

    @property
    def has_grades(self) -> bool:
        """Whether there is anything to count: no file, no zero."""
        return bool(self.counted)

    @property
    def is_graded(self) -> bool:
        """Whether a file was graded, be it one of a lesson that was not asked for."""
        return any(grade.counts for grade in self.grades)

    @property
    def settled(self) -> bool:
        """Whether the points are of the same maximum as those of the others."""
        return self.has_grades and self.of == sum(self.asked.values())

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
        for student, files in self._files.items():
            yield Whole(student, tuple(files), self.worth)

    def lessons(self) -> list[int]:
        """The lessons that half of those with grades handed in, or more of them.

        What fewer handed in may be a slip of theirs: to the others nothing is missing.
        Where none was handed in by so many, it is what most handed in.
        """
        return sorted(number for number in self._lessons if number is not None)

    @cached_property
    def worth(self) -> dict[str, int]:
        """What was asked of the class, each exercise with its worth: the same for all.

        It is the lesson that the teacher named, or else the lessons of `lessons`.
        """
        if self.asked:
            return dict(self.asked)
        found: dict[str, int] = {}
        for lesson in sorted(self._lessons, key=lambda n: (n is None, n)):
            for file in in_order(self.graded):
                if file.grades and _lesson_in(file) == lesson:
                    found |= {grade.exercise: grade.of for grade in file.grades}
        return found

    @cached_property
    def _files(self) -> dict[str, list[Graded]]:
        files: dict[str, list[Graded]] = {}
        for one in in_order(self.graded):
            files.setdefault(one.student, []).append(one)
        return files

    @cached_property
    def _lessons(self) -> set[int | None]:
        """As `lessons`; None stands for exercises that no lesson has any more."""
        own = [
            {_lesson_in(file) for file in files if file.grades}
            for files in self._files.values()
            if any(grade.counts for file in files for grade in file.grades)
        ]
        count = Counter(lesson for lessons in own for lesson in lessons)
        enough = min(len(own), 2 * max(count.values(), default=0))
        return {lesson for lesson in count if 2 * count[lesson] >= enough}

    def person(self, student: str) -> Person:
        """Who a student is to a school's system."""
        return self.people.get(student, Person(student, student))


def lesson_of(grade: Grade) -> int | None:
    """The lesson of an exercise; None if nobody knows it any more."""
    known = grade.exercise in exercises.names()
    return exercises.get(grade.exercise).lesson if known else None


def _lesson_in(file: Graded) -> int | None:
    """The lesson of a file; a teacher's own exercises are of the one beside them."""
    known = (number for number in map(lesson_of, file.grades) if number is not None)
    return next(known, None)


def in_order(graded: Iterable[Graded]) -> list[Graded]:
    """By name, however they came."""
    return sorted(graded, key=lambda g: (letters.key(g.student), g.student, g.where))
