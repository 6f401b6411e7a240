"""How long a request takes: the median of timed calls, with its mistakes.

The machine is played. `durations` are the seconds of each call on one thread, one after
the other; the first are slow. More threads change each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults

Durations = Sequence[float] | npt.NDArray[np.float64]

MANY = 4  # threads, before anyone asks for one
FIRST = 1000.25  # what the clock shows when the first call begins


def seconds_of(durations: Durations, call: int, n_threads: int) -> float:
    """What call number `call` takes; with several threads it is uneven."""
    seconds = float(durations[call % len(durations)])
    return seconds if n_threads == 1 else seconds * (1.3 + 0.4 * (call % 3))


def median_ms(
    durations: npt.NDArray[np.float64],
    n_warm: int,
    n_timed: int,
    *,
    faults: Faults = RIGHT,
) -> float:
    """1000 times the median of the calls after the first n_warm, on one thread."""
    threads = MANY if "latency_threads" in faults else 1
    first, last = n_warm, n_warm + n_timed
    if "latency_cold" in faults:
        first, last = 0, n_timed
    elif "latency_warm_counted" in faults:
        first = 0
    elif "latency_one_warm" in faults:
        first, last = 1, 1 + n_timed
    elif "latency_warm_less" in faults:
        first, last = max(0, n_warm - 1), max(0, n_warm - 1) + n_timed
    elif "latency_warm_more" in faults:
        first, last = n_warm + 1, n_warm + 1 + n_timed
    elif "latency_warm_of_timed" in faults:
        last = n_timed  # none at all, where n_warm is as many
    elif "latency_timed_less" in faults:
        last -= 1
    elif "latency_timed_more" in faults:
        last += 1
    count = max(last, n_warm)
    each = np.array([seconds_of(durations, i, threads) for i in range(count)])
    times = each[first:last]
    if "latency_nothing" in faults:
        return 0.0
    if "latency_one_start" in faults:
        times = times.cumsum()
    elif "latency_from_warm" in faults:
        times = each[:n_warm].sum() + times.cumsum()
    elif "latency_clock" in faults:
        times = FIRST + each.cumsum()[first:last]
    found = _centre(times, faults)
    if "latency_seconds" in faults:
        return found
    if "latency_micro" in faults:
        return 1e6 * found
    if "latency_divided" in faults:
        return found / 1000
    return 1000 * found


Times = npt.NDArray[np.float64]

# What is taken for the median: of the times in order, and of them as they came.
CENTRES: dict[str, Callable[[Times], float]] = {
    "latency_mean": lambda t: t.mean(),
    "latency_least": lambda t: t[0],
    "latency_most": lambda t: t[-1],
    "latency_total": lambda t: t.sum(),
    "latency_tail": lambda t: float(np.quantile(t, 0.95)),
    "latency_upper": lambda t: t[len(t) // 2],
    "latency_lower": lambda t: t[(len(t) - 1) // 2],
    "latency_two_middles": lambda t: (t[len(t) // 2 - 1] + t[len(t) // 2]) / 2,
    "latency_trimmed": lambda t: t[1:-1].mean() if len(t) > 2 else t.mean(),
}
UNSORTED: dict[str, Callable[[Times], float]] = {
    "latency_first": lambda t: t[0],
    "latency_last": lambda t: t[-1],
    "latency_unsorted": lambda t: t[len(t) // 2],
    "latency_unsorted_two": lambda t: (t[(len(t) - 1) // 2] + t[len(t) // 2]) / 2,
}


def _centre(times: Times, faults: Faults) -> float:
    if not times.size:
        return float("nan")
    for key in faults & CENTRES.keys():
        return float(CENTRES[key](np.sort(times)))
    for key in faults & UNSORTED.keys():
        return float(UNSORTED[key](times))
    return float(np.median(times))


MEDIAN_MS = Family(
    "median_ms",
    median_ms,
    {
        "calls": (
            "latency_cold",
            "latency_warm_counted",
            "latency_one_warm",
            "latency_warm_less",
            "latency_warm_more",
            "latency_warm_of_timed",
            "latency_timed_less",
            "latency_timed_more",
        ),
        "threads": ("latency_threads",),
        "clock": (
            "latency_one_start",
            "latency_from_warm",
            "latency_clock",
            "latency_nothing",
        ),
        "centre": (*CENTRES, *UNSORTED),
        "unit": ("latency_seconds", "latency_micro", "latency_divided"),
    },
)
