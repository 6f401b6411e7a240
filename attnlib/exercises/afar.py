"""An answer that runs in another process: what the judge asks of it.

In a notebook the judge calls the learner's function. A grader hands it an `Afar`, which
sends the arguments of each call to a process of its own and brings back what came. The
judge cannot look into such a function, so the other side tells what there is to see.
None of that can earn a point: it only chooses among sentences.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from attnlib.clinic.limit import TimeUp
from attnlib.clinic.run import LIMIT, Ran


@dataclass(frozen=True)
class Told:
    """What the other side says of a function, for the sentences of the judge."""

    name: str = ""
    stub: bool = False
    signature: inspect.Signature | None = None
    stub_called: str = ""
    outer_numbers: tuple[str, ...] = ()
    returns_something: bool = True
    multiplies_infinity: bool = False


@dataclass(frozen=True)
class FarPlace:
    """Where an error arose, as the other side tells it: see `frames.Place`.

    `expression` is the text of what failed, `values` holds what can be told of the
    names there: None, a whole number, an array of the same shape.
    """

    line: int
    function: str
    source: str
    expression: str = ""
    values: Mapping[str, object] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()


class Afar:
    """A function in another process. Its errors arrive without a traceback."""

    # What is made of an answer beside it, in its own process: it measures there.
    beside = ("on_a_chip", "metered")
    patience = 6  # times the limit, by our own clock, for all calls of a check

    def __init__(self, told: Told, limit: float = LIMIT) -> None:
        self.told, self.limit = told, limit
        self.__name__ = told.name
        if told.signature is not None:
            self.__signature__ = told.signature

    def ask(
        self,
        args: tuple[object, ...],
        limit: float,
        drawn: bool = False,
        room: int | None = None,
    ) -> Ran:
        """One call, guarded on the other side as `run` guards it here.

        Args:
            args: of the call; they are never changed here.
            limit: seconds that it may take.
            drawn: take some random numbers before.
            room: bytes that it may take; as many as there are, if left out.
        """
        raise NotImplementedError

    def ask_within(
        self,
        around: Callable[[Callable[..., object]], Callable[..., object]],
        args: tuple[object, ...],
        limit: float,
        drawn: bool = False,
    ) -> Ran:
        """One call of what `around` makes of it: all but the answer runs here."""
        last, gone = Ran(), None

        def answer(*given: object) -> object:
            nonlocal last, gone
            try:
                last = self.ask(given, limit, drawn)
            except BaseException as error:  # there is no answer any more
                gone = error
                raise
            if last.error is not None:
                raise last.error
            return last.value

        try:
            value = around(answer)(*args)
            return replace(last, value=value, changed=())
        except BaseException as error:
            own = isinstance(error, Exception) or error is last.error
            if error is gone or not own:
                raise
            return replace(last, value=None, error=error, changed=())

    def place(self, error: BaseException) -> FarPlace | None:
        """Where an error arose that `ask` brought back."""
        raise NotImplementedError

    def __call__(self, *args: object) -> object:
        """One call of a check, which shares its time with all others."""
        ran = self.ask(args, self.limit)
        if ran.timed_out:
            raise TimeUp
        if ran.error is not None:
            raise ran.error
        return ran.value


def is_afar(answer: object) -> TypeGuard[Afar]:
    """Whether it runs elsewhere; asked of its type alone, for an object may lie."""
    return issubclass(type(answer), Afar)
