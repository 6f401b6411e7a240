"""Takes memory in eight processes, none of which takes too much."""

import os
import time


def answer(*args):
    for _ in range(8):
        if os.fork() == 0:
            held = b"x" * 150_000_000
            time.sleep(len(held))
    time.sleep(100)
