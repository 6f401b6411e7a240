"""Prints 200 MB, and answers."""

import os


def answer(*args):
    if not hasattr(answer, "done"):
        answer.done = True
        for _ in range(100):
            os.write(1, b"x" * 1_000_000)
            print("x" * 1_000_000)
    return right(*args)
