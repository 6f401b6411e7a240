"""Reads the memory of the process that watches it."""

import os


def answer(*args):
    with open(f"/proc/{os.getppid()}/mem", "rb") as memory:
        memory.read(1)
