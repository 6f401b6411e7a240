"""Aborts, as a failed assertion in C does."""

import os


def answer(*args):
    os.abort()
