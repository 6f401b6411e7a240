"""No sandbox: limits, a filter of system calls where there is one, and no more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from attnlib.grading.sandbox.place import Sandbox


@dataclass(frozen=True)
class Plain(Sandbox):
    """Limits alone. For `--allow-unsandboxed`: the disk can be read and written."""

    name: ClassVar[str] = "plain"
