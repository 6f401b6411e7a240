"""Arguments for a real layer's attention, and for the numbers that find a head."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic import probes
from attnlib.clinic.case import Case

Float = npt.NDArray[np.floating]
Cases = tuple[Case, ...]


def layer_cases(rng: np.random.Generator) -> Cases:
    """For `layer_attention`; the second is an x-ray: its output is its weights."""

    def case(name: str, *sizes: int) -> Case:
        n, d_model, n_heads, n_kv_heads, d_k, d_v, *batch = sizes
        wide, narrow, values = n_heads * d_k, n_kv_heads * d_k, n_kv_heads * d_v
        shapes = ((d_model, wide), (d_model, narrow), (d_model, values))
        inward = [probes.table(rng, *shape, spread=0.5) for shape in shapes]
        outward = probes.table(rng, n_heads * d_v, d_model, spread=0.5)
        x = probes.table(rng, *batch, n, d_model)
        told = f"n={n}, d_model={d_model}, d_k={d_k}, d_v={d_v}"
        counts = f"{n_heads} heads on {n_kv_heads}"
        return Case(
            f"{name} ({counts}, {told})", (x, *inward, outward, n_heads, n_kv_heads)
        )

    return (
        case("a small one", 3, 5, 4, 2, 2, 3),
        layer_xray(rng),
        case("keys as wide as values", 5, 8, 6, 2, 4, 4),
        case("a key head for each head", 4, 7, 3, 3, 6, 2),
        case("one key head for all", 3, 6, 3, 1, 4, 5),
        case("a batch of 3 by 2", 5, 10, 8, 4, 6, 7, 3, 2),
        case("a single token", 1, 5, 4, 2, 2, 3),
        layer_far_below(rng),
    )


def layer_far_below(rng: np.random.Generator) -> Case:
    """Keys are minus the queries, and large: every score lies far below zero.

    A forbidden score must lie below them still. Token 0 is a quarter of token 1, so
    that token 1 hears token 0 alone, whatever the numbers.
    """
    n_heads, d_k, d_v, d_model = 2, 4, 3, 5
    token = np.where(rng.random(d_model) < 0.5, -2.0, 2.0)
    W_q = probes.table(rng, d_model, n_heads * d_k, spread=0.5) + np.eye(5, 8)
    values = probes.table(rng, d_model, n_heads * d_v, spread=0.5)
    outward = probes.table(rng, n_heads * d_v, d_model, spread=0.5)
    largest = 1e6 / np.square(token @ W_q).reshape(n_heads, d_k).sum(axis=-1).min()
    return Case(
        f"scores below -20000 ({n_heads} heads on {n_heads}, n=2, d_model={d_model}, "
        f"d_k={d_k}, d_v={d_v})",
        (
            np.stack([token / 4, token]),
            W_q,
            -largest * W_q,
            values,
            outward,
            n_heads,
            n_heads,
        ),
    )


def layer_xray(rng: np.random.Generator) -> Case:
    """The last n features of a token are its number, and all that W_v hands on."""
    n, n_heads, n_kv_heads, d_k = 3, 4, 2, 6
    d_model = n * n_heads
    x = np.concatenate([probes.table(rng, n, d_model - n), np.eye(n)], axis=-1)
    W_q = probes.table(rng, d_model, n_heads * d_k, spread=0.5)
    W_k = probes.table(rng, d_model, n_kv_heads * d_k, spread=0.5)
    copies = np.concatenate([np.zeros((d_model - n, n)), np.eye(n)])
    return Case(
        f"an x-ray: out is the weights ({n_heads} heads on {n_kv_heads}, n={n}, "
        f"d_model={d_model}, d_k={d_k})",
        (
            x,
            W_q,
            W_k,
            np.tile(copies, (1, n_kv_heads)),
            np.eye(d_model),
            n_heads,
            n_kv_heads,
        ),
    )


def some_weights(rng: np.random.Generator, *shape: int, causal: bool = True) -> Float:
    """Rows that sum to 1, in 64ths at the least."""
    raw = rng.integers(1, 9, size=shape).astype(float)
    if causal:
        raw = np.tril(raw)
    return np.asarray(raw / raw.sum(axis=-1, keepdims=True))


def one_key_a_row(
    rng: np.random.Generator, n: int, first: int, back: int, *batch: int
) -> Float:
    """All of a row's weight on one key: in two rows of those that count, the key asked.

    Elsewhere it lies on the row itself, or before it where that is the key asked.
    """
    weights = np.zeros((*batch, n, n))
    for head in np.ndindex(*batch):
        hits = rng.choice(np.arange(first, n), size=2, replace=False)
        for i in range(n):
            there = i - back if i in hits else i - (back == 0)
            weights[(*head, i, max(there, 0))] = 1
    return weights


def offset_cases(rng: np.random.Generator) -> Cases:
    """For `offset_mass(weights, offset)`: causal and not, one head and many."""

    def case(name: str, n: int, offset: int, *batch: int, causal: bool = True) -> Case:
        weights = some_weights(rng, *batch, n, n, causal=causal)
        return Case(f"{name}, n={n}, offset={offset}", (weights, offset))

    sparse = one_key_a_row(rng, 8, 2, 2, 2)
    return (
        case("one head", 4, 1),
        case("3 heads", 5, 2, 3),
        case("one head", 6, 0),
        case("2 layers of 3 heads", 7, 1, 2, 3),
        case("4 heads without a causal mask", 6, 3, 4, causal=False),
        case("5 heads, the last two rows alone", 5, 3, 5),
        Case("2 heads, one key a row, n=8, offset=2", (sparse, 2)),
    )


def induction_cases(rng: np.random.Generator) -> Cases:
    """For `induction_score(weights, period)`: two copies, more, and half a one."""

    def case(name: str, n: int, period: int, *batch: int, causal: bool = True) -> Case:
        weights = some_weights(rng, *batch, n, n, causal=causal)
        return Case(f"{name}, n={n}, period={period}", (weights, period))

    sparse = one_key_a_row(rng, 11, 4, 3, 2)
    return (
        case("one head", 6, 3),
        case("3 heads, three copies", 12, 4, 3),
        case("4 heads, two copies and a half", 13, 5, 4),
        case("2 layers of 3 heads", 8, 3, 2, 3),
        case("3 heads without a causal mask", 9, 3, 3, causal=False),
        Case("2 heads, one key a row, n=11, period=4", (sparse, 4)),
    )
