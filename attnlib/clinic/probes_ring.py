# mypy: allow-untyped-defs, allow-untyped-calls
"""The calls that the exercises on rings are judged by."""

from __future__ import annotations

import numpy as np

from attnlib.clinic.case import Case
from attnlib.clinic.probes import table


def ring_step_cases(rng):
    """For `ring_step(out, log_sum_exp, part_out, part_log)`."""

    def side(n_q, d_v, low, high):
        log = np.round(rng.uniform(low, high, size=n_q) * 8) / 8
        return table(rng, n_q, d_v), log

    def hidden(side, *rows):
        out, log = side
        out[list(rows)], log[list(rows)] = 0, -np.inf
        return out, log

    def moved(side, *by):
        out, log = side
        return out, log + np.array(by)

    def named(side, which):
        out, log = side
        out[:] = np.eye(2)[which]
        return out, log

    def case(what, one, two):
        return Case(f"{what} (n_q={len(one[0])})", (*one, *two))

    one, two = side(3, 4, -2, 2), side(3, 4, -1, 3)
    return (
        case(
            "values that only name their side",
            named(side(2, 2, 0, 1), 0),
            named(side(2, 2, 1, 3), 1),
        ),
        case("4 numbers a value", one, two),
        case("the part that was smaller", side(5, 3, 2, 4), side(5, 3, -1, 1)),
        case("logs above 709", side(2, 3, 712, 714), side(2, 3, 712, 714)),
        case("logs below -745", side(2, 5, -752, -750), side(2, 5, -752, -750)),
        case("logs far apart",
             moved(side(4, 5, 1, 2), 800, -900, -800, 0),
             moved(side(4, 5, 1, 2), -900, 800, -803, 0)),
        case("nothing so far", hidden(side(3, 2, 0, 1), 0, 1, 2), side(3, 2, -1, 2)),
        case("a query that sees nothing of this block", side(4, 3, 1, 2),
             hidden(side(4, 3, 0, 2), 1)),
        case("a query that has seen nothing yet, nor now",
             hidden(side(4, 2, -1, 1), 2), hidden(side(4, 2, 0, 2), 0, 2)),
    )  # fmt: skip


def may_see_cases(rng):
    """For `may_see(rank, other, n_ranks, n_local)`."""
    calls = (
        (1, 1, 2, 3),
        (0, 1, 2, 3),
        (1, 0, 2, 3),
        (2, 0, 3, 4),
        (0, 2, 3, 4),
        (3, 1, 4, 5),
        (1, 3, 4, 5),
        (0, 0, 1, 4),
        (4, 2, 5, 1),
        (1, 3, 5, 1),
        (4, 0, 5, 2),  # ranks further apart than a rank has tokens
        (0, 4, 5, 2),
    )
    return _numbered(calls, ("rank", "other", "n_ranks", "n_local"))


def ring_bytes_cases(rng):
    """For `ring_bytes(n, n_ranks, n_heads, n_kv_heads, d_k, itemsize)`."""
    # d_k is a multiple of n_heads, so that a division gives whole numbers.
    calls = (
        (12, 3, 4, 2, 8, 8),
        (20, 2, 6, 3, 12, 4),
        (120, 5, 8, 2, 16, 2),
        (4096, 8, 32, 8, 128, 2),
        (2**20, 1024, 32, 8, 128, 2),
        (700, 7, 12, 12, 48, 4),
        (44, 4, 6, 1, 18, 8),
    )
    names = "n", "n_ranks", "n_heads", "n_kv_heads", "d_k", "itemsize"
    return _numbered(calls, names)


def _numbered(calls, names):
    return tuple(
        Case(
            ", ".join(f"{name}={a}" for name, a in zip(names, call, strict=True)), call
        )
        for call in calls
    )
