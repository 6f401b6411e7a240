"""Measure one call of an answer: bytes, numbers, lines. What may grow is elsewhere.

NumPy is watched by arrays that count (`counted`), torch by its own switchboard, Python
line by line. This is the part of `growth` that runs beside the answer.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from attnlib.exercises import counted
from attnlib.exercises.read import plain


def metered(answer: Callable[..., object]) -> Callable[..., object]:
    """The answer itself; with `meters` it returns one row: the meters, and its out."""

    def run(q: Any, k: Any, v: Any, width: int, meters: bool = False) -> object:
        if not meters:
            return answer(q, k, v, width)
        # Two runs: the memory of arrays that count would be watched for a long time.
        tally = counted.Tally()
        with counted.everywhere(tally):
            first = answer(*(counted.array(a.copy(), tally) for a in (q, k, v)), width)
        second, held, made, lines = bytes_of(answer, q, k, v, width)
        held, made = max(held, tally.largest), made + tally.made
        row: list[Any] = [[held, tally.numbers, lines, made]]
        row += [
            a.ravel() for a in map(plain, (first, second)) if not isinstance(a, str)
        ]
        return np.concatenate(row)

    return run


def bytes_of(answer: Callable[..., object], *args: Any) -> tuple[object, int, int, int]:
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
