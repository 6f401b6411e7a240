"""Grade what one student handed in: each exercise in a process of its own."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import Protocol, cast

import numpy as np

from attnlib import exercises as course
from attnlib.clinic import arena
from attnlib.exercises import hunt_text, text
from attnlib.exercises.exercise import (
    AnyExercise,
    Exercise,
    HuntExercise,
    WitnessExercise,
)
from attnlib.exercises.judging import Verdict
from attnlib.grading import closure, notebook, points, sentences
from attnlib.grading.channel import Lost
from attnlib.grading.grades import Grade, Graded, Status
from attnlib.grading.lessons import seems_bound
from attnlib.grading.packing import LARGEST
from attnlib.grading.remote import MISSING, Line, Remote, Wish, define


class Session(Protocol):
    """A sandbox of one submission: see `session.Session`."""

    def exercise(self) -> AbstractContextManager[Line]:
        """A line to a new child."""


# Where nothing wrong was computed; a syntax error is told by a note already.
NOT_WRONG = ("passed", "not started", "missing", "syntax", "ungraded")

NewSession = Callable[[bool], AbstractContextManager[Session]]


class Handed(Protocol):
    """What a student handed in: see `folder.Handed`."""

    @property
    def student(self) -> str:
        """Whose it is."""

    @property
    def where(self) -> str:
        """The file, below the folder of the class."""

    @property
    def problem(self) -> str:
        """Why there is nothing to read, or ""."""

    @property
    def data(self) -> bytes:
        """The bytes of the file."""


def grade(
    handed: Handed,
    exercises: Sequence[AnyExercise],
    seed: str,
    new_session: NewSession,
    equal: bool = False,
) -> Graded:
    """Grade one submission. The same file and seed give the same grades.

    Args:
        handed: the file.
        exercises: what was asked, in the order of the grades.
        seed: the secret of the class; it never enters a sandbox.
        new_session: makes a sandbox; told whether answers need torch. A second one is
            made where a kernel of lesson 12 is run again.
        equal: one point for each exercise, and not its minutes.

    Returns:
        The grades, or why there are none. It never raises for what a student did.
    """
    begin = time.monotonic()
    try:
        if handed.problem:
            raise notebook.Unreadable(handed.problem)
        cells = notebook.read(handed.data, handed.where)
    except notebook.Unreadable as problem:
        whose = handed.student, handed.where
        return Graded(*whose, "unreadable", str(problem), (), _since(begin))
    answers = [closure.answer(cells, one.name, one) for one in exercises]
    torch = any(a.needs_torch for a in answers) or any(
        isinstance(e, Exercise) and e.tensors and a.status == "found"
        for e, a in zip(exercises, answers, strict=True)
    )
    with ExitStack() as stack:
        grader = _Grader(seed, new_session, torch, equal, stack)
        grades = [
            _without_places(grader.grade(exercise, answer))
            for exercise, answer in zip(exercises, answers, strict=True)
        ]
    told = tuple(_leaning(answers, grades))
    graded = Graded(handed.student, handed.where, "graded", "", told)
    return replace(graded, seconds=_since(begin))


def _without_places(grade: Grade) -> Grade:
    """The same words at every run, so that two can be compared."""
    notes = tuple(sentences.without_places(note) for note in grade.notes)
    return replace(grade, text=sentences.without_places(grade.text), notes=notes)


def _leaning(
    answers: Sequence[closure.Answer], grades: Sequence[Grade]
) -> Iterator[Grade]:
    """Where an answer uses another one that is wrong, say so: one slip, lost twice."""
    wrong = {one.exercise for one in grades if one.status not in NOT_WRONG}
    for answer, grade in zip(answers, grades, strict=True):
        used = {name for piece in answer.pieces for name in seems_bound(piece.source)}
        others = sorted(used & wrong - {grade.exercise})
        if others and grade.exercise in wrong:
            said = f"{grade.text}\n{sentences.leans_on(others)}"
            grade = replace(grade, text=said)
        yield grade


def _since(begin: float) -> float:
    return round(time.monotonic() - begin, 3)


class _Grader:
    """Grades the answers of one student, one after another."""

    def __init__(
        self,
        seed: str,
        new_session: NewSession,
        torch: bool,
        equal: bool,
        stack: ExitStack,
    ) -> None:
        self._seed, self._equal = seed, equal
        self._new, self._stack = new_session, stack
        self._session = stack.enter_context(new_session(torch))
        self._other: Session | None = None

    def grade(self, exercise: AnyExercise, answer: closure.Answer) -> Grade:
        """One grade. Whatever fails on our side costs the student nothing."""
        name, worth = exercise.name, points.of(exercise, self._equal)
        blank = Grade(
            name,
            0,
            worth,
            "missing",
            "",
            cell=answer.cell,
            notes=answer.notes,
            begins=answer.begins,
        )
        if answer.status == "missing":
            return replace(blank, text=sentences.missing(name))
        if answer.status == "stub":
            said = sentences.not_started(name)
            return replace(blank, status="not started", text=said)
        if answer.status == "syntax":
            said = sentences.syntax(name, answer.notes)
            return replace(blank, status="syntax", text=said)
        try:
            return self._twice_if_need_be(exercise, answer, blank)
        except Lost as lost:
            said = sentences.lost(name, lost.reason)
            notes = (*answer.notes, *sentences.detail(lost.reason, lost.detail))
            status: Status = lost.reason
            return replace(blank, status=status, text=said, notes=notes)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            return replace(blank, status="ungraded", text=sentences.ungraded(name, why))

    def _twice_if_need_be(
        self, exercise: AnyExercise, answer: closure.Answer, blank: Grade
    ) -> Grade:
        try:
            return self._grade(exercise, answer, blank)
        except Lost as lost:
            if not lost.sandbox:
                raise
        return self._grade(exercise, answer, blank)  # alone: it may not have been it

    def _grade(
        self, exercise: AnyExercise, answer: closure.Answer, blank: Grade
    ) -> Grade:
        seed = points.seed_of(self._seed, exercise.name)
        with self._session.exercise() as line:
            defined = define(line, answer.pieces, self._wish(exercise, seed))
            blank = replace(blank, notes=(*blank.notes, *defined.errors))
            if defined.answer is MISSING:
                status: Status = "timeout" if defined.slow else "raised"
                said = sentences.undefined(exercise.name, defined.errors, defined.slow)
                return replace(blank, status=status, text=said)
            verdict = _verdict(exercise, defined.answer, seed)
            if isinstance(defined.answer, Remote) and defined.answer.lost:
                raise defined.answer.lost
        tried = not verdict.passed and verdict.status != "not started"
        return replace(
            blank,
            points=points.earned(verdict, blank.of),
            status=cast(Status, verdict.status),
            text=verdict.text,
            mistakes=tuple(mistake.key for mistake in verdict.mistakes),
            hint=exercise.hints[0] if tried else "",
        )

    def _wish(self, exercise: AnyExercise, seed: int) -> Wish:
        if isinstance(exercise, HuntExercise):
            return Wish(exercise.name, limit=arena.LIMIT, seed=seed)
        if not isinstance(exercise, Exercise):
            return Wish(exercise.name, value=True)
        around = exercise.around.__name__ if exercise.around else ""
        around = around if around in Remote.beside else ""
        return Wish(exercise.name, around, tensors=exercise.tensors, apart=self._apart)

    @contextlib.contextmanager
    def _apart(self) -> Iterator[Line]:
        """A line to a child where no code of a student ever was."""
        if self._other is None:
            self._other = self._stack.enter_context(self._new(False))
        with self._other.exercise() as line:
            yield line


def _verdict(exercise: AnyExercise, answer: object, seed: int) -> Verdict:
    """As the judge of the notebooks says it, with what counts for points."""
    name = exercise.name
    size = _largest(answer) if isinstance(exercise, WitnessExercise) else 0
    if size > LARGEST:  # only its shape has come
        return Verdict("wrong", text.not_yet(name, hunt_text.too_large(size)))
    if name in course.names() and course.get(name) is exercise:
        return course.judge(name, answer, seed, counted=True)
    return course.judge_as(exercise, answer, seed, counted=True)


def _largest(answer: object) -> int:
    parts = answer if isinstance(answer, tuple | list) else ()
    return max((a.size for a in parts if isinstance(a, np.ndarray)), default=0)
