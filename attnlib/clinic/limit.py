"""Stop a call that takes too long; imports, and a busy machine, give it more time.

The first import of a part of torch can take seconds on a busy machine. It is no loop,
and to stop it halfway would leave the library in pieces. So a call is not interrupted
while it imports, and has its whole time once more (not twice) after an import.

Where other programs hold the processor, a right function is slow, too. So a call that
computes is stopped after so many seconds of the processor; one that only waits, after
as many of the clock.
"""

from __future__ import annotations

import contextlib
import ctypes
import signal
import sys
import threading
import time
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

AGAIN = 1e-4  # seconds between two attempts to stop a loop that catches the first
LOOK = 0.05  # seconds between two looks whether an import is done
LONGEST_IMPORT = 60.0  # seconds; what takes longer is a loop in a module
LONGEST_WAIT = 5  # times the limit, by the clock, for a call that computes
IDLE = 0.02  # of the clock's seconds: who computes less than this is waiting
_IMPORT = "<frozen importlib._bootstrap>"

Doing = Literal["ours", "importing", "running"]


class TimeUp(BaseException):
    """The call took too long. No Exception: `except Exception` must let it by."""


class Clock:
    """Gives each call its limit, and all calls together twice as much."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._end = time.monotonic() + 2 * limit

    def next(self) -> float:
        """Seconds for the next call."""
        return min(self.limit, max(0.05, self._end - time.monotonic()))

    def slowed(self, times: float) -> Clock:
        """A new one for calls that take so many times as long; itself, if none do."""
        return Clock(self.limit * times) if times > 1 else self

    def add(self, seconds: float) -> None:
        """Time that does not count: an import."""
        self._end += seconds


@dataclass
class Spent:
    """Seconds of a call that are not counted."""

    on_imports: float = 0.0


class _Patience:
    """Decides, when the time is up, whether to stop the call or to wait."""

    def __init__(self, seconds: float, inside: types.CodeType, spent: Spent) -> None:
        self._seconds, self._inside, self._spent = seconds, inside, spent
        self._start, self._worked = time.monotonic(), time.process_time()
        self._granted = False

    def wait(self, frame: types.FrameType | None) -> float | None:
        """Seconds to wait before the next look; 0 to stop now; None to pass over."""
        doing = self._doing(frame)
        passed = time.monotonic() - self._start
        if doing == "importing" and passed < LONGEST_IMPORT:
            self._spent.on_imports = passed
            return LOOK
        if self._spent.on_imports and not self._granted:  # the import has just ended
            self._granted = True
            return self._seconds
        if doing == "ours":
            return None
        worked = time.process_time() - self._worked
        held_up = IDLE * passed < worked < self._seconds
        if held_up and passed < LONGEST_WAIT * self._seconds:
            return max(LOOK, self._seconds - worked)
        return 0.0

    def _doing(self, frame: types.FrameType | None) -> Doing:
        """Whether the learner's function is running, and not our code around it."""
        imports = False
        while frame is not None:
            if frame.f_code is self._inside:
                return "importing" if imports else "running"
            imports = imports or frame.f_code.co_filename == _IMPORT
            frame = frame.f_back
        return "ours"


@contextlib.contextmanager
def time_limit(seconds: float, inside: types.CodeType) -> Iterator[Spent]:
    """Raise TimeUp in what `inside` calls, once it has run for so many seconds."""
    spent = Spent()
    patience = _Patience(seconds, inside, spent)
    on_main_thread = threading.current_thread() is threading.main_thread()
    kind = _alarm if on_main_thread and hasattr(signal, "setitimer") else _watchdog
    with kind(seconds, patience):
        yield spent


@contextlib.contextmanager
def _alarm(seconds: float, patience: _Patience) -> Iterator[None]:
    """Raise TimeUp by a signal, and go on raising it.

    A bare `except:` inside a loop catches the first one. So the alarm goes on at a
    high rate: one of the next ones arrives between the `except` and the next `try`.
    """

    ringing = False

    def ring(number: int, frame: types.FrameType | None) -> None:
        nonlocal ringing
        if ringing:  # the next alarm came before this one was through
            return
        ringing = True
        try:
            wait = patience.wait(frame)
            if wait == 0:
                raise TimeUp
            if wait is not None:
                signal.setitimer(signal.ITIMER_REAL, wait, AGAIN)
        finally:
            ringing = False

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        # The last alarm may be under way still, and where nobody listens it ends the
        # process. To ignore it throws away what is under way.
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _watchdog(seconds: float, patience: _Patience) -> Iterator[None]:
    """Raise TimeUp from a second thread: for Windows, and outside the main thread.

    As with the alarm, the first one may be caught. Then the two threads take turns as
    often as they can, until one arrives between an `except` and the next `try`.
    """
    target = threading.get_ident()
    done = threading.Event()
    lock = threading.Lock()
    turns = sys.getswitchinterval()

    def watch() -> None:
        pause = seconds
        while not done.wait(pause):
            with lock:
                frame = sys._current_frames().get(target)
                wait = None if done.is_set() else patience.wait(frame)
                if wait == 0:
                    sys.setswitchinterval(1e-6)
                    _raise_in(target, TimeUp)
            pause = wait or 0.0

    def stop() -> None:
        with lock:
            done.set()
            sys.setswitchinterval(turns)
        _catch_the_last()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        # A TimeUp that was sent while the function still ran may arrive here. There is
        # at most one: none is sent any more now.
        try:
            stop()
        except TimeUp:
            stop()
        thread.join(timeout=1)


def _catch_the_last() -> None:
    """Take one more TimeUp in this thread, in the place of one that is under way.

    Python 3.11 never forgets one that is called back instead (with NULL), and turns in
    circles at the next call of a function for which lines are followed.
    """
    with contextlib.suppress(TimeUp):
        _raise_in(threading.get_ident(), TimeUp)
        while True:
            pass


def _raise_in(thread: int, error: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), ctypes.py_object(error)
    )
