"""A running sandbox, as the grader sees it: a process, and a socket to give orders."""

from __future__ import annotations

import json
import socket
import subprocess
import tempfile
from typing import IO, Any

from attnlib.grading.channel import MESSAGE, Lost
from attnlib.grading.ending import wait_or_kill
from attnlib.grading.sandbox.place import Sandbox

START = 120.0  # seconds until the supervisor has loaded torch, on a busy machine
END = 30.0  # seconds in which everything of an exercise must have ended


class NotStarted(Exception):
    """The sandbox did not start: a fault of the machine, not of an answer."""


class Box:
    """A running sandbox: its process and the socket to its supervisor."""

    def __init__(self, sandbox: Sandbox, settings: dict[str, Any]) -> None:
        self.control, theirs = socket.socketpair()
        self._name, self._number, self._open = sandbox.name, 0, True
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._last_words = "it ended at once"
        with theirs, tempfile.TemporaryFile() as asked:
            asked.write(json.dumps(settings).encode())
            asked.seek(0)
            try:
                self._process: subprocess.Popen[bytes] = subprocess.Popen(
                    sandbox.command(theirs.fileno()),
                    stdin=asked,
                    stdout=subprocess.DEVNULL,
                    stderr=self._said,
                    pass_fds=[theirs.fileno()],
                    env=sandbox.environment(),
                    cwd="/",
                    start_new_session=True,
                )
            except OSError as error:
                self.control.close()
                self._said.close()
                raise NotStarted(f"{sandbox.name} does not start: {error}.") from None
        self._wait_until_ready()

    @property
    def alive(self) -> bool:
        """Whether it takes orders."""
        return self._open and self._process.poll() is None

    def begin(self) -> socket.socket:
        """Start a child; the grader's end of its line."""
        ours, theirs = socket.socketpair()
        self._number += 1
        order = {"do": "begin", "number": self._number}
        with theirs:
            try:
                socket.send_fds(self.control, [_message(order)], [theirs.fileno()])
            except OSError:
                self.close()
        return ours

    def tell(self, order: dict[str, Any]) -> None:
        """Send an order to the supervisor.

        Raises:
            Lost: the sandbox has ended.
        """
        try:
            self.control.settimeout(END)
            self.control.sendall(_message(order))
        except OSError:
            self.close()
            raise Lost("ended", sandbox=True) from None

    def report(self, seconds: float = END) -> dict[str, Any]:
        """The supervisor's next report.

        Raises:
            Lost: there is none in this time ("timeout"), or the sandbox has ended.
        """
        try:
            self.control.settimeout(seconds)
            raw = self.control.recv(MESSAGE, socket.MSG_WAITALL)
            if len(raw) == MESSAGE:
                return dict(json.loads(raw))
        except TimeoutError:
            raise Lost("timeout") from None
        except (OSError, ValueError):
            pass
        self.close()
        raise Lost("ended", sandbox=True)

    def close(self) -> None:
        """End the sandbox. It ends by itself, too, once this socket is closed."""
        if not self._open:
            return
        self._open = False
        self.control.close()
        try:
            wait_or_kill(self._process, END)
        finally:
            self._listen()

    def _wait_until_ready(self) -> None:
        try:
            ready = self.report(START)
        except Lost:
            self.close()
            why = f"{self._name} does not start: {self._last_words}."
            raise NotStarted(why) from None
        except BaseException:
            self.close()
            raise
        if not ready.get("ready"):
            self.close()
            why = f"{self._name} starts, but Python does not: {ready.get('why')}."
            raise NotStarted(why)

    def _listen(self) -> None:
        """Keep the last line that it wrote before it ended."""
        self._said.seek(0)
        lines = self._said.read(1 << 16).decode("utf-8", "replace").split("\n")
        self._said.close()
        said = [line.strip() for line in lines if line.strip()]
        if said:
            self._last_words = said[-1].rstrip(".")


def _message(order: dict[str, Any]) -> bytes:
    return json.dumps(order).encode().ljust(MESSAGE)
