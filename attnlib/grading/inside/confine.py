"""What a child gives up before it runs the first line of an answer."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import sys
from typing import Any

from attnlib.grading.inside import landlock, seccomp
from attnlib.grading.inside.kernel import (
    LINUX,
    PR_SET_CHILD_SUBREAPER,
    PR_SET_DUMPABLE,
    PR_SET_KEEPCAPS,
    PR_SET_PDEATHSIG,
    READ_ALL,
    drop_rights,
    gain_nothing,
    prctl,
)
from attnlib.grading.inside.processes import size

LINE = 3  # the child's only socket has this number
MANY = 1 << 16  # above the number of any descriptor that the supervisor has open
# The supervisor hears of its children's ends, and its own faults must end it.
NOT_IGNORED = {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGABRT}
NOT_IGNORED |= {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL}

Settings = dict[str, Any]


def harden() -> None:
    """The supervisor: nobody looks into it, stops it, or outlives it."""
    for number in set(signal.valid_signals()) - NOT_IGNORED:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    if LINUX:
        prctl(PR_SET_DUMPABLE, 0)
        prctl(PR_SET_CHILD_SUBREAPER, 1)


def confine(settings: Settings, line: int, output: int) -> socket.socket:
    """The child: its own line, its limits, and nothing else.

    Args:
        settings: "memory", "file", "files", "processes", "cpu": the limits; "uid": whom
            to become, or None; "landlock": what is granted, or None; "seccomp": whether
            system calls are filtered; "supervisor": the number of its parent.
        line: the number of its socket.
        output: where what it prints goes.

    Returns:
        The socket. All other descriptors are closed.
    """
    for number in signal.valid_signals():
        # As Python does: to write too much is an error, not the end.
        kept = number in (signal.SIGPIPE, signal.SIGXFSZ)
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN if kept else signal.SIG_DFL)
    os.setsid()
    _descriptors(line, output)
    if LINUX:
        prctl(PR_SET_DUMPABLE, 1)  # its own folder in /proc is its own again
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as at:
            at.write("1000")  # when memory runs out, it is the first to go
    _limits(settings)
    if LINUX:
        gain_nothing()
    if settings["uid"] is not None:
        # A Python below the home of root can be read by root alone. To read is not to
        # see: what may be seen at all, the sandbox says.
        prctl(PR_SET_KEEPCAPS, 1)
        os.setgroups([])
        os.setresgid(*[settings["uid"]] * 3)
        os.setresuid(*[settings["uid"]] * 3)
    if LINUX:
        drop_rights(READ_ALL if settings["uid"] is not None else 0)
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != settings["supervisor"]:  # it died before this line
            os._exit(1)
    if settings["landlock"] is not None:
        landlock.restrict(settings["landlock"])
    if settings["seccomp"]:
        seccomp.restrict()
    return socket.socket(fileno=LINE)


def _descriptors(line: int, output: int) -> None:
    """0 is empty, 1 and 2 are the output, 3 is the line, and there is no other."""
    kept_line, kept_output = os.dup(line), os.dup(output)
    # Above 3, so that no dup2 below closes what another still needs.
    while kept_line <= LINE or kept_output <= LINE:
        kept_line, kept_output = os.dup(kept_line), os.dup(kept_output)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.dup2(kept_output, 1)
    os.dup2(kept_output, 2)
    os.dup2(kept_line, LINE, inheritable=False)
    os.closerange(LINE + 1, MANY)
    # What was open in the supervisor under the old numbers is gone: new streams.
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    for name, number in (("stdout", 1), ("stderr", 2)):
        stream = os.fdopen(number, "w", -1, "utf-8", "replace", closefd=False)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.__stdin__ = sys.stdin  # type: ignore[misc]


def _limits(settings: Settings) -> None:
    wanted = {
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": settings["cpu"],
        "RLIMIT_FSIZE": settings["file"],
        "RLIMIT_NOFILE": settings["files"],
        "RLIMIT_NPROC": settings["processes"],
        # What the supervisor has loaded is not the student's.
        "RLIMIT_AS": settings["memory"] + size(),
    }
    for name, limit in wanted.items():
        number = getattr(resource, name, None)
        if number is None or limit is None:
            continue
        hard = resource.getrlimit(number)[1]
        if hard != resource.RLIM_INFINITY:
            limit = min(limit, hard)
        with contextlib.suppress(OSError, ValueError):  # macOS knows no RLIMIT_AS
            resource.setrlimit(number, (limit, limit))
