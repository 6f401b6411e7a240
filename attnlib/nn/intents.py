"""Requests to a help desk, in English and Chinese, each with what it wants.

The requests come from the sentence templates of the package home-assistant-intents: 27
intents in English, 40 in Chinese. Rooms, devices and the like are words of ours, in
`attnlib/data/help_desk_words.json`. A quarter of each intent's templates is set aside,
so that the sentences of a test are made in ways that no model has been trained on.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attnlib.nn.templates import Grammar, shuffled
from attnlib.shapes import size

LANGUAGES = ("en", "zh-CN")
FILLER, UNKNOWN, DESK, WHICH_ROOM = range(4)  # the ids of what is no word
SPECIAL = ("·", "<unknown>", "<desk>", "<which room>")
LEAST_TEMPLATES = 4  # an intent with fewer cannot be split
WORDS = Path(__file__).resolve().parent.parent / "data" / "help_desk_words.json"


@dataclass(frozen=True, repr=False)
class Requests:
    """Single requests, each a sentence with its intent."""

    texts: tuple[str, ...]
    ids: Tensor  #     (n, longest), fillers behind each
    answers: Tensor  # (n,) the intents, from 0

    @property
    def real(self) -> Tensor:
        """Truth values, (n, longest): False for fillers."""
        return self.ids != FILLER

    def batch(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw n of them, some perhaps twice: ids (n, longest) and answers (n,)."""
        rows = torch.randint(len(self.ids), (n,), generator=generator)
        return self.ids[rows], self.answers[rows]


@dataclass(frozen=True, repr=False)
class HelpDesk:
    """What a desk is trained on, and what it is tested with."""

    language: str
    intents: tuple[str, ...]  # their names
    vocabulary: tuple[str, ...]  # the id of a token is its place in here
    known: Requests  #  to train on
    unseen: Requests  # of other templates
    openings: tuple[tuple[tuple[int, ...], ...], ...]  # of each room, as ids

    def encode(self, text: str) -> list[int]:
        """Turn a text into ids."""
        ids = {token: i for i, token in enumerate(self.vocabulary)}
        return [ids.get(token, UNKNOWN) for token in tokens(text)]

    def decode(self, ids: Sequence[int] | Tensor) -> str:
        """Turn ids back into a text, one space between all tokens."""
        return " ".join(self.vocabulary[int(i)] for i in ids)


def tokens(text: str) -> list[str]:
    """Cut a sentence into words, signs and digits; Chinese into single characters.

    Args:
        text: a sentence; no shape.

    Returns:
        The tokens, in small letters.

    Raises:
        Nothing.

    Cost: one pass over the text.
    Source: the names of the course.
    Lesson: 15.

    >>> tokens("Set it to 21%"), tokens("打开台灯")
    (['set', 'it', 'to', '2', '1', '%'], ['打', '开', '台', '灯'])
    """
    return re.findall(r"[a-z']+|[^\sa-z']", text.lower())


def templates(language: str) -> dict[str, tuple[str, ...]]:
    """Give the templates of each intent that has at least 4 of them.

    Args:
        language: "en" or "zh-CN"; no shape.

    Returns:
        intent -> its templates, in the order of the names.

    Raises:
        ValueError: there is no such language.
        ModuleNotFoundError: the package home-assistant-intents is not installed.

    Cost: a file of 170 kB is read.
    Source: home-assistant-intents 2026.11.25 (Apache-2.0).
    Lesson: 15.

    >>> len(templates("en")), len(templates("zh-CN"))
    (27, 40)
    >>> templates("en")["HassMediaPause"][-1]
    '(pause;[<the>] {name})'
    """
    found: dict[str, tuple[str, ...]] = {}
    for name, intent in sorted(_package(language)["intents"].items()):
        rows = [t for block in intent["data"] for t in block["sentences"]]
        if len(set(rows)) >= LEAST_TEMPLATES:
            found[name] = tuple(dict.fromkeys(rows))
    return found


def split(rows: Sequence[str], seed: int) -> tuple[list[str], list[str]]:
    """Set a quarter of the templates aside, at least one.

    Args:
        rows: templates of one intent, at least 2; no shape.
        seed: decides which.

    Returns:
        Those to train on, and those set aside.

    Raises:
        ValueError: there are fewer than 2.

    Cost: none to speak of.
    Source: the names of the course.
    Lesson: 15.

    >>> split("abcdefgh", 0)
    (['f', 'c', 'e', 'b', 'g', 'a'], ['d', 'h'])
    """
    if len(rows) < 2:
        raise ValueError(f"{len(rows)} template cannot be split into two parts.")
    mixed = shuffled(rows, random.Random(seed))
    n_aside = max(1, len(mixed) // 4)
    return mixed[n_aside:], mixed[:n_aside]


@cache
def help_desk(
    language: str, *, n_known: int = 40, n_unseen: int = 12, seed: int = 0
) -> HelpDesk:
    """Draw the requests of a help desk, those for the test from other templates.

    No sentence of the test stands in the training. An intent of which the templates
    set aside say less than n_unseen different things comes with fewer.

    Args:
        language: "en" or "zh-CN".
        n_known: sentences of each intent for the training; some may be equal.
        n_unseen: different sentences of each intent for the test, at most.
        seed: decides which templates are set aside, and what is drawn. There is no
            array, hence no shape.

    Returns:
        The desk: ids (n, longest) and answers (n,) of both parts.

    Raises:
        ValueError: there is no such language.
        ModuleNotFoundError: the package home-assistant-intents is not installed.
        ShapeError, TypeError: a number that is not whole, or smaller than 1.

    Cost: 0.3 s the first time; then the same is returned.
    Source: home-assistant-intents 2026.11.25 (Apache-2.0).
    Lesson: 15.

    >>> desk = help_desk("en")
    >>> len(desk.intents), desk.known.ids.shape, len(desk.unseen.texts)
    (27, torch.Size([1080, 20]), 314)
    """
    n_known = size("n_known", n_known, least=1)
    n_unseen = size("n_unseen", n_unseen, least=1)
    luck, grammar = random.Random(seed), _grammar(language)
    known: list[tuple[str, int]] = []
    aside: list[list[str]] = []
    by_intent = templates(language)
    for answer, rows in enumerate(by_intent.values()):
        kept, other = split(rows, seed)
        for i in range(n_known):
            known.append((grammar.draw(kept[i % len(kept)], luck), answer))
        drawn = [grammar.draw(other[i % len(other)], luck) for i in range(8 * n_unseen)]
        aside.append(list(dict.fromkeys(drawn)))
    seen = {text for text, _ in known}
    unseen = [
        (text, answer)
        for answer, texts in enumerate(aside)
        for text in [t for t in texts if t not in seen][:n_unseen]
    ]
    rooms = grammar.lists["area"]
    opening = [
        [Grammar({"area": [room]}, {}).draw(row, luck) for _ in range(6)]
        for room in rooms
        for row in [f"({'|'.join(grammar.lists['opening'])})"]
    ]
    said = [*(text for text, _ in known), *(t for room in opening for t in room)]
    words = dict.fromkeys(token for text in said for token in tokens(text))
    vocabulary = (*SPECIAL, *words)
    ids = {token: i for i, token in enumerate(vocabulary)}

    def requests(pairs: list[tuple[str, int]]) -> Requests:
        rows = [[ids.get(t, UNKNOWN) for t in tokens(text)] for text, _ in pairs]
        table = torch.full((len(rows), longest), FILLER)
        for row, own in zip(table, rows, strict=True):
            row[: len(own)] = torch.tensor(own)
        answers = torch.tensor([answer for _, answer in pairs])
        return Requests(tuple(text for text, _ in pairs), table, answers)

    most = max(len(tokens(text)) for text, _ in [*known, *unseen])
    longest = -(-most // 4) * 4  # pooled by 4
    return HelpDesk(
        language,
        tuple(by_intent),
        vocabulary,
        requests(known),
        requests(unseen),
        tuple(
            tuple(tuple(ids[t] for t in tokens(text)) for text in texts)
            for texts in opening
        ),
    )


def _package(language: str) -> dict[str, Any]:
    """The file of a language, read without running a line of the package."""
    if language not in LANGUAGES:
        raise ValueError(
            f"language={language!r} is none of {', '.join(map(repr, LANGUAGES))}."
        )
    spec = find_spec("home_assistant_intents")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(
            "the package home-assistant-intents is missing; `python course.py lab` "
            "installs it."
        )
    path = Path(spec.origin).parent / "data" / f"{language}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _grammar(language: str) -> Grammar:
    """The lists and templates of the package, and our words where it leaves a gap."""
    package = _package(language)
    lists: dict[str, list[str]] = {}
    for name, values in package["lists"].items():
        if "values" in values:
            lists[name] = [
                v if isinstance(v, str) else v["in"] for v in values["values"]
            ]
        elif "range" in values:
            ends = values["range"]
            step = ends.get("step", 1)
            lists[name] = [str(i) for i in range(ends["from"], ends["to"] + 1, step)]
    ours: dict[str, list[str]] = json.loads(WORDS.read_text(encoding="utf-8"))[language]
    between = " " if language == "en" else ""
    return Grammar(lists | ours, package["expansion_rules"], between)
