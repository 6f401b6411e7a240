"""How far grading is, and how long it will take."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from typing import TextIO

EVERY = 10.0  # seconds between two lines where there is no terminal
FEW = 3  # as many must be done before an estimate is worth anything


class Progress:
    """Tells it on a terminal in one line that changes, elsewhere in plain lines.

    Args:
        total: how many submissions.
        stream: where it is written; the standard error if left out.
        clock: seconds that pass.
    """

    def __init__(
        self,
        total: int,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total = total
        self._stream = stream if stream is not None else sys.stderr
        self._clock = clock
        self._begin = self._last = clock()
        self._done = self._worked = 0
        self._live = self._stream is not None and self._stream.isatty()
        self._width = 0

    def step(self, fresh: bool = True) -> None:
        """One more is done.

        Args:
            fresh: it was graded now, and not kept from an earlier run.
        """
        self._done += 1
        self._worked += fresh
        now = self._clock()
        last = self._done == self._total
        if self._live:
            self._write(f"\r{self._padded(self.line())}" + ("\n" if last else ""))
        elif last or now - self._last >= EVERY:
            self._last = now
            self._write(self.line() + "\n")

    def end(self) -> None:
        """Leave the line, so that what comes next stands below it."""
        if self._live and 0 < self._done < self._total:
            self._write("\n")

    def line(self) -> str:
        """What it says now."""
        said = f"{self._done} of {self._total} graded"
        left = self.left()
        return said if left is None else f"{said}, {roughly(left)} left"

    def left(self) -> float | None:
        """Seconds that it will still take, or None where nobody knows yet."""
        open_ = self._total - self._done
        if not open_ or self._worked < FEW:
            return None
        return (self._clock() - self._begin) / self._worked * open_

    def _padded(self, line: str) -> str:
        self._width = max(self._width, len(line))
        return line.ljust(self._width)

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        with contextlib.suppress(OSError, ValueError):  # nobody reads on
            self._stream.write(text)
            self._stream.flush()


def roughly(seconds: float) -> str:
    """A time as one says it.

    >>> roughly(8), roughly(200), roughly(9000)
    ('about 10 seconds', 'about 3 minutes', 'about 2.5 hours')
    """
    if seconds < 55:
        return f"about {max(5, round(seconds / 5) * 5)} seconds"
    if seconds < 5400:
        minutes = max(1, round(seconds / 60))
        return f"about {minutes} minute{'s' if minutes > 1 else ''}"
    return f"about {seconds / 3600:.1f} hours".replace(".0 ", " ")
