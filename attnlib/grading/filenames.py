"""A file's name for each student: safe on every disk, and no two alike."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

LONGEST = 40  # characters: even in four bytes each they fit
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$)$", re.I)


def of(students: Iterable[str]) -> dict[str, str]:
    """Return a name without ending for each student.

    Where a name had to be changed, or looks like another one to a disk that makes no
    difference between A and a, the first digits of its hash are added.

    Args:
        students: their names, whatever stands in them.
    """
    names = {student: _plain(student) for student in students}
    alike = Counter(_key(name) for name in names.values())
    return {
        student: name
        if name == student and alike[_key(name)] == 1
        else f"{name}-{_hash(student)}".lstrip("-")
        for student, name in names.items()
    }


def _plain(student: str) -> str:
    text = unicodedata.normalize("NFC", student)
    text = re.sub(r"[^\w-]+", "_", text).strip("_-")[:LONGEST].strip("_-")
    return f"student_{text}" if _RESERVED.match(text) else text


def _key(name: str) -> str:
    folded = unicodedata.normalize("NFKD", name).casefold()
    return unicodedata.normalize("NFKD", folded)


def _hash(student: str) -> str:
    raw = student.encode("utf-8", "surrogatepass")
    return hashlib.sha256(raw).hexdigest()[:10]
