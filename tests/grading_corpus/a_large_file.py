"""Fills the disk."""

import tempfile


def answer(*args):
    with tempfile.TemporaryFile(dir=".") as file:
        for _ in range(100):
            file.write(bytes(1_000_000))
