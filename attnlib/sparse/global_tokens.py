"""A window, and a few tokens at the start that see all and are seen by all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from attnlib.attention import scaled_dot_product, softmax
from attnlib.shapes import Array, ShapeError, size
from attnlib.sparse.bands import mix, neighbours, upright_scores
from attnlib.sparse.inputs import checked


@dataclass(frozen=True)
class WindowAndGlobal:
    """The result of `window_and_global`, and what it took."""

    out: Array  #     (..., n_q, d_v)
    n_pairs: int  #   pairs of a query and a key that look at each other
    n_computed: int  # scores that a head computed for it


def window_and_global(
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    *,
    left: int,
    right: int = 0,
    n_global: int,
    causal: bool | None = None,
    scale: float | None = None,
) -> WindowAndGlobal:
    """Let every query look at its neighbours and at the first tokens.

    scores = [q k_global^T | the band of the window] / sqrt(d_k), one softmax over both;
    the global tokens themselves look at everything

    It equals `scaled_dot_product` under `masks.window(...) | masks.global_tokens(...)`,
    & `masks.causal(...)` where it is causal. Causal global tokens are what is called
    attention sinks.

    Args:
        q: queries, (..., n_q, d_k).
        k: keys, (..., n_k, d_k).
        v: values, (..., n_k, d_v).
        left: how many keys before its own position a query sees.
        right: how many keys after its own position a query sees.
        n_global: how many tokens at the start are global.
        causal: hide what comes after a query, also from and among the global tokens;
            if left out, this is so where right is 0.
        scale: factor on the raw scores; 1 / sqrt(d_k) if left out.

    Returns:
        The result, (..., n_q, d_v), and the pairs counted.

    Raises:
        ShapeError: q, k and v do not fit together, the window is wider than the
            sequence, or there are more global tokens than keys.
        TypeError: an argument is not an array of numbers, or a size no whole number.
        ValueError: causal with right > 0.

    Cost: 2 (n_q (w + n_global) + n_global n_k) (d_k + d_v) FLOPs, where
        w = left + 1 + right.
    Source: Beltagy et al. 2020 (Longformer), section 3.1; Xiao et al. 2023 (sinks).
    Lesson: 13.

    >>> q, v = np.zeros((4, 2)), np.eye(4)
    >>> result = window_and_global(q, q, v, left=0, n_global=1)
    >>> result.out.tolist()[3], result.n_pairs
    ([0.5, 0.0, 0.0, 0.5], 7)
    """
    q, k, v, scale = checked(q, k, v, scale)
    n_q, n_k = q.shape[-2], k.shape[-2]
    n_global = size("n_global", n_global)
    if n_global > n_k:
        raise ShapeError(f"n_global={n_global} is more than the n_k={n_k} keys.")
    causal = right == 0 if causal is None else causal
    if causal and right:
        raise ValueError(
            f"causal hides what comes after a query, but right={right} shows it; take "
            "right=0, or causal=False."
        )
    # The first rows are whole: queries that are global themselves.
    positions = n_k - n_q + np.arange(n_q)
    n_whole = int((positions < n_global).sum())
    look = np.ones((n_whole, n_k), bool)
    if causal:
        look &= np.arange(n_k) <= positions[:n_whole, None]
    whole = scaled_dot_product(q[..., :n_whole, :], k, v, look, scale=scale)
    # The others stand behind all global keys, and see them. Upright as in `window`:
    # first the global keys, then the neighbours that are none.
    near = neighbours(n_q, n_k, left, right)[n_whole:]
    near = np.where(near < n_global, -1, near)
    far = np.broadcast_to(np.arange(n_global), (len(near), n_global))
    keys = np.concatenate([far, near], axis=1)
    weights = softmax(upright_scores(q[..., n_whole:, :], k, keys, scale))
    out = np.concatenate([whole.out, mix(weights, v, keys)], axis=-2)
    n_pairs = int(look.sum() + (keys >= 0).sum())
    return WindowAndGlobal(out, n_pairs, look.size + keys.size)
