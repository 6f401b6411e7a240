"""Runs in the sandbox: forks one child an exercise, watches it, ends all it started.

It takes orders from the grader over one socket, and tells how a child ended. It loads
NumPy, and torch where it is needed, before any answer is there, so that each child has
them at once. It knows nothing that an answer must not know.

Orders and reports are JSON in messages of `MESSAGE` bytes:

- ``{"do": "begin", "number": 1}`` with the socket of the child;
- ``{"do": "time", "seconds": 2}``: so many seconds of the processor from now on;
- ``{"do": "stop"}``: end it;
- ``{"ready": true}``, or ``{"ready": false, "why": "..."}`` before it gives up;
- ``{"ended": 1, "code": 0, "signal": null, "why": null, "printed": 0}``.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import json
import os
import select
import signal
import socket
import time
import warnings
from typing import Any, NoReturn

from attnlib.grading.channel import MESSAGE, Channel
from attnlib.grading.inside import confine, processes

LOOK = 0.05  # seconds between two looks at what a child uses
PIPE = 1 << 20  # bytes taken of what it prints, at once
SET_PIPE_SIZE = 1031  # for fcntl, on Linux


class Supervisor:
    """One sandbox: it has at most one child at a time."""

    def __init__(self, control: socket.socket, settings: dict[str, Any]) -> None:
        self._control, self._settings = control, settings
        self._serve: Any = None
        self._shared = 0
        self._wake, wake = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._child: Child | None = None
        self._looked = 0.0

    def load(self) -> None:
        """Import what children need. Says why, if it cannot."""
        for part in ("numpy.random", "numpy.linalg", "numpy.fft"):
            importlib.import_module(part)
        if self._settings["torch"]:
            importlib.import_module("torch").set_num_threads(1)
        module, function = self._settings["serve"].split(":")
        self._serve = getattr(importlib.import_module(module), function)
        self._shared = processes.own_memory()

    def run(self) -> None:
        """Take orders until the grader hangs up."""
        while self._turn():
            pass
        if self._child:
            self._end("stopped")

    def _turn(self) -> bool:
        child = self._child
        reads: list[Any] = [self._control, self._wake]
        if child and child.output is not None:
            reads.append(child.output)
        ready = select.select(reads, [], [], LOOK if child else None)[0]
        if self._wake in ready:
            with contextlib.suppress(OSError):
                os.read(self._wake, PIPE)
        if child:
            if child.output in ready:
                child.count()
            self._watch(child)
        return self._order() if self._control in ready else True

    def _watch(self, child: Child) -> None:
        """Has it ended? Does it use too much?"""
        status = child.ended()
        if status is not None:
            self._end(None, status)
            return
        if time.monotonic() < self._looked + LOOK:
            return
        self._looked = time.monotonic()
        why = child.too_much(processes.use(self._shared), self._settings)
        if why:
            self._end(why)

    def _order(self) -> bool:
        raw, descriptors, _, _ = socket.recv_fds(
            self._control, MESSAGE, 1, socket.MSG_WAITALL
        )
        if len(raw) < MESSAGE:
            return False
        order = json.loads(raw)
        if order["do"] == "begin":
            self._begin(int(order["number"]), descriptors[0])
        elif order["do"] == "time" and self._child:
            used = processes.use(self._shared).cpu
            self._child.until = used + float(order["seconds"])
        elif order["do"] == "stop" and self._child:
            self._end("stopped")
        return True

    def _begin(self, number: int, line: int) -> None:
        read, write = _pipe()
        settings = self._settings | {"supervisor": os.getpid()}
        if settings["counts_user"] and settings["processes"]:
            # The limit counts all that this user runs, also outside.
            settings["processes"] += processes.tasks_of(os.getuid())
        pid = os.fork()
        if pid == 0:
            self._be_child(settings, line, write)
        os.close(line)
        os.close(write)
        self._child = Child(number, pid, read)

    def _be_child(self, settings: dict[str, Any], line: int, write: int) -> NoReturn:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            self._serve(Channel(confine.confine(settings, line, write)))
            code = 0
        finally:
            os._exit(code)  # no exit handlers: they are the student's

    def _end(self, why: str | None, status: int | None = None) -> None:
        """End all that the child has started, and tell how it ended."""
        child = self._child
        assert child is not None
        self._child = None
        gone = processes.end_all(child.pid, self._settings["uid"])
        child.count()
        child.close()
        how = {} if status is None else _how(status)
        report = {"ended": child.number, "why": why, "printed": child.printed} | how
        self.tell(report)
        if not gone:  # no other exercise must meet them
            raise SystemExit(1)

    def tell(self, report: dict[str, Any]) -> None:
        """Send a report to the grader."""
        with contextlib.suppress(OSError):
            self._control.sendall(json.dumps(report).encode().ljust(MESSAGE))


class Child:
    """The process of one exercise."""

    def __init__(self, number: int, pid: int, output: int) -> None:
        self.number, self.pid = number, pid
        self.output: int | None = output
        self.printed = 0
        self.until = 0.0  # seconds of the processor

    def count(self) -> None:
        """Count what it has printed, and throw it away."""
        with contextlib.suppress(BlockingIOError):
            while self.output is not None:
                came = len(os.read(self.output, PIPE))
                self.printed += came
                if not came:
                    self.close()
                if came < PIPE // 2:  # others wait, too
                    break

    def close(self) -> None:
        """Look at its output no more."""
        if self.output is not None:
            os.close(self.output)
            self.output = None

    def ended(self) -> int | None:
        """How it ended, as waitpid says; None while it runs. Orphans are let go."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return 0
            if pid == self.pid:
                return status
            if pid == 0:
                return None

    def too_much(self, used: processes.Use, settings: dict[str, Any]) -> str | None:
        """What it uses too much of, if anything."""
        if self.until and used.cpu > self.until:
            return "timeout"
        if used.memory > settings["memory"]:
            return "memory"
        if used.count > settings["processes"]:
            return "processes"
        return "output" if self.printed > settings["printed"] else None


def _how(status: int) -> dict[str, int]:
    if os.WIFSIGNALED(status):
        return {"signal": os.WTERMSIG(status)}
    return {"code": os.WEXITSTATUS(status)}


def _pipe() -> tuple[int, int]:
    """Where a child prints: large, so that it is not held up."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    with contextlib.suppress(OSError):
        fcntl.fcntl(write, SET_PIPE_SIZE, PIPE)
    return read, write


def main(control: int, settings: dict[str, Any]) -> None:
    """Called by the grader, in a fresh Python: the number of a socket, and settings."""
    supervisor = Supervisor(socket.socket(fileno=control), settings)
    warnings.simplefilter("ignore")
    confine.harden()
    try:
        supervisor.load()
    except Exception as error:
        why = f"{type(error).__name__}: {error}"[: MESSAGE // 4]
        supervisor.tell({"ready": False, "why": why})
        return
    supervisor.tell({"ready": True})
    supervisor.run()
