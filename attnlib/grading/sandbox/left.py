"""Temporary folders that a killed program has left: they go at the next start.

Who makes such a folder holds a lock on it as long as it lives. So a folder that nobody
holds has no owner any more. A lock ends with its process, whatever ended that.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows; nothing is graded there
    fcntl = None  # type: ignore[assignment]

YOUNG = 60.0  # seconds in which a folder may be there and its lock not yet
_held: dict[Path, int] = {}


def hold(folder: Path) -> None:
    """Keep a folder of ours from being swept while this program runs."""
    if fcntl is None:
        return
    _held[folder] = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    with contextlib.suppress(OSError):  # a disk without locks: nothing is swept there
        fcntl.flock(_held[folder], fcntl.LOCK_EX | fcntl.LOCK_NB)


def sweep(prefix: str) -> None:
    """Remove what programs of this user have left among the temporary folders.

    Args:
        prefix: with which the names of such folders begin.
    """
    if fcntl is None:
        return
    with contextlib.suppress(OSError):
        for entry in os.scandir(tempfile.gettempdir()):
            if entry.name.startswith(prefix) and entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    _sweep(Path(entry.path))


def _sweep(folder: Path) -> None:
    """Remove one, if it is ours, old enough, and nobody holds it."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        about = os.fstat(opened)
        if about.st_uid != os.getuid() or about.st_mtime > time.time() - YOUNG:
            return
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused: it is held
        remove(folder)
    finally:
        os.close(opened)


def remove(folder: Path) -> None:
    """Remove a folder of ours, also one in which nothing may be written."""
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(stat.S_IRWXU)
    shutil.rmtree(folder, ignore_errors=True)
