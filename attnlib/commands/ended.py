"""A run that somebody ends: Ctrl-C, SIGTERM, a terminal that is closed."""

from __future__ import annotations

import contextlib
import signal
import types
from collections.abc import Iterator


class Ended(BaseException):
    """Somebody ends the run: Ctrl-C, SIGTERM, a terminal that is closed."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def told() -> Iterator[None]:
    """The first signal that ends a program raises `Ended`; later ones wait."""
    names = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP"):
        names.append(signal.SIGHUP)
    before = {name: signal.getsignal(name) for name in names}

    def end(number: int, frame: types.FrameType | None) -> None:
        for name in names:
            signal.signal(name, signal.SIG_IGN)
        raise Ended(number)

    for name, handler in before.items():
        if handler is not signal.SIG_IGN:  # as under nohup
            signal.signal(name, end)
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
