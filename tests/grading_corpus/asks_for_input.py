"""Waits for somebody to type."""


def answer(*args):
    return input()
