"""Small models that differ in one thing only: how a token is told where it stands.

They are for experiments of seconds or minutes (lesson 08), not for use: a character
model with one of six schemes, and the block it is made of. Everything that a scheme
needs comes from `attnlib.positions`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnlib import positions
from attnlib.nn.multihead import MultiHeadAttention
from attnlib.nn.rotary import Rotary
from attnlib.nn.text import characters, windows
from attnlib.nn.train import Report, train
from attnlib.shapes import size

SCHEMES = ("none", "learned", "sinusoidal", "relative", "alibi", "rope")
SPREAD = 0.5  # standard deviation of first embeddings and of first learned positions


class Block(nn.Module):
    """One layer of a transformer: attention, then two products, each added to x.

    Args:
        d_model: how many numbers a token has.
        n_heads: how many heads.
        rotate: RoPE, or None.
        generator: where the first weights are drawn from.

    >>> Block(8, 2)(torch.ones(1, 3, 8)).shape
    torch.Size([1, 3, 8])
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        rotate: Rotary | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(
            d_model, n_heads, rotate=rotate, generator=generator
        )
        self.before_attention = nn.LayerNorm(d_model)
        self.before_wide = nn.LayerNorm(d_model)
        self.wide = nn.Linear(d_model, 4 * d_model)
        self.narrow = nn.Linear(4 * d_model, d_model)
        draw_linear(self.wide, generator)
        draw_linear(self.narrow, generator)

    def forward(
        self, x: Tensor, causal: bool = False, score_bias: Tensor | None = None
    ) -> Tensor:
        """Map tokens (..., n, d_model) to tokens of the same shape."""
        mixed = self.attention(
            self.before_attention(x), causal=causal, score_bias=score_bias
        )
        assert isinstance(mixed, Tensor)  # stages were not asked for
        x = x + mixed
        wide = nn.functional.gelu(self.wide(self.before_wide(x)))
        out: Tensor = x + self.narrow(wide)
        return out


class PlacedModel(nn.Module):
    """A causal model of characters that tells positions by one of six schemes.

    none, learned, sinusoidal: nothing, or a vector added to the embedding.
    relative, alibi: a number added to the scores. rope: queries and keys turned.

    Args:
        n_characters: how many different characters there are.
        scheme: one of `SCHEMES`.
        d_model, n_heads, n_layers: the sizes.
        n_rows: rows of the table of "learned". Those beyond the trained length exist,
            so that a longer text can be asked about, but nothing ever trained them.
        generator: where the first weights are drawn from.

    Raises:
        ValueError: there is no such scheme.

    >>> model = PlacedModel(5, "alibi", d_model=8, n_heads=2)
    >>> model(torch.tensor([[0, 3, 4]])).shape
    torch.Size([1, 3, 5])
    """

    def __init__(
        self,
        n_characters: int,
        scheme: str,
        *,
        d_model: int = 64,
        n_heads: int = 4,
        n_layers: int = 2,
        n_rows: int = 256,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if scheme not in SCHEMES:
            raise ValueError(
                f"scheme={scheme!r} is none of {', '.join(map(repr, SCHEMES))}."
            )
        self.scheme, self.n_heads = scheme, size("n_heads", n_heads, least=1)
        self.embedding = nn.Embedding(n_characters, d_model)
        nn.init.normal_(self.embedding.weight, std=SPREAD, generator=generator)
        if scheme == "learned":
            self.rows = nn.Parameter(torch.empty(n_rows, d_model))
            nn.init.normal_(self.rows, std=SPREAD, generator=generator)
        if scheme == "relative":
            self.by_distance = nn.Parameter(torch.zeros(16, n_heads))
        rotate = Rotary() if scheme == "rope" else None
        self.blocks = nn.ModuleList(
            Block(d_model, n_heads, rotate=rotate, generator=generator)
            for _ in range(n_layers)
        )
        self.last_norm = nn.LayerNorm(d_model)
        self.to_characters = nn.Linear(d_model, n_characters)
        draw_linear(self.to_characters, generator)

    def forward(self, ids: Tensor) -> Tensor:
        """Give each place (..., n) its scores for the next character, (..., n, c)."""
        x = self.embedding(ids)
        n, d_model = x.shape[-2:]
        if self.scheme == "learned":
            x = x + self.rows[:n]
        if self.scheme == "sinusoidal":
            x = x + torch.from_numpy(positions.sinusoidal(n, d_model)).to(x)
        bias = self._bias(n, x)
        for block in self.blocks:
            x = block(x, causal=True, score_bias=bias)
        out: Tensor = self.to_characters(self.last_norm(x))
        return out

    def _bias(self, n: int, x: Tensor) -> Tensor | None:
        if self.scheme == "alibi":
            return torch.from_numpy(positions.alibi_bias(self.n_heads, n)).to(x)
        if self.scheme == "relative":
            buckets = positions.relative_buckets(
                n, n_buckets=16, max_distance=32, bidirectional=False
            )
            return self.by_distance[torch.from_numpy(buckets)].movedim(-1, 0)
        return None


def grown(
    scheme: str,
    *,
    trained_length: int = 16,
    steps: int = 200,
    seed: int = 0,
    report: Report | None = None,
) -> PlacedModel:
    """Train a model of one layer on short windows of Shakespeare, in float64.

    On one thread and from one generator: other machines get the same digits.

    Args:
        scheme: one of `SCHEMES`.
        trained_length: how many characters a window has.
        steps: how many steps of 32 windows.
        seed: of the generator. There is no array, hence no shape.
        report: handed on to `train`; `attnlib.widgets.progress` makes one.

    Returns:
        The model. There is no array, hence no shape.

    Raises:
        ValueError: there is no such scheme.

    Cost: about 15 ms a step.
    Source: `tools/experiments/length.py`, smaller.
    Lesson: 08.

    >>> grown("alibi", steps=1).scheme
    'alibi'
    """
    text, generator = characters(), torch.Generator().manual_seed(seed)
    model = PlacedModel(
        len(text.vocabulary),
        scheme,
        d_model=32,
        n_layers=1,
        n_rows=4 * trained_length,
        generator=generator,
    ).double()

    def loss(step: int) -> Tensor:
        x, targets = windows(text.train, trained_length, 32, generator)
        return nn.functional.cross_entropy(model(x).flatten(0, 1), targets.flatten())

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        train(model, loss, steps, lr=3e-3, report=report)
    finally:
        torch.set_num_threads(before)
    return model


@torch.no_grad()
def loss_with(model: PlacedModel, n: int, *, longest: int = 64, last: int = 8) -> float:
    """Measure the loss on the same characters, with n characters of context.

    The last characters of 128 windows of The Tempest are predicted, whatever n is; of
    each window the model sees the last n.

    Args:
        model: from `grown`.
        n: how many characters it sees, at least `last`, at most `longest`.
        longest: how long the windows are.
        last: how many characters of each count.

    Returns:
        The mean loss in nats. There is no array, hence no shape.

    Raises:
        Nothing.

    Cost: 128 windows of n characters through the model.
    Source: `tools/experiments/length.py`, smaller.
    Lesson: 08.

    >>> loss_with(grown("none", steps=0), 16) > 4
    True
    """
    generator = torch.Generator().manual_seed(1000)
    x, targets = windows(characters().validation, longest, 128, generator)
    scores = model(x[:, -n:])[:, -last:].flatten(0, 1)
    return nn.functional.cross_entropy(scores, targets[:, -last:].flatten()).item()


@torch.no_grad()
def draw_linear(linear: nn.Linear, generator: torch.Generator | None = None) -> None:
    """Draw the first weights of an `nn.Linear` as torch does, from a generator.

    uniform between -1 / sqrt(fan_in) and 1 / sqrt(fan_in)

    Args:
        linear: its weight and bias are overwritten. There is no array, hence no shape.
        generator: where the numbers are drawn from; torch's own if left out.

    Returns:
        Nothing.

    Raises:
        Nothing.

    Cost: one random number a parameter.
    Source: `reset_parameters` of `nn.Linear`.
    Lesson: 08.

    >>> draw_linear(nn.Linear(2, 3), torch.Generator().manual_seed(0))
    """
    bound = linear.in_features**-0.5
    for parameter in linear.parameters():
        parameter.uniform_(-bound, bound, generator=generator)
