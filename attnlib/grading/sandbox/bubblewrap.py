"""bubblewrap: an own file system, process table and network for each sandbox.

It starts in some milliseconds and needs no daemon and no image.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

from attnlib.grading.sandbox import room as rooms
from attnlib.grading.sandbox.place import Promise, Sandbox, is_root, readable

DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")


@dataclass(frozen=True)
class Bubblewrap(Sandbox):
    """All promises: the rest of the machine is not there."""

    name: ClassVar[str] = "bubblewrap"

    @property
    def promises(self) -> frozenset[Promise]:
        """All of them."""
        return frozenset({"files", "network", "others", "leftovers"})

    def command(self, control: int) -> list[str]:
        """bwrap, what it shows, and the supervisor as process number 1."""
        # Number 1 cannot be killed from inside; and with it, all others end.
        options = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
        options += ["--unshare-cgroup-try", "--as-pid-1", "--die-with-parent"]
        options += ["--new-session", "--cap-drop", "ALL"]
        if is_root():
            for right in ("CAP_SETUID", "CAP_SETGID", "CAP_KILL"):
                options += ["--cap-add", right]
        else:
            options += ["--unshare-user"]
            if "--disable-userns" in _help():
                options += ["--disable-userns"]
        options += [*self._shown(), "--proc", "/proc"]
        for device in DEVICES:
            options += ["--dev-bind", device, device]
        options += ["--remount-ro", "/", "--chdir", "/"]
        start = super().command(control)
        return [program() or "bwrap", *options, "--", *start]

    def _shown(self) -> list[str]:
        options: list[str] = []
        shown = readable()
        for path in _outermost(shown):
            options += [*_way_to(path), "--ro-bind", path, path]
        for secret in rooms.hidden(shown):
            options += ["--tmpfs", str(secret), "--remount-ro", str(secret)]
        room = str(self.room)
        return [*options, *_way_to(room), "--ro-bind", room, room]


def program() -> str | None:
    """Where bwrap is."""
    return shutil.which("bwrap")


@cache
def _help() -> str:
    asked = subprocess.run(
        [program() or "bwrap", "--help"], capture_output=True, text=True, check=False
    )
    return asked.stdout + asked.stderr


def _way_to(path: str) -> list[str]:
    """The folders above: made by the way, they would be for one user alone."""
    above = reversed(Path(path).parents[:-1])
    return [word for folder in above for word in ("--dir", str(folder))]


def _outermost(paths: list[str]) -> list[str]:
    """Without what lies in another one: shorter commands, and no order to get wrong."""
    kept: list[str] = []
    for path in sorted(set(paths), key=len):
        if not any(path.startswith(other.rstrip("/") + "/") for other in kept):
            kept.append(path)
    return kept
