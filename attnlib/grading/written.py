"""Write files so that a reader finds the old one or the new one, never half of one."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def whole(path: Path, data: bytes) -> None:
    """Write a file beside its place and move it there: all of it, or nothing.

    Args:
        path: where it belongs; its folder is there.
        data: all of it.

    Raises:
        OSError: the disk is full, or does not take it. What was there before is there.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644 & ~_umask())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def table(rows: Iterable[Sequence[str]]) -> str:
    """Rows as CSV, as spreadsheets and school systems read it."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue()


def harmless(cell: str) -> str:
    """A name as a cell: what a spreadsheet would run as a formula is marked as text.

    >>> harmless("=1+1"), harmless("Ada")
    ("'=1+1", 'Ada')
    """
    return f"'{cell}" if cell.lstrip(" ").startswith(FORMULA) else cell


def _umask() -> int:
    now = os.umask(0o077)
    os.umask(now)
    return now
