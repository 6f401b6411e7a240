"""One attention with a switch at every step; all switches at rest, it is right.

Each switch has wrong positions. One of them, or two of different switches, make a
specimen (`switchboard_function.py`).
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Board:
    """Which position each switch has; the first named is the right one."""

    scale: str = "root of d"
    roles: str = "q asks k, v is said"
    axis: str = "keys"
    softmax: str = "stable"
    mask: str = "hide"
    whose: str = "its own"
    empty: str = "zero"
    mix: str = "all"
    causal: str = "bottom right"
    window: int = 0  # so many keys too many
    groups: str = "repeat"
    cap: str = "cap, then mask"
    norm: str = "each vector"
    fill: float = -np.inf  # the number for `mask="hide"` and `"hide, then scale"`


@dataclass(frozen=True)
class Meant:
    """What the attention is meant to be, besides plain."""

    causal: bool = False
    window: int = 0
    softcap: float = 0.0
    qk_norm: bool = False


SCALES = {
    "root of d": lambda q, k: np.sqrt(q.shape[-1]),
    "none": lambda q, k: 1.0,
    "root of heads * d": lambda q, k: np.sqrt(q.shape[-3] * q.shape[-1]),
    "root of n": lambda q, k: np.sqrt(k.shape[-2]),
    "d": lambda q, k: q.shape[-1],
}
ROLES = {
    "q asks k, v is said": lambda q, k, v: (q, k, v),
    "k asks q": lambda q, k, v: (k, q, v),
    "q asks q": lambda q, k, v: (q, q, v),
    "k asks v": lambda q, k, v: (k, v, v),
    "k is said": lambda q, k, v: (q, k, k),
    "turned": lambda q, k, v: (q, k, v),
}
AXES = {"keys": -1, "queries": -2, "heads": -3, "heads and keys": (-3, -1)}


def attention_of(board, meant=Meant(), seed=0):
    """The function (q, k, v, mask) that these positions make."""
    dice = np.random.default_rng(seed)

    def attention(q, k, v, mask=None):
        if board.axis.startswith("heads") and q.ndim != 4:
            raise ValueError("expected (batch, heads, n, d)")
        if meant.qk_norm:
            q, k = normed(board.norm, q, k)
        if q.ndim == 4 and q.shape[1] != k.shape[1]:
            k, v = shared(board.groups, q.shape[1], k, v)
        asks, answers, said = ROLES[board.roles](q, k, v)
        raw = np.einsum("...qd,...kd->...qk", asks, answers)
        allowed = looks(board, meant, raw.shape, mask)
        with np.errstate(all="ignore"):
            scores = scored(board, meant, raw, SCALES[board.scale](q, k), allowed)
            weights = weighed(board, scores, allowed)
        if board.mix == "dropout":
            weights = weights * (dice.random(weights.shape) >= 0.2) / 0.8
        if board.roles == "turned":
            weights = np.swapaxes(weights, -1, -2)
        out = weights.astype(v.dtype, copy=False) @ said
        return np.nan_to_num(out) if board.mix == "NaN made zero" else out

    return attention


def normed(how, q, k):
    axis = -2 if how == "over tokens" else -1
    q, k = q.copy(), k.copy()
    for x in (q, k) if how in ("each vector", "over tokens") else (q,) * (how == "q"):
        x /= np.sqrt((x * x).mean(axis, keepdims=True) + 1e-6)
    return q, k


def shared(how, heads, k, v):
    each = heads // k.shape[1]
    if how == "tile":
        return (np.concatenate([x] * each, axis=1) for x in (k, v))
    return (np.repeat(x, each, axis=1) for x in (k, v))


def looks(board, meant, shape, mask):
    """Who may look at whom, boolean and as large as the scores; None: all at all."""
    n_q, n_k = shape[-2:]
    allowed = None if mask is None else whose(board.whose, np.asarray(mask), shape)
    if not (meant.causal or meant.window):
        return allowed
    shift = {"top left": 0, "strict": n_k - n_q - 1, "one ahead": n_k - n_q + 1}
    diagonal = shift.get(board.causal, n_k - n_q)
    past = np.tri(n_q, n_k, diagonal, dtype=bool)
    if meant.window:
        past &= ~np.tri(n_q, n_k, n_k - n_q - meant.window - board.window, dtype=bool)
    past = np.broadcast_to(past, shape)
    if allowed is None or board.causal == "mask ignored":
        return past
    if board.causal == "either":
        return past | allowed
    return allowed if board.causal == "mask instead" else past & allowed


def whose(how, mask, shape):
    mask = np.broadcast_to(mask, shape)
    if how == "padding of queries":
        real = mask.any(axis=-2)
        return (mask | ~real[..., None, :]) & real[..., :, None]
    if how == "another item's":
        batch, heads, n_q, n_k = shape
        tiled = np.concatenate([mask[:, 0]] * heads)  # item by item, heads by turns
        return tiled.reshape(batch, heads, n_q, n_k)
    return mask


def scored(board, meant, raw, scale, allowed):
    fill = -1e9 if board.empty == "uniform" else board.fill
    if board.mask == "hide, then scale" and allowed is not None:
        raw = np.where(allowed, raw, np.array(fill, dtype=raw.dtype))
    scores = raw / scale
    if meant.softcap and board.cap in ("cap, then mask", "not divided"):
        inner = meant.softcap if board.cap == "cap, then mask" else 1.0
        capped = meant.softcap * np.tanh(scores / inner)
        # What was hidden before the scale stays as it is.
        early = board.mask == "hide, then scale" and allowed is not None
        scores = np.where(allowed, capped, scores) if early else capped
    if allowed is not None:
        if board.mask in ("hide", "hide the allowed"):
            keep = allowed if board.mask == "hide" else ~allowed
            scores = np.where(keep, scores, np.array(fill, dtype=scores.dtype))
        elif board.mask == "add":
            scores = scores + allowed
        elif board.mask == "multiply":
            scores = scores * allowed
        elif board.mask == "fill with 0":
            scores = np.where(allowed, scores, np.array(1e-9, dtype=scores.dtype))
    if meant.softcap and board.cap == "mask, then cap":
        scores = meant.softcap * np.tanh(scores / meant.softcap)
    return scores


def weighed(board, scores, allowed):
    axis = AXES[board.axis]
    if board.softmax == "none":
        hidden = np.zeros_like(scores) if allowed is None else np.isneginf(scores)
        return np.where(hidden, 0.0, scores)
    weights = shares(board, scores, axis)
    if board.softmax == "twice":
        weights = shares(board, weights, axis)
    if allowed is None:
        return weights
    if board.mask == "after":
        return weights * allowed
    if board.empty == "zero":
        return np.where(allowed.any(axis=-1, keepdims=True), weights, 0.0)
    if board.empty == "mean":
        some = allowed.any(axis=-1, keepdims=True)
        return np.where(some, weights, 1.0 / scores.shape[-1])
    return weights


def shares(board, scores, axis):
    top = 0.0
    if board.softmax != "naive":
        top = scores.max(axis=axis, keepdims=True)
    if board.empty != "NaN":
        top = np.where(np.isneginf(top), 0.0, top)
    e = np.exp(scores - top)
    total = e.sum(axis=axis, keepdims=True)
    return e / (total if board.empty == "NaN" else np.where(total == 0, 1.0, total))
