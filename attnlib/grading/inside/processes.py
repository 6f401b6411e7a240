"""Which processes an exercise has started, what they use, and how to end them all."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
PATIENCE = 20.0  # seconds in which whoever was killed must be gone


@dataclass(frozen=True)
class Use:
    """What processes use together: seconds of the processor, bytes, how many."""

    cpu: float
    memory: int
    count: int


def size() -> int:
    """The address space of this process, in bytes; 0 where nobody says."""
    try:
        return int((PROC / "self/statm").read_text().split()[0]) * PAGE
    except OSError:
        return 0


def own_memory() -> int:
    """The memory of this process that its children begin with, in bytes."""
    return _memory(os.getpid())


def descendants() -> list[int]:
    """The numbers of all processes that this one has started, and they, and so on."""
    found: list[int] = []
    ask = [os.getpid()]
    while ask:
        for child in _children(ask.pop()):
            found.append(child)
            ask.append(child)
    return found


def use(shared: int) -> Use:
    """What all descendants use; `shared` bytes of each are the supervisor's."""
    cpu, memory, count = 0.0, 0, 0
    for pid in descendants():
        seconds = _cpu(pid)
        if seconds is None:  # it has just gone
            continue
        cpu += seconds
        memory += max(0, _memory(pid) - shared)
        count += 1
    return Use(cpu, memory, count)


def tasks_of(uid: int) -> int:
    """How many processes and threads a user has; 0 where nobody says."""
    count = 0
    with contextlib.suppress(OSError):
        for pid in filter(str.isdigit, os.listdir(PROC)):
            with contextlib.suppress(OSError):
                if os.stat(PROC / pid).st_uid == uid:
                    count += len(os.listdir(PROC / pid / "task"))
    return count


def end_all(child: int, uid: int | None) -> bool:
    """Kill a child and all other descendants, and wait; whether they are gone.

    Args:
        child: its number; it leads a group of processes.
        uid: the user that only they are, or None.
    """
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with contextlib.suppress(OSError):  # where there is no /proc, that is all
            os.killpg(child, signal.SIGKILL)
        _kill_all(uid)
        pause = time.monotonic() + 0.2
        while time.monotonic() < pause:
            try:
                gone, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True  # orphans come to us: there is nobody left
            if not gone:
                time.sleep(0.001)
    return False


def _kill_all(uid: int | None) -> None:
    if os.getpid() == 1:  # all but us, at once
        with contextlib.suppress(OSError):
            os.kill(-1, signal.SIGKILL)
        return
    if uid is not None:
        _kill_user(uid)
    # Stopped first, so that none of them starts another one meanwhile.
    for number in (signal.SIGSTOP, signal.SIGKILL):
        seen: set[int] = set()
        while new := set(descendants()) - seen:
            seen |= new
            for pid in new:
                with contextlib.suppress(OSError):
                    os.kill(pid, number)


def _kill_user(uid: int) -> None:
    """Everything of a user who has only what belongs to this exercise."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setresuid(uid, uid, uid)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _children(pid: int) -> list[int]:
    """The children of all threads of a process."""
    found: list[int] = []
    try:
        threads = os.listdir(PROC / str(pid) / "task")
    except OSError:
        return found
    for thread in threads:
        with contextlib.suppress(OSError):
            at = PROC / str(pid) / "task" / thread / "children"
            found += [int(child) for child in at.read_text().split()]
    return found


def _cpu(pid: int) -> float | None:
    """Seconds of the processor, with those of children that are gone."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the name may hold anything
    return sum(int(ticks) for ticks in fields[11:15]) / TICK


def _memory(pid: int) -> int:
    """Bytes that are in memory now, those of files and of shared pages among them."""
    try:
        pages = (PROC / str(pid) / "statm").read_text().split()
    except OSError:
        return 0
    return int(pages[1]) * PAGE
