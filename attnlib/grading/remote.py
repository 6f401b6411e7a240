"""A student's function as the judge calls it: the call goes to the sandbox.

Whatever comes back came from a stranger. It is read as plain data, and where it is
none, the line is broken and there is no grade to be had from it. What the stranger says
of the function (its signature, the line of an error) chooses among sentences only.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy.typing as npt

from attnlib.clinic.limit import TimeUp
from attnlib.clinic.run import LIMIT, Ran
from attnlib.exercises.afar import Afar, FarPlace, Told
from attnlib.exercises.program import Program
from attnlib.grading import library
from attnlib.grading.callbacks import Callbacks
from attnlib.grading.channel import Arrays, Header, Lost
from attnlib.grading.inside.errors import rebuilt
from attnlib.grading.told import place_of, text_of, told_of, top_error
from attnlib.grading.values import Odd, pack, unpack
from attnlib.tiles import ChipError

SPARE = 8.0  # seconds beside the limit of a call: for imports, and for the wire
DEFINING = 30.0  # seconds for all that stands at the top level
MOST = 150.0  # seconds of the clock for all calls of one answer
BUSY = 5  # times the seconds of the processor, by the clock


class Line(Protocol):
    """The grader's end of the line to a child: see `session.Line`."""

    def ask(
        self,
        header: Header,
        arrays: Sequence[npt.NDArray[Any]] = ...,
        seconds: float = ...,
    ) -> tuple[Header, Arrays]:
        """Send a request and wait for its answer."""

    def answered(self, handler: Any) -> None:
        """Let `handler` answer the child's questions."""


@dataclass(frozen=True)
class Defined:
    """What became of the statements of an answer.

    `answer` is a `Remote`, a value, or `MISSING`. `errors` are sentences on statements
    that raised. `slow`: they did not end.
    """

    answer: object
    errors: tuple[str, ...] = ()
    slow: bool = False


MISSING = object()


@dataclass(frozen=True)
class Wish:
    """How an answer is to be called.

    `value`: it is not called at all. `around` names what is called in its place, beside
    it (`Afar.beside`), `seed` the dice of a check. `apart` opens a line to a child in
    which there is nothing of the student's.
    """

    name: str
    around: str = ""
    value: bool = False
    tensors: bool = False
    limit: float = LIMIT
    seed: int | None = None
    apart: Callable[[], AbstractContextManager[Line]] | None = None


def define(line: Line, pieces: Sequence[Any], wish: Wish) -> Defined:
    """Run the statements of an answer in a child.

    Args:
        line: to the child.
        pieces: with cell, line and source, in the order in which to run them.
        wish: what is to be called, and how.

    Raises:
        Lost: the child ended, or sent what is no answer.
    """
    told = [{"cell": p.cell, "line": p.line, "source": p.source} for p in pieces]
    header: Header = {
        "do": "define",
        "name": wish.name,
        "value": wish.value,
        "pieces": told,
        "library": library.given(piece.source for piece in pieces),
        "around": wish.around,
        "tensors": wish.tensors,
        "seed": 0,
    }
    reply, arrays = line.ask(header, [], DEFINING)
    with _reading():
        errors = tuple(top_error(one, pieces) for one in list(reply["errors"])[:20])
        kind = reply["is"]
        if kind == "slow":
            return Defined(MISSING, errors, slow=True)
        if kind == "nothing":
            return Defined(MISSING, errors)
        if kind == "value":
            return Defined(unpack(reply["value"], arrays), errors)
        return Defined(Remote(line, told_of(reply["told"]), wish), errors)


class Remote(Afar):
    """A function in a child of the sandbox."""

    def __init__(self, line: Line, told: Told, wish: Wish) -> None:
        super().__init__(told, wish.limit)
        self._line, self._wish = line, wish
        self._used = 0.0  # seconds of the processor, of all calls
        self._clock = 0.0  # seconds by the clock
        self.lost: Lost | None = None  # why there is no answer any more

    def ask(
        self,
        args: tuple[object, ...],
        limit: float,
        drawn: bool = False,
        room: int | None = None,
    ) -> Ran:
        """One call, guarded in the child."""
        if self._clock > MOST:
            self.lost = Lost("timeout", "all calls together took too long")
            raise self.lost
        program = args[-1] if args and type(args[-1]) is Program else None
        given = args if program is None else args[:-1]
        asked = Callbacks({text: text for text in given if type(text) is str})
        node, arrays = pack(list(given), asked.node)
        header: Header = {
            "do": "call",
            "args": node,
            "limit": limit,
            "drawn": drawn,
            "room": room,
            "program": program is not None,
            "seed": self._wish.seed,
        }
        self._line.answered(asked)
        before = time.monotonic()
        try:
            reply, back = self._line.ask(header, arrays, limit + SPARE)
            wall = time.monotonic() - before - asked.seconds
            self._clock += wall
            with _reading():
                return self._ran(reply, back, len(given), wall, program)
        except Lost as lost:
            self.lost = lost
            raise

    def _ran(
        self,
        reply: Header,
        back: Arrays,
        n_args: int,
        wall: float,
        program: Program | None,
    ) -> Ran:
        error: BaseException | None = None
        value = None
        timed_out = reply["timed_out"] is True
        if timed_out:
            error = TimeUp()
        elif reply["error"] is not None:
            error = rebuilt(reply["error"])
            error.__dict__["place"] = place_of(reply["error"]["place"])
        else:
            value = unpack(reply["value"], back)
        changed = sorted({int(i) for i in reply["changed"]})
        if changed and not 0 <= changed[0] <= changed[-1] < n_args:
            raise Odd("an argument that there is not")
        if program is not None and error is None:
            first = int(reply["program"])
            if not 0 <= first < len(back):
                raise Odd("a program that there is not")
            program.elsewhere = _Again(back[first:], self._wish.apart)
        # It says how long it computed: on a busy machine, that is a part of our time.
        seconds = min(wall, max(float(reply["seconds"]), wall / BUSY))
        self._used += seconds
        printed = max(0, int(reply["printed"]))
        empty = reply["empty_mean"] is True
        waited = wall - seconds
        return Ran(value, error, timed_out, printed, tuple(changed), waited, empty)

    def place(self, error: BaseException) -> FarPlace | None:
        """Where an error arose that `ask` brought back."""
        found = error.__dict__.get("place")
        return found if isinstance(found, FarPlace) else None

    def __call__(self, *args: object) -> object:
        """One call of a check. All of them together have as long as one."""
        left = self.limit - self._used
        if left <= 0:
            raise TimeUp
        try:
            ran = self.ask(args, left)
        except Lost:  # no error of the check: whoever asked looks at `lost`
            raise TimeUp from None
        if ran.timed_out:
            raise TimeUp
        if ran.error is not None:
            raise ran.error
        return ran.value


@dataclass(frozen=True)
class _Again:
    """Does a program again, in a child in which nothing else was ever done."""

    program: Arrays
    apart: Callable[[], AbstractContextManager[Line]] | None

    def __call__(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Any:
        if self.apart is None:
            raise ChipError("there is no chip to do it on again.")
        placed = [arrays[name] for name in ("q", "k", "v", "out")]
        try:
            with self.apart() as line:
                reply, back = line.ask({"do": "again"}, [*placed, *self.program], 30.0)
        except Lost as lost:  # it is the program that takes too much there
            raise ChipError(f"it cannot be done again: {lost.reason}.") from None
        if reply.get("is") != "again":
            raise ChipError(text_of(reply.get("why")))
        arrays["out"][...] = back[0].reshape(arrays["out"].shape)
        return _Meters(*(int(reply[m]) for m in ("traffic", "written", "peak")))


@dataclass(frozen=True)
class _Meters:
    traffic: int
    written: int
    peak: int


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    """What cannot be read was not sent by our side of the sandbox."""
    try:
        yield
    except Lost:
        raise
    except Exception:
        raise Lost("broke", "it sent what is no answer") from None
