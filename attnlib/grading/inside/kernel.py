"""Ask the kernel what Python has no function for: prctl, Landlock, seccomp."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
import sys

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_KEEPCAPS = 8
PR_GET_SECCOMP = 21
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

CAPSET = {"x86_64": 126, "aarch64": 91}  # the number of the system call
CAPABILITIES = 0x20080522  # the version of its form
READ_ALL = 1 << 2  # CAP_DAC_READ_SEARCH
LINUX = sys.platform == "linux"
_libc = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None


def prctl(option: int, value: int = 0, address: object = 0) -> None:
    """Set something of this process.

    Raises:
        OSError: the kernel refused.
    """
    if _libc is None or not LINUX:
        raise OSError("there is no prctl here")
    long = ctypes.c_ulong
    at = address if isinstance(address, ctypes.c_void_p) else ctypes.c_void_p(None)
    done = _libc.prctl(ctypes.c_int(option), long(value), at, long(0), long(0))
    if done < 0:
        _fail(f"prctl {option}")


def syscall(number: int, *arguments: object) -> int:
    """Call the kernel by number. Whole numbers become long, the rest goes as it is.

    Raises:
        OSError: the kernel refused.
    """
    if _libc is None or not LINUX:
        raise OSError("there is no such system call here")
    passed = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    call = _libc.syscall
    call.restype = ctypes.c_long
    done = int(call(ctypes.c_long(number), *passed))
    if done < 0:
        _fail(f"system call {number}")
    return done


def gain_nothing() -> None:
    """No program that is started from now on has a right that this one has not."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    for right in range(64):
        with contextlib.suppress(OSError):  # it may not, or there is no such right
            prctl(PR_CAPBSET_DROP, right)


def drop_rights(keep: int = 0) -> None:
    """Give up all rights of root, but for the bits of `keep`, if it has those.

    Who is root still then becomes a user like others, who happens to own root's files.
    """
    number = CAPSET.get(platform.machine())
    if number is None:
        return
    for bits in (keep, 0):
        head = struct.pack("=Ii", CAPABILITIES, 0)
        rights = struct.pack("=6I", bits, bits, 0, 0, 0, 0)
        with contextlib.suppress(OSError):
            syscall(
                number,
                ctypes.create_string_buffer(head, len(head)),
                ctypes.create_string_buffer(rights, len(rights)),
            )
            return
    raise OSError("the rights of root cannot be given up")


def _fail(what: str) -> None:
    number = ctypes.get_errno()
    raise OSError(number, f"{what}: {os.strerror(number)}")
