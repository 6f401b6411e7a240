"""Takes memory without end."""


def answer(*args):
    held = []
    while True:
        held.append(bytearray(50_000_000))
