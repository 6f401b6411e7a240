"""Exercises whose answer may take twice the room for twice the tokens, and no more.

`metered` measures one call of an answer: the most bytes that it held at once, how many
numbers it computed, how many lines it ran, and the bytes that it made in all. NumPy is
watched by arrays that count (`counted`), torch by its own switchboard, Python line by
line. The laws compare a text with one of twice its length. What grows fourfold has
looked at all pairs, whether it kept the table or made it row by row.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from attnlib.exercises import counted
from attnlib.exercises.exercise import Call, Law
from attnlib.exercises.read import plain
from attnlib.sparse import window

Array = npt.NDArray[np.float64]
OPENING = "The numbers are right, but this is asked as well"
SHORT, LONG = 600, 1200  # tokens; a table of all scores takes 2.9 and 11.5 MB
WIDTH = 5  # keys that a query sees
TOO_FAST = 2.8  # twice is right, four times is n squared


class Meters(NamedTuple):
    """What one call took."""

    held: float  #     the most bytes at once
    numbers: float  #  computed, or read by a product or a sum
    lines: float  #    of the answer's own Python
    made: float  #     bytes in all


# Much work that grows twofold hides little that grows fourfold. So this counts, too:
# what comes on top of twice, for each pair of tokens that came on top of twice. A table
# of truth values takes a byte; half a row, read by a product, 2 numbers for each. With
# blocks that the text does not fill, it is up to 1.6 numbers, and as many bytes as a
# table of float16 makes: so `made` goes by its growth alone.
TOO_MANY = Meters(held=0.5, numbers=1.9, lines=0.4, made=np.inf)


def metered(answer: Callable[..., object]) -> Callable[..., object]:
    """The answer itself; with `meters` it returns one row: the meters, and its out."""

    def run(q: Any, k: Any, v: Any, width: int, meters: bool = False) -> object:
        if not meters:
            return answer(q, k, v, width)
        # Two runs: the memory of arrays that count would be watched for a long time.
        tally = counted.Tally()
        with counted.everywhere(tally):
            first = answer(*(counted.array(a.copy(), tally) for a in (q, k, v)), width)
        second, held, made, lines = _bytes(answer, q, k, v, width)
        held, made = max(held, tally.largest), made + tally.made
        row: list[Any] = [[held, tally.numbers, lines, made]]
        row += [
            a.ravel() for a in map(plain, (first, second)) if not isinstance(a, str)
        ]
        return np.concatenate(row)

    return run


def _bytes(answer: Callable[..., object], *args: Any) -> tuple[object, int, int, int]:
    """What a call returned, the most bytes that it held at once, what all its lines
    made, and how many lines there were.

    What a line makes is the most that it adds to what is held when it begins. Only the
    learner's own lines are followed: whatever they call belongs to them.
    """
    lines_of = getattr(answer, "__globals__", None)
    ours, tracer = not tracemalloc.is_tracing(), sys.gettrace()
    if ours:
        tracemalloc.start()
    most = made = held = lines = 0

    def line_ends(frame: FrameType | None, *_: object) -> Any:
        nonlocal most, made, held, lines
        if frame is not None and frame.f_globals is not lines_of:
            return None
        now, peak = tracemalloc.get_traced_memory()
        most, made, held = max(most, peak), made + peak - held, now
        lines += 1
        tracemalloc.reset_peak()
        return line_ends

    try:
        tracemalloc.reset_peak()
        before = held = tracemalloc.get_traced_memory()[0]
        sys.settrace(line_ends)
        found = answer(*args)
        line_ends(None)
        return found, most - before, made, lines
    finally:
        sys.settrace(tracer)
        if ours:
            tracemalloc.stop()


def _measured(call: Call, n: int) -> Meters | None:
    """All meters; None if the numbers are not right."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(n, d)) for d in (4, 4, 3))
    right = window(q, k, v, left=WIDTH - 1).out.ravel()
    found = call(q, k, v, WIDTH, True)
    if found is None:
        return None
    row = np.asarray(found[0], dtype=np.float64)
    meters, outs = row[:4], row[4:]
    if outs.size != 2 * right.size:
        return None
    if not np.allclose(outs.reshape(2, -1), right, rtol=1e-3, atol=1e-4):
        return None
    return Meters(*meters.tolist())


def _both(call: Call) -> tuple[Meters, Meters] | None:
    """All meters for the short text and for the long one."""
    short, long = _measured(call, SHORT), _measured(call, LONG)
    return None if short is None or long is None else (short, long)


def _too_fast(name: str, short: Meters, long: Meters) -> tuple[float, float] | None:
    """A meter for both texts; None if it grows as it may."""
    least, most = getattr(short, name), getattr(long, name)
    per_pair = (most - 2 * least) / (2 * SHORT**2)
    if most <= TOO_FAST * max(least, 1) and per_pair <= getattr(TOO_MANY, name):
        return None
    return least, most


def _room(call: Call) -> str | None:
    both = _both(call)
    found = both and _too_fast("held", *both)
    if not found:
        return None
    short, long = (bytes_ / 1e6 for bytes_ in found)
    return (
        f"For {SHORT} tokens your function holds {short:.1f} MB at once, for {LONG} "
        f"tokens {long:.1f} MB: {long / short:.1f} times as much. A table of n x n is "
        "made somewhere, of scores or of a mask. Make n x width scores only."
    )


def _work(call: Call) -> str | None:
    both = _both(call)
    if both is None:
        return None
    said = {
        "numbers": "computes {:,.0f} numbers|{:,.0f}",
        "lines": "runs {:,.0f} lines|{:,.0f}",
        "made": "makes {:,.0f} bytes of arrays in all|{:,.0f}",
    }
    for name, words in said.items():
        found = _too_fast(name, *both)
        if found:
            return _fourfold(words, *found)
    return None


def _fourfold(words: str, short: float, long: float) -> str:
    what = words.format(short, long).split("|")
    return (
        f"For {SHORT} tokens your function {what[0]}, for {LONG} tokens {what[1]}: "
        f"{long / short:.1f} times as many. The table is never "
        "there as a whole, yet each query meets every key. Let it meet the keys of its "
        "window only."
    )


ROOM = Law("twice the tokens take twice the room", _room, OPENING, slower=4)
WORK = Law("twice the tokens take twice the work", _work, OPENING, slower=4)
