"""What a bug of the arena is, and how one is made.

Most come from the family of wrong attentions that the exercises use. The others
replace one step of the recipe, or are written out whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from attnlib.attention import softmax
from attnlib.clinic.families.attention import scaled_dot_product

Array = npt.NDArray[np.floating]
Mask = npt.NDArray[np.bool_]
Attention = Callable[..., Array]  # (q, k, v, mask=None) -> out

# What brings a bug to light: the hint that stands beside what got away.
LAWS = {
    "sizes": "let all sizes differ, n_q and n_k first of all",
    "x-ray": "values that are an identity matrix show the weights",
    "slope": "log-weights rise with q·k by 1/√d_k; try several d_k",
    "order": "keys and values in another order change nothing",
    "alone": "an item of a batch comes out as it does alone",
    "heads": "two batch axes of different size; each slice as it does alone",
    "future": "what a query may not see can change without effect",
    "masks": "a mask for each item, for each query, and for all",
    "shift": "the same vector added to all keys changes nothing",
    "huge": "scores in the hundreds, high and low, against a slow reference",
    "empty": "a query that may look at nothing gets zeros",
    "many": "twenty keys and more queries: whatever works in tiles shows there",
    "twice": "call it twice, with other numbers between; look at the inputs after",
    "one": "one query alone, with a mask",
    "square": "as many queries as keys, with a mask",
}


@dataclass(frozen=True, eq=False)  # by identity: two may have the same name
class Bug:
    """One attention of the arena: a wrong one, or a right one with `law` ""."""

    name: str
    code: str  # "M04", or "" where the course has no number for it
    law: str  # a key of LAWS: what would catch it
    why: str  # what it gets wrong, in a sentence
    make: Callable[[], Attention]  # a fresh one, which remembers no call
    faults: frozenset[str] = frozenset()  # its keys in the catalogue of mistakes

    @property
    def attention(self) -> Attention:
        """A fresh copy of it, to be called with (q, k, v, mask=None)."""
        return self.make()

    def __repr__(self) -> str:
        return f"{self.code} {self.name}".strip()


def of_family(name: str, code: str, law: str, why: str, *faults: str) -> Bug:
    """A bug from the family of wrong attentions: one fault, or two."""
    wrong = frozenset(faults)

    def attention(q: Array, k: Array, v: Array, mask: Mask | None = None) -> Array:
        return scaled_dot_product(q, k, v, mask, faults=wrong)[1]

    return Bug(name, code, law, why, lambda: attention, wrong)


def raw(q: Array, k: Array, v: Array) -> Array:
    """The right first step: q k^T."""
    return np.asarray(q @ np.swapaxes(k, -1, -2))


def scaled(scores: Array, q: Array, k: Array, v: Array) -> Array:
    """The right second step: divide by the root of d_k."""
    return np.asarray(scores / np.sqrt(q.shape[-1]))


def hidden(scores: Array, mask: Mask | None) -> Array:
    """The right third step: minus infinity where the mask says no."""
    return scores if mask is None else np.where(mask, scores, -np.inf)


def mixed(weights: Array, v: Array) -> Array:
    """The right last step."""
    return np.asarray(weights @ v)


def of_steps(
    name: str,
    code: str,
    law: str,
    why: str,
    *,
    score: Callable[[Array, Array, Array], Array] = raw,
    scale: Callable[[Array, Array, Array, Array], Array] = scaled,
    hide: Callable[[Array, Mask | None], Array] = hidden,
    soft: Callable[[Array], Array] = softmax,
    mix: Callable[[Array, Array], Array] = mixed,
) -> Bug:
    """A bug that replaces one step of the recipe, or more."""

    def attention(q: Array, k: Array, v: Array, mask: Mask | None = None) -> Array:
        return mix(soft(hide(scale(score(q, k, v), q, k, v), mask)), v)

    return Bug(name, code, law, why, lambda: attention)


def whole(name: str, code: str, law: str, why: str, attention: Attention) -> Bug:
    """A bug that is written out, or a right attention."""
    return Bug(name, code, law, why, lambda: attention)


def open_pairs(shape: tuple[int, ...], mask: Mask | None) -> Mask:
    """The mask in full, True throughout where there is none."""
    return np.broadcast_to(np.array(True) if mask is None else mask, shape)
