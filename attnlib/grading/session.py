"""One submission, one sandbox; one exercise, one child in it with a line of its own.

Use a session in the thread that made it: where that thread ends, its sandbox ends, too.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from attnlib.grading.box import END, Box, NotStarted
from attnlib.grading.channel import Also, Arrays, Channel, Header, Lost
from attnlib.grading.sandbox.limits import Limits
from attnlib.grading.sandbox.place import SERVE, Sandbox

WALL = 5  # times the seconds of the processor, by the clock
HANG_UP = 5.0  # seconds from a closed line to the news how the child ended
_users = itertools.count()

__all__ = ["Line", "NotStarted", "Session"]

Handler = Callable[[Header, Arrays], tuple[Header, Sequence[np.ndarray]]]


class Session:
    """The sandbox of one submission. It starts when the first exercise does.

    Args:
        sandbox: from `choose`.
        limits: of each exercise.
        torch: whether the answers need torch.
        serve: what runs in a child; another one is for tests.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        limits: Limits | None = None,
        *,
        torch: bool = False,
        serve: str = SERVE,
    ) -> None:
        self._sandbox, self._limits = sandbox, limits or Limits()
        self._torch, self._serve = torch, serve
        self._box: Box | None = None
        self._alone = False  # once one has died, each exercise has its own

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def exercise(self) -> Iterator[Line]:
        """A line to a new child. Its process, and all it started, end with the block.

        Raises:
            NotStarted: the sandbox does not start.
        """
        box = self._started()
        line = Line(box)
        try:
            yield line
        finally:
            line.close()
            if not box.alive:
                self._alone = True
            if self._alone:
                self.close()

    def close(self) -> None:
        """End the sandbox and all that is in it."""
        box, self._box = self._box, None
        if box:
            box.close()

    def _started(self) -> Box:
        if self._box is None or not self._box.alive:
            self.close()
            user = os.getpid() % (1 << 20) * 64 + next(_users) % 64
            settings = self._sandbox.settings(
                self._limits, self._torch, self._serve, user
            )
            self._box = Box(self._sandbox, settings)
        return self._box


class Line:
    """The grader's end of the line to one child."""

    def __init__(self, box: Box) -> None:
        self._box = box
        self._channel = Channel(box.begin())
        self._handler: Handler | None = None
        self._lost: Lost | None = None
        self._report: dict[str, Any] | None = None
        self.printed = 0  # bytes, known once the child has ended

    def answered(self, handler: Handler) -> None:
        """Let `handler` answer the child's questions: frames with "what": "callback".

        Time that it takes is not the child's.
        """
        self._handler = handler

    def ask(
        self, header: Header, arrays: Sequence[np.ndarray] = (), seconds: float = 2.0
    ) -> tuple[Header, Arrays]:
        """Send a request and wait for its answer.

        Args:
            header: what the child's `serve` reads.
            arrays: arrays of numbers.
            seconds: of the processor; five times as many by the clock.

        Returns:
            The answer's header and arrays. Whatever they hold came from a stranger.

        Raises:
            Lost: there will be no answer, now or later.
        """
        if self._lost:
            raise Lost(self._lost.reason, self._lost.detail, self._lost.sandbox)
        try:
            return self._ask(header, arrays, seconds)
        except Lost as lost:
            self._lost = self._cause(lost)
            self.close()
            raise self._lost from None

    def _ask(
        self, header: Header, arrays: Sequence[np.ndarray], seconds: float
    ) -> tuple[Header, Arrays]:
        until = time.monotonic() + WALL * seconds
        also = Also(self._box.control, self._hear)
        self._box.tell({"do": "time", "seconds": seconds})
        self._channel.send(header, arrays, until - time.monotonic(), also)
        while True:
            answer, back = self._receive(until - time.monotonic(), also)
            if answer.get("what") != "callback" or self._handler is None:
                return answer, back
            before = time.monotonic()
            reply, given = self._handler(answer, back)
            until += time.monotonic() - before
            self._channel.send(reply, given, until - time.monotonic(), also)

    def _receive(self, seconds: float, also: Also) -> tuple[Header, Arrays]:
        try:
            return self._channel.receive(seconds, also)
        except Lost as lost:
            # It has ended; but what it said before that counts.
            if self._report is None or lost.reason != "ended":
                raise
            return self._channel.receive(0.5)

    def _hear(self) -> None:
        """The supervisor reports."""
        self._report = self._box.report()
        raise Lost("ended")

    def _cause(self, lost: Lost) -> Lost:
        """Why there is no answer, with what the supervisor knows."""
        if lost.reason != "ended":
            return lost
        if self._report is None:
            with contextlib.suppress(Lost):
                self._report = self._box.report(HANG_UP)
        if not self._box.alive:
            return Lost("killed", "the sandbox has ended", sandbox=True)
        if self._report is None:
            return Lost("broke", "it closed its line")
        return _ending(self._report)

    def close(self) -> None:
        """End the child and all that it started."""
        self._channel.close()
        if self._box.alive and self._report is None:
            with contextlib.suppress(Lost):
                self._box.tell({"do": "stop"})
                self._report = self._box.report(END)
        if self._report is None:
            self._box.close()
        else:
            self.printed = int(self._report.get("printed", 0))


def _ending(report: dict[str, Any]) -> Lost:
    """How a child ended, in the words of the grades."""
    why, number = report["why"], report.get("signal")
    if why == "processes":
        return Lost("killed", "it started too many processes")
    if why in ("timeout", "memory", "output"):
        return Lost(why)
    if number == signal.SIGXCPU:
        return Lost("timeout")
    if number is not None:
        with contextlib.suppress(ValueError):
            return Lost("killed", signal.Signals(number).name)
        return Lost("killed", f"signal {number}")
    return Lost("ended", f"exit status {report.get('code')}")
