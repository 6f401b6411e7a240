"""How the right specimens are made: sizes and weights from the seed, and the type."""

from functools import wraps

import numpy as np
import torch
from torch import nn

from .specimen import Specimen

SIZES = ((8, 2), (12, 3), (16, 4), (16, 2), (24, 4), (24, 6))  # d_model, n_heads


def sizes(rng):
    """A d_model and an n_heads."""
    return SIZES[int(rng.integers(len(SIZES)))]


def built(rng, dtype, make):
    """What `make()` makes, its weights from `rng`, in `dtype`; torch's RNG is kept."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**31)))
        module = make().to(getattr(torch, dtype))
        for name, parameter in module.named_parameters():
            if name.endswith("bias"):  # zeros would hide what a bias does
                nn.init.normal_(parameter, std=0.3)
    return module


def function(name, made, style, **intent):
    """A right function; `made(rng)` returns it."""

    def make(rng, dtype):
        attention = made(rng)
        if dtype == "float64" or "dtype" in intent:
            return attention
        return narrowed(attention)

    return Specimen(f"right: {name}", frozenset(), make, intent, style)


def narrowed(attention):
    """The same function for somebody whose arrays are all float32."""

    @wraps(attention)
    def in_float32(*arguments, **options):
        narrow = {name: _narrow(value) for name, value in options.items()}
        return attention(*map(_narrow, arguments), **narrow)

    return in_float32


def _narrow(x):
    if isinstance(x, np.ndarray) and x.dtype == np.float64:
        return x.astype(np.float32)
    if isinstance(x, torch.Tensor) and x.dtype == torch.float64:
        return x.float()
    return x
