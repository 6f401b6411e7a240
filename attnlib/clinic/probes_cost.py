# mypy: allow-untyped-defs, allow-untyped-calls
"""Cases for the cache, for shared keys, and for the bytes of both."""

from __future__ import annotations

import numpy as np

from attnlib.clinic.case import Case
from attnlib.clinic.probes import table


def cached_step_cases(rng):
    """For `cached_step(q, k, v, old_k, old_v)`: nothing old, one new, several new."""

    def case(what, n_old, n_new, d_k, d_v, *batch):
        named = d_v is None  # the values then name their tokens
        n = n_old + n_new
        values = np.eye(n) if named else table(rng, *batch, n, d_v)
        arrays = (
            table(rng, *batch, n_new, d_k),
            table(rng, *batch, n_new, d_k),
            values[..., n_old:, :],
            table(rng, *batch, n_old, d_k),
            values[..., :n_old, :],
        )
        return Case(f"{what} (n_old={n_old}, n_new={n_new}, d_k={d_k})", arrays)

    return (
        case("one new token, v = 1 on the diagonal", 3, 1, 2, None),
        case("a piece of several, v = 1 on the diagonal", 4, 3, 2, None),
        case("an empty cache", 0, 4, 3, 2),
        case("as many old as new", 3, 3, 5, 4),
        case("more new than old", 2, 5, 3, 4),
        case("a batch of 2 and 3 heads, one new token", 5, 1, 6, 4, 2, 3),
        case("a batch of 2 and 3 heads, a piece", 4, 2, 6, 5, 2, 3),
        case("a batch of 2, as many old as new", 2, 2, 3, 4, 2),
        # Here old and new can be joined along axis 0, and nothing is raised.
        case("a batch of 1, as many old as new", 2, 2, 3, 4, 1),
    )


def grouped_attention_cases(rng):
    """For `grouped_attention(q, k, v)`: few key heads, one, and one each."""

    def case(what, n_heads, n_kv, n_q, n_k, d_k, d_v, *batch):
        named = d_v is None
        v = table(rng, *batch, n_kv, n_k, 1 if named else d_v)
        if named:
            v = np.broadcast_to(np.eye(n_k), (*batch, n_kv, n_k, n_k)).copy()
        arrays = (
            table(rng, *batch, n_heads, n_q, d_k),
            table(rng, *batch, n_kv, n_k, d_k),
            v,
        )
        return Case(f"{what} (n_heads={n_heads}, n_kv_heads={n_kv}, n_q={n_q})", arrays)

    return (
        case("one query, v = 1 on the diagonal", 4, 2, 1, 3, 2, None),
        case("several queries", 6, 2, 3, 5, 4, 7),
        case("groups of two", 6, 3, 2, 4, 3, 5),
        case("one key head for all", 3, 1, 2, 5, 4, 2),
        case("a key head for each", 3, 3, 4, 5, 2, 6),
        case("a batch of 3", 8, 2, 4, 5, 6, 7, 3),
        case("two axes of batch", 6, 3, 1, 4, 5, 7, 2, 3),
    )


def kv_bytes_cases(rng):
    """For `kv_bytes(n_layers, n_heads, n_kv_heads, d_k, n, batch, window)`."""
    # d_k is a multiple of n_heads, and the bytes are whole KiB: so `//` gives what
    # `/` gives, for those who divide.
    calls = (
        (3, 6, 2, 24, 32, 1, None),
        (12, 12, 12, 72, 1000, 1, None),
        (32, 32, 8, 128, 8192, 5, None),
        (32, 40, 8, 160, 9000, 3, 4096),
        (28, 24, 6, 96, 700, 7, 4096),
        (80, 64, 1, 128, 4096, 2, 4096),
        (2, 8, 4, 40, 1000, 3, 64),  # the windows of all layers together are no text
        (1, 4, 1, 4, 64, 1, None),  # few enough that one byte more counts
    )
    names = "n_layers", "n_heads", "n_kv_heads", "d_k", "n", "batch", "window"
    return tuple(
        Case(
            ", ".join(f"{name}={a}" for name, a in zip(names, call, strict=True)), call
        )
        for call in calls
    )
