# mypy: allow-untyped-defs, allow-untyped-calls
"""Cases for windows, for what they reach, and for attention on two levels."""

from __future__ import annotations

import numpy as np

from attnlib.clinic.case import Case
from attnlib.clinic.probes import far_apart, table


def oldest_token_cases(rng):
    """For `oldest_token(position, n_layers, width)`."""
    calls = (
        (10, 1, 4),
        (20, 3, 5),
        (9, 4, 1),
        (30, 2, 2),
        (5, 3, 8),
        (12, 3, 5),
        (600, 20, 25),  # sparse.reach, which the lesson shows, has time for it
        (100, 7, 6),
        (8, 0, 3),
    )
    names = "position", "n_layers", "width"
    return tuple(
        Case(
            ", ".join(f"{name}={a}" for name, a in zip(names, call, strict=True)), call
        )
        for call in calls
    )


def window_attention_cases(rng):
    """For `window_attention(q, k, v, width)`: an x-ray, ends, 1 key and all keys."""

    def case(what, n, d_k, d_v, width):
        v = np.eye(n) if d_v is None else table(rng, n, d_v)
        arrays = (table(rng, n, d_k), table(rng, n, d_k), v, width)
        return Case(f"{what} (n={n}, d_k={d_k}, width={width})", arrays)

    q, k = far_apart(rng, 6, 6, gap=1024)
    huge = Case("scores of some thousands, width=3", (q, k, table(rng, 6, 2), 3))
    return (
        case("v = 1 on the diagonal", 5, 2, None, 3),
        case("a longer one, v = 1 on the diagonal", 9, 3, None, 4),
        case("a window of one key", 4, 3, 2, 1),
        case("a window of all keys", 6, 5, 3, 6),
        case("d_v larger than d_k", 8, 2, 7, 5),
        case("d_k = d_v", 7, 4, 4, 2),
        huge,
    )


def two_levels_cases(rng):
    """For `two_levels(x, width)`: pieces that fit, a rest, one piece, single tokens."""
    calls = ((6, 2, 3), (7, 3, 3), (10, 4, 4), (5, 2, 8), (4, 3, 1), (11, 5, 2))
    return tuple(
        Case(f"{n} tokens, d={d}, width={width}", (table(rng, n, d), width))
        for n, d, width in calls
    )
