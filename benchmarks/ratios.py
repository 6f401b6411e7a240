"""Which of several ways is faster: interleaved rounds, medians of ratios, a null.

A machine that does other work, or runs hot, changes its speed while a benchmark runs.
So all candidates run in turn, round after round, in an order that rotates; every time
is divided by the baseline's time in the same round, and the median of these ratios is
given with the smallest and the largest. The baseline runs twice: the ratio of its
second run to its first, the null, says what a difference must exceed to mean something.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

NULL = "null"
LEAST = 0.05  # seconds a sample should last: a clock's tick must not matter


@dataclass(frozen=True)
class Ratio:
    """How long one candidate takes, as a part of the baseline's time."""

    ratio: float  # the median over the rounds
    low: float
    high: float
    seconds: float  # the median of its own time for one call

    def __str__(self) -> str:
        return f"{self.ratio:.2f} [{self.low:.2f}-{self.high:.2f}]"


@contextlib.contextmanager
def threads(number: int) -> Iterator[None]:
    """Torch with so many threads, and as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def compare(
    candidates: Mapping[str, Callable[[], object]],
    baseline: str,
    *,
    rounds: int = 7,
    least: float = LEAST,
) -> dict[str, Ratio]:
    """Time all candidates in turn, and divide by the baseline of the same round.

    On one thread the seconds are those of the processor, which other programs hardly
    change; on several they are those of the clock.
    """
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    runs = {**candidates, NULL: candidates[baseline]}
    repeats = {name: _repeats(run, clock, least) for name, run in runs.items()}
    taken: dict[str, list[float]] = {name: [] for name in runs}
    order = list(runs)
    for turn in range(rounds):
        at = turn % len(order)
        for name in order[at:] + order[:at]:
            start = clock()
            for _ in range(repeats[name]):
                runs[name]()
            taken[name].append((clock() - start) / repeats[name])
    return {name: _ratio(taken[name], taken[baseline]) for name in runs}


def _repeats(
    run: Callable[[], object], clock: Callable[[], float], least: float
) -> int:
    """How often to call it in one sample; the first call, often slow, is lost."""
    run()
    start = clock()
    run()
    return max(1, min(100, round(least / max(clock() - start, 1e-6))))


def _ratio(times: Sequence[float], baseline: Sequence[float]) -> Ratio:
    each = [mine / theirs for mine, theirs in zip(times, baseline, strict=True)]
    return Ratio(
        statistics.median(each), min(each), max(each), statistics.median(times)
    )


# Tables: each aim beside what was reached.


@dataclass(frozen=True)
class Row:
    """One line of a table: what was measured, and what it should be."""

    label: str
    reached: float
    aim: float | None = None  # at most this, or at least this with `more`
    more: bool = False
    detail: str = ""  # the range, the null, the seconds: whatever explains the number

    @property
    def met(self) -> bool:
        """Whether the aim is reached; where there is none, it is."""
        if self.aim is None:
            return True
        return self.reached >= self.aim if self.more else self.reached <= self.aim


def row(
    label: str,
    found: Mapping[str, Ratio],
    name: str,
    aim: float | None = None,
    *,
    more: bool = False,
) -> Row:
    """The line for one candidate of a comparison; with `more`, how often faster."""
    mine, null = found[name], found[NULL]
    taken = f"null {null}  {1000 * mine.seconds:8.1f} ms"
    if more:
        spread = f"[{1 / mine.high:.2f}-{1 / mine.low:.2f}]"
        return Row(label, 1 / mine.ratio, aim, True, f"{spread}  {taken}")
    spread = f"[{mine.low:.2f}-{mine.high:.2f}]"
    return Row(label, mine.ratio, aim, False, f"{spread}  {taken}")


def table(title: str, rows: Sequence[Row]) -> str:
    """The lines under a title, aims beside what was reached."""
    width = max([len(each.label) for each in rows], default=0)
    lines = [title]
    for each in rows:
        aim = ""
        if each.aim is not None:
            sign, said = ">=" if each.more else "<=", "met" if each.met else "MISSED"
            aim = f"aim {sign} {each.aim:g}: {said}"
        lines.append(
            f"  {each.label:{width}}  {each.reached:7.2f}  {aim:20}  {each.detail}"
        )
    return "\n".join(line.rstrip() for line in lines)


def numbers(rows: Sequence[Row]) -> dict[str, dict[str, float | bool | None]]:
    """The same for a JSON file."""
    return {
        each.label: {
            "reached": round(each.reached, 3),
            "aim": each.aim,
            "met": each.met,
        }
        for each in rows
    }
