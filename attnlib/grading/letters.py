"""Bytes as text: which encoding a student's computer wrote, found by trying."""

from __future__ import annotations

import codecs
import re
import unicodedata

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_HIGH = re.compile(rb"[\x80-\xff]+")
LONGEST_QUOTE = 60  # characters
_SAMPLE = 1_000_000  # bytes that are looked at to tell Chinese from western letters


def decode(data: bytes, last: str = "cp1252") -> tuple[str, str]:
    """The text of some bytes, and the encoding it was read with. Never fails.

    Args:
        data: the bytes of a file, or of a file's name.
        last: the encoding taken when no other fits.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace"), encoding.removesuffix("-sig")
    if len(data) > 1 and (data[0] == 0) != (data[1] == 0):
        encoding = "utf-16-be" if data[0] == 0 else "utf-16-le"
        return data.decode(encoding, "replace"), encoding
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
    high = sum(map(len, _HIGH.findall(data[:_SAMPLE])))
    if text[:_SAMPLE].count("\ufffd") * 10 <= high:  # UTF-8 with a spot on it
        return text, "utf-8"
    if not _western(data[:_SAMPLE]):
        try:
            return data.decode("gb18030"), "gb18030"
        except UnicodeDecodeError:
            pass
    return data.decode(last, "replace"), last


def _western(data: bytes) -> bool:
    """Whether bytes above 127 stand alone, as in café, and not in pairs, as in 猫.

    GBK takes `é` and the letter after it for one Chinese character. That would eat
    the backslash of a line's end, and with it the next line of an answer.
    """
    runs = [len(run) for run in _HIGH.findall(data)]
    odd = sum(length % 2 for length in runs)
    return odd * 5 > len(runs) * 2


def clean(text: str) -> str:
    """A name fit to print: composed, on one line, no control or direction marks."""
    if not text.isprintable():
        try:
            text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        except UnicodeEncodeError:  # half a character of UTF-16, not of a file name
            text = text.encode("utf-8", "replace").decode("utf-8")
        text = "".join(c if c.isprintable() else "\ufffd" for c in text)
    return unicodedata.normalize("NFC", text).strip()


def quoted(code: str) -> str:
    """The first line of some code, cut, as it is told behind the number of a cell.

    A notebook shows no numbers of its cells, so this is what to look for.

    >>> quoted("def f(x):\\n    ...")
    ' (`def f(x):`)'
    """
    first = clean(code.strip().partition("\n")[0]).replace("`", "'")
    cut = first if len(first) <= LONGEST_QUOTE else first[: LONGEST_QUOTE - 1] + "…"
    return f" (`{cut}`)" if cut else ""


def key(name: str) -> str:
    """What two spellings of one name share: case and composition do not count."""
    return unicodedata.normalize("NFC", clean(name).casefold())
