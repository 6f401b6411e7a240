# mypy: allow-untyped-defs, allow-untyped-calls
"""The calls that the exercises on watching an attention are judged by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlib import masks
from attnlib.attention import scaled_dot_product, softmax
from attnlib.clinic.case import Case


def weight_cases(rng):
    """For `keys_used(weights)`: some rows are empty, others have weights of 0."""

    def weights(*shape, empty=(), sharp=2.0, causal=False):
        scores = sharp * rng.normal(size=shape)
        look = masks.causal(*shape[-2:]) if causal else np.ones(shape[-2:], bool)
        w = softmax(np.where(look, scores, -np.inf))
        for text, n_empty in empty:
            w[text, :, :n_empty] = 0
        return w

    mixed = weights(3, 2, 4, 5, empty=[(0, 1), (2, 3)])
    mixed[1, 0] = np.eye(5)[[3, 0, 2, 0]]  # one head is one-hot, the other is not
    return (
        Case("2 texts, 3 heads, 4 queries, 5 keys", (weights(2, 3, 4, 5),)),
        Case("a causal mask", (weights(2, 4, 5, 5, causal=True),)),
        Case("empty rows", (weights(3, 2, 4, 6, empty=[(1, 2), (2, 3)]),)),
        Case("a one-hot head, and empty rows", (mixed,)),
        Case("one text, and an empty row", (weights(1, 3, 4, 2, empty=[(0, 1)]),)),
    )


def mixed_cases(rng):
    """For `head_loudness(mixed)`."""

    def mixed(*shape, loud=None):
        m = rng.normal(size=shape) + 0.3
        return m if loud is None else m * np.array(loud)[:, None, None]

    return (
        Case("2 texts, 3 heads, 4 tokens", (mixed(2, 3, 4, 5),)),
        Case("a silent head", (mixed(5, 2, 4, 3, loud=[1.0, 0.0]),)),
        Case("a loud head", (mixed(2, 4, 5, 3, loud=[1.0, 0.5, 40.0, 2.0]),)),
        Case("one text, 5 heads, 6 tokens", (mixed(1, 5, 6, 2),)),
    )


@dataclass(frozen=True)
class Attend:
    """Self-attention of one head with a mask of its own: x (n, d) -> (n, d_out)."""

    W_q: np.ndarray
    W_k: np.ndarray
    W_v: np.ndarray
    mask: np.ndarray

    def __call__(self, x):
        x = np.asarray(x, dtype=float)
        q, k, v = x @ self.W_q, x @ self.W_k, x @ self.W_v
        return scaled_dot_product(q, k, v, self.mask).out

    def __repr__(self):
        return "<function attend>"


def leak_cases(rng):
    """For `moves_earlier(attend, x)`: causal ones, and leaks of several kinds."""

    def case(name, mask, d=3, quiet=False, first=1.0, last=1.0):
        n = len(mask)
        W_q, W_k = rng.normal(size=(2, d, 4))
        W_v = rng.normal(size=(d, 2))
        if quiet:  # nothing shows in the first feature
            W_v[:, 0] = 0
        x = rng.normal(size=(n, d))
        x[0] *= first
        x[-1] *= last
        x = np.round(x, 2)
        return Case(name, (Attend(W_q, W_k, W_v, mask), x))

    def causal(n):
        return masks.causal(n)

    one_ahead = causal(4) | np.eye(4, k=1, dtype=bool)
    see_last = causal(5).copy()
    see_last[1, 4] = see_last[2, 4] = True
    first_step = causal(4).copy()
    first_step[0, 1] = True
    middle = causal(6).copy()
    middle[0, 3] = middle[4, 5] = True
    return (
        case("one token ahead, 4 tokens", one_ahead),
        case("causal, 4 tokens", causal(4)),
        case("no mask, 5 tokens", np.ones((5, 5), bool), d=2),
        case("two see the last, 5 tokens", see_last),
        case("two see a later one, 6 tokens", middle),
        case("only what came before, 2 tokens", np.tri(2, k=-1, dtype=bool)),
        case("only what comes after, 2 tokens", np.tri(2, k=-1, dtype=bool).T),
        case("a leak in the second feature", first_step, quiet=True),
        # Where the largest move is not that of the last token, or would be the first's.
        case("no mask, a small last token", np.ones((4, 4), bool), last=0.1),
        case("causal, a large first token", causal(3), first=3.0),
    )
