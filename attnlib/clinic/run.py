"""Call a learner's function without letting it disturb anything.

Printed text is caught, warnings are silenced, keyboard input is refused, a loop for
ever is stopped, and whatever the function raises, SystemExit included, comes back as a
value. The random state and NumPy's error settings are put back as they were.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import io
import math
import operator
import random
import sys
import tracemalloc
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from attnlib.clinic import tensors
from attnlib.clinic.limit import Spent, TimeUp, time_limit

LIMIT = 3.0  # seconds for one call; imports do not count
# Modules whose functions an answer may replace or delete, for itself and for all.
SHARED = (builtins, math, random, np, np.linalg, np.random)


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
    waited: float = 0.0  # seconds that went into imports and are not counted
    empty_mean: bool = False  # NumPy warned that a mean was taken over nothing


def run(
    function: Callable[..., object], args: tuple[object, ...], limit: float = LIMIT
) -> Ran:
    """Call `function` on copies of `args`, for at most `limit` seconds."""
    given = copy.deepcopy(args)
    text = _Sink()
    value: object = None
    error: BaseException | None = None
    spent = Spent()
    # The second net catches a TimeUp that fires while the first is being left.
    try:
        with (
            _modules_put_back(),
            _watching_put_back(),
            _quiet(text),
            time_limit(limit, _inside.__code__) as spent,
        ):
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
    waited = spent.on_imports
    printed, empty = text.characters, text.empty_mean
    return Ran(value, error, timed_out, printed, changed, waited, empty)


@contextlib.contextmanager
def _watching_put_back() -> Iterator[None]:
    """Who watches lines and memory is stopped: what is interrupted may not do it."""
    tracer, watched = sys.gettrace(), tracemalloc.is_tracing()
    try:
        yield
    finally:
        sys.settrace(tracer)
        if not watched and tracemalloc.is_tracing():
            tracemalloc.stop()


def _inside(function: Callable[..., object], args: tuple[object, ...]) -> object:
    """The frame below which a call may be interrupted. See `limit`."""
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
    empty_mean = False

    def warned(self, *args: object, **more: object) -> None:
        """Called for the one kind of warning that is not ignored."""
        self.empty_mean = True

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
    # An alarm may ring while an object is being thrown away; nobody is to hear of it.
    hook = sys.unraisablehook
    sys.unraisablehook = lambda unraisable: None
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
            warnings.filterwarnings("always", "Mean of empty slice", RuntimeWarning)
            warnings.showwarning = text.warned
            yield
    finally:
        sys.stdin, builtins.input = stdin, real_input
        sys.unraisablehook = hook
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
    before = [(vars(module), _as_it_is(module)) for module in shared]
    # By these names, whatever an answer makes of the built-in ones meanwhile.
    update, missing, is_same = dict.update, object(), _is_same
    try:
        yield
    finally:
        for now, saved in before:
            if is_same(now, saved):
                continue
            for name, value in saved.items():
                if now.get(name, missing) is not value:
                    update(now, {name: value})


_copies: dict[str, dict[str, object]] = {}  # of what modules hold; see `_as_it_is`


def _as_it_is(module: ModuleType) -> dict[str, object]:
    """A copy of what a module holds; the last one, where nothing has changed since.

    Thousands of names are copied here before every call, and hardly ever change.
    """
    now = vars(module)
    if not _is_same(now, _copies.get(module.__name__, {})):
        _copies[module.__name__] = dict(now)
    return _copies[module.__name__]


def _is_same(
    now: Mapping[str, object],
    saved: Mapping[str, object],
    all: Callable[..., bool] = all,
    map: Callable[..., Iterator[bool]] = map,
    is_: Callable[..., bool] = operator.is_,
) -> bool:
    """Whether the same names stand for the very same things, equal ones not counted.

    The built-in functions are bound here: an answer may have replaced them.
    """
    return all(map(is_, now.values(), saved.values())) and now.keys() == saved.keys()
