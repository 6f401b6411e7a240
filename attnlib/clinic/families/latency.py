"""How long a request takes: the median of timed calls, with its mistakes.

The machine is played. `durations` are the seconds of each call on one thread, one after
the other; the first are slow. More threads change each of them.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    elif "latency_timed_less" in faults:
        last -= 1
    times = np.array([seconds_of(durations, i, threads) for i in range(first, last)])
    if "latency_one_start" in faults:
        times = times.cumsum()
    elif "latency_from_warm" in faults:
        warm = np.sum([seconds_of(durations, i, threads) for i in range(n_warm)])
        times = warm + times.cumsum()
    elif "latency_clock" in faults:
        times = FIRST + np.cumsum([seconds_of(durations, i, threads)
                                   for i in range(last)])[first:]  # fmt: skip
    found = _centre(times, faults)
    if "latency_seconds" in faults:
        return found
    if "latency_micro" in faults:
        return 1e6 * found
    if "latency_divided" in faults:
        return found / 1000
    return 1000 * found


def _centre(times: npt.NDArray[np.float64], faults: Faults) -> float:
    if not times.size:
        return float("nan")
    ordered, middle = np.sort(times), len(times) // 2
    if "latency_mean" in faults:
        return float(times.mean())
    if "latency_least" in faults:
        return float(ordered[0])
    if "latency_most" in faults:
        return float(ordered[-1])
    if "latency_total" in faults:
        return float(times.sum())
    if "latency_last" in faults:
        return float(times[-1])
    if "latency_upper" in faults:
        return float(ordered[middle])
    if "latency_unsorted" in faults:
        return float(times[middle])
    if "latency_trimmed" in faults and len(times) > 2:
        return float(ordered[1:-1].mean())
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
            "latency_timed_less",
        ),
        "threads": ("latency_threads",),
        "clock": ("latency_one_start", "latency_from_warm", "latency_clock"),
        "centre": (
            "latency_mean",
            "latency_least",
            "latency_most",
            "latency_total",
            "latency_last",
            "latency_upper",
            "latency_unsorted",
            "latency_trimmed",
        ),
        "unit": ("latency_seconds", "latency_micro", "latency_divided"),
    },
)
