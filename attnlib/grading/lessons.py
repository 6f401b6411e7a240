"""Notebooks of the course as a teacher has them: found, read, changed, written."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlib import exercises
from attnlib.grading import letters, written

HOME = "notebooks"
LEFT_OUT = "teacher"  # cells with this tag are for the teacher alone
_NUMBERED = "[0-9][0-9]_*.ipynb"
_CHECK = re.compile(r"\s*check\(\s*(['\"])(\w+)\1\s*,")
_BOUND = re.compile(r"^(?:async\s+)?def\s+(\w+)|^(\w+)\s*(?::[^=\n]+)?=(?!=)", re.M)

_HOLDING = ast.stmt | ast.excepthandler | ast.match_case

Document = dict[str, Any]
Cell = dict[str, Any]


class LessonError(ValueError):
    """A notebook cannot be used as it is; the message says which, and why."""


def find(wanted: Sequence[str], here: Path) -> list[Path]:
    """The notebooks that a command line names, each once.

    Args:
        wanted: numbers (`3`, `03`), beginnings (`03_masks`), or paths of notebooks.
        here: the folder in which the command runs; `notebooks` is looked for there.

    Raises:
        LessonError: one of them is not there.
    """
    found = [_one(word, here) for word in wanted]
    return list(dict.fromkeys(found))


def _one(word: str, here: Path) -> Path:
    path = here / word
    if word.endswith(".ipynb") or path.is_file():
        if path.is_file():
            return path
        raise LessonError(f"There is no notebook {word}.")
    folder = here / HOME
    there = sorted(folder.glob(_NUMBERED))
    if not there:
        raise LessonError(
            f"There is no folder {HOME} with lessons here: run this in the folder of "
            "the course, or write the path of a notebook."
        )
    start = f"{int(word):02}_" if re.fullmatch(r"[0-9]{1,2}", word) else word
    fits = [path for path in there if path.name.startswith(start)]
    if len(fits) == 1 and word:
        return fits[0]
    numbers = " ".join(path.name[:2] for path in there)
    if not fits:
        raise LessonError(
            f"There is no lesson {word} in {folder}; there are {numbers}."
        )
    raise LessonError(f"Several lessons begin with {word!r}: {numbers}; write one.")


def read(content: bytes, name: str) -> Document:
    """Return a notebook that was saved in a form of today.

    Args:
        content: of the file.
        name: its name, for the sentence.

    Raises:
        LessonError: it is no notebook, or one of an old form.
    """
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        raise LessonError(f"{name} is no notebook: it cannot be read.") from None
    cells = document.get("cells") if isinstance(document, dict) else None
    if not isinstance(cells, list) or not all(map(_is_cell, cells)):
        raise LessonError(
            f"{name} is no notebook of today's form: open it in JupyterLab and save it."
        )
    for cell in cells:
        cell["source"] = lines(source(cell))
    return dict(document)


def _is_cell(cell: object) -> bool:
    if not isinstance(cell, dict) or not isinstance(cell.get("metadata"), dict):
        return False
    text = cell.get("source")
    parts = text if isinstance(text, list) else [text]
    return all(isinstance(part, str) for part in parts)


def to_bytes(document: Document) -> bytes:
    """A notebook as the course stores them."""
    text = json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True)
    return (text + "\n").encode("utf-8")


def source(cell: Cell) -> str:
    """The text of a cell."""
    return "".join(cell["source"])


def lines(text: str) -> list[str]:
    """A text as notebooks store it."""
    return text.splitlines(keepends=True)


def new_code(text: str, name: str) -> Cell:
    """A cell of code that nobody ran."""
    cell: Cell = {"cell_type": "code", "execution_count": None, "id": name}
    return cell | {"metadata": {}, "outputs": [], "source": lines(text)}


def tags(cell: Cell) -> list[str]:
    """The tags of a cell."""
    return list(cell["metadata"].get("tags", []))


def tagged(cell: Cell, tag: str) -> None:
    """Give a cell a tag that it should have, and may have lost."""
    if tag not in tags(cell):
        cell["metadata"]["tags"] = [*tags(cell), tag]


def code_of(document: Document) -> list[tuple[int, Cell]]:
    """The cells of code, each with its number among all cells, from 1."""
    cells = enumerate(document["cells"], start=1)
    return [(number, cell) for number, cell in cells if cell["cell_type"] == "code"]


def numbered(number: int, cell: Cell) -> str:
    """A cell as it is told: by its number among all cells, and by its first line."""
    return f"Cell {number}{letters.quoted(source(cell))}"


def bound(text: str) -> list[str]:
    """The names that a cell gives a meaning, also where it does not compile."""
    try:
        statements = ast.parse(text).body
    except (SyntaxError, ValueError):
        return seems_bound(text)
    names: list[str] = []
    for statement in _reached(statements):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            names.append(statement.name)
        elif isinstance(statement, ast.Assign):
            nodes = [node for target in statement.targets for node in ast.walk(target)]
            names += [node.id for node in nodes if isinstance(node, ast.Name)]
        elif isinstance(statement, ast.AnnAssign):
            names.append(ast.unparse(statement.target))
    return names


def _reached(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Statements, with those that stand below an if, a with or a try."""
    for node in nodes:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = ast.iter_child_nodes(node)
            yield from _reached(n for n in inner if isinstance(n, _HOLDING))


def seems_bound(text: str) -> list[str]:
    """The names that some code gives a meaning at its top, read off its lines."""
    return [a or b for a, b in _BOUND.findall(text)]


def checked(cell: Cell | None) -> str:
    """The exercise that a cell checks: `check("softmax", softmax)`; or nothing."""
    found = _CHECK.match(source(cell)) if cell else None
    return found.group(2) if found else ""


def stubs(document: Document) -> dict[str, tuple[Cell, Cell | None]]:
    """The cells in which exercises are answered, each with its check, by their names.

    A cell is one by its tag, or, where tags were lost, because the next one checks what
    it defines; for a teacher's own exercises it is enough that it defines one. It may
    be filled in.

    Raises:
        LessonError: an exercise is not known, or stands there twice.
    """
    known, code = exercises.names(), code_of(document)
    own = set(known) - exercises.of_the_course().keys()
    found: dict[str, tuple[Cell, Cell | None]] = {}
    numbers: dict[str, int] = {}
    following: list[Cell | None] = [*(cell for _, cell in code[1:]), None]
    for (number, cell), after in zip(code, following, strict=False):
        if LEFT_OUT in tags(cell):
            continue
        given, asked = bound(source(cell)), checked(after)
        name = asked if asked in given else next((n for n in given if n in own), "")
        if not name and "exercise" not in tags(cell):
            continue
        name = name or next((n for n in reversed(given) if n in known), asked)
        if name not in known:
            raise LessonError(
                f"{numbered(number, cell)} asks for {name or 'no exercise by its name'}"
                ", which is none of the course's; your own ones need --exercises "
                "FOLDER."
            )
        if name in found:
            raise LessonError(
                f"Cells {numbers[name]} and {number} both answer {name}: delete one, "
                f"or give it the tag `{LEFT_OUT}`."
            )
        found[name] = cell, after if asked == name else None
        numbers[name] = number
    return found


def write(made: Mapping[Path, bytes], sources: Sequence[Path], force: bool) -> None:
    """Write files, but none over another one that differs, unless told to.

    Args:
        made: the content of each.
        sources: what they were made of; never written over.
        force: overwrite what differs.

    Raises:
        LessonError: one is there and differs. Nothing was written then.
        OSError: a folder or a disk does not take it.
    """
    origins = {path.resolve() for path in sources}
    for path, content in made.items():
        if path.resolve() in origins:
            raise LessonError(
                f"{path} would be written over what it is made of: choose another "
                "folder."
            )
        if path.exists() and not force and path.read_bytes() != content:
            raise LessonError(
                f"{path} is there and differs; --force writes over it. Nothing was "
                "written."
            )
    for path, content in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != content:
            written.whole(path, content)
