"""Tried in a sandbox before a class is graded: does it compute, and does it hold?"""

from __future__ import annotations

import contextlib
import importlib
import os
import socket
from pathlib import Path
from typing import Any

import numpy as np

from attnlib.grading.channel import Channel


def serve(channel: Channel) -> None:
    """Answer one question: what can be done from in here."""
    asked, arrays = channel.receive()
    # Whether what is not loaded yet can be read: a module of Python, and packages.
    importlib.import_module("colorsys")
    os.listdir(Path(np.__file__).parents[1])
    Path(np.__file__).read_bytes()
    said = {
        "reads": _works(lambda: open(asked["file"]).close()),
        "writes": _works(lambda: os.close(_new(asked["folder"]))),
        "connects": _works(lambda: _connect(asked["port"])),
        "signals": _works(lambda: os.kill(asked["pid"], 0)),
    }
    channel.send(said, [np.cumsum(arrays[0])])
    with contextlib.suppress(Exception):
        channel.receive()


def _works(action: Any) -> bool:
    try:
        action()
    except OSError:
        return False
    return True


def _new(folder: str) -> int:
    return os.open(os.path.join(folder, "written"), os.O_CREAT | os.O_WRONLY)


def _connect(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=1):
        pass
