"""A process that grades one file after another. What a student wrote runs elsewhere.

It reads notebooks and judges answers; the code of a student runs in the sandbox that it
starts. It has one socket to the program that started it, and ends with that program.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import types
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any

from attnlib.grading import notebook, points, student
from attnlib.grading.asked import Asked
from attnlib.grading.grades import Graded
from attnlib.grading.inside.kernel import PR_SET_PDEATHSIG, prctl
from attnlib.grading.plan import Task
from attnlib.grading.sandbox.limits import Limits
from attnlib.grading.sandbox.place import SAME_FOR_ALL, Sandbox
from attnlib.grading.session import Session
from attnlib.grading.skim import Unreadable

EMPTY = "It holds no exercise of the course."
OTHER = "There is nothing of lesson {:02d} in it, only of {:02d}."


@dataclass(frozen=True)
class Settings:
    """What a worker has to know, once."""

    secret: str
    asked: Asked
    sandbox: Sandbox
    equal: bool = False
    limits: Limits | None = None


@dataclass(frozen=True)
class Begun:
    """What a file is graded for: said before it is, in case that the worker ends."""

    exercises: tuple[tuple[str, int], ...]  # the name of each, and what it is worth


@dataclass(frozen=True)
class Done:
    """The grades of a file, and the hash of its bytes. No grades: it is as known."""

    hash: str
    graded: Graded | None


@dataclass(frozen=True)
class Failed:
    """A fault of ours: why there are no grades."""

    why: str


@dataclass(frozen=True)
class _Read:
    """A file that was read."""

    student: str
    where: str
    data: bytes
    problem: str = ""


def main(socket: int) -> None:
    """Grade what comes over the socket, until it is closed or the starter ends.

    Args:
        socket: its number.
    """
    with contextlib.suppress(OSError):
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it decides
    signal.signal(signal.SIGTERM, _end)
    with Connection(socket) as line:
        try:
            worker = Worker(line.recv(), line)
            while True:
                task, known = line.recv()
                try:
                    line.send(worker.grade(task, known))
                except (EOFError, ConnectionError):
                    raise
                except Exception as error:
                    line.send(Failed(f"{type(error).__name__}: {error}"))
        except (EOFError, ConnectionError):
            return


def _end(number: int, frame: types.FrameType | None) -> None:
    raise SystemExit(128 + number)


class Worker:
    """Grades files with one secret, in one kind of sandbox."""

    def __init__(self, settings: Settings, line: Any = None) -> None:
        self._settings, self._line = settings, line

    def grade(self, task: Task, known: str = "") -> Done:
        """Grade one file. Never raises for what a student did.

        Args:
            task: whose, and which.
            known: a hash; a file that has it need not be graded again.
        """
        whose = task.student, task.handed.where
        try:
            data = task.handed.data
        except Unreadable as problem:
            told = _hash(str(problem).encode())
            graded = Graded(*whose, "unreadable", str(problem))
            return Done(told, None if told == known else graded)
        told = _hash(data)
        if told == known:
            return Done(told, None)
        asked = self._settings.asked
        exercises = asked.fixed
        if not exercises:
            lesson = task.handed.lesson
            if lesson is None or not asked.of(lesson):
                with contextlib.suppress(Unreadable):  # said below
                    lesson = asked.lesson_in(notebook.read(data, task.handed.where))
            exercises = asked.of(lesson)
        equal = self._settings.equal
        if self._line is not None:
            worth = tuple((e.name, points.of(e, equal)) for e in exercises)
            self._line.send(Begun(worth))
        read = _Read(*whose, data)
        graded = student.grade(
            read, exercises, self._settings.secret, self._session, equal
        )
        if graded.status == "graded" and not graded.grades:
            graded = Graded(*whose, "unreadable", EMPTY, (), graded.seconds)
        elif asked.fixed and all(one.status == "missing" for one in graded.grades):
            graded = self._of_another(task, data, graded)
        return Done(told, graded)

    def _of_another(self, task: Task, data: bytes, graded: Graded) -> Graded:
        """Who sent only another lesson has not handed in, which is no zero."""
        asked = self._settings.asked
        try:
            cells = notebook.read(data, task.handed.where)
        except Unreadable:
            return graded
        other = asked.another(cells, task.handed.lesson)
        if other is None:
            return graded
        why = OTHER.format(asked.lesson, other)
        return replace(graded, status="missing", problem=why, grades=())

    def _session(self, torch: bool) -> Session:
        return Session(self._settings.sandbox, self._settings.limits, torch=torch)


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def environment() -> dict[str, str]:
    """For a worker: ours, with what is the same for all."""
    return {**os.environ, **SAME_FOR_ALL}
