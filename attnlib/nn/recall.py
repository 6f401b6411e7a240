"""A task that attention alone can solve, small enough to train in a second.

A few pairs are shown, each a key and a value, and then one of the keys. The answer is
the value that stood beside it. The pairs are drawn anew every time: nothing can be
learned by heart but how to look. (Associative recall.)
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, layer_norm

from attnlib.nn.multihead import MultiHead
from attnlib.shapes import ShapeError, size


@dataclass(frozen=True)
class Pairs:
    """Questions and their answers; all are symbols, whole numbers from 0."""

    keys: Tensor  #    (n, n_pairs), all different within a question
    values: Tensor  #  (n, n_pairs)
    asked: Tensor  #   (n,), one of the keys
    answers: Tensor  # (n,), the value that stands beside it


def draw_pairs(
    n: int,
    generator: torch.Generator,
    *,
    n_symbols: int = 16,
    n_pairs: int = 5,
) -> Pairs:
    """Draw questions: pairs of symbols, and one key to be looked up.

    answers[i] = values[i, j], where keys[i, j] = asked[i]

    Args:
        n: how many questions.
        generator: where they are drawn from. No shape.
        n_symbols: how many symbols there are.
        n_pairs: how many pairs a question has.

    Returns:
        keys and values (n, n_pairs), asked and answers (n,).

    Raises:
        ShapeError: there are more pairs than symbols, or fewer than one.
        TypeError: a size is not a whole number.

    Cost: n n_symbols random numbers, sorted.
    Source: Ba et al. 2016, section 4.1 (associative retrieval).
    Lesson: 09.

    >>> drawn = draw_pairs(3, torch.Generator().manual_seed(0))
    >>> place = (drawn.keys == drawn.asked[:, None]).int().argmax(1)
    >>> bool((drawn.values[torch.arange(3), place] == drawn.answers).all())
    True
    """
    n, n_pairs = size("n", n), size("n_pairs", n_pairs, least=1)
    if n_pairs > size("n_symbols", n_symbols, least=1):
        raise ShapeError(
            f"n_pairs={n_pairs} keys are to be different, but there are only "
            f"n_symbols={n_symbols}."
        )
    keys = torch.rand(n, n_symbols, generator=generator).argsort(1)[:, :n_pairs]
    values = torch.randint(n_symbols, (n, n_pairs), generator=generator)
    place = torch.randint(n_pairs, (n, 1), generator=generator)
    return Pairs(
        keys, values, keys.gather(1, place)[:, 0], values.gather(1, place)[:, 0]
    )


class RecallModel(nn.Module):
    """One layer of attention between embeddings and an answer.

    answer = attention(norm(E_k[asked]), norm(E_k[keys] + E_v[values])) U

    The asked key is the one query, the pairs are the memory. Inputs of attention have
    variance 1, as layer_norm makes them.

    Args:
        attention: called as `attention(x, memory)`, `MultiHeadAttention` for one.
        d_model: the width of `attention`.
        n_symbols: how many symbols there are.
        generator: where embeddings and U are drawn from; torch's own if left out.

    Raises:
        ShapeError: a size is smaller than 1.
        TypeError: a size is not a whole number.

    Cost: that of the attention.
    Source: Ba et al. 2016, section 4.1, for the task.
    Lesson: 09.

    >>> from attnlib.nn import MultiHeadAttention
    >>> model = RecallModel(MultiHeadAttention(8, 2), 8)
    >>> drawn = draw_pairs(3, torch.Generator().manual_seed(0))
    >>> model(drawn).shape, model.stages(drawn).weights.shape
    (torch.Size([3, 16]), torch.Size([3, 2, 1, 5]))
    """

    def __init__(
        self,
        attention: nn.Module,
        d_model: int,
        n_symbols: int = 16,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        d_model = size("d_model", d_model, least=1)
        n_symbols = size("n_symbols", n_symbols, least=1)
        self.of_key = nn.Parameter(torch.randn(n_symbols, d_model, generator=generator))
        self.of_value = nn.Parameter(
            torch.randn(n_symbols, d_model, generator=generator)
        )
        self.unembed = nn.Parameter(
            torch.randn(d_model, n_symbols, generator=generator) / d_model**0.5
        )
        self.attention = attention

    def forward(self, pairs: Pairs) -> Tensor:
        """A number for each symbol, (n, n_symbols)."""
        out: Tensor = self.attention(*self._inputs(pairs))[:, 0] @ self.unembed
        return out

    def stages(self, pairs: Pairs) -> MultiHead:
        """All stages of the attention; it has to know `return_stages`."""
        stages: MultiHead = self.attention(*self._inputs(pairs), return_stages=True)
        return stages

    def loss(self, n: int, generator: torch.Generator) -> Tensor:
        """The mean loss on n new questions."""
        drawn = draw_pairs(n, generator, n_symbols=len(self.of_key))
        return cross_entropy(self(drawn), drawn.answers)

    @torch.no_grad()
    def accuracy(self, n: int, generator: torch.Generator) -> float:
        """The share of n new questions that it answers rightly."""
        drawn = draw_pairs(n, generator, n_symbols=len(self.of_key))
        right: Tensor = self(drawn).argmax(1) == drawn.answers
        return float(right.double().mean())

    def _inputs(self, pairs: Pairs) -> tuple[Tensor, Tensor]:
        def norm(x: Tensor) -> Tensor:
            return layer_norm(x, x.shape[-1:])

        x = norm(self.of_key[pairs.asked])[:, None]
        return x, norm(self.of_key[pairs.keys] + self.of_value[pairs.values])
