"""Calls `sys.exit(0)`."""

import sys


def answer(*args):
    sys.exit(0)
