"""Leaves a process behind that nobody waits for, and answers."""

import os
import time


def answer(*args):
    if not hasattr(answer, "done") and os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                time.sleep(1)
        os._exit(0)
    answer.done = True
    return right(*args)
