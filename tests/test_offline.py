"""The guard under which every notebook is tested sees whatever goes to the network.

That it stands in every kernel, and that a swallowed refusal still fails the cell, is
shown by test_nbval_gate.py; that no lesson of the course trips it, by the notebooks.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import notebook_source as ns
import pytest

TRY = """
import sys
sys.path.insert(0, {tools!r})
from offline_guard import guard
guard({record!r}, no_torch={no_torch})
try:
    {attempt}
except Exception as error:
    print(type(error).__name__, error)
"""
REFUSED = {
    "import socket; socket.socket().connect(('192.0.2.1', 80))": "socket.connect",
    "import socket; socket.socket().connect_ex(('127.0.0.1', 1))": "socket.connect",
    "import socket; socket.create_connection(('example', 80))": "socket.getaddrinfo",
    "import socket; socket.gethostbyname('example')": "socket.gethostbyname",
    "import socket as s; s.socket(2, 2).sendto(b'', ('192.0.2.1', 1))": "socket.sendto",
    "import urllib.request as r; r.urlopen('http://example')": "urllib.Request",
    "import http.client as h; h.HTTPConnection('x').connect()": "http.client.connect",
}


def attempt(code: str, folder: Path, no_torch: bool = True) -> tuple[str, str]:
    """What a process under the guard says, and what the guard wrote down."""
    record = folder / "refused.txt"
    program = TRY.format(
        tools=str(ns.ROOT / "tools"),
        record=str(record),
        attempt=code,
        no_torch=no_torch,
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, record.read_text() if record.exists() else ""


@pytest.mark.parametrize("code", REFUSED)
def test_going_to_the_network_is_refused_and_written_down(
    code: str, tmp_path: Path
) -> None:
    said, written = attempt(code, tmp_path)
    assert "RuntimeError A lesson works offline and light; refused" in said
    assert written.startswith(REFUSED[code])


def test_torch_is_refused_where_it_is_not_due(tmp_path: Path) -> None:
    said, written = attempt("import torch", tmp_path)
    assert "refused: import torch" in said
    assert written == "import torch, in a lesson of the NumPy half\n"


@pytest.mark.parametrize(
    "code",
    [
        "import importlib.util as u; u.find_spec('torch')",
        "import json, asyncio; asyncio.run(asyncio.sleep(0))",
        "import socket; socket.socketpair()",
    ],
)
def test_what_a_lesson_may_do_passes(code: str, tmp_path: Path) -> None:
    assert attempt(code, tmp_path) == ("", "")
