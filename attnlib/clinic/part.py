"""What a part of attention is: how it is called, what is right, what always holds.

A part is a function that is not an attention itself, but that many attentions are made
of: a mask, positions, a split into heads, a softmax. It can be called in several ways
(`Form`), and some of its conventions are a matter of taste (`Meant`): those are found
out and never blamed, unless the caller says which one is meant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from attnlib.clinic.case import Case, Family, Result

Options = Mapping[str, object]
Cases = Callable[[np.random.Generator], tuple[Case, ...]]
Complete = Callable[[Case], Case]
Tidy = Callable[[Case, Result], Result]
# Calls the part safely with NumPy arguments; None if it raised or gave no numbers.
Call = Callable[..., Result | None]


def _same_case(case: Case) -> Case:
    return case


def _same_result(case: Case, result: Result) -> Result:
    return result


@dataclass(frozen=True)
class Meant:
    """One way to mean it: the family that is right then, and how that is called.

    `complete` adds the arguments that the family needs and the part is not told;
    `tidy` takes away what does not matter in a result, such as axes of size 1.
    """

    family: Family
    feature: str = ""
    complete: Complete = _same_case
    tidy: Tidy = _same_result


@dataclass(frozen=True)
class Form:
    """One way to call a part: its arguments, and the cases in which they are handed in.

    `keywords` names the last arguments, where they go by keyword; `order` is that of
    the arguments, where a part takes them in another. `strict`: an error in
    a case is a mistake, unless the part refuses the case in words. `largest`: the same
    with arrays of the most axes alone, for a part that takes others, too, but means
    something else there (dim=1 is another axis then).
    """

    call: str
    cases: Cases
    meant: tuple[Meant, ...]
    keywords: tuple[str, ...] = ()
    order: tuple[int, ...] = ()
    untested: tuple[str, ...] = ()
    strict: bool = False
    largest: bool = False


@dataclass(frozen=True)
class Broken:
    """How a law was broken, and the smallest input that shows it."""

    sentence: str
    example: str


@dataclass(frozen=True)
class Law:
    """What holds for every right part, whatever its numbers."""

    name: str
    broken: Callable[[Call], Broken | None]


@dataclass(frozen=True)
class Takes:
    """What the signature of a function says."""

    names: tuple[str, ...]  #    of the arguments that go by place
    required: int  #             how many of them must be given
    any_number: bool = False  #  *args
    by_keyword: tuple[str, ...] = ()
    required_keywords: tuple[str, ...] = ()
    width: int | None = None  # the features that a module is built for

    def fits(self, places: int) -> bool:
        """Whether it can be called with so many arguments by place."""
        return self.required <= places and (self.any_number or places <= self.most)

    @property
    def most(self) -> int:
        """How many arguments it takes by place."""
        return len(self.names)

    def named(self, *names: str) -> str:
        """The first argument whose name holds one of these words; empty if none."""
        every = (*self.names, *self.by_keyword)
        return next((n for n in every if any(w in n.lower() for w in names)), "")

    def wants(self, place: int, *names: str) -> bool:
        """Whether an argument is to be given here: it must, or is called like one.

        So `dtype=None` in its place is left alone.
        """
        return self.fits(place + 1) and (
            self.required > place or not self.names or self.at(place, *names)
        )

    def at(self, place: int, *names: str) -> bool:
        """Whether the argument at this place has one of these words in its name."""
        if place >= len(self.names):
            return False
        return any(w in self.names[place].lower() for w in names)


@dataclass(frozen=True)
class Part:
    """A part that can be examined by its name.

    `code` is the number of its mistakes that have none of their own. `options` are the
    keywords that say what is meant, and what each may be.
    """

    name: str
    call: str
    returns: str
    doc: str
    forms: Callable[[Options, Takes], tuple[Form, ...]]
    code: str = ""
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    laws: tuple[Law, ...] = ()


def whole(value: object) -> int:
    """A whole number among arguments or options."""
    return int(np.asarray(value).item())


def real(value: object) -> float:
    """A number among arguments or options."""
    return float(np.asarray(value).item())
