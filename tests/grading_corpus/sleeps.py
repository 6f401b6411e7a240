"""Sleeps."""

import time


def answer(*args):
    time.sleep(1000)
