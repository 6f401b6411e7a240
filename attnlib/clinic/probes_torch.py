# mypy: allow-untyped-defs, allow-untyped-calls
"""Cases for gradients by hand, for SDPA, and for weights taken apart."""

from __future__ import annotations

import numpy as np

from attnlib.clinic.case import Case
from attnlib.clinic.probes import table


def gradient_cases(rng):
    """For `attention_gradient(q, k, v, grad_out)`."""

    def case(what, n_q, n_k, d_k, d_v, *batch):
        arrays = (
            table(rng, *batch, n_q, d_k),
            table(rng, *batch, n_k, d_k),
            table(rng, *batch, n_k, d_v),
            table(rng, *batch, n_q, d_v),
        )
        sizes = f"n_q={n_q}, n_k={n_k}, d_k={d_k}, d_v={d_v}"
        return Case(f"{what} ({sizes})", arrays)

    return (
        case("a small one", 2, 3, 2, 4),
        case("as many queries as keys", 3, 3, 2, 5),
        case("more queries than keys", 5, 4, 3, 2),
        case("wide keys", 4, 6, 9, 3),
        case("a batch of 2 and 3 heads", 4, 5, 6, 3, 2, 3),
    )


def sdpa_cases(rng):
    """For `match_sdpa(q, k, v, mask=None, causal=False)`; some are x-rays."""

    def qkv(n_q, n_k, d_k, d_v=None, *batch):
        v = np.eye(n_k) if d_v is None else table(rng, *batch, n_k, d_v)
        q = table(rng, *batch, n_q, d_k)
        return q, table(rng, *batch, n_k, d_k), v

    holes = rng.random((4, 6)) < 0.6
    holes[:, 0], holes[:, 5], holes[2] = True, [True, False, True, True], False
    fillers = np.arange(6) < np.array([6, 3])[:, None, None, None]
    fillers = np.broadcast_to(fillers, (2, 1, 4, 6)).copy()
    real = np.broadcast_to(np.arange(5) < 3, (3, 5)).copy()
    turned = np.tri(3, 5, dtype=bool)[:, ::-1].copy()
    return (
        Case(
            "causal, 2 queries, 4 keys, v = 1 on the diagonal",
            (*qkv(2, 4, 3), None, True),
        ),
        Case("no mask, 3 queries, 5 keys", qkv(3, 5, 2, 4)),
        Case("2 fillers hidden, v = 1 on the diagonal", (*qkv(3, 5, 4), real)),
        Case("a mask and causal, v = 1 on the diagonal", (*qkv(3, 5, 2), turned, True)),
        Case("a query that may look at nothing", (*qkv(4, 6, 3, 2), holes)),
        Case("1 query, 6 keys, causal", (*qkv(1, 6, 3, 2), None, True)),
        Case("4 tokens, causal", (*qkv(4, 4, 3, 2), None, True)),
        Case("5 queries, 3 keys, causal", (*qkv(5, 3, 2, 4), None, True)),
        Case(
            "a batch of 2, 3 heads, fillers hidden, causal",
            (*qkv(4, 6, 3, 5, 2, 3), fillers, True),
        ),
        Case(
            "a batch of 2, 3 heads, fillers hidden",
            (*qkv(4, 6, 3, 5, 2, 3), fillers, False),
        ),
    )


def in_proj_cases(rng):
    """For `from_in_proj(in_proj_weight)`; no number twice, so that each is known."""

    def fused(d_model, unit=1.0):
        flat = (rng.permutation(3 * d_model * d_model) + 1.0) * unit
        return Case(f"d_model={d_model}", (flat.reshape(3 * d_model, d_model),))

    return (*map(fused, (3, 2, 4)), fused(6, 1 / 7))  # whole numbers, and others
