"""Pictures of four digits, words that ask where a digit is, and a model that answers.

A canvas is 16 x 16 pixels: four handwritten digits of 8 x 8, all different, one in
each quarter. The quarters are counted as one reads: 0 and 1 above, 2 and 3 below. Three
words come with it, each a digit that is on it; the answer to a word is its quarter.
Nothing tells the model where to look: it learns from the answers alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu

from attnlib.nn.multihead import MultiHead, MultiHeadAttention
from attnlib.nn.shapes import check_tensors
from attnlib.shapes import ShapeError, size

DIGIT, SIDE, PATCH = 8, 16, 4  # pixels along one side of a digit, a canvas, a patch
N_PATCHES, N_WORDS, N_QUARTERS = 16, 3, 4


@dataclass(frozen=True)
class Canvases:
    """Canvases with their words and answers."""

    pictures: Tensor  # (n, 16, 16)  from 0, white, to 1, black
    words: Tensor  #    (n, 3)  digits, 0 to 9
    answers: Tensor  #  (n, 3)  the quarter of each, 0 to 3

    def __len__(self) -> int:
        return len(self.pictures)

    def batch(self, n: int, generator: torch.Generator) -> Canvases:
        """Draw n of them, as training does: some may come twice."""
        rows = torch.randint(0, len(self), (n,), generator=generator)
        return Canvases(self.pictures[rows], self.words[rows], self.answers[rows])


def draw(
    images: Tensor, labels: Tensor, n: int, generator: torch.Generator
) -> Canvases:
    """Make canvases from single digits.

    Args:
        images: digits, (n_images, 8, 8), numbers from 0 to 1.
        labels: which digit each is, (n_images,), whole numbers from 0 to 9.
        n: how many canvases.
        generator: where the digits, their places and the words are drawn from.

    Returns:
        The canvases: pictures (n, 16, 16), words (n, 3) and answers (n, 3).

    Raises:
        ShapeError: the images are not of 8 x 8, or labels do not fit them.
        ValueError: one of the ten digits has no image.

    Cost: one copy of the pixels.
    Source: the names of the course; the digits of lesson 07 are scikit-learn's.
    Lesson: 07.

    >>> images, labels = torch.arange(10.0)[:, None, None].expand(10, 8, 8), range(10)
    >>> few = draw(images, torch.tensor(labels), 5, torch.Generator().manual_seed(0))
    >>> few.pictures.shape, few.words.shape
    (torch.Size([5, 16, 16]), torch.Size([5, 3]))
    >>> quarters = few.pictures[:, ::8, ::8].flatten(1)  # each image holds its label
    >>> bool((quarters.gather(1, few.answers) == few.words).all())
    True
    """
    n = size("n", n)
    if images.shape[1:] != (DIGIT, DIGIT) or labels.shape != images.shape[:1]:
        raise ShapeError(
            f"images must be (n_images, {DIGIT}, {DIGIT}) and labels (n_images,), but "
            f"they are {tuple(images.shape)} and {tuple(labels.shape)}."
        )
    rows = [torch.nonzero(labels == digit).flatten() for digit in range(10)]
    found = torch.tensor([len(of_digit) for of_digit in rows])
    if (found == 0).any():
        raise ValueError(f"no image shows the digit {int(found.argmin())}.")
    digits = torch.rand(n, 10, generator=generator).argsort(1)[:, :N_QUARTERS]
    which = (torch.rand(n, N_QUARTERS, generator=generator) * found[digits]).long()
    start = found.cumsum(0) - found
    chosen = images[torch.cat(rows)[start[digits] + which]]  # (n, 4, 8, 8)
    two = chosen.reshape(n, 2, 2, DIGIT, DIGIT).transpose(2, 3)  # (n, 2, 8, 2, 8)
    answers = torch.rand(n, N_QUARTERS, generator=generator).argsort(1)[:, :N_WORDS]
    return Canvases(two.reshape(n, SIDE, SIDE), digits.gather(1, answers), answers)


def patches(pictures: Tensor, size: int) -> Tensor:
    """Cut pictures into square patches, each one row of numbers.

    Args:
        pictures: (..., height, width).
        size: pixels along one side of a patch.

    Returns:
        The patches, (..., n_patches, size * size), as one reads them: from left to
        right, then the next row of patches. So are the pixels of each.

    Raises:
        ShapeError: height or width is not a multiple of size.

    Cost: one copy of the pixels.
    Source: Dosovitskiy et al. 2021 (Vision Transformer), equation 1.
    Lesson: 07.

    >>> patches(torch.arange(8).reshape(2, 4), 2).tolist()
    [[0, 1, 4, 5], [2, 3, 6, 7]]
    """
    height, width = pictures.shape[-2:]
    if height % size or width % size:
        raise ShapeError(
            f"height={height} and width={width} must be multiples of size={size}."
        )
    rows, columns = height // size, width // size
    cut = pictures.reshape(*pictures.shape[:-2], rows, size, columns, size)
    return cut.transpose(-3, -2).flatten(-2).flatten(-3, -2)


def in_quarter(quarters: Tensor) -> Tensor:
    """Say which patches lie in a quarter: a mask over the patches.

    Args:
        quarters: whole numbers from 0 to 3, (...).

    Returns:
        True for the patches of that quarter, (..., 16).

    Raises:
        Nothing.

    Cost: 16 comparisons a quarter.
    Source: the names of the course.
    Lesson: 07.

    >>> torch.nonzero(in_quarter(torch.tensor(1))).flatten().tolist()
    [2, 3, 6, 7]
    """
    row, column = torch.arange(N_PATCHES) // 4, torch.arange(N_PATCHES) % 4
    return quarters[..., None] == row // 2 * 2 + column // 2


class WhereIs(nn.Module):
    """Words look at a picture, and each says in which quarter its digit is.

    memory = norm(p + mlp(norm(p))), where p = W patch + place
    quarter = answer(attention(norm(word), memory))

    Each patch is turned into a token by itself: none has seen another one. The words
    do not see each other either. All that a word learns of the picture comes through
    the one attention; nothing leads around it, not even the word itself.

    Args:
        n_heads: how many heads the words look with.
        d_model: how many numbers a word has.
        d_memory: how many numbers a patch has.
        generator: where the first weights are drawn from.

    Raises:
        ShapeError: d_model is not a multiple of n_heads.

    Cost: about 16 d_memory (16 + 5 d_memory + 2 d_model) multiplications a picture.
    Source: the names of the course; the patches follow Dosovitskiy et al. 2021.
    Lesson: 07.

    >>> model = WhereIs(2, generator=torch.Generator().manual_seed(0))
    >>> words = torch.tensor([[3, 1, 4], [1, 5, 9]])
    >>> model(torch.zeros(2, 16, 16), words).shape
    torch.Size([2, 3, 4])
    """

    def __init__(
        self,
        n_heads: int,
        *,
        d_model: int = 48,
        d_memory: int = 36,
        generator: torch.Generator,
    ) -> None:
        super().__init__()

        def linear(n_in: int, n_out: int) -> nn.Linear:
            part = nn.Linear(n_in, n_out)
            nn.init.xavier_uniform_(part.weight, generator=generator)
            nn.init.zeros_(part.bias)
            return part

        def normal(*shape: int, std: float) -> nn.Parameter:
            return nn.Parameter(torch.randn(shape, generator=generator) * std)

        self.patch = linear(PATCH * PATCH, d_memory)
        self.place = normal(N_PATCHES, d_memory, std=0.2)
        self.word = normal(10, d_model, std=1.0)
        self.before_mlp, self.after_mlp = nn.LayerNorm(d_memory), nn.LayerNorm(d_memory)
        self.wide = linear(d_memory, 2 * d_memory)
        self.narrow = linear(2 * d_memory, d_memory)
        self.before_attention = nn.LayerNorm(d_model)
        self.attention = MultiHeadAttention(
            d_model, n_heads, d_memory=d_memory, generator=generator
        )
        self.answer = linear(d_model, N_QUARTERS)

    def memory(self, pictures: Tensor) -> Tensor:
        """Turn pictures, (n, 16, 16), into patches to look at, (n, 16, d_memory)."""
        p = self.patch(patches(pictures, PATCH)) + self.place
        wide = gelu(self.wide(self.before_mlp(p)))
        done: Tensor = self.after_mlp(p + self.narrow(wide))
        return done

    def look(
        self, pictures: Tensor, words: Tensor, mask: Tensor | None = None
    ) -> MultiHead:
        """Let words look at pictures; returns all stages of the attention."""
        check_tensors({"pictures": (pictures, "n height width")}, height=16, width=16)
        x = self.before_attention(self.word[words])
        stages = self.attention(x, self.memory(pictures), mask=mask, return_stages=True)
        assert isinstance(stages, MultiHead)  # stages were asked for
        return stages

    def forward(
        self, pictures: Tensor, words: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        """Answer where each word's digit is.

        Args:
            pictures: (n, 16, 16).
            words: digits, (n, n_words).
            mask: which patches may be looked at, True = may look; broadcastable to
                (n, n_heads, n_words, 16).

        Returns:
            Logits of the four quarters, (n, n_words, 4).
        """
        logits: Tensor = self.answer(self.look(pictures, words, mask).out)
        return logits

    def loss(self, canvases: Canvases) -> Tensor:
        """The mean cross-entropy of the right quarters, to train on."""
        logits = self(canvases.pictures, canvases.words)
        return cross_entropy(logits.flatten(0, 1), canvases.answers.flatten())

    @torch.no_grad()
    def accuracy(self, canvases: Canvases, mask: Tensor | None = None) -> float:
        """The share of words that are answered rightly; chance is 1/4."""
        logits = self(canvases.pictures, canvases.words, mask)
        right = logits.argmax(-1) == canvases.answers
        return float(right.double().mean())
