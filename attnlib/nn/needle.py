"""A text of noise with one token in it that counts, to be told at the end.

    x x x N x x x x x x ?        which of the needles was N?

Nothing else in the text says it: an attention that loses the needle guesses, and is
right once in `N_NEEDLES` times. How far back it lies is known, so what an attention
reaches can be read off.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, layer_norm

from attnlib.nn.ways import Attend
from attnlib.shapes import ShapeError, size

N_NEEDLES, N_NOISE = 8, 16  # kinds of tokens; one more asks
ASKS = N_NEEDLES + N_NOISE


@dataclass(frozen=True)
class Needles:
    """Texts, and what is hidden in them."""

    ids: Tensor  #     (batch, n) tokens; the last one asks
    back: Tensor  #    (batch,) how many tokens before the last one the needle stands
    needles: Tensor  # (batch,) which it is, from 0


def draw_needles(batch: int, n: int, generator: torch.Generator) -> Needles:
    """Draw texts of noise with one needle at a random place, and a question behind.

    ids[i, n - 1 - back[i]] = needles[i]; ids[i, n - 1] asks; all else is noise

    Args:
        batch: how many texts. No shape.
        n: how many tokens a text has, the one that asks included.
        generator: where they are drawn from.

    Returns:
        ids (batch, n), back and needles (batch,).

    Raises:
        ShapeError: n is smaller than 2, or batch negative.
        TypeError: a size is not a whole number.

    Cost: batch n random numbers.
    Source: the needle test of long texts, made small.
    Lesson: 13.

    >>> drawn = draw_needles(3, 6, torch.Generator().manual_seed(0))
    >>> place = 5 - drawn.back[:, None]
    >>> bool((drawn.ids.gather(1, place)[:, 0] == drawn.needles).all())
    True
    """
    batch, n = size("batch", batch), size("n", n)
    if n < 2:
        raise ShapeError(f"n={n} tokens hold no needle beside the one that asks.")
    ids = torch.randint(N_NEEDLES, ASKS, (batch, n), generator=generator)
    back = torch.randint(1, n, (batch,), generator=generator)
    needles = torch.randint(N_NEEDLES, (batch,), generator=generator)
    ids[:, -1] = ASKS
    ids.scatter_(1, n - 1 - back[:, None], needles[:, None])
    return Needles(ids, back, needles)


class NeedleModel(nn.Module):
    """Layers of attention between embeddings and the needle's name.

    x = E[ids] + P; in each layer x = x + attend(norm(x) W_q, norm(x) W_k, norm(x) W_v);
    logits = norm(x)[last] U

    One head a layer and no MLP: what the attention does not bring, the model does not
    know.

    Args:
        attend: called as `attend(q, k, v)`, (batch, n, d_model) each; a module is
            trained as well.
        n: how many tokens a text has. No shape.
        d_model: the width.
        n_layers: how many layers there are.
        generator: where the tables are drawn from; torch's own if left out.

    Raises:
        ShapeError: a size is smaller than 1.
        TypeError: a size is not a whole number.

    Cost: that of the attention, and 3 products with tables in each layer.
    Source: the names of the course.
    Lesson: 13.

    >>> from torch.nn.functional import scaled_dot_product_attention
    >>> model = NeedleModel(scaled_dot_product_attention, 6, d_model=8)
    >>> model(draw_needles(3, 6, torch.Generator().manual_seed(0)).ids).shape
    torch.Size([3, 8])
    """

    def __init__(
        self,
        attend: Attend,
        n: int,
        *,
        d_model: int = 32,
        n_layers: int = 2,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        n, d_model = size("n", n, least=1), size("d_model", d_model, least=1)
        n_layers = size("n_layers", n_layers, least=1)

        def drawn(*shape: int, spread: float) -> nn.Parameter:
            return nn.Parameter(torch.randn(*shape, generator=generator) * spread)

        self.attend = attend
        self.embedding = drawn(ASKS + 1, d_model, spread=1.0)
        self.positions = drawn(n, d_model, spread=0.3)
        self.inward = drawn(n_layers, 3, d_model, d_model, spread=d_model**-0.5)
        self.unembed = drawn(d_model, N_NEEDLES, spread=d_model**-0.5)

    def forward(self, ids: Tensor) -> Tensor:
        """A number for each needle, (batch, N_NEEDLES)."""
        x = self.embedding[ids] + self.positions
        for tables in self.inward:
            normed = layer_norm(x, x.shape[-1:])
            q, k, v = (normed @ W for W in tables)
            x = x + self.attend(q, k, v)
        logits: Tensor = layer_norm(x[:, -1], x.shape[-1:]) @ self.unembed
        return logits

    def loss(self, batch: int, generator: torch.Generator) -> Tensor:
        """The mean loss on new texts."""
        texts = draw_needles(batch, len(self.positions), generator)
        return cross_entropy(self(texts.ids), texts.needles)
