"""Text to train small models on: ten plays of Shakespeare, character by character.

The plays are in the public domain and come with the library, 1.2 MB of them, with the
speakers' names. `tools/make_text.py` says where they are from. The last one, The
Tempest, is kept for validation: a play that a model never saw, not pages torn out of
plays that it knows.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from attnlib.shapes import ShapeError, size

TEXT = Path(__file__).resolve().parent.parent / "data" / "shakespeare.txt.gz"
FOR_VALIDATION = "Master:\nBoatswain!"  # how The Tempest begins, and nothing else


@dataclass(frozen=True, eq=False)
class Characters:
    """The plays as numbers: one id for each character."""

    vocabulary: str  # the id of a character is its place in here
    train: Tensor  #      (n_train,) whole numbers: nine plays
    validation: Tensor  # (n_validation,) the tenth, The Tempest

    def encode(self, text: str) -> Tensor:
        """Turn text into ids, (n,)."""
        unknown = sorted(set(text) - set(self.vocabulary))
        if unknown:
            raise ValueError(
                f"the plays have no {unknown[0]!r}; their {len(self.vocabulary)} "
                f"characters are {self.vocabulary!r}."
            )
        return torch.tensor([self.vocabulary.index(c) for c in text], dtype=torch.long)

    def decode(self, ids: Tensor) -> str:
        """Turn ids, (n,), back into text."""
        return "".join(self.vocabulary[i] for i in ids.tolist())


def plays() -> tuple[str, str]:
    """Read the text: what is for training, and what is for validation.

    Args:
        None.

    Returns:
        Nine plays, and The Tempest: 1124900 and 92103 characters.

    Raises:
        FileNotFoundError: the library was installed without its data.

    Cost: 20 ms, most of it to unpack.
    Source: `tools/make_text.py`.
    Lesson: 06, 08, 09.

    >>> train, validation = plays()
    >>> len(train), len(validation), validation.split()[:2]
    (1124900, 92103, ['Master:', 'Boatswain!'])
    """
    text = gzip.decompress(TEXT.read_bytes()).decode("ascii")
    start = text.index(FOR_VALIDATION)
    return text[:start], text[start:]


@cache
def characters() -> Characters:
    """Give the plays as whole numbers, one for each character.

    The text is read once; later calls return the same tensors.

    Args:
        None.

    Returns:
        The vocabulary of 63 characters, and the ids: (1124900,) and (92103,).

    Raises:
        FileNotFoundError: the library was installed without its data.

    Cost: 50 ms the first time.
    Source: `tools/make_text.py`.
    Lesson: 08, 09.

    >>> text = characters()
    >>> len(text.vocabulary), text.decode(text.validation[:17])
    (63, 'Master:\\nBoatswain')
    >>> text.encode("cat")
    tensor([39, 37, 56])
    """
    train, validation = plays()
    vocabulary = "".join(sorted(set(train + validation)))
    table = torch.zeros(128, dtype=torch.long)
    table[list(vocabulary.encode("ascii"))] = torch.arange(len(vocabulary))
    # One look-up for all letters at once: a million times .index() would take seconds.
    ids = [
        table[torch.frombuffer(bytearray(part, "ascii"), dtype=torch.uint8).long()]
        for part in (train, validation)
    ]
    return Characters(vocabulary, ids[0], ids[1])


def counting(text: Characters) -> tuple[float, float]:
    """Measure two models that only count: what a trained one has to beat.

    -ln p(c) and -ln p(c | the one before), p from counts in the training text

    Every pair of characters is counted once more than it comes, so that none is
    impossible.

    Args:
        text: from `characters`. Trained on, (n_train,), and measured, (n_validation,).

    Returns:
        The mean loss in nats when each character is told from its own frequency, and
        when from its frequency after the one before. There is no array, hence no shape.

    Raises:
        Nothing.

    Cost: one pass over the text, and a table of 63 by 63.
    Source: counts; nothing is learned.
    Lesson: 08.

    >>> [round(loss, 2) for loss in counting(characters())]
    [3.32, 2.49]
    """
    n = len(text.vocabulary)
    follows = torch.bincount(n * text.train[:-1] + text.train[1:], minlength=n * n)
    counts = follows.reshape(n, n).double() + 1  # [before, now]
    single = (counts.sum(1) / counts.sum()).log()
    after = (counts / counts.sum(1, keepdim=True)).log()
    before, now = text.validation[:-1], text.validation[1:]
    return -single[now].mean().item(), -after[before, now].mean().item()


def windows(
    ids: Tensor, n: int, batch: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Cut windows out of a text at random places, with what comes next as the target.

    targets[:, i] = the id after x[:, i]

    Args:
        ids: the text, (n_ids,).
        n: how many ids a window has.
        batch: how many windows.
        generator: where the places are drawn from.

    Returns:
        x and targets, (batch, n) each.

    Raises:
        ShapeError: ids have another number of axes than one, or fewer than n + 1
            entries.
        TypeError: n or batch is no whole number.

    Cost: batch n copies.
    Source: the names of the course.
    Lesson: 08, 09.

    >>> text = characters()
    >>> x, targets = windows(text.train, 8, 2, torch.Generator().manual_seed(0))
    >>> x.shape, bool((x[:, 1:] == targets[:, :-1]).all())
    (torch.Size([2, 8]), True)
    """
    n, batch = size("n", n, least=1), size("batch", batch, least=1)
    if ids.ndim != 1 or len(ids) <= n:
        raise ShapeError(
            f"windows of n={n} ids and the one after need ids of shape (n_ids,) with "
            f"n_ids > {n}, but the shape is {tuple(ids.shape)}."
        )
    starts = torch.randint(len(ids) - n, (batch, 1), generator=generator)
    cut = ids[starts + torch.arange(n + 1)]
    return cut[:, :-1], cut[:, 1:]
