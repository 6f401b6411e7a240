"""Questions at the edge: empty rows, huge scores, a constant in all scores, NaN, ..."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from attnlib.clinic.black_box.questions import Maker, Question
from attnlib.clinic.black_box.traits import Traits
from attnlib.clinic.probes import far_apart, table
from attnlib.clinic.subject import Takes
from attnlib.shapes import Array

LONG = 160  # keys in the long question; blocks of up to 128 show in it
SHIFT = 6e4
HALF_SHIFT = 1.5e4  # four times as much, the raw score, still fits into float16
NARROW, WIDE = 4, 10  # two d_k; they tell what is divided by its root


def function_edge(
    kind: str, takes: Takes, seed: int, traits: Traits, *, half: bool = False
) -> Question | None:
    """One extreme question; None where the function cannot be asked it."""
    rng = np.random.default_rng(seed + 2)
    make = Maker(rng, takes)
    front = make.batch(2, 3)
    pads = takes.padding and not takes.mask and make.rank > 2
    if kind == "long mask" and not takes.mask:
        return None
    if kind == "empty" and not (takes.mask or pads):
        return None
    hides = takes.mask or pads or takes.causal or traits.causal
    if kind in ("shifted mask", "above", "planted") and not hides:
        return None
    if kind == "empty" and pads:
        real = make.real(6)
        real[0], real[1] = True, False
        shown = make.xray("an item of padding alone", 4, 6, 10)
        return replace(shown, name="an item of padding alone", mask=real, item=True)
    if kind == "empty":
        n = 6 if takes.no_cross else 4
        look = make.holes(n, 6)
        look[1] = False
        return make.xray("a query that may look at nothing", n, 6, 10, look)
    if kind in ("long", "long mask"):
        return _long(rng, make, front, kind)
    if kind.startswith(("moved ", "lifted ")):
        how, by, d_k = kind.split()
        return _moved(make, how, float(by), int(d_k), traits)
    if kind == "wide":  # scores from about -12 to 12: a cap shows
        asked = make.xray("wide scores", 5, 6, 4)
        return Question(asked.name, asked.q * 4, asked.k * 2, asked.v, xray=True)
    n_q, n_k = (5, 5) if takes.no_cross else (4, 5)
    apart = far_apart(rng, n_q, n_k, gap=1024.0)
    d_v = 16 if takes.equal_d else 4
    q, k = (np.broadcast_to(a, (*front, *a.shape)).copy() for a in apart)
    v: Array = table(rng, *front, n_k, d_v)
    if kind in ("huge", "huge for half", "thousands"):
        # Each query's scores lie in a range of their own, far from those of the others.
        times, step = (64.0, 4096.0) if kind == "huge" else (1.0, 32.0)
        q[..., 0] = -step * np.arange(n_q)[:, None].T
        k[..., 0] = times
        k[..., 1:] *= times
        return Question("scores of many thousands", q, k, v)
    shift = HALF_SHIFT if half else SHIFT
    flag = takes.causal and not takes.mask
    mask = np.tri(n_q, n_k, n_k - n_q, dtype=bool) if takes.mask else None
    if pads:
        mask = make.real(n_k, 1)
    if kind == "shifted":  # a constant of -2^24 in all scores, exact in float32
        q[..., 0], k[..., 0] = 4096.0, -16384.0
        return Question("all scores below -16 millions", q, k, v)
    if kind == "shifted mask":
        q[..., 0], k[..., 0] = 400.0, -4.0 * shift / 400.0
        return Question(
            f"all scores below -{shift:.0f}, and a mask", q, k, v, mask, flag
        )
    if kind == "above":  # hidden scores lie far above those that count
        q[..., 0] = 400.0
        k[..., 0] = np.where(np.arange(n_k) == n_k - 1, 4.0 * shift / 400.0, 0.0)
        return Question(
            f"a hidden score {shift:.0f} above the others", q, k, v, mask, flag
        )
    if kind == "planted":
        asked = make.ask("a NaN in a hidden value", n_q, n_k, 6, 4, mask=mask)
        v = asked.v.copy()
        v[..., n_k - 1, 0] = np.nan
        return Question(asked.name, asked.q, asked.k, v, mask, flag)
    if kind == "planted in a key":
        asked = make.ask("a NaN in a key", n_q, n_k, 6, 6)
        key = asked.k.copy()
        key[..., 1, 0] = np.nan
        return replace(asked, k=key)
    if kind in ("planted in sight", "planted in a query", "none planted"):
        asked = make.ask("a NaN in a value", n_q, n_k, 6, 4)
        v = asked.v.copy()
        if kind == "planted in a query":
            asks = asked.q.copy()
            asks[..., n_q - 1, 0] = np.nan
            return Question("a NaN in a query", asks, asked.k, v)
        v[..., 1, 0] = np.nan if kind == "planted in sight" else 1e6
        return Question(asked.name, asked.q, asked.k, v)
    if kind == "half":  # |q| = |k| = 23: their product passes what float16 can hold
        q = 23 + table(rng, *front, n_q, 128) / 8
        k = 23 + table(rng, *front, n_k, 128) / 8
        v = table(rng, *front, n_k, 128 if takes.equal_d else 4)
        name = "queries and keys that are 23 throughout in float16, with d_k=128"
        # Hides nothing, but its fill value must fit into the type.
        look = np.ones((q.shape[-2], k.shape[-2]), dtype=bool)
        mask = look if half and takes.mask else None
        return Question(name, q, k, v, mask, half=True)
    if kind == "many equal":  # a running sum in half precision stands still on the way
        v = table(rng, *front, 4096, 16 if takes.equal_d else 3)
        q, k = np.zeros((*front, n_q, 16)), np.zeros((*front, 4096, 16))
        return Question("4096 keys that are all equal", q, k, v)
    raise ValueError(f"There is no extreme question {kind!r}.")


def _moved(
    make: Maker, how: str, by: float, d_k: int, traits: Traits
) -> Question | None:
    """Ordinary scores, all moved down by a constant, or the hidden ones lifted."""
    takes = make.takes
    n_q, n_k = (6, 6) if takes.no_cross else (4, 6)
    mask = np.tri(n_q, n_k, n_k - n_q, dtype=bool) if takes.mask else None
    if takes.padding and not takes.mask and make.rank > 2:
        shown = make.xray(f"scores {how}", n_q, n_k, d_k)
        asked = replace(shown, mask=make.real(n_k, 1))
    elif mask is None and not (takes.causal or traits.causal):
        return None
    else:
        asked = make.xray(f"scores {how}", n_q, n_k, d_k, mask)
    q, k = asked.q.copy(), asked.k.copy()
    q[..., 0], k[..., 0] = 16.0, -by * q.shape[-1] ** 0.5 / 16.0
    if how == "lifted":  # only the last key, which most queries may not see
        k[..., 0] = np.where(np.arange(n_k) == n_k - 1, -k[..., 0], 0.0)
    flag = takes.causal and not takes.mask
    return replace(asked, q=q, k=k, causal=flag)


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
