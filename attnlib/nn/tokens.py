"""Text to tokens and back: byte-pair encoding, on characters, as small as it can be.

A word starts as its characters. The pair that was merged first in training, wherever
it stands, is joined; then the next one; until no pair of the list is left.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

# 'd | a word, with the space before it | other signs, likewise | line ends | a space
WORDS = r"'[a-z]+| ?[A-Za-z]+| ?[^A-Za-z\s]+|\n+|\s"
START = "<start>"


@dataclass(frozen=True)
class Tokenizer:
    """The tokens of a model, and the merges that make them.

    >>> tokens = Tokenizer(("<start>", "a", "t", " ", "at"), (("a", "t"),))
    >>> tokens.encode("at ta")
    [0, 4, 3, 2, 1]
    >>> tokens.decode([0, 4, 3, 2, 1]), tokens.pieces([0, 4, 3])
    ('at ta', ['<start>', 'at', ' '])
    """

    tokens: tuple[str, ...]  # the id of a token is its place in here; 0 is <start>
    merges: tuple[tuple[str, str], ...]  # in the order in which they were learnt
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)
    _ranks: dict[tuple[str, str], int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_ids", {t: i for i, t in enumerate(self.tokens)})
        object.__setattr__(self, "_ranks", {p: i for i, p in enumerate(self.merges)})

    def encode(self, text: str, *, start: bool = True) -> list[int]:
        """Turn text into ids; the first is <start>, unless start is False."""
        unknown = sorted(set(text) - set(self._ids))
        if unknown:
            known = "".join(sorted(t for t in self.tokens if len(t) == 1))
            raise ValueError(
                f"the model has no token for {unknown[0]!r}; it knows the "
                f"{len(known)} characters {known!r}."
            )
        ids = [self._ids[START]] if start else []
        for word in re.findall(WORDS, text):
            ids += [self._ids[piece] for piece in self._merged(list(word))]
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """Turn ids, a list or a tensor, back into text; <start> is left out."""
        return "".join(piece for piece in self.pieces(ids) if piece != START)

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Give the text of each token, to label a figure with."""
        return [self.tokens[int(i)] for i in ids]

    def _merged(self, pieces: list[str]) -> Sequence[str]:
        while len(pieces) > 1:
            ranked = [
                (self._ranks.get(pair, len(self._ranks)), place)
                for place, pair in enumerate(pairwise(pieces))
            ]
            rank, place = min(ranked)
            if rank == len(self._ranks):
                break
            pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]
        return pieces
