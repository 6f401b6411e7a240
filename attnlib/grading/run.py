"""Grade many files in a few processes; nothing that one of them does ends the others.

Each worker grades one file after another (the wrong versions of an exercise, which it
compares answers with, are worked out once for all). A worker that ends is replaced, and
its file is tried once more.
"""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait

from attnlib.grading import worker
from attnlib.grading.ending import wait_or_kill
from attnlib.grading.grades import Grade, Graded
from attnlib.grading.plan import Task
from attnlib.grading.worker import Begun, Done, Failed, Settings

LONGEST = 3600.0  # seconds for one file: the last resort
PATIENCE = 5.0  # seconds until a worker that was asked to end is ended
TRIES = 2
FILES = 60  # that one worker grades before another takes its place: memory

START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from attnlib.grading.worker import main; main(int(sys.argv[1]))"
)
ENDED = "the process that graded it ended by itself, {times} times"
TOO_LONG = "it took longer than {minutes:.0f} minutes"


class Pool:
    """A few workers. All of them, and all they started, end with the block.

    Args:
        count: how many.
        settings: what they grade with.
        longest: seconds for one file.
        start: what a worker's Python runs; another one is for tests.
    """

    def __init__(
        self,
        count: int,
        settings: Settings,
        longest: float = LONGEST,
        start: str = START,
    ) -> None:
        self._count, self._settings = count, settings
        self._longest, self._start = longest, start
        self._workers: list[_Worker] = []

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers."""
        workers, self._workers = self._workers, []
        for one in workers:
            one.ask_to_end()
        for one in workers:
            one.end()

    def graded(self, tasks: Sequence[tuple[Task, str]]) -> Iterator[tuple[Task, Done]]:
        """Grade all tasks; each comes back once it is done.

        Args:
            tasks: each with the hash that its file may have without being graded again.
        """
        waiting = deque((task, known, 1) for task, known in tasks)
        while waiting or any(one.busy for one in self._workers):
            self._fill(waiting)
            for one in self._ready():
                done = self._heard(one, waiting)
                if done is not None:
                    yield done

    def _fill(self, waiting: deque[tuple[Task, str, int]]) -> None:
        for one in list(self._workers):
            if not one.busy and one.files >= FILES:
                self._drop(one)
        while waiting:
            free = next((one for one in self._workers if not one.busy), None)
            if free is None and len(self._workers) == self._count:
                return
            if free is None:
                free = _Worker(self._start)
                self._workers.append(free)
                free.tell(self._settings)
            free.give(*waiting.popleft())

    def _ready(self) -> list[_Worker]:
        """The workers that said something, ended, or took too long."""
        busy = {one.line: one for one in self._workers if one.busy}
        until = min(one.since for one in busy.values()) + self._longest
        said = wait(list(busy), max(0.0, until - time.monotonic()))
        late = time.monotonic() - self._longest
        return [one for line, one in busy.items() if line in said or one.since <= late]

    def _heard(
        self, one: _Worker, waiting: deque[tuple[Task, str, int]]
    ) -> tuple[Task, Done] | None:
        assert one.busy is not None
        task, known, tries = one.busy
        late = not one.line.poll()
        try:
            said = None if late else one.line.recv()
        except (EOFError, OSError):
            said = None
        if isinstance(said, Begun):
            one.begun = said
            return None
        if isinstance(said, Done):
            one.busy = None
            return task, said
        if isinstance(said, Failed):
            one.busy = None
            return task, Done("", ungraded(task, one.begun, said.why.rstrip(".")))
        self._drop(one)
        if late:
            why = TOO_LONG.format(minutes=self._longest / 60)
        elif tries < TRIES:
            waiting.append((task, known, tries + 1))
            return None
        else:
            why = ENDED.format(times=tries)
        return task, Done("", ungraded(task, one.begun, why))

    def _drop(self, one: _Worker) -> None:
        self._workers.remove(one)
        one.ask_to_end()
        one.end()


def ungraded(task: Task, begun: Begun | None, why: str) -> Graded:
    """No grades, through a fault of ours: no zeros either."""
    whose = task.student, task.handed.where
    if begun is None:
        return Graded(*whose, "unreadable", f"It could not be read: {why}.")
    said = f"Not graded. That is a fault of the grader, and no zero: {why}."
    grades = tuple(Grade(name, 0, of, "ungraded", said) for name, of in begun.exercises)
    return Graded(*whose, "graded", "", grades)


class _Worker:
    """A worker as the one who started it sees it."""

    def __init__(self, start: str) -> None:
        ours, theirs = socket.socketpair()
        self.line = Connection(ours.detach())
        self.busy: tuple[Task, str, int] | None = None
        self.begun: Begun | None = None
        self.since, self.files = 0.0, 0
        path = json.dumps([place for place in sys.path if place])
        with theirs:
            # Ctrl-C of a terminal does not reach it: another session.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", start, str(theirs.fileno()), path],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=worker.environment(),
                start_new_session=True,
            )

    def tell(self, what: object) -> None:
        with contextlib.suppress(OSError):  # it has ended: seen when it is listened to
            self.line.send(what)

    def give(self, task: Task, known: str, tries: int) -> None:
        self.busy, self.begun = (task, known, tries), None
        self.since, self.files = time.monotonic(), self.files + 1
        self.tell((task, known))

    def ask_to_end(self) -> None:
        self.line.close()
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)

    def end(self) -> None:
        wait_or_kill(self._process, PATIENCE)
