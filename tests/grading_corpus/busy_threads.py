"""Starts threads that compute for ever."""

import threading


def answer(*args):
    def spin():
        while True:
            pass

    for _ in range(4):
        threading.Thread(target=spin, daemon=True).start()
    spin()
