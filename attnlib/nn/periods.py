"""Texts that say the same few symbols again and again, and a model that reads on.

    d a f b c d a f b c d a        period 5: the next one stood four places back

The symbols of the period are drawn anew for each text, so the first of them cannot be
known and all later ones can: how little an honest model may pay is known beforehand.
Texts differ in length, and fillers stand in front, so that the newest token is last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, layer_norm

from attnlib.nn.attention import Attention
from attnlib.nn.heads import merge_heads, split_heads
from attnlib.nn.multihead import MultiHead
from attnlib.positions import sinusoidal
from attnlib.shapes import ShapeError, size

D_MODEL, N_HEADS, D_V, N_SYMBOLS, PERIOD = 32, 4, 8, 12, 5
LONGEST = 24
# (q, k, v, mask): mask is True where a key is no filler, (batch, 1, 1, n_k)
Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None], Attention]


@dataclass(frozen=True)
class Texts:
    """A batch of texts, and which of its tokens are real."""

    ids: Tensor  #  (batch, n) symbols, whole numbers from 0; any where not real
    real: Tensor  # (batch, n) truth values: False for the fillers in front

    def padded(self, more: int) -> Texts:
        """The same texts behind so many more fillers."""
        batch = len(self.ids)
        return Texts(
            torch.cat([self.ids.new_zeros(batch, more), self.ids], 1),
            torch.cat([self.real.new_zeros(batch, more), self.real], 1),
        )


def draw_texts(
    n: int,
    generator: torch.Generator,
    *,
    shortest: int = 11,
    longest: int = LONGEST,
    period: int = PERIOD,
    n_symbols: int = N_SYMBOLS,
) -> Texts:
    """Draw texts that repeat themselves, with fillers in front of the shorter ones.

    ids[i, t] = ids[i, t - period], from the second round on

    Args:
        n: how many texts.
        generator: where symbols and lengths are drawn from. No shape.
        shortest, longest: how many tokens a text has, both included.
        period: after how many tokens a text begins anew.
        n_symbols: how many symbols there are.

    Returns:
        ids and real, (n, longest) each.

    Raises:
        ShapeError: shortest is larger than longest, or a size is smaller than 1.
        TypeError: a size is not a whole number.

    Cost: n (period + longest) numbers.
    Source: the repeated random tokens of Olsson et al. 2022.
    Lesson: 10.

    >>> texts = draw_texts(3, torch.Generator().manual_seed(0), longest=13)
    >>> texts.ids.shape, bool((texts.ids[:, -1] == texts.ids[:, -6]).all())
    (torch.Size([3, 13]), True)
    """
    n, shortest = size("n", n), size("shortest", shortest, least=1)
    longest, period = size("longest", longest), size("period", period, least=1)
    if shortest > longest:
        raise ShapeError(f"shortest={shortest} is larger than longest={longest}.")
    n_symbols = size("n_symbols", n_symbols, least=1)
    round_ = torch.randint(n_symbols, (n, period), generator=generator)
    lengths = torch.randint(shortest, longest + 1, (n, 1), generator=generator)
    place = torch.arange(longest) - (longest - lengths)  # below 0 for fillers
    return Texts(round_.gather(1, place.clamp(min=0) % period), place >= 0)


class PeriodModel(nn.Module):
    """One layer of attention between embeddings and the next symbol.

    logits = merge(attend(q_h, k_h, v_h)) W_o U, from x = norm(E[ids] + positions)

    Fillers are rows of zeros. Positions are counted from the first real token, so that
    more fillers in front change nothing. Nothing goes around the attention: what it
    does not bring, the model does not know.

    Args:
        attend: called as `attend(q, k, v, mask)`, with the heads on axis 1 and a mask
            (batch, 1, 1, n) of the real keys; it has to be causal by itself.
        d_k: numbers in a query of one head.
        gain: a factor on the first W_q and W_k.
        generator: where the tables are drawn from; torch's own if left out.

    Raises:
        ShapeError: d_k is smaller than 1.
        TypeError: d_k is not a whole number.

    Cost: that of the attention, and 4 products with tables.
    Source: the names of the course.
    Lesson: 10.

    >>> from attnlib.nn import scaled_dot_product
    >>> model = PeriodModel(lambda q, k, v, m: scaled_dot_product(q, k, v, m))
    >>> texts = draw_texts(3, torch.Generator().manual_seed(0))
    >>> model(texts).shape, model.stages(texts).weights.shape
    (torch.Size([3, 24, 12]), torch.Size([3, 4, 24, 24]))
    """

    def __init__(
        self,
        attend: Attend,
        *,
        d_k: int = 48,
        gain: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.attend = attend
        self.d_k = size("d_k", d_k, least=1)

        def table(n_in: int, n_out: int, factor: float = 1.0) -> nn.Parameter:
            drawn = torch.randn(n_in, n_out, generator=generator)
            return nn.Parameter(factor * drawn / n_in**0.5)

        self.of_symbol = nn.Parameter(
            torch.randn(N_SYMBOLS, D_MODEL, generator=generator)
        )
        self.W_q = table(D_MODEL, N_HEADS * self.d_k, gain)
        self.W_k = table(D_MODEL, N_HEADS * self.d_k, gain)
        self.W_v = table(D_MODEL, N_HEADS * D_V)
        self.W_o = table(N_HEADS * D_V, D_MODEL)
        self.unembed = table(D_MODEL, N_SYMBOLS)

    def forward(self, texts: Texts) -> Tensor:
        """A number for each symbol that may come next, (batch, n, n_symbols)."""
        return self.stages(texts).out @ self.unembed

    def stages(self, texts: Texts) -> MultiHead:
        """All stages of the attention; `raw_scores` are before the scale."""
        x = self.inputs(texts)
        q, k = (split_heads(x @ W, N_HEADS, self.d_k) for W in (self.W_q, self.W_k))
        v = split_heads(x @ self.W_v, N_HEADS, D_V)
        heads = self.attend(q, k, v, texts.real[:, None, None, :])
        out = merge_heads(heads.out) @ self.W_o
        return MultiHead(
            q, k, v, heads.raw_scores, heads.scores, heads.weights, heads.out, out
        )

    def inputs(self, texts: Texts) -> Tensor:
        """What attention reads: normed, and zeros where a filler stands."""
        n = texts.ids.shape[1]
        place = (texts.real.cumsum(1) - 1).clamp(min=0)
        table = torch.as_tensor(sinusoidal(n, D_MODEL, base=100.0))
        positions = table.to(self.of_symbol)[place]
        x = layer_norm(self.of_symbol[texts.ids] + 2**0.5 * positions, (D_MODEL,))
        return x * texts.real[..., None]

    def loss(self, texts: Texts) -> Tensor:
        """The mean loss over all next symbols that are real."""
        counted = texts.real[:, :-1]
        guesses, came = self(texts)[:, :-1], texts.ids[:, 1:]
        return cross_entropy(guesses[counted], came[counted])

    @torch.no_grad()
    def write(self, ids: Tensor, n: int) -> Tensor:
        """Go on with texts, (batch, n_given), token by token, to n_given + n."""
        for _ in range(n):
            texts = Texts(ids, torch.ones_like(ids, dtype=torch.bool))
            following = self(texts)[:, -1].argmax(-1, keepdim=True)
            ids = torch.cat([ids, following], 1)
        return ids
