"""A line to a child that is a fork of the test: no sandbox, the same `serve`.

Of attnlib it has what a sandbox's room has, and what an answer is given.
What runs at the other end is `inside.student`, as in a sandbox. `adopted` hands it an
answer as it is in memory, so that the answers of other tests can go over the wire.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import socket
import sys
import time
import warnings
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder

import attnlib
from attnlib import exercises
from attnlib.exercises import judging
from attnlib.exercises.exercise import Exercise, HuntExercise
from attnlib.grading import student as grader
from attnlib.grading.channel import Channel, Lost
from attnlib.grading.closure import Piece
from attnlib.grading.inside import sight, student
from attnlib.grading.remote import Remote, Wish, define
from attnlib.grading.sandbox.room import SHARED
from attnlib.grading.values import pack

NOTHING = object()
_counted = itertools.count()


class Adopted(student.Student):
    """Has its answer already."""

    def __init__(self, channel, answer):
        super().__init__(channel)
        self._answer = answer

    def define(self, request, arrays):
        self._tensors = request["tensors"]
        self._around = student.AROUND.get(request["around"], self._around)
        answer = self._answer
        called = callable(answer) and not issubclass(type(answer), type)
        if called and not request["value"]:
            told = sight.told(answer)
            return {"errors": [], "is": "function", "told": told}, []
        value, back = pack(answer)
        return {"errors": [], "is": "value", "value": value}, back


def _as_in_a_room():
    """Forget all of attnlib that an answer has only where it is given it."""
    kept = {f"attnlib.{name}" for name in ("clinic", "exercises", "grading")}
    kept |= {f"attnlib/{name}".removesuffix(".py").replace("/", ".") for name in SHARED}
    for name in [name for name in sys.modules if name.startswith("attnlib.")]:
        if name not in kept and not name.startswith("attnlib.grading.inside"):
            package, _, part = name.rpartition(".")
            vars(sys.modules.get(package, attnlib)).pop(part, None)
            del sys.modules[name]
    attnlib.__path__ = []
    # One that knows where this copy of attnlib lies asks no path.
    sys.meta_path[:] = [BuiltinImporter, FrozenImporter, PathFinder]


class ForkedLine:
    """The grader's end, as `session.Line`: but nothing is limited."""

    def __init__(self, answer=NOTHING, serve=student.serve):
        ours, theirs = socket.socketpair()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other threads wait
            self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                signal.setitimer(signal.ITIMER_REAL, 0)
                ours.close()
                _as_in_a_room()
                if answer is not NOTHING:
                    student.Student = lambda channel: Adopted(channel, answer)
                serve(Channel(theirs))
                code = 0
            finally:
                os._exit(code)
        theirs.close()
        self.channel = Channel(ours)
        self.handler = None
        self.asked = 0

    def answered(self, handler):
        self.handler = handler

    def ask(self, header, arrays=(), seconds=2.0):
        self.asked += 1
        until = time.monotonic() + 5 * seconds
        self.channel.send(header, arrays, 5 * seconds)
        while True:
            answer, back = self.channel.receive(max(0.01, until - time.monotonic()))
            if answer.get("what") != "callback" or self.handler is None:
                return answer, back
            before = time.monotonic()
            reply, given = self.handler(answer, back)
            until += time.monotonic() - before
            self.channel.send(reply, given, 10.0)

    def close(self):
        self.channel.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class ForkedSession:
    """Looks like `session.Session`; `serve` may be a child that lies."""

    def __init__(self, torch=False, serve=student.serve):
        self.serve = serve
        self.lines = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for line in self.lines:
            assert line.pid

    @contextlib.contextmanager
    def exercise(self):
        line = ForkedLine(serve=self.serve)
        self.lines.append(line)
        try:
            yield line
        finally:
            line.close()


@contextlib.contextmanager
def apart():
    """A child that has defined nothing."""
    line = ForkedLine()
    try:
        yield line
    finally:
        line.close()


def wish(exercise, seed=0, limit=judging.LIMIT):
    """As `student._Grader` asks for it."""
    if isinstance(exercise, HuntExercise):
        return Wish(exercise.name, limit=grader.arena.LIMIT, seed=seed)
    if not isinstance(exercise, Exercise):
        return Wish(exercise.name, value=True)
    around = exercise.around.__name__ if exercise.around else ""
    around = around if around in Remote.beside else ""
    more = {"tensors": exercise.tensors, "limit": limit, "apart": apart}
    return Wish(exercise.name, around, **more)


@contextlib.contextmanager
def answer_afar(exercise, answer=NOTHING, source=None, seed=0):
    """An answer in a child: one of this process, or the text of one."""
    line = ForkedLine(answer)
    try:
        pieces = [] if source is None else [Piece(1, 1, text) for text in source]
        if source is not None:  # one statement below the other
            first = 1
            pieces = []
            for text in source:
                pieces.append(Piece(1, first, text))
                first += text.count("\n") + 1
        yield define(line, pieces, wish(exercise, seed)).answer
    finally:
        line.close()


def from_afar(name, answer=NOTHING, seed=0, source=None, counted=True):
    """The verdict on an answer in a child."""
    exercise = exercises.get(name)
    with answer_afar(exercise, answer, source, seed) as found:
        verdict = grader._verdict(exercise, found, seed)
        if getattr(found, "lost", None):
            raise found.lost
    return verdict


__all__ = ["ForkedLine", "ForkedSession", "Lost", "answer_afar", "apart", "from_afar"]
