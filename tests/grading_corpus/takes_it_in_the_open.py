"""Takes attnlib's own function, and says so."""

# exercise: causal

from attnlib import masks


def answer(*args):
    return masks.causal(*args)
