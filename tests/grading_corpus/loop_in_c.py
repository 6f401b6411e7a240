"""One step of Python that takes for ever, and hears nothing meanwhile."""


def answer(*args):
    return 1 if (1 << 40_000_000) ** 99 else 0
