"""The folder that a sandbox sees of us: what runs inside, and no answer to anything.

Nothing in it computes attention: an answer that imports a module of attnlib in the open
is handed it (see `attnlib.grading.library`). The library's data lie there, for those.
Stand-ins take the place of packages, so that an answer which calls `check` is not hurt.
"""

from __future__ import annotations

import atexit
import os
import py_compile
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from attnlib.grading.inside import NEEDS
from attnlib.grading.sandbox import left

PACKAGE = Path(__file__).resolve().parents[2]
# Nobody is ever given these: they know the answers, or are of no use in a sandbox.
LEFT_OUT = {"exercises", "clinic", "commands", "grading", "__main__.py", "doctor.py"}
PREFIX = "attnlib-room-"
KNOWS = "equivalent_mutants.json"
# What both sides of the wire use; `inside` says what it needs besides.
WIRE = ("__init__.py", "channel.py", "values.py", "packing.py", "stand_ins.py")
SHARED = ("__init__.py", *(f"grading/{name}" for name in WIRE), *NEEDS)
STAND_IN = '''\
"""In a sandbox nothing is checked: the grader does that, outside."""


def check(*_, **__):
    """Do nothing."""


hint = solution = use = check
'''
PACKAGES = {
    "exercises": STAND_IN,
    "clinic": "",
    # For the chip alone; the package itself takes its place where it is given.
    "tiles": "STAND_IN = True\n",
}


def make(extra: Mapping[str, str] | None = None) -> Path:
    """Write a room into a temporary folder, readable by all, writable by none.

    Args:
        extra: more files, by their path in the room.

    Returns:
        The folder. It goes when this program ends.
    """
    left.sweep(PREFIX)
    room = Path(tempfile.mkdtemp(prefix=PREFIX))
    left.hold(room)
    atexit.register(_remove, room, os.getpid())
    inside = (PACKAGE / "grading" / "inside").glob("*.py")
    for path in (*(PACKAGE / name for name in SHARED), *inside, *_data()):
        to = _file(room / "attnlib" / path.relative_to(PACKAGE))
        to.write_bytes(path.read_bytes())
    files = {f"attnlib/{name}/__init__.py": text for name, text in PACKAGES.items()}
    for name, text in (files | dict(extra or {})).items():
        _file(room / name).write_text(text, encoding="utf-8")
    for path in room.rglob("*.py"):  # so that it is not done for each student
        py_compile.compile(str(path), doraise=True)
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


def _data() -> Iterator[Path]:
    """The files that modules of the library read."""
    for path in PACKAGE.rglob("*"):
        ours = path.relative_to(PACKAGE).parts[0] not in LEFT_OUT
        data = path.suffix not in (".py", ".pyc") and path.name != KNOWS
        if ours and data and path.is_file():
            yield path


def _file(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _remove(room: Path, owner: int) -> None:
    if os.getpid() != owner:  # a fork of ours ends: the room is not its own
        return
    left.remove(room)
