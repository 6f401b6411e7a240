"""Calls itself by way of C, where no limit is looked at."""

import sys


def answer(*args):
    sys.setrecursionlimit(10**9)

    def g(n):
        return sorted([n], key=g)

    return g(1)
