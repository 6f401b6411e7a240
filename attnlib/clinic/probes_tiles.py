# mypy: allow-untyped-defs, allow-untyped-calls
"""The calls that the exercises on flash attention are judged by."""

from __future__ import annotations

import numpy as np

from attnlib.clinic import probes
from attnlib.clinic.case import Case


def _state(rng, n, d_v, low=-2.0, high=2.0):
    """A state as some keys left it: the sum is at least 1, for the largest is in it."""
    m = np.round(rng.uniform(low, high, size=n), 2)
    total = 1 + np.round(rng.uniform(0.1, 3, size=n), 2)
    return m, total, probes.table(rng, n, d_v)


def update_cases(rng):
    """For `online_softmax(m, total, mixed, scores, v)`."""

    def start(n, d_v):
        return np.full(n, -np.inf), np.zeros(n), np.zeros((n, d_v))

    def case(name, state, scores, d_v):
        return Case(name, (*state, scores, probes.table(rng, scores.shape[-1], d_v)))

    rising = 3 + probes.table(rng, 2, 3)
    falling = -4 + probes.table(rng, 2, 3) / 4
    wide = probes.table(rng, 4, 5, spread=2)
    far = probes.table(rng, 3, 2) + np.array([[900.0], [-900.0], [0.0]])
    hidden = probes.table(rng, 3, 4)
    hidden[1], hidden[0, 2] = -np.inf, -np.inf
    first = hidden[:, ::-1].copy()
    low = np.array([[-60000.0, -60001.0], [-1500.0, -1502.0], [0.5, -0.5]])
    return (
        case("the first block", start(2, 2), probes.table(rng, 2, 3), 2),
        case("larger scores than before", _state(rng, 2, 2), rising, 2),
        case("smaller scores than before", _state(rng, 2, 2), falling, 2),
        case("4 queries, 5 keys", _state(rng, 4, 3), wide, 3),
        case("scores of 900 and of -900", _state(rng, 3, 4), far, 4),
        case("a row hidden in this block", _state(rng, 3, 2), hidden, 2),
        case("a row hidden in the first block", start(3, 2), first, 2),
        case("a first block with scores far below 0", start(3, 4), low, 4),
    )


def tiled_cases(rng):
    """For a kernel, as `kernels.on_a_chip` calls it: (q, k, v, block_q, block_k)."""

    def case(name, n_q, n_k, d_k, d_v, blocks, shift=0.0):
        q, k = probes.table(rng, n_q, d_k), probes.table(rng, n_k, d_k)
        v = probes.table(rng, n_k, d_v)
        if shift:  # so far apart that float32 is fine enough
            q[:, 0], k[:, 0] = 1.0, shift + 30 * rng.permutation(n_k)
        return Case(name, (q, k, v, *blocks))

    def sorted_case(name, n_q, n_k, d_k, d_v, blocks, sign):
        q, k, v, *_ = case(name, n_q, n_k, d_k, d_v, blocks).args
        q = np.abs(q)
        k = sign * np.sort(k, axis=0)
        return Case(name, (q, k, v, *blocks))

    far = case("", 4, 6, 4, 2, (2, 2), 1.0).args
    # Queries 0 and 1: 1000 and -1000 in one block; 2: from block to block; 3: near 0.
    far[0][:, 1:3] = [[30, 0], [-30, 0], [0, 30], [0, 0]]
    far[1][:, 0] = 12 * rng.permutation(6)
    far[1][:, 1] += [60, -60, -60, -60, 60, 60]
    far[1][:, 2] += [-60, -60, 60, 60, -60, -60]
    return (
        case("2 queries, 4 keys, tiles of 1 x 2", 2, 4, 3, 2, (1, 2)),
        sorted_case("keys in rising order, tiles of 2 x 2", 4, 6, 3, 2, (2, 2), 1),
        sorted_case("keys in falling order, tiles of 3 x 2", 6, 8, 2, 5, (3, 2), -1),
        case("5 queries in tiles of 2", 5, 6, 3, 4, (2, 3)),
        case("7 keys in tiles of 3", 4, 7, 5, 3, (2, 3)),
        case("6 queries in tiles of 4, all keys in one", 6, 5, 2, 4, (4, 8)),
        Case("scores of 1000 and of -1000", far),
        case("scores far below 0", 3, 6, 4, 2, (2, 3), shift=-3000.0),
        case("scores around -30000", 2, 5, 4, 3, (1, 2), shift=-60000.0),
    )


def grad_cases(rng):
    """For `tile_grad_q(q, k, v, grad_out, log_sum_exp, delta)`: a tile of a longer row.

    log_sum_exp and delta are those of the whole row.
    """

    def case(name, n_q, n_k, d_k, d_v, cols, spread=1.0):
        q = probes.table(rng, n_q, d_k, spread=spread)
        k, v = probes.table(rng, n_k, d_k, spread=spread), probes.table(rng, n_k, d_v)
        grad_out = probes.table(rng, n_q, d_v)
        scores = q @ k.T / np.sqrt(d_k)
        top = scores.max(axis=-1)
        log_sum_exp = top + np.log(np.exp(scores - top[:, None]).sum(axis=-1))
        out = np.exp(scores - log_sum_exp[:, None]) @ v
        delta = (grad_out * out).sum(axis=-1)
        return Case(name, (q, k[cols], v[cols], grad_out, log_sum_exp, delta))

    return (
        case("2 queries, 3 keys of 7", 2, 7, 3, 4, slice(0, 3)),
        case("4 queries, 2 keys of 6", 4, 6, 5, 2, slice(2, 4)),
        case("3 queries, the last key of 9", 3, 9, 2, 5, slice(8, 9)),
        case("3 queries, all 5 keys", 3, 5, 4, 2, slice(0, 5)),
        case("peaked weights", 3, 8, 4, 3, slice(2, 7), spread=2.0),
    )
