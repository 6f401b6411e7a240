"""Questions put to a function of the zoo, and what a right attention answers.

Written apart from the clinic: SDPA in float64 is the judge here.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

SIZES = {2: (), 3: (3,), 4: (2, 3)}  # the axes in front of (n, d)
CUBE = {4: (3, 3)}  # as many items as heads


def right(q: Any, k: Any, v: Any, mask: Any, intent: Mapping[str, Any]) -> Any:
    """What SDPA says, in float64; an empty row is zero."""
    q, k, v = (torch.from_numpy(np.asarray(x, np.float64)) for x in (q, k, v))
    n_q, n_k = q.size(-2), k.size(-2)
    if q.dim() == 4 and k.size(1) != q.size(1):
        k, v = (x.repeat_interleave(q.size(1) // x.size(1), 1) for x in (k, v))
    if intent.get("qk_norm"):
        q, k = (x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() for x in (q, k))
    back = torch.arange(n_q)[:, None] + n_k - n_q - torch.arange(n_k)
    allowed = torch.ones(n_q, n_k, dtype=torch.bool)
    if intent.get("causal") or intent.get("window"):
        allowed = allowed & (back >= 0)
    if intent.get("window"):
        allowed = allowed & (back < intent["window"])
    if mask is not None:
        allowed = allowed & torch.from_numpy(np.array(mask))
    scores_shape = (*torch.broadcast_shapes(q.shape[:-2], k.shape[:-2]), n_q, n_k)
    allowed = allowed.expand(scores_shape)
    some = allowed.any(-1, keepdim=True)
    if cap := intent.get("softcap"):
        scores = cap * torch.tanh(q @ k.mT / math.sqrt(q.size(-1)) / cap)
        scores = scores.masked_fill(~allowed & some, -torch.inf)
        return (scores.softmax(-1) @ v * some).numpy()
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed | ~some)
    return torch.where(some, out, 0.0).numpy()


@dataclasses.dataclass
class Patient:
    """A specimen's function, and how it wants to be called."""

    function: Callable[..., Any]
    intent: Mapping[str, Any]
    rank: int = 0
    tensors: bool = False
    masks: bool = False
    cross: bool = True
    flag: Mapping[str, bool] = dataclasses.field(default_factory=dict)

    def __call__(self, q: Any, k: Any, v: Any, mask: Any = None) -> Any:
        """The result as float64, or an exception."""
        arrays = [np.array(x) for x in (q, k, v)]
        handed = arrays if mask is None else [*arrays, self.meaning(mask)]
        if self.tensors:
            handed = [torch.from_numpy(x) for x in handed]
        result = quietly(self.function, *handed, **self.flag)
        return np.asarray(read(result), np.float64)

    def meaning(self, mask: Any) -> Any:
        """The mask as this function reads it."""
        means = self.intent.get("mask")
        if means == "added":
            return np.where(mask, 0.0, -np.inf)
        return ~mask if means == "blocked" else np.array(mask)

    def data(
        self, rng: Any, n_q: int = 7, n_k: int = 7, d: int = 5, **more: Any
    ) -> Any:
        """Random q, k, v of the rank it takes."""
        front = more.get("front", SIZES[self.rank])
        if not self.cross:
            n_q = n_k
        shapes = ((n_q, d), (n_k, d), (n_k, more.get("d_v", d)))
        return [rng.normal(size=(*front, *shape)) for shape in shapes]

    def gradient(self, q: Any, k: Any, v: Any, mask: Any) -> Any:
        """Of the sum of the result, for q, k and v; tensors only."""
        leaves = [torch.tensor(x, requires_grad=True) for x in (q, k, v)]
        mask = torch.from_numpy(self.meaning(mask))
        read(self.function(*leaves, mask)).sum().backward()
        return [leaf.grad.numpy() for leaf in leaves if leaf.grad is not None]


def quietly(function: Callable[..., Any], *args: Any, **flag: bool) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **flag)


def read(result: Any) -> Any:
    if dataclasses.is_dataclass(result):
        result = list(vars(result).values())
    if isinstance(result, dict):
        result = next(result[key] for key in ("out", "output") if key in result)
    return result[0] if isinstance(result, (tuple, list)) else result


def patient(function: Callable[..., Any], intent: Mapping[str, Any]) -> Patient:
    """Find out what the function takes, by trying."""
    found = Patient(function, intent)
    for name in ("causal", "is_causal"):
        taken = inspect.signature(function).parameters
        if name in taken and taken[name].default is False:  # ask for it
            found.flag, found.intent = {name: True}, {**intent, "causal": True}
    rng = np.random.default_rng(0)
    for found.rank in (4, 3, 2):
        for found.tensors in (False, True):
            for found.cross in (True, False):
                if works(found, *found.data(rng, 4, 7)):
                    found.masks = works(found, *found.data(rng), np.ones((7, 7), bool))
                    return found
    raise TypeError(f"{function} takes nothing")


def works(found: Patient, q: Any, k: Any, v: Any, mask: Any = None) -> bool:
    try:
        return bool(found(q, k, v, mask).shape == (*q.shape[:-1], v.shape[-1]))
    except Exception:
        return False


# Probes: each gives (q, k, v, mask), or nothing where it does not fit


def plain(p: Patient, rng: Any) -> Any:
    return (*p.data(rng), None)


def crossed(p: Patient, rng: Any) -> Any:
    return (*p.data(rng, 4, 7), None)


def steep(p: Patient, rng: Any) -> Any:
    q, k, v = p.data(rng)
    return q * 60, k * 60, v, None


def rising(p: Patient, rng: Any) -> Any:
    """Scores grow from key to key."""
    q, k, v = p.data(rng)
    return np.abs(q), np.abs(k) * np.arange(1, 8)[:, None], v, None


def lowered(p: Patient, rng: Any) -> Any:
    """A constant of -2e4 in all scores."""
    q, k, v = p.data(rng)
    q[..., 0] = 1
    k[..., 0] = -2e4 * math.sqrt(5)
    return q, k, v, None


def masked(p: Patient, rng: Any) -> Any:
    mask = rng.random((7, 7)) < 0.6
    mask[np.arange(7), np.arange(7)] = True
    mask[:, 0] = True
    return (*p.data(rng), mask)


def padded(p: Patient, rng: Any) -> Any:
    """The last two keys are padding; each row sees some key."""
    return (*p.data(rng), np.broadcast_to(np.arange(7) < 5, (7, 7)))


def late(p: Patient, rng: Any) -> Any:
    """The first keys are hidden from everybody, so a first tile may be empty."""
    n = 40
    return (*p.data(rng, n, n), np.broadcast_to(np.arange(n) >= 35, (n, n)))


def each_its_own(p: Patient, rng: Any) -> Any:
    """Another length for each item, in 4 axes."""
    if p.rank != 4:
        return None
    q, k, v = p.data(rng, front=(3, 3))
    lengths = np.array([7, 3, 5])
    mask = np.arange(7) < lengths[:, None, None, None]
    return q, k, v, np.broadcast_to(mask, (3, 1, 7, 7))


def loud(p: Patient, rng: Any) -> Any:
    """A hidden key whose score is 3e4 above all others."""
    q, k, v = p.data(rng)
    q[..., 0] = 1
    k[..., 0] = -3e4 * math.sqrt(5)
    k[..., 5:, 0] = 0
    return q, k, v, np.broadcast_to(np.arange(7) < 5, (7, 7))


def empty(p: Patient, rng: Any) -> Any:
    q, k, v, mask = masked(p, rng)
    mask[3] = False
    return q, k, v, mask


def grouped(p: Patient, rng: Any) -> Any:
    if p.rank != 4:
        return None
    q = rng.normal(size=(2, 6, 7, 5))
    k, v = rng.normal(size=(2, 2, 2, 7, 5))
    return q, k, v, None


def long(p: Patient, rng: Any) -> Any:
    """Longer than any tile, growing from key to key."""
    q, k, v = p.data(rng, 80, 80)
    return np.abs(q), np.abs(k) * np.linspace(0.1, 3, 80)[:, None], v, None


EASY = (plain, crossed, steep, rising, long, lowered, grouped)
MASKS = (masked, padded, late, each_its_own, loud, empty)
PROBES = {probe.__name__: probe for probe in EASY + MASKS}
ROUGH = {"lowered": 3e-2, "loud": 3e-2}  # scores of 3e4, for float32


def fails(p: Patient, name: str, rng: Any, rtol: float = 1e-6) -> bool | None:
    """Is the answer to this probe wrong? None: it cannot be asked."""
    if PROBES[name] in MASKS and not p.masks:
        return None
    probe = PROBES[name](p, rng)
    if probe is None:
        return None
    q, k, v, mask = probe
    if name == "grouped" and not works(p, q, k, v):
        return None
    try:
        out = p(q, k, v, mask)
    except Exception:
        return None
    expected = right(q, k, v, mask, p.intent)
    rtol = max(rtol, ROUGH.get(name, 0.0)) if rtol > 1e-5 else rtol
    if out.shape != expected.shape:
        return True
    return not np.allclose(out, expected, rtol=rtol, atol=rtol)
