"""Right attentions that take no softmax: linear attention and sigmoid attention."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import Faults

Float = npt.NDArray[np.floating]
Truth = npt.NDArray[np.bool_]
FEATURES = {
    "elu": "elu + 1",
    "relu": "relu",
    "exp": "exp",
    "softmax": "softmax over features",
    "square": "squared relu",
}


@dataclass(frozen=True)
class Kernel:
    """What takes the place of the exponential.

    phi: a key of FEATURES: weights are phi(q)·phi(k), divided by their sum; or
        "sigmoid": weights are sigmoid(score + bias), and nothing is divided.
    root: the power of d_k that divides queries and keys before phi: 0, 1/4, or 1/2 for
        the queries alone.
    eps: what is added to each sum.
    bias: of a sigmoid; -log n_k if None.
    """

    phi: str
    root: float = 0.0
    eps: float = 0.0
    bias: float | None = None

    def scores(self, q: Float, k: Float) -> Float:
        """phi(q)·phi(k) for all pairs."""
        d_k = q.shape[-1]
        q = q / d_k**self.root
        k = k / d_k**self.root if self.root == 0.25 else k
        return np.asarray(_phi(q, self.phi) @ np.swapaxes(_phi(k, self.phi), -1, -2))

    def weigh(self, s: Float, look: Truth | None, faults: Faults) -> Float:
        """From products and a mask to weights."""
        if look is not None:
            look = np.broadcast_to(look, np.broadcast_shapes(look.shape, s.shape))
        if self.phi == "sigmoid":
            bias = -np.log(s.shape[-1]) if self.bias is None else self.bias
            w = 1 / (1 + np.exp(-s - bias))
            return np.asarray(w if look is None else np.where(look, w, 0.0))
        seen = s if look is None else np.where(look, s, 0.0)
        total = (s if "mask_after" in faults else seen).sum(axis=-1, keepdims=True)
        total = total + self.eps
        if "guarded" in faults:
            total = np.where(total == 0, 1.0, total)
        return np.asarray(seen if "not_normalised" in faults else seen / total)

    def word(self) -> str:
        """As a person would say it."""
        if self.phi != "sigmoid":
            return f"linear attention: {FEATURES[self.phi]} of queries and keys"
        bias = "-log n" if self.bias is None else f"{self.bias:.3g}"
        return f"sigmoid in place of softmax, with a bias of {bias}"


def _phi(x: Float, name: str) -> Float:
    if name == "elu":
        return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))
    if name == "exp":
        return np.exp(x)
    if name == "softmax":
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return np.asarray(e / e.sum(axis=-1, keepdims=True))
    return np.maximum(x, 0) ** (2 if name == "square" else 1)


EPS = (0.0, 1e-6, 1e-8, 1e-5, 1e-9, 1e-10, 1e-12)
LINEAR = tuple(Kernel(phi, root) for phi in FEATURES for root in (0.0, 0.5, 0.25))
