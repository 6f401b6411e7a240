"""What a grader says of one answer, and of one student.

Points are whole hundredths, worked out of integers. So the same answers and the same
seed give the same grades, byte by byte, on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from attnlib.exercises.judging import Status as OfCheck

Status = Literal[
    OfCheck,
    # what was handed in holds no answer that can be run
    "missing",
    "syntax",
    # how the student's process ended, before there was a result
    "memory",
    "killed",
    "ended",
    "broke",
    "output",
    # the grader's own failure: no zero, but nothing at all
    "ungraded",
]
Found = Literal["graded", "unreadable", "missing"]


@dataclass(frozen=True)
class Grade:
    """What one answer got.

    `points` and `of` are hundredths of a point. `text` is what `check` says in a
    notebook, `mistakes` are the keys of named mistakes, `cell` is the number of the
    cell that holds the answer, counted among all cells; `begins` quotes the answer's
    first line.
    """

    exercise: str
    points: int
    of: int
    status: Status
    text: str
    mistakes: tuple[str, ...] = ()
    hint: str = ""
    cell: int | None = None
    notes: tuple[str, ...] = ()
    begins: str = ""

    @property
    def counts(self) -> bool:
        """Whether it counts: where the grader failed, there is no grade."""
        return self.status != "ungraded"

    @property
    def further(self) -> str:
        """The general hint, or "" where a named mistake has said where to look."""
        return "" if self.mistakes else self.hint


@dataclass(frozen=True)
class Graded:
    """What one student got. `problem` says why nothing could be read."""

    student: str
    where: str
    status: Found
    problem: str = ""
    grades: tuple[Grade, ...] = ()
    seconds: float = 0.0  # how long it took: the only field that differs between runs

    @property
    def points(self) -> int:
        """All points, in hundredths."""
        return sum(grade.points for grade in self.grades if grade.counts)

    @property
    def of(self) -> int:
        """What could be reached, in hundredths."""
        return sum(grade.of for grade in self.grades if grade.counts)


def shown(hundredths: int) -> str:
    """Points as people write them: 250 is 2.5.

    >>> shown(250), shown(1200), shown(5)
    ('2.5', '12', '0.05')
    """
    whole, rest = divmod(hundredths, 100)
    return f"{whole}.{rest:02d}".rstrip("0").rstrip(".") if rest else str(whole)
