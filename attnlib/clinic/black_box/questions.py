"""What a function is asked. All sizes differ; the numbers are eighths.

Each question is one call. Those marked `optional` hold a form that not every right
attention takes, such as one mask for each item: an error there is no mistake. d_k is
even, for RoPE turns pairs of features; one optional question has an odd one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from attnlib.clinic.black_box.looks import Truth
from attnlib.clinic.probes import table
from attnlib.clinic.subject import Takes
from attnlib.shapes import Array


@dataclass(frozen=True)
class Question:
    """One call of a function: q (..., n_q, d_k), k, v, and perhaps a mask."""

    name: str
    q: Array
    k: Array
    v: Array
    mask: Truth | None = None
    causal: bool = False
    optional: bool = False
    xray: bool = False  # v is one-hot, so that out is the weights
    half: bool = False  # to be asked in float16
    item: bool = False  # what is empty is item 1, not row 1

    def sizes(self) -> str:
        """Its sizes by name, as a sentence holds them."""
        q, k, v = self.q, self.k, self.v
        return (
            f"n_q={q.shape[-2]}, n_k={k.shape[-2]}, "
            f"d_k={q.shape[-1]}, d_v={v.shape[-1]}"
        )


class Maker:
    """Draws q, k and v in the forms that a subject takes."""

    def __init__(self, rng: np.random.Generator, takes: Takes) -> None:
        self.rng, self.takes = rng, takes
        self.rank = max(takes.dims or (4,))

    def batch(self, batch: int, n_heads: int) -> tuple[int, ...]:
        """The axes before the last two."""
        return (batch, n_heads)[: self.rank - 2]

    def ask(
        self,
        name: str,
        n_q: int,
        n_k: int,
        d_k: int,
        d_v: int,
        *,
        mask: Truth | None = None,
        causal: bool = False,
        optional: bool = False,
        batch: tuple[int, int] = (2, 3),
    ) -> Question:
        """A question with random numbers; sizes are bent to what the subject takes."""
        if self.takes.batch_is_heads:
            batch = batch[1], batch[1]
        front = self.batch(*batch)
        if self.takes.no_cross:
            n_q = n_k
            if mask is not None and mask.shape[-2] not in (1, n_q):
                mask = self.holes(n_q, n_k)
        if self.takes.equal_d:
            d_v = d_k
        q = self.without_zeros(*front, n_q, d_k)
        k = self.without_zeros(*front, n_k, d_k)
        v = table(self.rng, *front, n_k, d_v)
        return Question(name, q, k, v, mask, causal, optional)

    def without_zeros(self, *shape: int) -> Array:
        """Random eighths; a norm over few numbers must not meet zeros alone."""
        drawn = table(self.rng, *shape)
        return np.where(drawn == 0, -0.125, drawn)

    def xray(
        self, name: str, n_q: int, n_k: int, d_k: int, mask: Truth | None = None
    ) -> Question:
        """A question whose values are one-hot: value j has its 1 at place j."""
        if self.takes.no_cross:
            n_q = n_k
        if self.takes.equal_d:
            d_k = n_k
        if mask is not None and mask.shape != (n_q, n_k):
            mask = self.holes(n_q, n_k)
        asked = self.ask(name, n_q, n_k, d_k, n_k, mask=mask)
        v = np.broadcast_to(np.eye(n_k), asked.v.shape).copy()
        return Question(name, asked.q, asked.k, v, mask, xray=True)

    def real(self, n: int, hidden: int = 2) -> Truth:
        """(batch, 1, 1, n) or (batch, 1, n): each item hides some of its last keys."""
        count = 3 if self.takes.batch_is_heads else 2
        items = np.stack([np.arange(n) < n - max(1, hidden - i) for i in range(count)])
        return items.reshape(count, *(1,) * (self.rank - 2), n)

    def apart(self, n_q: int, n_k: int, count: int = 2) -> Truth:
        """(batch, 1, n_q, n_k): a mask with holes for each item, but for the last."""
        if self.takes.no_cross:
            n_q = n_k
        if self.takes.batch_is_heads:
            count = 3
        items = [self.holes(n_q, n_k) for _ in range(count - 1)]
        last = np.ones((n_q, n_k), bool)
        last[:, 2] = False
        return np.stack([*items, last])[:, None]

    def lengths(self, n: int) -> Truth:
        """(batch, 1, 1, n): the last two keys of the last item are padding."""
        count = 3 if self.takes.batch_is_heads else 2
        real = np.ones((count, 1, 1, n), bool)
        real[-1, ..., -2:] = False
        return real

    def holes(self, n_q: int, n_k: int) -> Truth:
        """A mask with holes: no row and no column is empty, and none is the causal."""
        rows, keys = np.arange(n_q)[:, None], np.arange(n_k)
        mask = self.rng.random((n_q, n_k)) < 0.6
        mask[:, 0], mask[0] = True, False
        mask[0, [0, n_k - 1]] = True
        return np.asarray(mask | (keys == rows + 1) | (keys + 1 == rows))


def function_questions(rng: np.random.Generator, takes: Takes) -> list[Question]:
    """All ordinary questions; the extreme ones are asked one by one elsewhere."""
    make = Maker(rng, takes)
    asked = [
        make.ask("a small one", 4, 5, 14, 6),
        make.xray("values that show the weights", 4, 6, 10),
        make.ask("as many queries as keys", 5, 5, 6, 4),
        make.ask("more queries than keys", 6, 4, 10, 7, optional=True),
        make.ask("values as wide as keys", 4, 6, 10, 10),
        make.ask("wide keys", 3, 5, 16, 4),
        make.ask("an odd d_k", 4, 5, 7, 6, optional=True),
    ]
    if takes.padding and not takes.mask and make.rank > 2:
        shown = make.xray("values that show the weights", 4, 6, 10)
        asked += [
            make.ask("padding", 4, 5, 14, 6, mask=make.real(5)),
            replace(shown, name="padding, and such values", mask=make.real(6)),
            make.ask(
                "padding of as many keys as queries", 5, 5, 6, 4, mask=make.real(5)
            ),
        ]
    if takes.mask:
        holes, more = make.holes(4, 5), make.holes(4, 6)
        square, short = np.tri(5, dtype=bool), make.holes(5, 5) & _real(5, 2)
        asked += [
            make.ask("a mask with holes", 4, 5, 14, 6, mask=holes),
            make.xray("a mask, and values that show the weights", 4, 6, 10, more),
            make.ask("a causal mask", 5, 5, 6, 4, mask=square),
            make.ask("a mask that hides the last keys", 5, 5, 6, 4, mask=short),
        ]
        if make.rank == 4:
            two, padding = make.apart(4, 5), make.lengths(5)
            asked += [
                make.ask("a mask for each item", 4, 5, 14, 6, mask=two, optional=True),
                make.ask("padding", 5, 5, 6, 4, mask=padding, optional=True),
            ]
        if make.rank == 4 and takes.item_masks:
            three = make.apart(4, 5, 3)
            name = "a mask for each item, and as many items as heads"
            asked.append(
                make.ask(name, 4, 5, 14, 6, mask=three, optional=True, batch=(3, 3))
            )
    if takes.grouped and make.rank == 4:
        few = make.ask("fewer key heads than query heads", 4, 5, 14, 9, batch=(2, 2))
        q = make.without_zeros(2, 6, *few.q.shape[-2:])
        asked.append(Question(few.name, q, few.k, few.v))
    if takes.causal:
        asked += [
            make.ask("causal", 5, 5, 6, 4, causal=True),
            make.ask("causal, more keys than queries", 3, 5, 14, 6, causal=True),
        ]
        if takes.mask:
            look = make.holes(5, 5)
            look |= np.eye(5, dtype=bool)
            look[4, 1] = False  # so that the past has a hole, too
            asked.append(
                make.ask(
                    "causal and a mask",
                    5,
                    5,
                    6,
                    4,
                    mask=look,
                    causal=True,
                    optional=True,
                )
            )
        if takes.mask and make.rank == 4:
            asked.append(
                make.ask(
                    "causal and padding",
                    5,
                    5,
                    6,
                    4,
                    mask=make.lengths(5),
                    causal=True,
                    optional=True,
                )
            )
    return asked


def _real(n: int, hidden: int) -> Truth:
    return np.broadcast_to(np.arange(n) < n - hidden, (n, n)).copy()
