"""Becomes root in a world of its own."""

import ctypes


def answer(*args):
    if ctypes.CDLL(None, use_errno=True).unshare(0x10000000) == -1:
        raise PermissionError
