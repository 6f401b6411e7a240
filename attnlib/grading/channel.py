"""Frames over a socket: a header as JSON, and arrays as plain numbers.

A frame is ``AbH1 | length of the JSON | length of the numbers | JSON | numbers``. The
JSON holds the header and, for each array, its type and its shape. Who reads trusts
nothing: every length is looked at before memory is taken, only numbers and truth values
are arrays, and nothing is ever unpickled.

The grader and the student's process both use this file, so it needs NumPy alone.
"""

from __future__ import annotations

import contextlib
import json
import math
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Reason = Literal["timeout", "ended", "killed", "memory", "broke", "output"]
Header = dict[str, Any]
Arrays = list[np.ndarray]

MESSAGE = 512  # bytes of an order to the supervisor, and of a report from it
MAGIC = b"AbH1"
HEAD = struct.Struct(">4sIQ")
CHUNK = 1 << 20  # bytes taken from the socket at once
KINDS = "biufc"  # of NumPy's types: bool, int, unsigned, float, complex
DIMENSIONS = 32


class Lost(Exception):
    """There will be no answer any more, and why.

    `reason` is one word, `detail` a few more for the teacher. `sandbox` is True where
    the whole sandbox is gone, and perhaps not by the fault of this exercise.
    """

    def __init__(self, reason: Reason, detail: str = "", sandbox: bool = False):
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason: Reason = reason
        self.detail = detail
        self.sandbox = sandbox


@dataclass(frozen=True)
class Caps:
    """The largest frame that is read."""

    header: int = 4 << 20  # bytes of JSON
    numbers: int = 128 << 20  # bytes of all arrays together
    arrays: int = 4096


CAPS = Caps()


@dataclass(frozen=True)
class Also:
    """A second socket to look at while waiting; `act` may raise Lost."""

    socket: socket.socket
    act: Callable[[], None]


class Channel:
    """One end of a line. It is blocking for its user, and never for ever."""

    def __init__(self, line: socket.socket, caps: Caps = CAPS) -> None:
        self._line, self._caps = line, caps
        self._came = bytearray()
        line.setblocking(False)

    def close(self) -> None:
        """Hang up."""
        self._line.close()

    def send(
        self,
        header: Header,
        arrays: Sequence[np.ndarray] = (),
        seconds: float | None = None,
        also: Also | None = None,
    ) -> None:
        """Send one frame.

        Args:
            header: what JSON can say; text that is no Unicode is sent with "?".
            arrays: arrays of numbers or truth values.
            seconds: how long the other side may take to read it; None: for ever.
            also: a second socket to look at meanwhile.

        Raises:
            Lost: the other side has hung up ("ended") or does not read ("timeout").
            TypeError: an array holds something else than numbers.
        """
        plain = [_plain(array) for array in arrays]
        about = [[array.dtype.str, list(array.shape)] for array in plain]
        text = json.dumps([header, about], ensure_ascii=False, separators=(",", ":"))
        said = text.encode("utf-8", "replace")
        numbers = sum(array.nbytes for array in plain)
        head = HEAD.pack(MAGIC, len(said), numbers)
        until = _until(seconds)
        self._write(head + said, until, also)
        for array in plain:
            if array.nbytes:
                self._write(array.reshape(-1).view(np.uint8).data, until, also)

    def receive(
        self, seconds: float | None = None, also: Also | None = None
    ) -> tuple[Header, Arrays]:
        """The next frame.

        Args:
            seconds: how long to wait for the whole of it; None: for ever.
            also: a second socket to look at meanwhile.

        Returns:
            The header and the arrays, which are the reader's own.

        Raises:
            Lost: "timeout"; "ended": the other side has hung up; "broke": it sent what
                is no frame; "output": it sent more than is read.
        """
        until = _until(seconds)
        head = self._take(HEAD.size, until, also)
        magic, n_text, n_numbers = HEAD.unpack(head)
        if magic != MAGIC:
            raise Lost("broke", "it sent what is no answer")
        if n_text > self._caps.header or n_numbers > self._caps.numbers:
            raise Lost("output", f"an answer of {(n_text + n_numbers) >> 20} MB")
        header, about = _parsed(bytes(self._take(n_text, until, also)))
        sizes = _sizes(about, n_numbers, self._caps)
        numbers = self._take(n_numbers, until, also)
        return header, _arrays(numbers, sizes)

    def _take(self, size: int, until: float, also: Also | None) -> bytearray:
        while len(self._came) < size:
            self._wait(until, also, writing=False)
            try:
                came = self._line.recv(CHUNK)
            except BlockingIOError:  # only the second socket had something
                continue
            except OSError as error:
                raise Lost("ended", "the line was cut") from error
            if not came:
                raise Lost("ended", "the line was closed")
            self._came += came
        taken = self._came[:size]
        del self._came[:size]
        return taken

    def _write(self, data: bytes | memoryview, until: float, also: Also | None) -> None:
        left = memoryview(data)
        while len(left):
            self._wait(until, also, writing=True)
            try:
                left = left[self._line.send(left[:CHUNK]) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise Lost("ended", "the line was closed") from error

    def _wait(self, until: float, also: Also | None, writing: bool) -> None:
        reads: list[Any] = [] if writing else [self._line]
        if also is not None:
            reads.append(also.socket)
        left = until - time.monotonic()
        if left <= 0:
            raise Lost("timeout")
        ready = select.select(
            reads,
            [self._line] if writing else [],
            [],
            None if left == math.inf else left,
        )
        if also is not None and also.socket in ready[0]:
            also.act()


def _until(seconds: float | None) -> float:
    return math.inf if seconds is None else time.monotonic() + seconds


def _plain(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind not in KINDS:
        raise TypeError(f"An array of {array.dtype} cannot be sent.")
    # ascontiguousarray alone would make an array of no axes one of one axis.
    return np.ascontiguousarray(array).reshape(array.shape)


def _parsed(text: bytes) -> tuple[Header, list[Any]]:
    """The header and what is said of the arrays, or Lost."""
    with contextlib.suppress(ValueError, RecursionError, TypeError):
        header, about = json.loads(text.decode("utf-8"))
        # Half a character, written as \\ud800, would fail later, in a report.
        json.dumps(header, ensure_ascii=False).encode("utf-8")
        if type(header) is dict and type(about) is list:
            return header, about
    raise Lost("broke", "it sent what is no answer")


def _sizes(
    about: list[Any], numbers: int, caps: Caps
) -> list[tuple[np.dtype[Any], tuple[int, ...], int]]:
    """The type, the shape and the bytes of each array; they add up, or Lost."""
    if len(about) > caps.arrays:
        raise Lost("output", f"an answer of {len(about)} arrays")
    sizes = []
    with contextlib.suppress(ValueError, TypeError):
        for name, shape in about:
            dtype = _dtype(name)
            if type(shape) is not list or len(shape) > DIMENSIONS:
                raise ValueError
            if not all(type(n) is int and 0 <= n < 2**31 for n in shape):
                raise ValueError
            # An array of nothing may have long sides, but none that NumPy cannot count.
            if math.prod(max(n, 1) for n in shape) > 2**40:
                raise ValueError
            sizes.append((dtype, tuple(shape), dtype.itemsize * math.prod(shape)))
        if sum(size for _, _, size in sizes) == numbers:
            return sizes
    raise Lost("broke", "it sent what is no array")


def _dtype(name: object) -> np.dtype[Any]:
    """A type of numbers, from its short name such as "<f8"."""
    if type(name) is not str or len(name) > 5 or name[1:2] not in KINDS:
        raise ValueError(name)
    dtype = np.dtype(name)
    if dtype.str != name:
        raise ValueError(name)
    return dtype


def _arrays(
    numbers: bytearray, sizes: list[tuple[np.dtype[Any], tuple[int, ...], int]]
) -> Arrays:
    arrays, at = [], 0
    for dtype, shape, size in sizes:
        raw = np.frombuffer(numbers, np.uint8, size, at)
        # A truth value is 0 or 1. NumPy trusts that; a forged 2 would confuse it.
        flat = raw != 0 if dtype.kind == "b" else raw.copy().view(dtype)
        try:
            arrays.append(flat.reshape(shape))
        except ValueError:  # no numbers, and a shape that is too large all the same
            raise Lost("broke", "it sent what is no array") from None
        at += size
    return arrays
