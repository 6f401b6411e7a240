"""Wrong usage in one sentence: what was written, and what to write."""

from __future__ import annotations

import argparse
import difflib
import math
from collections.abc import Iterator
from typing import NoReturn

USAGE = 2  # the exit status of wrong usage
UNKNOWN = "unrecognized arguments: "


class Parser(argparse.ArgumentParser):
    """argparse, which says what is wrong without listing everything there is."""

    def error(self, message: str) -> NoReturn:
        """Print one sentence to stderr and end with status 2."""
        message = message.removeprefix("argument ").rstrip(".")
        if message.startswith(UNKNOWN):
            message = self._unknown(message.removeprefix(UNKNOWN))
        end = "" if message.endswith("?") else "."
        self.exit(USAGE, f"{self.prog}: {message}{end} See {self.prog} --help\n")

    def _unknown(self, written: str) -> str:
        word = written.split("=")[0].split()[0]
        there = set(self._options())
        if word in there:  # of another command
            return f"{written} is no option of this command"
        near = difflib.get_close_matches(word, there, n=1)
        meant = f"; is {near[0]} meant?" if near else ""
        return f"{written} is not known{meant}"

    def _options(self) -> Iterator[str]:
        for action in self._actions:
            yield from action.option_strings
            if isinstance(action, argparse._SubParsersAction):
                for inner in action.choices.values():
                    if isinstance(inner, Parser):
                        yield from inner._options()


def size(text: str) -> int:
    """A number of things, from 1 on."""
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no whole number; write one, such as 8"
        ) from None
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is no size; write 1 or more")
    return value


def seed(text: str) -> int:
    """A whole number from 0 on."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(
            f"{text!r} is no whole number from 0 on; write one, such as 3"
        )
    return int(text)


def number(text: str) -> float:
    """A finite number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number; write one, such as 0.5"
        )
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value
