"""Starts processes that compute while it waits."""

import os


def answer(*args):
    for _ in range(4):
        if os.fork() == 0:
            while True:
                pass
    os.wait()
