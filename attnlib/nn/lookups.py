"""A task for several heads: each question names two keys, and wants both values.

    pairs     b:7  e:2  a:7  d:4   ·         a filler: fewer pairs than others
    question  d, b      ->  4, 7

A head has one row of weights for a question, so it can look up one of the two keys, or
mix both. Texts differ in the number of their pairs and of their questions. All is drawn
anew each time: nothing can be learned by heart but how to look.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, layer_norm

from attnlib.nn.multihead import MultiHead, MultiHeadAttention
from attnlib.shapes import ShapeError, size

N_SYMBOLS, N_PAIRS, N_QUESTIONS, D_MODEL, D_K, D_V = 12, 7, 3, 40, 10, 8


@dataclass(frozen=True)
class Lookups:
    """A batch of texts; all symbols are whole numbers from 0."""

    keys: Tensor  #    (batch, n_pairs), all different within a text
    values: Tensor  #  (batch, n_pairs)
    real: Tensor  #    (batch, n_pairs) truth values: False for fillers
    asked: Tensor  #   (batch, n_questions, 2), two different keys of real pairs
    counted: Tensor  # (batch, n_questions) truth values: False for fillers
    answers: Tensor  # (batch, n_questions, 2), the values beside them
    places: Tensor  #  (batch, n_questions, 2), which pairs they are

    def part(self, start: int, stop: int) -> Lookups:
        """The texts from start up to stop."""
        return Lookups(*(tensor[start:stop] for tensor in vars(self).values()))


def draw_lookups(n: int, generator: torch.Generator) -> Lookups:
    """Draw texts of 4 to 7 pairs, and 1 to 3 questions.

    answers[i, j, c] = values[i, p], where keys[i, p] = asked[i, j, c], c = 0 or 1

    Args:
        n: how many texts.
        generator: where they are drawn from. No shape.

    Returns:
        keys, values and real (n, 7), counted (n, 3), asked, answers and places
        (n, 3, 2).

    Raises:
        ShapeError, TypeError: n is not a whole number of at least 0.

    Cost: n times 42 random numbers.
    Source: Ba et al. 2016, section 4.1 (associative retrieval), with two keys.
    Lesson: 14.

    >>> drawn = draw_lookups(5, torch.Generator().manual_seed(0))
    >>> asked = drawn.keys.gather(1, drawn.places.flatten(1)).reshape(5, 3, 2)
    >>> bool((asked == drawn.asked).all())
    True
    """
    n = size("n", n)
    keys = torch.rand(n, N_SYMBOLS, generator=generator).argsort(1)[:, :N_PAIRS]
    values = torch.randint(N_SYMBOLS, (n, N_PAIRS), generator=generator)
    n_real = torch.randint(4, N_PAIRS + 1, (n, 1), generator=generator)
    n_counted = torch.randint(1, N_QUESTIONS + 1, (n, 1), generator=generator)
    real = torch.arange(N_PAIRS) < n_real
    # Two different places among the real ones: the two largest of random numbers.
    luck = torch.rand(n, N_QUESTIONS, N_PAIRS, generator=generator)
    places = luck.masked_fill(~real[:, None], -1.0).topk(2, -1).indices
    flat = places.flatten(1)
    asked, answers = (t.gather(1, flat).reshape(places.shape) for t in (keys, values))
    counted = torch.arange(N_QUESTIONS) < n_counted
    return Lookups(keys, values, real, asked, counted, answers, places)


class LookupModel(nn.Module):
    """One layer of attention from questions to pairs, and two answers.

    x = norm(A[first] + B[second]), memory = norm(K[key] + V[value])
    answers = attention(x, memory) U, two for each question

    Fillers are rows of zeros, and hidden if they are pairs. Nothing goes around the
    attention: what it does not bring, the model does not know.

    Args:
        n_heads: how many heads the attention has.
        d_k, d_v: numbers in a query and in a value of one head.
        generator: where all tables are drawn from; torch's own if left out.

    Raises:
        ShapeError: a size is smaller than 1.
        TypeError: a size is not a whole number.

    Cost: that of the attention.
    Source: the names of the course.
    Lesson: 14.

    >>> model = LookupModel(6)
    >>> drawn = draw_lookups(5, torch.Generator().manual_seed(0))
    >>> model(drawn).shape, model.stages(drawn).weights.shape
    (torch.Size([5, 3, 2, 12]), torch.Size([5, 6, 3, 7]))
    """

    def __init__(
        self,
        n_heads: int,
        *,
        d_k: int = D_K,
        d_v: int = D_V,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()

        def table(rows: int, columns: int, spread: float = 1.0) -> nn.Parameter:
            return nn.Parameter(
                torch.randn(rows, columns, generator=generator) * spread
            )

        self.of_first, self.of_second, self.of_key, self.of_value = (
            table(N_SYMBOLS, D_MODEL) for _ in range(4)
        )
        self.attention: nn.Module = MultiHeadAttention(
            D_MODEL, n_heads, d_k=d_k, d_v=d_v, bias=False, generator=generator
        )
        self.unembed = table(D_MODEL, 2 * N_SYMBOLS, D_MODEL**-0.5)

    def forward(self, texts: Lookups) -> Tensor:
        """A number for each symbol, twice: (batch, n_questions, 2, n_symbols)."""
        x, memory, mask = self.inputs(texts)
        return self._answers(self.attention(x, memory, mask=mask))

    def stages(self, texts: Lookups) -> MultiHead:
        """All stages of the attention; it has to know `return_stages`."""
        x, memory, mask = self.inputs(texts)
        stages: MultiHead = self.attention(x, memory, mask=mask, return_stages=True)
        return stages

    def inputs(self, texts: Lookups) -> tuple[Tensor, Tensor, Tensor]:
        """x (batch, n_questions, d_model), memory (batch, n_pairs, d_model), mask."""
        x = self.of_first[texts.asked[..., 0]] + self.of_second[texts.asked[..., 1]]
        memory = self.of_key[texts.keys] + self.of_value[texts.values]
        x, memory = (layer_norm(t, (D_MODEL,)) for t in (x, memory))
        return (
            x * texts.counted[..., None],
            memory * texts.real[..., None],
            texts.real[:, None, None],
        )

    def losses(self, texts: Lookups) -> Tensor:
        """The mean loss of each text over its questions and both answers, (batch,)."""
        logits = self(texts).movedim(-1, 1)
        each = cross_entropy(logits, texts.answers, reduction="none").mean(-1)
        each = each.masked_fill(~texts.counted, 0.0)
        return each.sum(1) / texts.counted.sum(1)

    def loss(self, texts: Lookups) -> Tensor:
        """The mean of `losses` over the texts."""
        return self.losses(texts).mean()

    @torch.no_grad()
    def accuracy(self, texts: Lookups) -> float:
        """The share of questions of which both answers are right."""
        right = (self(texts).argmax(-1) == texts.answers).all(-1)
        return float(right[texts.counted].double().mean())

    def _answers(self, out: Tensor) -> Tensor:
        if out.ndim != 3 or out.shape[-1] != D_MODEL:
            raise ShapeError(
                "the attention must give (batch, n_questions, d_model="
                f"{D_MODEL}), but it gave {tuple(out.shape)}."
            )
        return (out @ self.unembed).reshape(*out.shape[:-1], 2, N_SYMBOLS)
