"""What the stored outputs of a lesson may hold.

Nothing that differs from machine to machine or from run to run: no path, no address
of an object, no uuid, no version, no warning. And each figure stands there for readers
without a kernel: its sentence, printed before it, and its picture.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from typing import Any

from notebook_source import WIDGET_VIEW, where
from pictures import MAX_BYTES, is_figure

PNG = b"\x89PNG\r\n\x1a\n"
VOLATILE = {
    "a path of this machine": re.compile(
        r"(?<![\w.])/(home|root|Users|tmp|usr|work|opt|var)/|\b[A-Z]:\\|site-packages"
    ),
    "the address of an object": re.compile(r"\b0x[0-9a-f]{6,}"),
    "a uuid": re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-"),
    "a version": re.compile(r"(?<![\d.])\d+\.\d+\.\d+(?![\d.])"),
}


def broken_output_rules(lesson: str, cells: list[Any]) -> list[str]:
    """Every rule on outputs that a stored notebook breaks, in sentences."""
    faults = []
    for cell in cells:
        outputs = cell.get("outputs", [])
        tags = cell.metadata.get("tags", [])
        faults += [f"{where(lesson, cell)} {fault}" for fault in _volatile(outputs)]
        figures = [i for i, output in enumerate(outputs) if is_figure(output)]
        if ("figure" in tags) != bool(figures):
            faults.append(
                f"{where(lesson, cell)} has {len(figures)} figures; the tag figure "
                f"stands on the cells that show one, and on no other."
            )
        for i in figures:
            before = outputs[i - 1] if i else {}
            faults += [
                f"{where(lesson, cell)}: a figure {fault}"
                for fault in _figure(before, outputs[i])
            ]
    return faults


def _volatile(outputs: list[Any]) -> Iterator[str]:
    for output in outputs:
        if output.get("name") == "stderr":
            yield "stores something written to stderr."
        if WIDGET_VIEW in output.get("data", {}):
            yield "stores the id of a widget that is gone."
        for text in _texts(output):
            for what, pattern in VOLATILE.items():
                found = pattern.search(text)
                if found:
                    near = text[max(0, found.start() - 20) : found.end() + 20]
                    yield f"stores {what}: {near!r}."


def _texts(output: Any) -> Iterator[str]:
    yield output.get("text", "")
    yield output.get("evalue", "")
    yield from output.get("traceback", [])
    for mime, content in output.get("data", {}).items():
        if mime.startswith("text/"):
            # Scripts may hold versions of nothing, such as 1.2.3 in a path of an SVG.
            yield re.sub(r"<(script|style|svg)\b.*?</\1>", "", content, flags=re.DOTALL)
        elif mime.endswith("json"):
            yield json.dumps(content, ensure_ascii=False)


def _figure(before: Any, output: Any) -> Iterator[str]:
    sentence = output.data.get("text/plain", "")
    if not sentence.strip() or "\n" in sentence.strip():
        yield f"must have one sentence as text/plain, but has {sentence!r}."
        return
    printed = before.get("text", "").splitlines() or [""]
    if before.get("name") != "stdout" or printed[-1] != sentence:
        yield f"must have its sentence printed just before it: {sentence!r}."
    try:
        png = base64.b64decode(output.data.get("image/png", ""), validate=False)
    except binascii.Error:
        png = b""
    if not png.startswith(PNG):
        yield "has no picture; build the lesson again."
    elif len(png) > MAX_BYTES:
        yield f"has a picture of {len(png)} bytes; at most {MAX_BYTES}."
    if output.metadata.get("image/png", {}).get("alt") != sentence:
        yield "has a picture whose alt text is not its sentence."
