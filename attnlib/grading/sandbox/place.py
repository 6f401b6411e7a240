"""What all sandboxes have in common: a room, a Python, settings, promises."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from attnlib.grading.inside import seccomp
from attnlib.grading.inside.kernel import LINUX
from attnlib.grading.sandbox import room as rooms
from attnlib.grading.sandbox.limits import Limits

# What a sandbox can promise.
Promise = Literal["files", "network", "others", "leftovers"]
SAYS: dict[Promise, str] = {
    "files": "an answer can read and change all that whoever grades can",
    "network": "an answer can reach the network",
    "others": "an answer can stop other programs",
    "leftovers": "a process of an answer may stay behind",
}
FILTERED: frozenset[Promise] = frozenset({"network", "others", "leftovers"})
SERVE = "attnlib.grading.inside.student:serve"
START = (
    "import json, sys; settings = json.load(sys.stdin); "
    "sys.path[:] = [settings['room'], *sys.path, *settings['packages']]; "
    "from attnlib.grading.inside.supervisor import main; "
    "main(int(sys.argv[1]), settings)"
)
NOBODY = 1_800_000_000  # user numbers from here on belong to nobody
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# One thread, and the order of a set: the same for all, also for who grades.
SAME_FOR_ALL = {"PYTHONHASHSEED": "0", **dict.fromkeys(_THREADS, "1")}
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONNOUSERSITE": "1",
    "PYTHONSAFEPATH": "1",
    **SAME_FOR_ALL,
}


@dataclass(frozen=True)
class Sandbox:
    """A kind of sandbox, with the room that it shows.

    Attributes:
        room: the folder of `room.make`.
    """

    room: Path
    name: ClassVar[str] = ""

    @property
    def promises(self) -> frozenset[Promise]:
        """What it keeps an answer from: what a filter of system calls can refuse."""
        return FILTERED if seccomp.there() else frozenset()

    def lacks(self) -> str:
        """What it does not promise, in words; "" if it promises all."""
        missing = [says for key, says in SAYS.items() if key not in self.promises]
        return "; ".join(missing)

    def command(self, control: int) -> list[str]:
        """The command that starts the supervisor.

        Args:
            control: the number of its socket. Its settings come from standard input.
        """
        # The room is a mark by which its processes can be found.
        return [python(), "-S", "-B", "-c", START, str(control), str(self.room)]

    def settings(
        self, limits: Limits, torch: bool, serve: str, user: int
    ) -> dict[str, Any]:
        """What the supervisor has to know.

        Args:
            limits: of each exercise.
            torch: whether it loads torch for all of them.
            serve: what runs in a child, as "module:function".
            user: a number that no other sandbox has now.
        """
        return limits.settings() | {
            "room": str(self.room),
            "packages": rooms.packages(),
            "torch": torch,
            "serve": serve,
            # Under root each sandbox becomes a user of its own, who owns nothing.
            "uid": NOBODY + user if is_root() else None,
            "counts_user": not is_root(),
            "landlock": None,
            "seccomp": seccomp.there(),
        }

    def environment(self) -> dict[str, str]:
        """All that it sees of the environment."""
        return ENVIRONMENT | {"ATTNLIB_ROOM": str(self.room)}


def is_root() -> bool:
    """Whether whoever grades is root on Linux, as in many containers."""
    return LINUX and os.getuid() == 0


def python() -> str:
    """This Python itself, not a link to it in a virtual environment."""
    return os.path.realpath(sys.executable)


def readable() -> list[str]:
    """What Python, NumPy and torch need: programs' libraries, no home, no project."""
    base = Path(sys.base_prefix)
    wanted = [
        python(),
        str(base / "lib"),
        str(base / "lib64"),
        str(Path(os.__file__).parent),
        *rooms.packages(),
        *("/lib", "/lib64", "/lib32", "/usr/lib", "/usr/lib64", "/usr/local/lib"),
        *("/etc/ld.so.cache", "/etc/alternatives", "/nix/store"),
        "/sys/devices/system/cpu",
    ]
    return [path for path in dict.fromkeys(wanted) if os.path.exists(path)]
