"""A lesson of five cells that breaks no rule, as a stored notebook, made by no kernel.

The tests of the house spoil it in one place each and see the guard answer.
"""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path
from typing import Any

import nbformat
import notebook_source

SOURCE = Path(__file__).parent / "data" / "01_tiny.md"
SENTENCE = "Two numbers, 0.25 and 0.75."


def tiny() -> Any:
    """The tiny lesson, executed (by hand) and with its picture."""
    notebook = notebook_source.read_source(SOURCE)
    _, numbers, figure, _, check = code_cells(notebook)
    numbers.outputs = [stream("[0.    0.143 0.286]\n")]
    html = "<table class='attnlib-explorer'><tr><td>0.25<td>0.75</table>"
    figure.outputs = [
        stream(SENTENCE + "\n"),
        nbformat.from_dict(
            {
                "output_type": "display_data",
                "data": {
                    "text/plain": SENTENCE,
                    "text/html": html,
                    "image/png": base64.b64encode(png()).decode(),
                },
                "metadata": {"image/png": {"alt": SENTENCE}},
            }
        ),
    ]
    check.outputs = [stream("answer: not started yet.\n")]
    return notebook_source.canonical("01_tiny", notebook)


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def stream(text: str, name: str = "stdout") -> Any:
    return nbformat.from_dict({"output_type": "stream", "name": name, "text": text})


def png() -> bytes:
    """One white pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0\xff"))
    return b"\x89PNG\r\n\x1a\n" + body + chunk(b"IEND", b"")
