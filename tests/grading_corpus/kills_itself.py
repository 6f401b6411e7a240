"""Kills its own process."""

import os


def answer(*args):
    os.kill(os.getpid(), 9)
