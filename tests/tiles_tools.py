"""What the tests of attnlib.tiles share: sizes, arrays, masks."""

import numpy as np
from hypothesis import strategies as st

from attnlib import masks

sizes = st.integers(1, 7)
counts = st.integers(0, 7)  # of queries or keys: none is a number, too
batches = st.sampled_from([(), (2,), (0,), (2, 3)])
kinds = st.sampled_from(["none", "full", "padding", "rows", "heads"])


def normal(*shape, seed=0, scale=1.0):
    return np.random.default_rng(seed).normal(size=shape) * scale


def qkv(batch, n_q, n_k, d_k, d_v, seed=0):
    return (
        normal(*batch, n_q, d_k, seed=seed),
        normal(*batch, n_k, d_k, seed=seed + 1),
        normal(*batch, n_k, d_v, seed=seed + 2),
    )


def a_mask(kind, batch, n_q, n_k, seed=5):
    shape = {
        "full": (n_q, n_k),
        "padding": (1, n_k),
        "rows": (n_q, 1),
        "heads": (*batch, n_q, n_k),
    }
    if kind == "none":
        return None
    return np.random.default_rng(seed).random(shape[kind]) < 0.6


def both(mask, causal, n_q, n_k):
    """The mask that the arguments mean, for plain attention."""
    past = masks.causal(n_q, n_k) if causal else np.ones((n_q, n_k), bool)
    return past if mask is None else mask & past
