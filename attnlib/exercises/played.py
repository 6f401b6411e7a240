"""Exercises whose answer times calls: the machine is played, so that a check can judge.

`on_a_played_machine` makes of the answer a function of the calls' durations. The clock
moves in calls alone. Until someone asks for one thread there are four, and each call
takes another time then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from attnlib.clinic.families.latency import FIRST, MANY, seconds_of


class Machine:
    """A clock, threads, and a function that takes time."""

    def __init__(self, durations: Sequence[float]) -> None:
        self._durations, self._threads = durations, MANY
        self._now, self._calls, self._looked = FIRST, 0, False
        self.request = "打开客厅的灯"

    def answer(self, request: object) -> str:
        """Answer the request, and let time pass."""
        if request is not self.request:
            raise ValueError("answer was not called with the request.")
        self._now += seconds_of(self._durations, self._calls, self._threads)
        self._calls += 1
        return "HassTurnOn"

    def clock(self) -> float:
        """The time in seconds, since long ago."""
        self._looked = True
        return self._now

    def set_threads(self, n: int) -> None:
        """From now on a call may use n threads."""
        if isinstance(n, bool) or n != int(n) or n < 1:
            raise ValueError(f"set_threads wants a whole number from 1 on, not {n}.")
        self._threads = int(n)

    def was_used(self) -> None:
        """Refuse a time that was not measured here, such as one of another clock."""
        if not self._calls:
            raise ValueError("answer(request) was never called: nothing was timed.")
        if not self._looked:
            raise ValueError("clock() was never called: no other clock runs here.")


def on_a_played_machine(timing: Callable[..., object]) -> Callable[..., object]:
    """A function of durations, that plays a new machine for each call."""

    def run(durations: Any, n_warm: int, n_timed: int) -> object:
        machine = Machine([float(seconds) for seconds in durations])
        found = timing(
            machine.answer,
            machine.request,
            machine.clock,
            machine.set_threads,
            n_warm,
            n_timed,
        )
        if isinstance(found, (int, float)) and np.isfinite(found):
            machine.was_used()
        return found

    return run
