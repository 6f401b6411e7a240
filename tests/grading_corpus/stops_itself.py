"""Stops its own process, so that it hears no more."""

import os
import signal


def answer(*args):
    os.kill(os.getpid(), signal.SIGSTOP)
