"""How much memory a call needs at its peak, measured in a process of its own.

torch takes its memory from the operating system, where `tracemalloc` does not look. On
Linux a process may set the mark of its largest size back to what it holds now, by
writing 5 to /proc/self/clear_refs; how far the mark has risen after the call is what
the call needed. Elsewhere the mark counts from the start of the process, and what was
reached before the call is subtracted.
"""

from __future__ import annotations

import math
import multiprocessing
import re
import sys
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

MB = 1_000_000
Prepare = Callable[..., Callable[[], object]]


def peak(prepare: Prepare, *arguments: Any) -> float:
    """The MB that a call needs at its peak, above what was there before it.

    `prepare(*arguments)` makes the inputs and returns the call without arguments. It
    must be a function at the top of a module: the new process imports it by name.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_measure, args=(theirs, prepare, arguments))
    child.start()
    theirs.close()
    try:
        answer = ours.recv()
    except EOFError:
        child.join()
        raise MemoryError(
            f"{prepare.__name__}{arguments} ended with exit code {child.exitcode} "
            "before its memory was measured."
        ) from None
    child.join()
    if isinstance(answer, BaseException):
        raise answer
    return float(answer)


def slope(points: Mapping[int, float]) -> float:
    """By which power of n the memory grows: from the first point to the last."""
    least, most = min(points), max(points)
    grown = max(points[most], 1e-3) / max(points[least], 1e-3)  # tiny ones may be 0
    return math.log(grown) / math.log(most / least)


def _measure(pipe: Connection, prepare: Prepare, arguments: tuple[Any, ...]) -> None:
    try:
        import torch

        torch.set_num_threads(1)
        call = prepare(*arguments)
        before = _reset()
        call()
        pipe.send((_largest() - before) / MB)
    except BaseException as error:
        pipe.send(error)


def _reset() -> int:
    """Forget how large the process has been, if it can be; the bytes held now."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:  # not Linux, or not allowed there
        return _largest()
    return _status("VmRSS")


def _largest() -> int:
    """The bytes that the process held at its peak."""
    if sys.platform == "linux":  # ru_maxrss would count the parent's memory there
        return _status("VmHWM")
    if sys.platform == "win32":
        raise OSError("peak memory is not measured on Windows; leave memory out.")
    import resource

    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)  # bytes on macOS


def _status(field: str) -> int:
    text = Path("/proc/self/status").read_text()
    found = re.search(rf"{field}:\s+(\d+) kB", text)
    if found is None:
        raise OSError(f"/proc/self/status says nothing of {field}.")
    return 1024 * int(found[1])
