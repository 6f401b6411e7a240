"""Functions of the grader's, as a student's code calls them."""

from __future__ import annotations

import contextlib
import signal
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from attnlib.grading.channel import Channel
from attnlib.grading.inside.errors import rebuilt
from attnlib.grading.values import pack, unpack

Array = npt.NDArray[Any]
GONE_THROUGH = {set, frozenset, range, map, filter, zip, enumerate, reversed}
GONE_THROUGH |= {types.GeneratorType, type({}.keys()), type({}.values())}


class FarFunctions:
    """Makes what stands for a function of the grader's, and undoes what it changed."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._before: list[tuple[Array, Array]] = []

    def begin(self, seed: int | None) -> None:
        """A call begins; the dice fall as `seed` says, if it says something."""
        self._before.clear()
        if seed is not None:
            np.random.seed(seed)  # noqa: NPY002 - for checks that draw from there

    def made(self, node: Any) -> Callable[..., Any]:
        """What stands for the function of a node."""
        number, name = int(node["number"]), str(node["name"])

        def function(*args: Any, **kwargs: Any) -> Any:
            return self._ask(number, args, kwargs)

        function.__name__ = function.__qualname__ = name
        return function

    def put_back(self) -> None:
        """Arrays that a function changed may be used again: as they were."""
        for array, copy in reversed(self._before):
            if array.flags.writeable:
                array[...] = copy
        self._before.clear()

    def _ask(self, number: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        node, arrays = pack([tuple(map(_listed, args)), kwargs])
        question = {"what": "callback", "function": number, "args": node}
        with _not_interrupted():
            self._channel.send(question, arrays)
            reply, back = self._channel.receive()
        for place, index in reply["changed"]:
            array = args[place] if type(place) is int else kwargs[place]
            if type(array) is np.ndarray and array.flags.writeable:
                self._before.append((array, array.copy()))
                array[...] = back[index]
        if reply["error"] is not None:
            raise rebuilt(reply["error"])
        return unpack(reply["value"], back)


def _listed(value: Any) -> Any:
    """What can only be gone through, as a list of what is in it."""
    return list(value) if type(value) in GONE_THROUGH else value


@contextlib.contextmanager
def _not_interrupted() -> Iterator[None]:
    """An alarm that rings between two halves of a frame would break the line."""
    alarm = {getattr(signal, "SIGALRM", signal.SIGINT)}
    signal.pthread_sigmask(signal.SIG_BLOCK, alarm)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, alarm)
