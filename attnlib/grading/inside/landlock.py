"""Landlock: this process, and all that it starts, sees only the folders it is granted.

Source: https://docs.kernel.org/userspace-api/landlock.html
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable
from typing import Any

from attnlib.grading.inside.kernel import PR_SET_NO_NEW_PRIVS, prctl, syscall

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
ASK_VERSION, PATH_BENEATH = 1, 1
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
OF_A_FILE = EXECUTE | WRITE_FILE | READ_FILE
# How many rights each version knows: to refuse a right, one must name it.
RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
TCP = 0b11  # bind and connect, from version 4 on
SCOPES = 0b11  # abstract unix sockets and signals, from version 6 on

# What a grant is: a path, and "read" (all below it), "list" (only the names in it, and
# below it), or "write" (an existing file such as /dev/null).
Grant = tuple[str, str]
_MEANS = {
    "read": EXECUTE | READ_FILE | READ_DIR,
    "list": READ_DIR,
    "write": READ_FILE | WRITE_FILE,
}


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """The version of Landlock in this kernel; 0: there is none."""
    try:
        return syscall(CREATE_RULESET, ctypes.c_void_p(None), 0, ASK_VERSION)
    except OSError:
        return 0


def restrict(grants: Iterable[Grant]) -> None:
    """Give up everything but the grants, for good.

    Raises:
        OSError: this kernel has no Landlock.
    """
    known = version()
    if known < 1:
        raise OSError("this kernel has no Landlock")
    ruleset = _ruleset(known)
    try:
        for path, kind in grants:
            _add(ruleset, path, _MEANS[kind])
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        syscall(RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _ruleset(known: int) -> int:
    asked: dict[str, Any] = {"files": (1 << RIGHTS[min(known, 5)]) - 1}
    size = 8
    if known >= 4:
        asked["network"], size = TCP, 16
    if known >= 6:
        asked["scoped"], size = SCOPES, 24
    rules = _Ruleset(**asked)
    return syscall(CREATE_RULESET, ctypes.byref(rules), size, 0)


def _add(ruleset: int, path: str, allowed: int) -> None:
    try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # what is not there need not be granted
        return
    try:
        if not stat.S_ISDIR(os.fstat(parent).st_mode):
            allowed &= OF_A_FILE
        rule = _Beneath(allowed, parent)
        syscall(ADD_RULE, ruleset, PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(parent)
