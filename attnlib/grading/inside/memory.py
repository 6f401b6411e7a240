"""Memory for one call: for laws that say what an answer may take."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

PAGES = "/proc/self/statm"


@contextlib.contextmanager
def at_most(room: int | None) -> Iterator[None]:
    """Meanwhile, no more than so many bytes beside what is there already."""
    if room is None:
        yield
        return
    try:
        import resource

        with open(PAGES, encoding="ascii") as file:
            there = int(file.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):  # not on this system
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = there + room
    for known in (soft, hard):
        wanted = wanted if known == resource.RLIM_INFINITY else min(wanted, known)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
