"""Questions at the edge: empty rows, huge scores, a constant in all scores, NaN, ..."""

from __future__ import annotations

import numpy as np

from attnlib.clinic.black_box.questions import Maker, Question
from attnlib.clinic.probes import far_apart, table
from attnlib.clinic.subject import Takes
from attnlib.shapes import Array

LONG = 160  # keys in the long question; blocks of up to 128 show in it
SHIFT = 2e4


def function_edge(kind: str, takes: Takes, seed: int) -> Question | None:
    """One extreme question; None where the function cannot be asked it."""
    rng = np.random.default_rng(seed + 2)
    make = Maker(rng, takes)
    front = make.batch(2, 3)
    masked = kind in ("empty", "shifted mask", "above", "planted", "long mask")
    if masked and not takes.mask:
        return None
    if kind == "empty":
        n = 5 if takes.no_cross else 4
        mask = make.holes(n, 5)
        mask[1] = False
        return make.xray("a query that may look at nothing", n, 5, 3, mask)
    if kind in ("long", "long mask"):
        return _long(rng, make, front, kind)
    n_q, n_k = (5, 5) if takes.no_cross else (4, 5)
    q, k = far_apart(rng, n_q, n_k, gap=1024.0)
    d_v = 16 if takes.equal_d else 4
    q, k = (np.broadcast_to(a, (*front, *a.shape)).copy() for a in (q, k))
    v = table(rng, *front, n_k, d_v)
    if kind == "huge":
        return Question("scores of many thousands", q, k * 64, v)
    mask = np.tri(n_q, n_k, n_k - n_q, dtype=bool)
    if kind == "shifted":  # a constant of -2^24 in all scores, exact in float32
        q[..., 0], k[..., 0] = 4096.0, -16384.0
        return Question("all scores below -16 millions", q, k, v)
    if kind == "shifted mask":
        q[..., 0], k[..., 0] = 400.0, -4.0 * SHIFT / 400.0
        return Question("all scores below -20000, and a mask", q, k, v, mask)
    if kind == "above":  # hidden scores lie far above those that count
        q[..., 0] = 400.0
        k[..., 0] = np.where(np.arange(n_k) == n_k - 1, 4.0 * SHIFT / 400.0, 0.0)
        return Question("a hidden score 20000 above the others", q, k, v, mask)
    if kind == "planted":
        asked = make.ask("a NaN in a hidden value", n_q, n_k, 6, 4, mask=mask)
        v = asked.v.copy()
        v[..., n_k - 1, 0] = np.nan
        return Question(asked.name, asked.q, asked.k, v, mask)
    if kind == "planted in sight":
        asked = make.ask("a NaN in a value", n_q, n_k, 6, 4)
        v = asked.v.copy()
        v[..., 1, 0] = np.nan
        return Question(asked.name, asked.q, asked.k, v)
    raise ValueError(f"There is no extreme question {kind!r}.")


def _long(
    rng: np.random.Generator, make: Maker, front: tuple[int, ...], kind: str
) -> Question:
    """More keys than a block holds; scores rise, so that the largest keeps growing."""
    n_q = LONG if make.takes.no_cross else 3
    d_v = 16 if make.takes.equal_d else 5
    q = table(rng, *front, n_q, 16)
    k = table(rng, *front, LONG, 16) / 4
    q[..., 0] = 4.0
    k[..., 0] += np.arange(LONG) / 16.0
    v = table(rng, *front, LONG, d_v)
    if kind == "long":
        return Question(f"{LONG} keys with rising scores", q, k, v)
    look = np.broadcast_to(np.arange(LONG) >= LONG - 20, (n_q, LONG)).copy()
    return Question(f"{LONG} keys, and the first {LONG - 20} hidden", q, k, v, look)


def rows(out: Array, row: int) -> Array:
    """One query's outputs, over all items and heads, as one table."""
    return np.asarray(out[..., row, :]).reshape(-1, out.shape[-1])
