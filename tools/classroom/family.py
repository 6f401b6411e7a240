"""The processes that a process started, and theirs: who they are, and how all end.

Read off /proc, so on Linux alone; elsewhere nobody is found.
"""

import contextlib
import ctypes
import os
import signal
import sys
import time
from pathlib import Path

BECOME_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of <sys/prctl.h>
PROC = Path("/proc")


def adopt() -> None:
    """Become the parent of whatever our descendants leave behind, so that it is found.

    Without it an orphan becomes a child of process 1, and nobody knows whose it was.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(BECOME_SUBREAPER, 1, 0, 0, 0)


def descendants(pid: int, proc: Path = PROC) -> list[int]:
    """All processes below one, parents before their children."""
    children: dict[int, list[int]] = {}
    for path in proc.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            # The name in brackets may hold anything, brackets too.
            state, parent = (
                path.read_text(errors="replace").rpartition(")")[2].split()[:2]
            )
            if state != "Z":
                children.setdefault(int(parent), []).append(int(path.parent.name))
    found, waiting = [], [pid]
    while waiting:
        below = sorted(children.get(waiting.pop(0), []))
        found += below
        waiting += below
    return found


def command(pid: int, proc: Path = PROC) -> str:
    """The command line of a process; empty if it ended."""
    with contextlib.suppress(OSError):
        return (
            (proc / str(pid) / "cmdline").read_text(errors="replace").replace("\0", " ")
        )
    return ""


def end(pid: int, patience: float = 10) -> int:
    """End all processes below one: they are asked first, then made to.

    Returns how many there were. The zombies among our own children are collected.
    """
    there = descendants(pid)
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + patience
        for one in descendants(pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, number)
        while descendants(pid) and time.monotonic() < deadline:
            _collect()
            time.sleep(0.05)
        _collect()
    return len(there)


def _collect() -> None:
    """Take note of children that ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
