"""The folder that a sandbox sees of us: attnlib without what knows the answers.

Out of it are the exercises, the clinic (its families hold right answers), the commands
and the grader, but for what runs inside. A stand-in takes the place of the exercises,
so that an answer which calls `check` is not hurt.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from attnlib.grading.inside import NEEDS

PACKAGE = Path(__file__).resolve().parents[2]
LEFT_OUT = {"exercises", "clinic", "commands", "grading", "__main__.py", "doctor.py"}
LEFT_OUT |= {"equivalent_mutants.json"}
# What both sides of the wire use; `inside` says what it needs besides.
WIRE = ("__init__.py", "channel.py", "values.py", "packing.py", "stand_ins.py")
SHARED = (*(f"grading/{name}" for name in WIRE), *NEEDS)
STAND_IN = '''\
"""In a sandbox nothing is checked: the grader does that, outside."""


def check(*_, **__):
    """Do nothing."""


hint = solution = use = check
'''


def make(extra: Mapping[str, str] | None = None) -> Path:
    """Write a room into a temporary folder, readable by all, writable by none.

    Args:
        extra: more files, by their path in the room.

    Returns:
        The folder. It goes when this program ends.
    """
    room = Path(tempfile.mkdtemp(prefix="attnlib-room-"))
    atexit.register(_remove, room, os.getpid())
    inside = room / "attnlib"
    shutil.copytree(PACKAGE, inside, ignore=_ignored)
    shutil.copytree(PACKAGE / "grading" / "inside", inside / "grading" / "inside")
    for name in SHARED:
        (inside / name).parent.mkdir(exist_ok=True)
        shutil.copy2(PACKAGE / name, inside / name)
    files = {
        "attnlib/exercises/__init__.py": STAND_IN,
        "attnlib/clinic/__init__.py": "",
    }
    files |= dict(extra or {})
    for name, text in files.items():
        (room / name).parent.mkdir(parents=True, exist_ok=True)
        (room / name).write_text(text, encoding="utf-8")
    for path in [room, *room.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    return room


@cache
def shared() -> Path:
    """One room for the whole run: nobody can write into it."""
    return make()


def packages() -> list[str]:
    """The folders in which NumPy and torch may lie, in the order of the search."""
    ends = {"site-packages", "dist-packages"}
    return [p for p in sys.path if Path(p).name in ends and Path(p).is_dir()]


def hidden(folders: Iterable[str]) -> list[Path]:
    """Every installed attnlib in or below these folders: it holds the answers."""
    places = [Path(folder) for folder in folders]
    places += [deep for p in places for deep in p.glob("python3*/*-packages")]
    return sorted({p / "attnlib" for p in places if (p / "attnlib").is_dir()})


def _ignored(folder: str, names: list[str]) -> set[str]:
    top = {PACKAGE, PACKAGE / "data"}
    # Names of Python's caches stay: so nothing is compiled again for each student.
    return LEFT_OUT & set(names) if Path(folder) in top else set()


def _remove(room: Path, owner: int) -> None:
    if os.getpid() != owner:  # a fork of ours ends: the room is not its own
        return
    for path in [room, *room.rglob("*")]:
        if path.is_dir():
            path.chmod(stat.S_IRWXU)
    shutil.rmtree(room, ignore_errors=True)
