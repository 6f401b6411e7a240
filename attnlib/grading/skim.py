"""The JSON of a notebook without its outputs, whatever letters it is written in."""

from __future__ import annotations

import json
import re

from attnlib.grading import letters

MEGABYTE = 1_000_000
MOST_TEXT = 10 * MEGABYTE  # characters without the outputs

_CUT = re.compile(r"[^\x00-\x20\x1a]")

# Strings and brackets of JSON. A string that never ends is one up to the end, so that
# no file makes the search begin anew at every quote in it.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+|[\[\]{}]', re.DOTALL)
_VALUE = re.compile(rb"\s*+:\s*+[\[{]")
_UNREAD = {b'"outputs"', b'"attachments"', b'"widgets"'}


class Unreadable(Exception):
    """A file that is no notebook; the message is one sentence for the teacher."""


class NotJson(Exception):
    """The text is no JSON; the message is a sentence."""


def document(data: bytes) -> tuple[object, list[str]]:
    """The JSON of a file without outputs, and notes on how it was written."""
    first: NotJson | None = None
    if data.lstrip()[:1] == b"{" and data[1:2] != b"\0":
        try:
            return _parsed(without_outputs(data).decode("utf-8"))
        except UnicodeDecodeError:
            pass
        except NotJson as error:  # perhaps GBK: its letters may hold a backslash
            first = error
    text, encoding = letters.decode(data)
    if first and encoding == "utf-8" and "\ufffd" not in text:
        raise first
    try:
        return _read_as(text, encoding)
    except NotJson as error:
        if encoding != "cp1252":
            raise
        first = error
    try:  # what looked like western letters may be rare Chinese ones
        return _read_as(data.decode("gb18030"), "gb18030")
    except (NotJson, UnicodeDecodeError):
        raise first from None


def _read_as(text: str, encoding: str) -> tuple[object, list[str]]:
    data = text.encode("utf-8", "replace")
    document, notes = _parsed(without_outputs(data).decode("utf-8"))
    return document, [*encoding_note(encoding), *notes]


def without_outputs(data: bytes) -> bytes:
    """The bytes of a notebook with an empty list for all outputs and attachments."""
    kept, start = [], 0
    tokens = _TOKEN.finditer(data)
    for token in tokens:
        # No long string is copied to see that it is none of the short keys.
        if token.end() - token.start() > 14 or token.group() not in _UNREAD:
            continue
        opened = _VALUE.match(data, token.end())
        if opened is None:
            continue
        kept.append(data[start : opened.end()])
        start, depth = len(data), 0
        for inner in tokens:
            first = data[inner.start()]
            if first in b"[{":
                depth += 1
            elif first in b"]}":
                depth -= 1
                if depth <= 0:
                    start = inner.start()
                    break
    return b"".join([*kept, data[start:]])


def _unread(digits: str) -> None:
    """No number of a notebook is looked at, and a long one is slow to read."""


_DECODER = json.JSONDecoder(strict=False, parse_int=_unread, parse_float=_unread)


def _parsed(text: str) -> tuple[object, list[str]]:
    text = text.lstrip("\ufeff \t\r\n")
    if len(text) > MOST_TEXT:
        raise Unreadable(
            f"The notebook has {len(text) // MEGABYTE} MB even without its outputs, "
            f"more than the {MOST_TEXT // MEGABYTE} MB that are read."
        )
    try:
        document, end = _DECODER.raw_decode(text)
    except RecursionError:
        raise Unreadable("The file has too many brackets inside brackets.") from None
    except json.JSONDecodeError as error:
        raise NotJson(_damage(text, error)) from None
    except ValueError as error:
        raise NotJson(f"The file is no notebook: {error}.") from None
    if _CUT.search(text, end):
        return document, ["There is more text after the notebook's end; unread."]
    return document, []


def _damage(text: str, error: json.JSONDecodeError) -> str:
    if not text.startswith("{"):
        return "The file is no notebook: a notebook is JSON, and begins with {."
    if re.search(r"^(<{7}|>{7}) ", text, re.MULTILINE):
        return "The file has the marks of a merge conflict (<<<<<<<) in it."
    if error.msg.startswith("Unterminated") or error.pos >= len(text.rstrip()):
        return "The file ends in the middle: it was cut off, perhaps while uploading."
    return f"The file is damaged: it is not valid JSON ({error.msg})."


def encoding_note(encoding: str) -> list[str]:
    """A sentence on how a file was written, if not as all others are."""
    if encoding == "utf-8":
        return []
    return [f"The file is not written in UTF-8; it was read as {encoding}."]
