"""Run a program and watch all its processes: their memory, and what they computed.

The kernel adds up what a process and its ended children computed; but who is killed
together with a sandbox may be left out of that sum. So we look into /proc as well, many
times a second, and keep what was seen last of each. Linux only.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

EVERY = 0.1  # seconds between two looks
TICK = os.sysconf("SC_CLK_TCK")
SANDBOX = "attnlib.grading.inside.supervisor"  # stands in the command of its processes
WORKER = "attnlib.grading.worker"


@dataclass
class Process:
    """What was last seen of a process."""

    parent: int
    began: int
    role: str = ""
    seconds: float = 0.0  # of the processor, without its children
    largest: int = 0  # bytes that it held at its peak


@dataclass(frozen=True)
class Watched:
    """What a program and all that it started took."""

    code: int
    seconds: float  # by the clock
    processor: float  # seconds of the processor, of all its processes
    answers: tuple[float, ...]  # those of each process with an answer in it
    memory: dict[str, int]  # the most that one process of a role held, in bytes
    left: int  # processes of it that were still there at the end


def watch(command: Sequence[str], environment: dict[str, str], out: Path) -> Watched:
    """Run a command and watch it to its end.

    Args:
        command: what is run.
        environment: of it.
        out: a file for what it prints.
    """
    seen: dict[tuple[int, int], Process] = {}
    begin = time.monotonic()
    with out.open("wb") as file:
        program = subprocess.Popen(
            command, env=environment, stdout=file, stderr=subprocess.STDOUT
        )
        try:
            done, status, used = os.wait4(program.pid, os.WNOHANG)
            while not done:
                _look(program.pid, seen)
                time.sleep(EVERY)
                done, status, used = os.wait4(program.pid, os.WNOHANG)
        except BaseException:
            program.terminate()  # the grader ends what it started
            program.wait()
            raise
    took = time.monotonic() - begin
    program.returncode = os.waitstatus_to_exitcode(status)
    polled = sum(one.seconds for one in seen.values())
    memory: dict[str, int] = {}
    for one in seen.values():
        memory[one.role] = max(memory.get(one.role, 0), one.largest)
    return Watched(
        program.returncode,
        took,
        max(used.ru_utime + used.ru_stime, polled),
        tuple(one.seconds for one in seen.values() if one.role == "answer"),
        memory,
        sum(_there(pid, one.began) for (pid, _), one in seen.items()),
    )


def _look(root: int, seen: dict[tuple[int, int], Process]) -> None:
    """Keep what /proc tells about a process and all below it."""
    now = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            told = _stat(int(name))
            if told is not None:
                now[int(name)] = told
    below = {root}
    grown = True
    while grown:  # a parent may have a larger number than its child
        more = {pid for pid, one in now.items() if one.parent in below} - below
        below |= more
        grown = bool(more)
    for pid in below & now.keys():
        one = now[pid]
        before = seen.get((pid, one.began))
        # A fork has its parent's command until it starts another program.
        one.role = _role(pid, one, root, seen, now)
        one.largest = _peak(pid)
        if before is not None:
            one.largest = max(one.largest, before.largest)
            one.seconds = max(one.seconds, before.seconds)
            one.role = one.role or before.role
        seen[pid, one.began] = one


def _role(
    pid: int,
    one: Process,
    root: int,
    seen: dict[tuple[int, int], Process],
    now: dict[int, Process],
) -> str:
    """Grader, worker, sandbox, or answer: what was forked off inside a sandbox."""
    if pid == root:
        return "grader"
    command = _command(pid)
    if not command:  # it has ended, or is about to
        return ""
    if SANDBOX in command:
        parent = now.get(one.parent)
        above = parent and _is_python(one.parent) and SANDBOX in _command(one.parent)
        return "answer" if above and _is_python(pid) else "sandbox"
    return "worker" if WORKER in command else "other"


def _is_python(pid: int) -> bool:
    """Not the program that makes the sandbox: its command has Python's in it."""
    return "python" in _command(pid).split("\0")[0]


def _command(pid: int) -> str:
    return _read(f"/proc/{pid}/cmdline")


def _stat(pid: int) -> Process | None:
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    if not fields:
        return None
    seconds = (int(fields[11]) + int(fields[12])) / TICK
    return Process(int(fields[1]), int(fields[19]), seconds=seconds)


def _peak(pid: int) -> int:
    for line in _read(f"/proc/{pid}/status").splitlines():
        if line.startswith("VmHWM:"):
            return 1024 * int(line.split()[1])
    return 0


def _there(pid: int, began: int) -> bool:
    found = _stat(pid)
    return found is not None and found.began == began


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
