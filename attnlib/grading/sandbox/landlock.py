"""Landlock: built into Linux, nothing to install. A child sees libraries alone.

It guards files. System calls are filtered besides, for the network and for signals.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from attnlib.grading.inside import landlock
from attnlib.grading.sandbox import room as rooms
from attnlib.grading.sandbox.limits import Limits
from attnlib.grading.sandbox.place import Promise, Sandbox, readable

DEVICES = ("/dev/zero", "/dev/random", "/dev/urandom", "/proc/cpuinfo")


@dataclass(frozen=True)
class Landlock(Sandbox):
    """Files by Landlock, the rest by a filter of system calls."""

    name: ClassVar[str] = "landlock"

    @property
    def promises(self) -> frozenset[Promise]:
        """All, where system calls can be filtered, too."""
        kept = set(super().promises)
        if landlock.version() >= 1:
            kept.add("files")
        if landlock.version() >= 6:
            kept.add("others")
        return frozenset(kept)

    def settings(
        self, limits: Limits, torch: bool, serve: str, user: int
    ) -> dict[str, Any]:
        """The settings, with what is granted."""
        plain = super().settings(limits, torch, serve, user)
        return plain | {"landlock": self._grants()}

    def _grants(self) -> list[landlock.Grant]:
        grants: list[landlock.Grant] = [("/dev/null", "write")]
        grants += [(path, "read") for path in (str(self.room), *DEVICES)]
        folders = [Path(path) for path in readable()]
        secret = {path.resolve() for path in rooms.hidden(readable())}
        for folder in folders:
            grants += _around(folder.resolve(), secret)
        return list(dict.fromkeys(grants))


def _around(folder: Path, secret: set[Path]) -> list[landlock.Grant]:
    """Grants of a folder but for what is secret in it: Landlock takes nothing back."""
    if folder in secret:
        return []
    if not any(folder in path.parents for path in secret):
        return [(str(folder), "read")]
    grants: list[landlock.Grant] = [(str(folder), "list")]
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        grants += _around(Path(entry.path), secret)
    return grants
