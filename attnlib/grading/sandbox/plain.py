"""No sandbox: limits, a filter of system calls where there is one, and no more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from attnlib.grading.inside import seccomp
from attnlib.grading.sandbox.place import Promise, Sandbox


@dataclass(frozen=True)
class Plain(Sandbox):
    """Limits alone. For `--allow-unsandboxed`: the disk can be read and written."""

    name: ClassVar[str] = "plain"

    @property
    def promises(self) -> frozenset[Promise]:
        """No files; the rest where system calls can be filtered."""
        kept: set[Promise] = set()
        if seccomp.there():
            kept |= {"network", "others", "leftovers"}
        return frozenset(kept)
