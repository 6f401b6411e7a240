"""Sentence templates: read once, then drawn from as often as one likes.

    turn (on|off) [the] {name}        "turn off lamp", "turn on the curtain", ...

It is the grammar of Home Assistant's intents: (a|b) one of them, (a;b) both in any
order, [a] perhaps, {name} a word of a list, <name> another template.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeVar

T = TypeVar("T")
Kind = Literal["text", "one", "all", "perhaps", "list", "template"]
ENDS = {"[": "]", "(": ")", "{": "}", "<": ">"}
DEEPEST = 20  # templates that name each other in a ring would never end


@dataclass(frozen=True)
class Part:
    """A part of a template: a text, a name, or parts that stand in it."""

    kind: Kind
    text: str = ""
    ways: tuple[tuple[Part, ...], ...] = ()  # each is a row of parts


@cache
def read(template: str) -> Part:
    """Read a template as a tree of its parts.

    Args:
        template: as the module says; no shape.

    Returns:
        The tree. Its root is a choice, of one way if nothing is to choose.

    Raises:
        ValueError: a bracket is not closed, or closed and never opened.

    Cost: one pass over the text.
    Source: Home Assistant's sentence templates (hassil).
    Lesson: 15.

    >>> read("the {name}").ways[0][1]
    Part(kind='list', text='name', ways=())
    """
    part, stop = _read(template, 0, "")
    if stop < len(template):
        raise ValueError(f"{template[stop]!r} closes nothing in {template!r}.")
    return part


def _read(template: str, at: int, end: str) -> tuple[Part, int]:
    """The ways from a place on up to the end sign, and the place of that sign."""
    ways: list[list[Part]] = [[]]
    kind: Kind = "one"
    while at < len(template) and template[at] not in "])":
        sign = template[at]
        if sign in "|;":
            kind = "all" if sign == ";" else kind
            ways.append([])
        elif sign in "[(":
            inner, at = _read(template, at + 1, ENDS[sign])
            ways[-1].append(Part("perhaps", ways=((inner,),)) if sign == "[" else inner)
        elif sign in "{<":
            stop = template.find(ENDS[sign], at)
            if stop < 0:
                raise ValueError(f"{sign} is not closed in {template!r}.")
            name = template[at + 1 : stop].partition(":")[0]
            ways[-1].append(Part("list" if sign == "{" else "template", name))
            at = stop
        else:
            stop = min(_first(template, at), len(template))
            ways[-1].append(Part("text", template[at:stop]))
            at = stop - 1
        at += 1
    if end and (at >= len(template) or template[at] != end):
        raise ValueError(f"a bracket before {end} is not closed in {template!r}.")
    return Part(kind, ways=tuple(map(tuple, ways))), at


def _first(template: str, at: int) -> int:
    """Where the next sign with a meaning stands."""
    found = re.compile(r"[\[\](){}<>|;]").search(template, at)
    return found.start() if found else len(template)


@dataclass(frozen=True)
class Grammar:
    """What the names in templates stand for.

    >>> grammar = Grammar({"name": ["lamp"]}, {"the": "[the]"})
    >>> grammar.draw("(on;<the> {name})", random.Random(1))
    'lamp on'
    """

    lists: Mapping[str, Sequence[str]]  # name -> templates, of which one is taken
    templates: Mapping[str, str]
    between: str = " "  # stands between parts whose order is free

    def draw(self, template: str | Part, luck: random.Random) -> str:
        """Draw one sentence.

        `luck.random()` alone is called, which gives the same numbers in each Python.
        """
        part = read(template) if isinstance(template, str) else template
        return " ".join(self._draw(part, luck, 0).split())

    def _draw(self, part: Part, luck: random.Random, depth: int) -> str:
        if depth > DEEPEST:
            raise ValueError("templates name each other in a ring.")
        if part.kind == "text":
            return part.text
        if part.kind == "template":
            return self._draw(read(self.templates[part.text]), luck, depth + 1)
        if part.kind == "list":
            return self._draw(
                read(one_of(self.lists[part.text], luck)), luck, depth + 1
            )
        if part.kind == "perhaps" and luck.random() < 0.5:
            return ""
        if part.kind == "all":
            rows = shuffled(part.ways, luck)
            return self.between.join(self._row(row, luck, depth) for row in rows)
        return self._row(one_of(part.ways, luck), luck, depth)

    def _row(self, row: Sequence[Part], luck: random.Random, depth: int) -> str:
        return "".join(self._draw(part, luck, depth) for part in row)


def one_of(things: Sequence[T], luck: random.Random) -> T:
    """Take one of them.

    things[floor(u len(things))], u even in [0, 1)

    Args:
        things: at least one; no shape.
        luck: where the number is drawn from.

    Returns:
        The one.

    Raises:
        IndexError: there is none.

    Cost: one random number.
    Source: the names of the course.
    Lesson: 15.

    >>> one_of("abc", random.Random(0))
    'c'
    """
    return things[int(luck.random() * len(things))]


def shuffled(things: Sequence[T], luck: random.Random) -> list[T]:
    """Put them into a random order.

    sorted by a random number each

    Args:
        things: stay as they are; no shape.
        luck: where the numbers are drawn from.

    Returns:
        A new list.

    Raises:
        Nothing.

    Cost: one random number each, and a sort.
    Source: the names of the course.
    Lesson: 15.

    >>> shuffled("abc", random.Random(0))
    ['c', 'b', 'a']
    """
    keys = [luck.random() for _ in things]
    return [things[i] for i in sorted(range(len(things)), key=keys.__getitem__)]
