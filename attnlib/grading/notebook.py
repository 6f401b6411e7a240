"""Read a notebook, whatever was done to it: only its code cells, in their order.

>>> found = read(b'{"cells": [{"cell_type": "code", "source": "x = 1"}]}', "a.ipynb")
>>> found.cells
(Cell(number=1, source='x = 1', tags=()),)
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from attnlib.grading import letters, skim
from attnlib.grading.skim import MEGABYTE, Unreadable

LARGEST = 200_000_000  # bytes of a file
MOST_CODE = 1_000_000  # characters in all code cells
MOST_CELLS = 10_000

_PYTHON = {"python", "python3", "ipython", "ipython3", "py"}
_OTHER_KINDS = {"markdown", "raw", "heading", "html"}
_CODE_FIRST = re.compile(r"\s*(?:def|import|from|class|@)\s*\w")

_MARKER = re.compile(
    r"^#[ \t]*(?:%%|In[ \t]*\[[\d ]*\]:|COMMAND -{5,})(.*)$", re.MULTILINE
)
_TAGS = re.compile(r"tags=\[([^\]]*)\]")

_KINDS = (
    (b"%PDF", "a PDF"),
    (b"PK\x03\x04", "a zip archive (or an Office document)"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"Rar!", "a RAR archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"bplist", "a web archive"),
    (b"version https://git-lfs", "a pointer of Git LFS, without the file itself"),
    (b"<", "a web page (HTML or XML)"),
)


@dataclass(frozen=True)
class Cell:
    """A code cell. `number` counts all cells of the notebook, from 1."""

    number: int
    source: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Notebook:
    """The code cells of a file, and sentences on what was odd about it."""

    cells: tuple[Cell, ...]
    notes: tuple[str, ...] = ()


def read(data: bytes, name: str = "") -> Notebook:
    """Return the code cells of a notebook, or of a Python file with `# %%` marks.

    nbformat 1 to 5 and later ones that look alike; UTF-8, UTF-16, GB18030. Outputs are
    cut out of the bytes before anything is decoded: they are never read.

    Args:
        data: the content of the file.
        name: its name; only the ending counts.

    Raises:
        Unreadable: it is no notebook, is damaged, or is too large.
    """
    if len(data) > LARGEST:
        raise Unreadable(
            f"The file has {len(data) // MEGABYTE} MB, more than the "
            f"{LARGEST // MEGABYTE} MB that are read."
        )
    if not re.search(rb"[^\s\0]", data):
        zeros = "The file has zeros only, as after a failed copy."
        raise Unreadable(zeros if b"\0" in data else "The file is empty.")
    data = data.removeprefix(codecs.BOM_UTF8)
    script = re.search(r"\.py(\.txt)?$", name.casefold()) is not None
    for kind in _KINDS:
        if data[:200].lstrip().startswith(kind[0]) and not script:
            raise Unreadable(f"The file is no notebook: it is {kind[1]}.")
    try:
        document, notes = skim.document(data)
    except skim.NotJson as error:
        if not script:
            raise Unreadable(str(error)) from None
        text, encoding = letters.decode(data)
        return _checked(_script(text), skim.encoding_note(encoding))
    return _notebook(document, notes)


def _notebook(document: object, notes: list[str]) -> Notebook:
    found = document if isinstance(document, dict) else {}
    cells = found.get("cells")
    if not isinstance(cells, list):
        sheets = found.get("worksheets")  # nbformat 2 and 3
        if not isinstance(sheets, list):
            raise Unreadable("The file is JSON, but no notebook: it has no cells.")
        cells = []
        for sheet in sheets:
            inside = sheet.get("cells") if isinstance(sheet, dict) else None
            cells += inside if isinstance(inside, list) else []
    kept = []
    for number, cell in enumerate(cells, start=1):
        source, note = _code(cell)
        if source is not None:
            kept.append(Cell(number, source, _tags(cell)))
        if note and len(notes) < 50:
            notes.append(f"Cell {number} {note}")
    return _checked(kept, notes)


def _checked(cells: list[Cell], notes: list[str]) -> Notebook:
    if len(cells) > MOST_CELLS:
        raise Unreadable(f"The notebook has {len(cells)} cells of code.")
    length = sum(len(cell.source) for cell in cells)
    if length > MOST_CODE:
        raise Unreadable(
            f"The notebook has {length} characters of code, more than the "
            f"{MOST_CODE} that are read."
        )
    return Notebook(tuple(cells), tuple(notes))


def _code(cell: object) -> tuple[str | None, str]:
    """The source of a cell if it is code, and what is odd about it."""
    if not isinstance(cell, dict):
        return None, "is no cell; unread."
    kind = str(cell.get("cell_type"))
    held = next((k for k in ("source", "input", "code") if k in cell), "")
    text = _text(cell.get(held))
    if kind in ("markdown", "raw") and _CODE_FIRST.match(text):
        if re.search(r"^def \w+\(", text, re.MULTILINE):
            return None, f"is a {kind} cell with a function in it; unread."
        return None, ""
    ran = {"outputs", "execution_count", "prompt_number"} & set(cell)
    if kind != "code" and (
        kind in _OTHER_KINDS or not (ran or held in ("input", "code"))
    ):
        return None, ""
    language = _language(cell)
    if language not in _PYTHON:
        return None, f"is written in {letters.clean(language)[:40]}; unread."
    return text, ""


def _language(cell: dict[object, object]) -> str:
    metadata = cell.get("metadata")
    editor = metadata.get("vscode") if isinstance(metadata, dict) else None
    said = editor.get("languageId") if isinstance(editor, dict) else None
    said = said or cell.get("language")
    return said.casefold() if isinstance(said, str) and said else "python"


def _tags(cell: dict[object, object]) -> tuple[str, ...]:
    metadata = cell.get("metadata")
    tags = metadata.get("tags") if isinstance(metadata, dict) else None
    return tuple(t for t in tags if type(t) is str) if isinstance(tags, list) else ()


def _text(source: object) -> str:
    if isinstance(source, list):
        lines = [line for line in source if isinstance(line, str)]
        # Some tools write the lines without their ends.
        between = "" if any(line.endswith("\n") for line in lines[:-1]) else "\n"
        source = between.join(lines)
    if not isinstance(source, str):
        return ""
    source = source.replace("\r\n", "\n").replace("\r", "\n").replace("\0", " ")
    try:
        source.encode("utf-8")
    except UnicodeEncodeError:  # half a character, which Python refuses to compile
        source = source.encode("utf-8", "replace").decode("utf-8")
    return source.removeprefix("\ufeff")


def _script(text: str) -> list[Cell]:
    """The cells of a Python file: at `# %%`, `# In[3]:` or `# COMMAND ----------`."""
    text = _text(text)
    marks = list(_MARKER.finditer(text))
    ends = [mark.start() for mark in marks] + [len(text)]
    cells = []
    if not marks or re.search(r"^[ \t]*[^#\s]", text[: ends[0]], re.MULTILINE):
        cells.append(Cell(1, text[: ends[0]]))
    first = len(cells) + 1
    for number, (mark, end) in enumerate(zip(marks, ends[1:], strict=True), first):
        title = mark.group(1)
        if re.search(r"\[(markdown|md|raw)\]", title):
            continue
        tags = _TAGS.search(title)
        names = re.findall(r"[\w-]+", tags.group(1)) if tags else ()
        cells.append(Cell(number, text[mark.end() : end].lstrip("\n"), tuple(names)))
    return cells


__all__ = ["Cell", "Notebook", "Unreadable", "read"]
