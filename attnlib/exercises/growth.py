"""Exercises whose answer may take twice the room for twice the tokens, and no more.

`metered` measures one call of an answer: the most bytes that it held at once, how many
numbers it computed, and the bytes that it made in all. The second is lost as soon as an
answer takes plain arrays (np.asarray); the third sees them, too. The laws compare a
text with one of twice its length. What grows fourfold has looked at all pairs, whether
it kept the table or made it row by row.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import numpy.typing as npt

from attnlib.exercises.exercise import Call, Law
from attnlib.sparse import window

Array = npt.NDArray[np.float64]
OPENING = "The numbers are right, but this is asked as well"
SHORT, LONG = 600, 1200  # tokens; a table of all scores takes 2.9 and 11.5 MB
WIDTH = 5  # keys that a query sees
TOO_FAST = 2.8  # twice is right, four times is n squared


class Counted(np.ndarray[Any, Any]):
    """An array that counts the numbers that are computed from it."""

    tally: list[int]

    def __array_finalize__(self, source: object) -> None:
        self.tally = getattr(source, "tally", [0])

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        if "out" in kwargs:
            kwargs["out"] = tuple(_plain(kwargs["out"]))
        return self._count(getattr(ufunc, method)(*_plain(inputs), **_plain(kwargs)))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return self._count(func(*_plain(args), **_plain(kwargs)))

    def dot(self, other: Any, out: Any = None) -> Any:
        """The method, which NumPy does not announce as it does np.dot."""
        return np.dot(self, other)

    def _count(self, made: Any) -> Any:
        if isinstance(made, np.ndarray):
            self.tally[0] += made.size
            return _counted(made, self.tally)
        if isinstance(made, (list, tuple)):
            return type(made)([self._count(one) for one in made])
        return made


def _counted(array: npt.ArrayLike, tally: list[int]) -> Counted:
    made = np.asarray(array).view(Counted)
    made.tally = tally
    return made


def _plain(value: Any) -> Any:
    """The same without counters, at any depth."""
    if isinstance(value, Counted):
        return value.view(np.ndarray)
    if type(value) in (list, tuple):
        return type(value)(_plain(one) for one in value)
    if type(value) is dict:
        return {key: _plain(one) for key, one in value.items()}
    return value


def metered(answer: Callable[..., object]) -> Callable[..., object]:
    """The answer itself; with `meters` it returns (bytes held, numbers, bytes made)."""

    def run(q: Any, k: Any, v: Any, width: int, meters: bool = False) -> object:
        if not meters:
            return answer(q, k, v, width)
        tally = [0]
        given = [_counted(array, tally) for array in (q, k, v)]
        answer(*given, width)
        held, made = _bytes(answer, q, k, v, width)
        return np.array([held, tally[0], made], float)

    return run


def _bytes(answer: Callable[..., object], *args: Any) -> tuple[int, int]:
    """The most bytes that a call held at once, and what all its lines made.

    What a line makes is the most that it adds to what is held when it begins. Only the
    learner's own lines are followed: whatever they call belongs to them.
    """
    lines_of = getattr(answer, "__globals__", None)
    ours, tracer = not tracemalloc.is_tracing(), sys.gettrace()
    if ours:
        tracemalloc.start()
    most = made = held = 0

    def line_ends(frame: FrameType | None, *_: object) -> Any:
        nonlocal most, made, held
        if frame is not None and frame.f_globals is not lines_of:
            return None
        now, peak = tracemalloc.get_traced_memory()
        most, made, held = max(most, peak), made + peak - held, now
        tracemalloc.reset_peak()
        return line_ends

    try:
        tracemalloc.reset_peak()
        before = held = tracemalloc.get_traced_memory()[0]
        sys.settrace(line_ends)
        answer(*args)
        line_ends(None)
        return most - before, made
    finally:
        sys.settrace(tracer)
        if ours:
            tracemalloc.stop()


def _measured(call: Call, n: int) -> Array | None:
    """All meters, (3,); None if the numbers are not right."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(n, d)) for d in (4, 4, 3))
    found = call(q, k, v, WIDTH)
    right = window(q, k, v, left=WIDTH - 1).out
    if found is None or found[0].shape != right.shape:
        return None
    if not np.allclose(found[0].astype(np.float64), right, rtol=1e-3, atol=1e-4):
        return None
    meters = call(q, k, v, WIDTH, True)
    return None if meters is None else np.asarray(meters[0], dtype=np.float64)


def _both(call: Call, which: int) -> tuple[float, float] | None:
    """A meter for the short text and for the long one; None if it grows as it may."""
    short, long = _measured(call, SHORT), _measured(call, LONG)
    if short is None or long is None:
        return None
    if long[which] <= TOO_FAST * max(short[which], 1):
        return None
    return float(short[which]), float(long[which])


def _room(call: Call) -> str | None:
    found = _both(call, 0)
    if found is None:
        return None
    short, long = (bytes_ / 1e6 for bytes_ in found)
    return (
        f"For {SHORT} tokens your function holds {short:.1f} MB at once, for {LONG} "
        f"tokens {long:.1f} MB: {long / short:.1f} times as much. A table of n x n is "
        "made somewhere, of scores or of a mask. Make n x width scores only."
    )


def _work(call: Call) -> str | None:
    numbers, made = _both(call, 1), _both(call, 2)
    if numbers is not None:
        short, long = numbers
        what = f"computes {short:,.0f} numbers", f"{long:,.0f}"
    elif made is not None:
        short, long = (bytes_ / 1e6 for bytes_ in made)
        what = f"makes {short:.1f} MB of arrays in all", f"{long:.1f} MB"
    else:
        return None
    return (
        f"For {SHORT} tokens your function {what[0]}, for {LONG} tokens {what[1]}: "
        f"{long / short:.1f} times as many. The table is never "
        "there as a whole, yet each query meets every key. Let it meet the keys of its "
        "window only."
    )


ROOM = Law("twice the tokens take twice the room", _room, OPENING)
WORK = Law("twice the tokens take twice the work", _work, OPENING)
