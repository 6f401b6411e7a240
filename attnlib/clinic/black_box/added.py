"""Numbers that some right attentions hold beside their weights.

A bias is added to the scores before the mask, by distance (T5, Swin) or by place. A
sink is a logit that joins each row's softmax and says nothing; a learned key and value
(`add_bias_kv`) say something.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Float = npt.NDArray[np.floating]
Truth = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Bias:
    """Numbers added to the scores, for each head or for all heads the same.

    numbers: (n_heads or 1, 2 n - 1), for key minus query from -(n - 1) on; or by place,
        (n_heads or 1, n, n).
    ends: whether the distances at the ends stand for all that are farther away.
    memory: query 0 and key 0 stand at the same place, however many keys there are.
    """

    numbers: Float
    by_place: bool = False
    ends: bool = False
    memory: bool = False

    def table(self, shape: tuple[int, ...]) -> Float:
        """What is added to scores of this shape.

        Raises:
            ValueError: they have other heads, or places that were never seen.
        """
        n_q, n_k = shape[-2:]
        heads = len(self.numbers)
        if heads > 1 and (len(shape) < 3 or shape[-3] != heads):
            raise ValueError(f"The bias is for {heads} heads.")
        if self.by_place:
            table = self.numbers[:, :n_q, :n_k]
        else:
            largest = self.numbers.shape[-1] // 2
            start = 0 if self.memory else n_k - n_q
            apart = np.arange(n_k) - (np.arange(n_q) + start)[:, None]
            if self.ends:
                apart = np.clip(apart, -largest, largest)
            if np.abs(apart).max() > largest:
                raise ValueError("The bias at such a distance was never seen.")
            table = self.numbers[:, apart + largest]
        if table.shape[-2:] != (n_q, n_k):
            raise ValueError("The bias at such a place was never seen.")
        return table[0] if heads == 1 else table

    def word(self) -> str:
        """As a person would say it."""
        how = "place" if self.by_place else "distance"
        return f"a learned bias by {how}, added to the scores"


@dataclass(frozen=True, eq=False)
class Extra:
    """One key more, which no mask hides.

    logits: (n_heads or 1,), its scores; or `keys`, (n_heads, d_k), which queries meet.
    values: (n_heads, d_v), what it says; nothing if left out.
    """

    logits: Float
    keys: Float | None = None
    values: Float | None = None

    def join(
        self, s: Float, look: Truth | None, q: Float, shift: float = 0.0
    ) -> tuple[Float, Truth | None]:
        """Scores and mask with one key more."""
        front = (*s.shape[:-1], 1)
        if self.keys is not None:
            column = (q * self.keys[:, None, :]).sum(axis=-1, keepdims=True)
        elif len(self.logits) == 1:
            column = np.full(front, float(self.logits[0]))
        else:
            column = np.broadcast_to(self.logits[:, None, None], front)
        s = np.concatenate([s, column + shift], axis=-1)
        if look is not None:
            whole = np.broadcast_to(look, (*s.shape[:-1], s.shape[-1] - 1))
            look = np.concatenate([whole, np.ones(front, bool)], axis=-1)
        return s, look

    def part(self, weights: Float) -> tuple[Float, Float]:
        """The weights of all other keys, and what this key says to each query."""
        rest = weights[..., -1:]
        said = 0 * rest if self.values is None else rest * self.values[:, None, :]
        return weights[..., :-1], said

    def word(self) -> str:
        """As a person would say it."""
        if self.keys is not None:
            return "a learned key and value beside the others"
        if np.abs(self.logits).max() < 1e-3:
            return "one key more, of score 0 and value 0: softmax off by one"
        heads = "" if len(self.logits) == 1 else " of each head"
        shown = ", ".join(f"{x:.3g}" for x in self.logits[:4])
        more = ", ..." if len(self.logits) > 4 else ""
        return f"a sink{heads} that joins the softmax (logit {shown}{more})"
