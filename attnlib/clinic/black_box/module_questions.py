"""What a module is asked in the ordinary."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from attnlib.clinic.black_box.looks import Truth
from attnlib.clinic.black_box.projected import Asked
from attnlib.clinic.probes import table
from attnlib.clinic.subject import Takes, Weights
from attnlib.shapes import Array


class ModuleMaker:
    """Draws tokens in the forms that a module takes."""

    def __init__(
        self, rng: np.random.Generator, takes: Takes, weights: Weights
    ) -> None:
        self.rng, self.takes, self.weights = rng, takes, weights
        self.batch = 3 if weights.n_heads == 2 or weights.n_kv_heads == 2 else 2
        if takes.batch_is_heads:
            self.batch = weights.n_heads
        self.d_k = weights.W_q.shape[1] // weights.n_heads
        self.d_v = weights.W_v.shape[1] // weights.n_kv_heads

    def tokens(self, n: int, width: int = 0) -> Array:
        """(batch, n, d_model)."""
        return table(self.rng, self.batch, n, width or self.weights.d_model)

    def ask(
        self,
        name: str,
        n: int,
        *,
        n_k: int = 0,
        mask: Truth | None = None,
        padding: Truth | None = None,
        causal: bool = False,
        optional: bool = False,
    ) -> Asked:
        """Tokens, and a memory where n_k says so or the module must have one."""
        memory = None
        if n_k or self.takes.no_self:
            memory = self.tokens(n_k or n, self.weights.W_k.shape[0])
        return Asked(
            name,
            self.tokens(n),
            self.weights,
            memory,
            mask,
            padding,
            causal,
            optional,
            pads=self.takes.mask and self.takes.padding,
        )

    def holes(self, n_q: int, n_k: int) -> Truth:
        """A mask with holes; no row and no column is empty, and none is causal."""
        rows, keys = np.arange(n_q)[:, None], np.arange(n_k)
        mask = self.rng.random((n_q, n_k)) < 0.6
        mask[:, 0], mask[0] = True, False
        mask[0, [0, n_k - 1]] = True
        return np.asarray(mask | (keys == rows) | (keys + 1 == rows))

    def padding(self, n: int) -> Truth:
        """(batch, n): each item but the first hides some tokens at its end.

        The second hides two, of which causal attention would let the last token see
        one even where it may not see itself.
        """
        lengths = n - (2 * np.arange(self.batch)) % 3
        return np.asarray(np.arange(n) < lengths[:, None])

    def xray(self, asked: Asked) -> Asked | None:
        """The same with values that show the weights of every head; None if it has not
        the room: d_v must be at least n_k."""
        w, keys = self.weights, asked.x if asked.memory is None else asked.memory
        n, width = keys.shape[-2], w.W_v.shape[0]
        if n > self.d_v or n > width or w.W_o is None or keys.shape[-1] != width:
            return None
        if w.W_o.shape[0] > w.W_o.shape[1]:
            return None
        tagged = keys.copy()
        tagged[..., width - n :] = np.eye(n)
        W_v = np.zeros_like(w.W_v)
        for head in range(w.n_kv_heads):
            for j in range(n):
                W_v[width - n + j, head * self.d_v + j] = 1.0
        shown = replace(
            w,
            W_v=W_v,
            W_o=np.eye(*w.W_o.shape),
            b_v=None if w.b_v is None else np.zeros_like(w.b_v),
            b_o=None if w.b_o is None else np.zeros_like(w.b_o),
        )
        if asked.memory is None:
            return replace(asked, x=tagged, weights=shown, xray=True)
        return replace(asked, memory=tagged, weights=shown, xray=True)


def module_questions(
    rng: np.random.Generator, takes: Takes, weights: Weights
) -> list[Asked]:
    """All ordinary questions."""
    make = ModuleMaker(rng, takes, weights)
    asked = [make.ask("a few tokens", 4), make.ask("some tokens more", 6)]
    small = min(4, make.d_v)
    extra = [make.xray(make.ask("tokens that show the weights", small))]
    if takes.no_cross or (takes.values and not takes.memory):
        optional = not takes.no_cross
        asked.append(make.ask("a memory as long as x", 5, n_k=5, optional=optional))
    if takes.memory:
        asked.append(make.ask("a longer memory", 4, n_k=6))
        asked.append(make.ask("a shorter memory", 5, n_k=3))
    if takes.values and takes.memory:
        apart = make.ask("values of their own", 4, n_k=6, optional=True)
        said = make.tokens(6, weights.W_v.shape[0])
        asked.append(replace(apart, said=said))
    if takes.mask:
        n_k = 6 if takes.memory else 5
        asked.append(make.ask("a mask with holes", 5, mask=make.holes(5, 5)))
        if takes.memory:
            asked.append(
                make.ask("a mask for a memory", 4, n_k=n_k, mask=make.holes(4, n_k))
            )
        asked.append(make.ask("a causal mask", 5, mask=np.tri(5, dtype=bool)))
        extra.append(
            make.xray(
                make.ask(
                    "a mask, and tokens that show the weights",
                    small,
                    mask=np.tri(small, dtype=bool),
                )
            )
        )
        if takes.item_masks:
            each = np.stack([make.holes(5, 5) for _ in range(make.batch)])
            each[0] = True
            asked.append(make.ask("a mask for each item", 5, mask=each, optional=True))
    if takes.padding:
        asked.append(make.ask("padding", 5, padding=make.padding(5)))
        extra.append(
            make.xray(
                make.ask(
                    "padding, and tokens that show the weights",
                    small,
                    padding=np.arange(small)
                    < small - np.arange(make.batch)[:, None] % 2,
                )
            )
        )
        if takes.memory:
            asked.append(
                make.ask(
                    "padding of a memory",
                    4,
                    n_k=6,
                    padding=make.padding(6),
                    optional=True,
                )
            )
    if takes.mask and takes.padding:
        asked.append(
            make.ask(
                "a mask and padding",
                5,
                mask=np.tri(5, dtype=bool),
                padding=make.padding(5),
                optional=True,
            )
        )
    if takes.causal:
        asked.append(make.ask("causal", 5, causal=True))
        if takes.memory:
            asked.append(
                make.ask(
                    "causal with a longer memory", 3, n_k=5, causal=True, optional=True
                )
            )
        if takes.padding:
            asked.append(
                make.ask("causal and padding", 5, padding=make.padding(5), causal=True)
            )
        if takes.mask:
            look = make.holes(5, 5)
            look[4, 1] = False  # so that the past has a hole, too
            asked.append(make.ask("causal and a mask", 5, mask=look, causal=True))
    found = [one for one in extra if one is not None]
    return [asked[0], *found[:1], *asked[1:], *found[1:]]
