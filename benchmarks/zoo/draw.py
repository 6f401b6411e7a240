"""Modules of the zoo: their sizes and their weights, drawn from the seed."""

import torch
from torch import nn

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
