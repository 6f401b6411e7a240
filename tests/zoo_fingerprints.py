"""The fingerprint of each mistake of a function, measured from outside.

`holds(code, patient, rng)` says whether a function shows what the catalogue says that
this mistake shows. They are as short as they can be; the clinic has its own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from zoo_probes import PROBES, Patient, fails, read


def any_fails(p: Patient, *names: str) -> bool:
    return any(fails(p, name, np.random.default_rng(3)) for name in names)


def weights(p: Patient, q: Any, k: Any, mask: Any = None) -> Any:
    """The weights of an attention, read off with the unit vectors as values."""
    n_k = k.shape[-2]
    return p(q, k, np.broadcast_to(np.eye(n_k), (*k.shape[:-1], n_k)), mask)


def stretch(p: Patient, rng: Any) -> tuple[float, int]:
    """The slope of the log-weights over q·k, times sqrt(d): 1 if the scale is right."""
    d = 9
    q, k, _ = p.data(rng, 6, 8, d)
    raw = q @ np.swapaxes(k, -1, -2)
    logs = np.log(weights(p, q, k))
    x, y = raw - raw[..., :1], logs - logs[..., :1]
    slope = (x * y).sum() / (x * x).sum()
    assert np.abs(y - slope * x).max() < 1e-3
    return slope * math.sqrt(d), d


def m01(p: Patient, rng: Any) -> bool:
    c, d = stretch(p, rng)
    return abs(c - math.sqrt(d)) < 1e-3


def m02(p: Patient, rng: Any) -> bool:
    c, d = stretch(p, rng)
    return min(abs(c - x) for x in (1, math.sqrt(d), 1 / math.sqrt(d))) > 0.02


def m03(p: Patient, rng: Any) -> bool:
    c, d = stretch(p, rng)
    return abs(c * math.sqrt(d) - 1) < 1e-3


def m04(p: Patient, rng: Any) -> bool:
    q, k, _ = p.data(rng, 6, 8)
    w = weights(p, q, k)
    other = [w.sum(axis) for axis in range(w.ndim - 1)] + [w.sum()] * (w.ndim == 2)
    one = [np.allclose(total, 1, atol=1e-5) for total in other]
    return any(one) and not np.allclose(w.sum(-1), 1, atol=1e-5)


def m05(p: Patient, rng: Any) -> bool:
    q, k, _ = p.data(rng, 6, 8)
    w = weights(p, q, k)
    joint = [w.sum((1, 3)), w.sum((1, 2, 3))]
    return any(np.allclose(total, 1, atol=1e-5) for total in joint)


def m06(p: Patient, rng: Any) -> bool:
    return any_fails(p, "steep") and not any_fails(p, "plain")


def hard(p: Patient, rng: Any) -> tuple[Any, Any, Any]:
    """No information in the scores, and a mask that hides some keys of each row."""
    q, k, _ = p.data(rng)
    if p.intent.get("causal"):
        mask = np.tri(7, dtype=bool)
        return q * 0, k, mask
    mask = rng.random((7, 7)) < 0.5
    mask[np.arange(7), np.arange(7)] = False
    mask[np.arange(7), np.arange(7) - 1] = True
    return q * 0, k, mask


def hidden(p: Patient, rng: Any) -> tuple[Any, Any]:
    """The weights of `hard`, and the mask for each of them."""
    q, k, mask = hard(p, rng)
    w = weights(p, q, k, mask if p.masks else None)
    return w, np.broadcast_to(mask, w.shape)


def m07(p: Patient, rng: Any) -> bool:
    w, mask = hidden(p, rng)
    rows = ~mask.all(-1)
    return bool((np.where(mask, w, 0).sum(-1)[rows] < 1e-6).all())


def m08(p: Patient, rng: Any) -> bool:
    w, mask = hidden(p, rng)
    rows = ~mask.all(-1)
    ratio = np.where(mask, w, 0).max(-1) / np.where(mask, 0, w).max(-1)
    return np.allclose(ratio[rows], math.e, rtol=1e-3)


def m09(p: Patient, rng: Any) -> bool:
    w, _ = hidden(p, rng)
    return np.allclose(w, 1 / 7, atol=1e-6)


def m10(p: Patient, rng: Any) -> bool:
    w, mask = hidden(p, rng)
    return np.allclose(w, mask / 7, atol=1e-6)


def beaten_at(p: Patient, d: int) -> float:
    """How far below the hidden key the others lie when both weigh the same."""
    low, high = 1e-2, 1e6
    mask = np.array([[True, False]])
    for _ in range(60):
        middle = math.sqrt(low * high)
        q, k, _ = p.data(np.random.default_rng(0), 2, 2, d)
        q, k = q * 0, k * 0
        q[..., 0], k[..., 0, 0] = 1, -middle * math.sqrt(d)
        w = weights(p, q, k, np.broadcast_to(mask, (2, 2)))
        low, high = (low, middle) if w[..., 1].min() > 0.5 else (middle, high)
    return low


def m11(p: Patient, rng: Any) -> bool:
    few, many = beaten_at(p, 4), beaten_at(p, 16)
    return many < 2e4 and abs(few / many - 1) < 0.1 and not any_fails(p, "plain")


def m12(p: Patient, rng: Any) -> bool:
    few, many = beaten_at(p, 4), beaten_at(p, 16)
    return many < 2e4 and abs(few / many - 2) < 0.1 and not any_fails(p, "plain")


def m14(p: Patient, rng: Any) -> bool:
    q, k, v, mask = PROBES["empty"](p, rng)
    out = p(q, k, v, mask)[..., 3, :]
    if not (out == 0).all():
        return not any_fails(p, "masked", "plain")
    return p.tensors and any(np.isnan(g).any() for g in p.gradient(q, k, v, mask))


def m15(p: Patient, rng: Any) -> bool:
    q, k, v, mask = PROBES["padded"](p, rng)
    before = p(q, k, v, mask)
    k[..., 5:, :] += 1
    moved = np.abs(p(q, k, v, mask) - before)[..., :5, :].max() > 1e-3
    return bool(moved) and not any_fails(p, "plain")


def m16(p: Patient, rng: Any) -> bool:
    return any_fails(p, "padded") and not any_fails(p, "plain", "crossed")


def m17(p: Patient, rng: Any) -> bool:
    return any_fails(p, "each_its_own") and not any_fails(p, "masked", "padded")


def m18(p: Patient, rng: Any) -> bool:
    q, k, _ = p.data(rng)
    w = weights(p, q, k)[..., 1:, :]
    itself = np.diagonal(w, 1, -2, -1)
    after = np.diagonal(w, 2, -2, -1)
    later = np.triu(w, 3)
    return bool((itself == 0).all() != (after > 0).all()) and not later.any()


def m19(p: Patient, rng: Any) -> bool:
    return any_fails(p, "crossed") and not any_fails(p, "plain")


def m32(p: Patient, rng: Any) -> bool:
    q, k, _ = p.data(rng, 12, 12)
    seen = (weights(p, q, k)[..., -1, :] > 0).sum(-1)
    return bool((abs(seen - p.intent["window"]) == 1).all())


def m33(p: Patient, rng: Any) -> bool:
    return any_fails(p, "grouped") and not any_fails(p, "plain")


def m34(p: Patient, rng: Any) -> bool:
    q, k, _ = p.data(rng)
    return not np.allclose(weights(p, q, k).sum(-1), 1, atol=1e-3)


def m35(p: Patient, rng: Any) -> bool:
    """Products that only the scale brings below 65504; many even weights."""
    kind = p.intent["dtype"]
    strong = 70 * rng.normal(size=(3, 1, 1, 5, 1024))
    zeros, v = np.zeros((1, 1, 4096, 4)), np.ones((1, 1, 4096, 4))
    v[..., 2048:, :] = 0
    assert np.isfinite(half(p, kind, *(0.01 * strong))).all()
    big = half(p, kind, *strong)
    mean = half(p, kind, zeros[..., :1, :], zeros, v)
    return not np.isfinite(big).all() or abs(mean - 0.5).max() > 0.1


def half(p: Patient, kind: str, *arrays: Any) -> Any:
    with np.errstate(all="ignore"):
        if p.tensors:
            handed = [torch.tensor(x).to(getattr(torch, kind)) for x in arrays]
            return read(p.function(*handed)).double().numpy()
        out = read(p.function(*(x.astype(kind) for x in arrays)))
        return out.astype(np.float64)


def m36(p: Patient, rng: Any) -> bool:
    return any_fails(p, "rising", "long", "lowered", "late")


def m37(p: Patient, rng: Any) -> bool:
    return any_fails(p, "steep", "masked")


def m45(p: Patient, rng: Any) -> bool:
    """Not in q alone: there, SDPA gives 0 for NaN, too."""
    q, k, v = p.data(rng)
    bad_q, bad_v = q.copy(), v.copy()
    bad_q[..., 0, :] = bad_v[..., 0, :] = np.nan
    asked, said = p(bad_q, k, v)[..., 0, :], p(q, k, bad_v)
    return np.isfinite(said).all() or np.isfinite(asked).all()


def elsewhere(p: Patient, rng: Any) -> bool:
    """M38, M46, M47: wrong on an ordinary input, and the scale does not explain it."""
    if not any_fails(p, "plain"):
        return False
    try:
        with np.errstate(all="ignore"):
            c, _ = stretch(p, rng)
    except Exception:  # no line fits, or the values must be as wide as the keys
        return True
    return not np.isfinite(c) or p.intent.get("qk_norm", False) or abs(c - 1) < 1e-3


SCORES = (m01, m02, m03, m04, m05, m06)
MASKS = (m07, m08, m09, m10, m11, m12, m14, m15, m16, m17, m18, m19, m32)
OTHERS = (m33, m34, m35, m36, m37, m45)
FINGERPRINTS = {f.__name__.upper(): f for f in (*SCORES, *MASKS, *OTHERS)}
FINGERPRINTS |= {"M38": elsewhere, "M46": elsewhere, "M47": elsewhere}
