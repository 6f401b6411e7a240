"""Runs in a child of the sandbox: defines a student's answer, and calls it when asked.

Requests are frames of the channel; each has one answer:

- ``define``: the statements of an answer, run one after another. Told is what the
  answer is: a function and what there is to see of it, a value, or nothing.
- ``call``: one call, under the guard of the notebooks (`attnlib.clinic.run`).
- ``again``: the program of a kernel, in a child that has defined nothing.

An argument that is a function is one of the grader's. Calling it sends a frame with
``"what": "callback"`` and waits for the ``reply``.
"""

from __future__ import annotations

import contextlib
import io
import random
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from attnlib.clinic.limit import TimeUp, time_limit
from attnlib.clinic.run import Ran, run
from attnlib.clinic.tensors import as_tensors, draw, loaded, torch
from attnlib.exercises.metered import metered
from attnlib.exercises.on_chip import on_a_chip
from attnlib.exercises.program import Program
from attnlib.grading.channel import Arrays, Channel, Header, Lost
from attnlib.grading.inside import library, programs, sight
from attnlib.grading.inside.far_functions import FarFunctions
from attnlib.grading.inside.memory import at_most
from attnlib.grading.values import pack, unpack

AROUND = {"on_a_chip": on_a_chip, "metered": metered}
TOP = 20.0  # seconds for all statements at the top level
MOST_ERRORS = 20


def _leave(code: object = None) -> NoReturn:
    """As exit() does in a script."""
    raise SystemExit(code)


# What a notebook gives besides Python's own names.
GIVEN: dict[str, Any] = {
    "exit": _leave,
    "quit": _leave,
    "display": lambda *_, **__: None,
    "get_ipython": lambda: None,
}


def serve(channel: Channel) -> None:
    """Answer the grader's requests until it hangs up."""
    student = Student(channel)
    while True:
        try:
            request, arrays = channel.receive()
        except Lost:
            return
        if request.get("do") in ("define", "call", "again"):
            reply, back = getattr(student, request["do"])(request, arrays)
            channel.send(reply, back)


class Student:
    """One answer, and the names that it uses."""

    def __init__(self, channel: Channel) -> None:
        self._functions = FarFunctions(channel)
        self._space = types.ModuleType("__main__")
        self._answer: Any = None
        self._around: Callable[..., Any] = lambda answer: answer
        self._tensors = False

    def define(self, request: Header, arrays: Arrays) -> tuple[Header, Arrays]:
        """Run the statements, and tell what the answer is."""
        self._tensors = bool(request["tensors"])
        self._around = AROUND.get(request["around"], self._around)
        sys.modules["__main__"] = self._space
        vars(self._space).update(GIVEN)
        _seeded(int(request["seed"]))
        library.give(request["library"])
        pieces = request["pieces"]
        sight.remember(pieces)
        errors: list[Any] = []
        with _quiet():
            try:
                with time_limit(TOP, _execute.__code__):
                    for piece in pieces:
                        self._run(piece, errors)
            except TimeUp:
                return {"is": "slow", "errors": errors[:MOST_ERRORS]}, []
        found = vars(self._space)
        about = {"errors": errors[:MOST_ERRORS]}
        if request["name"] not in found:
            return about | {"is": "nothing"}, []
        self._answer = answer = found[request["name"]]
        with _quiet():
            called = callable(answer) and not issubclass(type(answer), type)
            if called and not request["value"]:
                return about | {"is": "function", "told": sight.told(answer)}, []
            value, back = pack(answer)
        return about | {"is": "value", "value": value}, back

    def _run(self, piece: dict[str, Any], errors: list[Any]) -> None:
        try:
            code = compile(sight.padded(piece), sight.file_of(piece["cell"]), "exec")
            _execute(code, vars(self._space))
        except TimeUp:
            raise
        except BaseException as error:
            errors.append(sight.top_error(error, piece))

    def call(self, request: Header, arrays: Arrays) -> tuple[Header, Arrays]:
        """Call the answer, and tell what came of it."""
        self._functions.begin(request.get("seed"))
        args = tuple(unpack(request["args"], arrays, self._functions.made))
        program = Program() if request["program"] else None
        if program is not None:
            args = (*args, program)

        def packed_answer(*given: object) -> tuple[Any, Arrays]:
            if request["drawn"]:
                draw()
            given = as_tensors(given) if self._tensors else given
            return pack(self._around(self._answer)(*given))

        before = time.process_time()
        with at_most(request["room"]):
            ran = run(packed_answer, args, float(request["limit"]))
        self._functions.put_back()
        told, back = self._result(ran, program)
        return told | {"seconds": time.process_time() - before}, back

    def _result(self, ran: Ran, program: Program | None) -> tuple[Header, Arrays]:
        found: Any = ran.value if ran.error is None else (None, [])
        value, back = found
        error = None
        if ran.error is not None and not ran.timed_out:
            error = sight.error(ran.error, self._answer)
        told: Header = {
            "is": "result",
            "value": value,
            "error": error,
            "timed_out": ran.timed_out,
            "printed": ran.printed,
            "changed": list(ran.changed),
            "empty_mean": ran.empty_mean,
            "program": None,
        }
        if program is not None and ran.error is None:
            told["program"] = len(back)  # the first of its arrays
            back = [*back, *programs.packed(program)]
        return told, back

    def again(self, request: Header, arrays: Arrays) -> tuple[Header, Arrays]:
        """Do the program of a kernel again, with other numbers in HBM."""
        n = len(programs.HERE)
        placed = dict(zip(programs.HERE, arrays[:n], strict=True))
        try:
            with np.errstate(all="ignore"):
                chip = programs.unpacked(arrays[n:]).again(placed)
        except Exception as error:
            return {"is": "refused", "why": str(error)[:500]}, []
        meters = {m: int(getattr(chip, m)) for m in ("traffic", "written", "peak")}
        return {"is": "again"} | meters, [placed["out"]]


def _execute(code: types.CodeType, space: dict[str, Any]) -> None:
    """The frame below which the statements may be interrupted."""
    exec(code, space)


def _seeded(seed: int) -> None:
    """The same dice for every run: what an answer draws may be seen twice."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    if loaded():
        torch.manual_seed(seed)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with (
        contextlib.redirect_stdout(_Nowhere()),
        contextlib.redirect_stderr(_Nowhere()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield


class _Nowhere(io.TextIOBase):
    def write(self, text: str) -> int:
        return len(text)

    def writable(self) -> bool:
        return True
