"""Which exercises a file is graded for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from attnlib import exercises as course
from attnlib.exercises import private
from attnlib.exercises.exercise import AnyExercise
from attnlib.grading.lessons import seems_bound
from attnlib.grading.notebook import Notebook


@dataclass(frozen=True)
class Asked:
    """What a class was asked.

    With a lesson, every file is graded for the exercises of that lesson. Without one,
    each file is graded for the lesson that its name tells, or, where it tells none, for
    the one of which it holds the most exercises. A teacher's own exercises belong to
    the lesson that they name.
    """

    lesson: int | None = None
    folder: Path | None = None  # of the teacher's own exercises

    def __reduce__(self) -> tuple[type[Asked], tuple[int | None, Path | None]]:
        return Asked, (self.lesson, self.folder)  # a worker loads them anew

    @cached_property
    def all(self) -> tuple[AnyExercise, ...]:
        """Every exercise that might be asked, in the order of the grades."""
        own = private.load(self.folder) if self.folder else ()
        return (*course.of_the_course().values(), *own)

    def of(self, lesson: int | None) -> tuple[AnyExercise, ...]:
        """The exercises of a lesson, also the teacher's own."""
        return tuple(e for e in self.all if e.lesson == lesson)

    @property
    def fixed(self) -> tuple[AnyExercise, ...]:
        """What everybody is asked; nothing, if each file tells its lesson."""
        return () if self.lesson is None else self.of(self.lesson)

    def lesson_in(self, cells: Notebook) -> int | None:
        """The lesson of which a notebook holds most exercises; the first of several."""
        bound = {name for cell in cells.cells for name in seems_bound(cell.source)}
        count = Counter(e.lesson for e in self.all if e.name in bound)
        return min(count, key=lambda n: (-count[n], n)) if count else None

    def another(self, cells: Notebook, named: int | None) -> int | None:
        """The lesson of a file that holds no answer, where it was not the one asked.

        Args:
            cells: the file; one that checks what was asked is of the lesson asked.
            named: the lesson that its name tells.
        """
        text = "\n".join(cell.source for cell in cells.cells)
        if any(f'"{e.name}"' in text or f"'{e.name}'" in text for e in self.fixed):
            return None
        inside = self.lesson_in(cells)
        found = named if inside is None else inside
        return None if found == self.lesson else found
