"""Returns 160 MB."""

import numpy as np


def answer(*args):
    return np.zeros(20_000_000)
