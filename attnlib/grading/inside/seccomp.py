"""seccomp: the system calls that no answer needs are refused.

What stays possible: compute, read the files that are there, start threads and
processes. What is refused: sockets of every kind, signals to others, looking into
others, changing files' rights, new namespaces, memory that no limit counts.

Source: https://docs.kernel.org/userspace-api/seccomp_filter.html, and the tables of
system calls of Linux.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

from attnlib.grading.inside.kernel import (
    LINUX,
    PR_GET_SECCOMP,
    PR_SET_NO_NEW_PRIVS,
    PR_SET_SECCOMP,
    prctl,
)

FILTER = 2  # the mode
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
LOAD, EQUAL, ANY_BIT, AT_LEAST, RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
NUMBER, MACHINE, FIRST = 0, 4, 16  # where they stand in what a filter looks at
X32 = 0x40000000  # system calls of a third kind of program on x86-64
NEW_NAMESPACES = 0x7E020000  # flags of clone

# Two numbers each: on x86-64 and on 64-bit ARM; None where there is no such call.
REFUSED: dict[str, tuple[int | None, int | None]] = {
    "socket": (41, 198),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "truncate": (76, 45),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "lchown": (94, None),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "setxattrat": (463, 463),
    "removexattrat": (466, 466),
}
# Programs know what to do where these do not exist.
UNKNOWN: dict[str, tuple[int, int]] = {
    "clone3": (435, 435),
    "io_uring_setup": (425, 425),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
}
CLONE, KILL, TGKILL, PRLIMIT = (56, 220), (62, 129), (234, 131), (302, 261)
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

Step = tuple[int, int, int, int]  # code, jump if true, jump if false, number


def there() -> bool:
    """Whether this kernel takes filters, and one for this machine is written here."""
    if not LINUX or platform.machine() not in MACHINES:
        return False
    try:
        prctl(PR_GET_SECCOMP)
    except OSError:
        return False
    return True


def restrict() -> None:
    """Refuse the calls from now on, in this process and all that it starts.

    Raises:
        OSError: there is no seccomp here.
    """
    if not there():
        raise OSError(f"no system calls can be filtered on this {platform.machine()}")
    column, machine = MACHINES[platform.machine()]
    steps = program(column, machine, os.getpid())
    code = b"".join(struct.pack("=HBBI", *step) for step in steps)
    held = ctypes.create_string_buffer(code, len(code))
    head = struct.pack("=H6xQ", len(steps), ctypes.addressof(held))
    asked = ctypes.create_string_buffer(head, len(head))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    prctl(PR_SET_SECCOMP, FILTER, ctypes.c_void_p(ctypes.addressof(asked)))


def program(column: int, machine: int, me: int) -> list[Step]:
    """The filter, for the process with the number `me`."""
    steps: list[Step] = [
        (LOAD, 0, 0, MACHINE),
        (EQUAL, 1, 0, machine),
        _refuse(errno.ENOSYS),  # a program for another machine: 32 bits
        (LOAD, 0, 0, NUMBER),
    ]
    if column == 0:
        steps += [(AT_LEAST, 0, 1, X32), _refuse(errno.ENOSYS)]
    for table, error in ((REFUSED, errno.EPERM), (UNKNOWN, errno.ENOSYS)):
        for numbers in table.values():
            number = numbers[column]
            if number is not None:
                steps += [(EQUAL, 0, 1, number), _refuse(error)]
    steps += _only(KILL[column], [me])  # to itself, as a failed assertion in C does
    steps += _only(TGKILL[column], [me])
    steps += _only(PRLIMIT[column], [0, me])
    flags: list[Step] = [(LOAD, 0, 0, FIRST), (ANY_BIT, 0, 1, NEW_NAMESPACES)]
    flags += [_refuse(errno.EPERM), (RETURN, 0, 0, ALLOW)]
    steps += [(EQUAL, 0, len(flags), CLONE[column]), *flags]
    return [*steps, (RETURN, 0, 0, ALLOW)]


def _only(number: int, allowed: list[int]) -> list[Step]:
    """A call whose first argument must be one of these."""
    inner: list[Step] = [(LOAD, 0, 0, FIRST)]
    for value in allowed:
        inner += [(EQUAL, 0, 1, value), (RETURN, 0, 0, ALLOW)]
    inner.append(_refuse(errno.EPERM))
    return [(EQUAL, 0, len(inner), number), *inner]


def _refuse(error: int) -> Step:
    return (RETURN, 0, 0, ERRNO | error)
