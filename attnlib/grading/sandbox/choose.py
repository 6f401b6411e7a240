"""Take the best sandbox that works on this machine, found out by running it."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from pathlib import Path

import numpy as np

from attnlib.grading.channel import Lost
from attnlib.grading.inside import landlock
from attnlib.grading.sandbox import bubblewrap
from attnlib.grading.sandbox import room as rooms
from attnlib.grading.sandbox.bubblewrap import Bubblewrap
from attnlib.grading.sandbox.landlock import Landlock
from attnlib.grading.sandbox.place import Sandbox
from attnlib.grading.sandbox.plain import Plain
from attnlib.grading.session import NotStarted, Session

PROBE = "attnlib.grading.inside.probe:serve"
NOT_HERE = "Grading needs Linux; on Windows, WSL2 is one. Nothing was run."
INSTALL = "Install it with: sudo apt install bubblewrap"


class NoSandbox(Exception):
    """There is no place here to run a stranger's code."""


def choose(allow_unsandboxed: bool = False, room: Path | None = None) -> Sandbox:
    """The best sandbox that was seen to work.

    Args:
        allow_unsandboxed: take limits alone, if there is nothing better.
        room: what it shows; a room for the whole run, if it is not said.

    Raises:
        NoSandbox: nothing works; the sentence says what to do.
    """
    if os.name != "posix":
        raise NoSandbox(NOT_HERE)
    tried: list[str] = []
    for sandbox in candidates(room or rooms.shared(), allow_unsandboxed):
        problem = problem_of(sandbox)
        if not problem and (allow_unsandboxed or not sandbox.lacks()):
            return sandbox
        tried.append(problem or f"{sandbox.name}: {sandbox.lacks()}")
    raise NoSandbox(_refusal(tried))


def candidates(room: Path, allow_unsandboxed: bool = True) -> list[Sandbox]:
    """Every sandbox that might work here, the best first."""
    kinds: list[type[Sandbox]] = []
    if sys.platform == "linux":
        kinds += [Bubblewrap] if bubblewrap.program() else []
        kinds += [Landlock] if landlock.version() else []
    if allow_unsandboxed:
        kinds.append(Plain)
    return [kind(room) for kind in kinds]


def problem_of(sandbox: Sandbox) -> str:
    """Run the probe in it. What went wrong or was not kept, in a sentence; or ""."""
    with (
        tempfile.TemporaryDirectory(prefix="attnlib-probe-") as folder,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        secret = Path(folder) / "secret.txt"
        secret.write_text("secret", encoding="utf-8")
        for path, mode in ((Path(folder), 0o777), (secret, 0o644)):
            path.chmod(mode)  # so that it is the sandbox that refuses
        asked = {
            "file": str(secret),
            "folder": folder,
            "port": server.getsockname()[1],
            "pid": os.getpid(),
        }
        try:
            with Session(sandbox, serve=PROBE) as session, session.exercise() as line:
                said, (sums,) = line.ask(asked, [np.arange(4.0)], 10)
        except NotStarted as error:
            return str(error)
        except Lost as lost:
            return f"{sandbox.name}: its probe ended early ({lost})."
    if sums.tolist() != [0, 1, 3, 6]:
        return f"{sandbox.name} adds up wrong."
    broken = {
        "files": said["reads"] or said["writes"],
        "network": said["connects"],
        "others": said["signals"],
    }
    failed = [key for key, can in broken.items() if can and key in sandbox.promises]
    if not failed:
        return ""
    return f"{sandbox.name} does not hold back {', '.join(failed)}."


def _refusal(tried: list[str]) -> str:
    bwrap = bubblewrap.program() is not None
    if bwrap or sys.platform != "linux":
        todo = "Grade on a Linux machine where bubblewrap works"
    else:
        todo = f"bubblewrap is missing. {INSTALL}"
    found = f" Tried: {'; '.join(t.rstrip('.') for t in tried)}." if tried else ""
    return (
        "No sandbox works here, so no answer was run. "
        f"{todo}; or say --allow-unsandboxed, if you trust every student.{found}"
    )
