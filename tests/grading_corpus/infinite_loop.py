"""A loop that never ends."""


def answer(*args):
    while True:
        pass
