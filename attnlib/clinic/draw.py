"""Weights at which mistakes show, drawn on a grid that float32 holds exactly."""

from __future__ import annotations

import numpy as np

from attnlib.clinic.subject import Weights
from attnlib.shapes import Array


def draw(weights: Weights, seed: int) -> Weights:
    """Weights of a size at which mistakes show, on a grid that float32 holds exactly.

    Each number of a query or key has a spread of about 1.2, so that scores have one
    of about 1.4.
    """
    rng = np.random.default_rng(seed)

    def matrix(like: Array | None, size: float) -> Array | None:
        if like is None:
            return None
        spread = size / np.sqrt(like.shape[0])
        grid = 2.0 ** np.floor(np.log2(spread / 16))
        top = round(float(np.sqrt(3.0) * spread / grid))  # uniform: fast for a large W
        steps = rng.integers(-top, top + 1, size=like.shape, dtype=np.int8)
        return np.asarray(steps * grid)

    def bias(like: Array | None) -> Array | None:
        if like is None:
            return None
        return np.asarray(np.round(rng.normal(size=like.shape) * 4) / 8)

    W_q, W_k = matrix(weights.W_q, 1.2), matrix(weights.W_k, 1.2)
    W_v, W_o = matrix(weights.W_v, 1.0), matrix(weights.W_o, 1.0)
    assert W_q is not None
    assert W_k is not None
    assert W_v is not None
    return Weights(
        W_q,
        W_k,
        W_v,
        W_o,
        bias(weights.b_q),
        bias(weights.b_k),
        bias(weights.b_v),
        bias(weights.b_o),
        weights.n_heads,
        weights.n_kv_heads,
        weights.d_model,
    )
