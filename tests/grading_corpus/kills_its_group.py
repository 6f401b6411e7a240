"""Kills its group of processes."""

import os


def answer(*args):
    os.kill(0, 9)
