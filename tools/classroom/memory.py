"""How much memory a classroom takes: each process below the hub, read off /proc.

Three numbers, since each alone would mislead: `rss` counts a page that several
processes share for each of them, `pss` by its share, so that the sum is what the
machine gives; `peak` is the highest rss that the process ever had.
"""

import contextlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.classroom import family

KINDS = {  # words of a command line -> what the process is, first match first
    "configurable-http-proxy": "proxy",
    "ipykernel_launcher": "kernel",
    "jupyterhub.singleuser": "server",
    "jupyterhub-singleuser": "server",
    "jupyterhub": "hub",
}
NOWHERE = "Memory is read off /proc, which this system does not have."
WHOSE = "JUPYTERHUB_USER="  # in the environment of a server and of what it starts


@dataclass(frozen=True)
class Taken:
    """A process, its memory in bytes, and the seconds that a core worked for it."""

    kind: str
    student: str
    pid: int
    rss: int
    pss: int
    peak: int
    seconds: float


def measure(hub: int, proc: Path = family.PROC) -> list[Taken]:
    """The hub and all that it started; what ends meanwhile is left out."""
    found = []
    for pid in (hub, *family.descendants(hub, proc)):
        with contextlib.suppress(OSError, KeyError):
            found.append(_taken(pid, proc))
    return found


def _taken(pid: int, proc: Path) -> Taken:
    command = family.command(pid, proc)
    kind = next((kind for word, kind in KINDS.items() if word in command), "other")
    folder = proc / str(pid)
    shares, status = _fields(folder / "smaps_rollup"), _fields(folder / "status")
    variables = (folder / "environ").read_text(errors="replace").split("\0")
    student = next((v[len(WHOSE) :] for v in variables if v.startswith(WHOSE)), "")
    sizes = shares["Rss"], shares["Pss"], status["VmHWM"]
    worked = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
    ticks = int(worked[11]) + int(worked[12])  # in the process and in the kernel for it
    return Taken(kind, student, pid, *sizes, ticks / os.sysconf("SC_CLK_TCK"))


def _fields(path: Path) -> dict[str, int]:
    """The lines `Pss:  1234 kB` of a file, in bytes."""
    found = {}
    for line in path.read_text(errors="replace").splitlines():
        name, _, value = line.partition(":")
        number, _, unit = value.strip().partition(" ")
        if unit.strip() == "kB" and number.isdecimal():
            found[name] = int(number) * 1024
    return found


def mb(n_bytes: float) -> str:
    return f"{n_bytes / 1e6:.0f} MB"


def total(taken: Iterable[Taken], kind: str = "") -> int:
    """What processes (of one kind) take together: the sum of their shares."""
    return sum(one.pss for one in taken if kind in ("", one.kind))


def table(taken: Sequence[Taken]) -> str:
    """A line for each process, and the sum."""
    if not taken:
        return NOWHERE
    taken = sorted(taken, key=lambda one: (one.student, one.kind, one.pid))
    lines = [f"{'':24}{'rss':>10}{'pss':>10}{'peak rss':>10}"]
    for one in taken:
        name = f"{one.student} {one.kind}".strip()
        sizes = "".join(f"{mb(size):>10}" for size in (one.rss, one.pss, one.peak))
        lines.append(f"{name:24}{sizes}")
    return "\n".join([*lines, f"{'together':24}{'':10}{mb(total(taken)):>10}"])


def students_that_fit(machine: float, base: float, each: float) -> int:
    """How many students a machine holds: what is left beside the base, shared out.

    >>> students_that_fit(16e9, 2e9, 400e6)
    35
    """
    return max(0, int((machine - base) // each))
