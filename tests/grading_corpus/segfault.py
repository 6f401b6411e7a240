"""Reads where there is no memory."""

import ctypes


def answer(*args):
    ctypes.string_at(0)
