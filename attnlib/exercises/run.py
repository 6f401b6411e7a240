"""Call a learner's function without letting it disturb anything.

Printed text is caught, warnings are silenced, keyboard input is refused, a loop for
ever is stopped, and whatever the function raises, SystemExit included, comes back as a
value. The random state and NumPy's error settings are put back as they were.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import ctypes
import io
import math
import random
import signal
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from attnlib.exercises import tensors

LIMIT = 3.0  # seconds for one call
# Modules whose functions an answer may replace or delete, for itself and for all.
SHARED = (builtins, math, random, np, np.linalg, np.random)
AGAIN = 1e-4  # seconds between two attempts to stop a loop that catches the first


class TimeUp(BaseException):
    """The call took too long. No Exception: `except Exception` must let it by."""


class NoKeyboard(RuntimeError):
    """The function asked for keyboard input."""


@dataclass(frozen=True)
class Ran:
    """How one call ended."""

    value: object = None
    error: BaseException | None = None
    timed_out: bool = False
    printed: int = 0  # characters
    changed: tuple[int, ...] = ()  # which arguments differ afterwards


def run(
    function: Callable[..., object], args: tuple[object, ...], limit: float = LIMIT
) -> Ran:
    """Call `function` on copies of `args`, for at most `limit` seconds."""
    given = copy.deepcopy(args)
    text = _Sink()
    value: object = None
    error: BaseException | None = None
    # The second net catches a TimeUp that fires while the first is being left.
    try:
        with _modules_put_back(), _quiet(text), _time_limit(limit):
            try:
                value = _inside(function, given)
            except BaseException as raised:
                error = raised
    except TimeUp as raised:
        error = raised
    changed = tuple(
        i for i, (a, b) in enumerate(zip(args, given, strict=True)) if not _same(a, b)
    )
    timed_out = isinstance(error, TimeUp)
    return Ran(value, error, timed_out, text.characters, changed)


def _inside(function: Callable[..., object], args: tuple[object, ...]) -> object:
    """The frame below which a call may be interrupted. See `_interruptible`."""
    return function(*args)


def _same(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        same_form = a.shape == b.shape and a.dtype == b.dtype
        return same_form and a.tobytes() == b.tobytes()
    if isinstance(a, (list, tuple, dict)):
        return repr(a) == repr(b)
    return True  # numbers and None cannot be changed in place


class _Sink(io.TextIOBase):
    """Takes any amount of text and keeps none of it."""

    characters = 0

    def write(self, text: str) -> int:
        self.characters += len(text)
        return len(text)

    def writable(self) -> bool:
        return True


class _NoStdin(io.TextIOBase):
    def readable(self) -> bool:
        return True

    def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]
        raise NoKeyboard

    def read(self, size: int | None = -1, /) -> str:
        raise NoKeyboard


def _no_input(prompt: object = "", /) -> str:
    raise NoKeyboard


@contextlib.contextmanager
def _quiet(text: _Sink) -> Iterator[None]:
    """No output, no warnings, no keyboard; global states put back afterwards."""
    state = np.random.get_state()  # noqa: NPY002 - what a learner may have seeded
    dice = random.getstate()
    stdin, real_input, recursion = sys.stdin, builtins.input, sys.getrecursionlimit()
    sys.stdin, builtins.input = _NoStdin(), _no_input
    try:
        with (
            _no_exit(),
            tensors.settings_put_back(),
            contextlib.redirect_stdout(text),
            contextlib.redirect_stderr(text),
            warnings.catch_warnings(),
            np.errstate(all="ignore"),
            np.printoptions(),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.stdin, builtins.input = stdin, real_input
        sys.setrecursionlimit(recursion)
        np.random.set_state(state)  # noqa: NPY002
        random.setstate(dice)


@contextlib.contextmanager
def _no_exit() -> Iterator[None]:
    """In a notebook, exit() asks the kernel to end; here it raises, as in a script."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None:
        yield
        return

    def ask_exit() -> None:
        raise SystemExit

    shell.ask_exit = ask_exit
    try:
        yield
    finally:
        del shell.ask_exit


@contextlib.contextmanager
def _modules_put_back() -> Iterator[None]:
    """Undo what the function replaced or deleted in NumPy, torch and Python itself."""
    shared = (*SHARED, *tensors.loaded())
    before = [(vars(module), dict(vars(module))) for module in shared]
    update, missing = dict.update, object()
    try:
        yield
    finally:
        for now, saved in before:
            for name, value in saved.items():
                if now.get(name, missing) is not value:
                    update(now, {name: value})


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    on_main_thread = threading.current_thread() is threading.main_thread()
    if on_main_thread and hasattr(signal, "setitimer"):
        with _alarm(seconds):
            yield
    else:
        with _watchdog(seconds):
            yield


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
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
            if _interruptible(frame):
                raise TimeUp
        finally:
            ringing = False

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _interruptible(frame: types.FrameType | None) -> bool:
    """Whether the learner's function is running, and not our own code around it."""
    while frame is not None:
        if frame.f_code is _inside.__code__:
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def _watchdog(seconds: float) -> Iterator[None]:
    """Raise TimeUp from a second thread: for Windows, and outside the main thread.

    As with the alarm, the first one may be caught. Then the two threads take turns as
    often as they can, until one arrives between an `except` and the next `try`.
    """
    target = threading.get_ident()
    done = threading.Event()
    lock = threading.Lock()
    turns = sys.getswitchinterval()

    def watch() -> None:
        wait = seconds
        while not done.wait(wait):
            with lock:
                frame = sys._current_frames().get(target)
                if not done.is_set() and _interruptible(frame):
                    sys.setswitchinterval(1e-6)
                    _raise_in(target, TimeUp)
            wait = 0.0

    def stop() -> None:
        with lock:
            done.set()
            _raise_in(target, None)
            sys.setswitchinterval(turns)

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


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), ctypes.py_object(error) if error else None
    )
