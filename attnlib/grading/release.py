"""What students get: blank stubs, no outputs, and no solution anywhere."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from attnlib import exercises
from attnlib.exercises.exercise import parted
from attnlib.exercises.wrap import wrapped
from attnlib.grading import lessons, magics
from attnlib.grading.lessons import Cell, Document, LessonError

KEPT = {"kernelspec", "language_info"}  # of what a notebook says of itself
# What editors note down of a run: when, by whom.
FEWEST = 12  # parts of expressions: what is shorter stands in any lesson
_FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.M | re.S)
_OF_RUNS = ("execution", "ExecuteTime", "executionInfo", "outputId", "colab")


def released(content: bytes, name: str, keep_outputs: bool = False) -> bytes:
    """Return a notebook as students get it.

    Cells that the teacher added are kept, but for those with the tag `teacher`.

    Args:
        content: of the teacher's notebook, blank or filled in.
        name: its name, for sentences.
        keep_outputs: keep what is stored below the cells, but for answers and checks.

    Raises:
        LessonError: it cannot be read, an exercise in it is not known, or a cell that
            would be kept holds a solution.
    """
    document = lessons.read(content, name)
    found = blank(document)
    cells = document["cells"]
    leaves_nothing(document, set(found))
    document["cells"] = [c for c in cells if lessons.LEFT_OUT not in lessons.tags(c)]
    if not keep_outputs:
        clear(document)
    bodies = [body(name) for name in found]
    for _, cell in lessons.code_of(document):
        if any(_holds(text, one) for text in _told(cell) for one in bodies):
            cell["outputs"] = []  # of solution(...)
    return lessons.to_bytes(document)


def blank(document: Document) -> dict[str, tuple[Cell, Cell | None]]:
    """Put the stub into each cell of an exercise, and what its check says of it.

    Returns:
        The cells of the exercises, each with its check, by their names.

    Raises:
        LessonError: an exercise is not known, or stands there twice.
    """
    found = lessons.stubs(document)
    for name, (cell, check) in found.items():
        cell["source"] = lessons.lines(exercises.get(name).stub_source.strip("\n"))
        cell["outputs"] = []
        lessons.tagged(cell, "exercise")
        if check is not None:
            text = wrapped(exercises.judge(name, ...).text)
            check["outputs"] = said(text + "\n")
            lessons.tagged(check, "check")
    code = lessons.code_of(document)
    if code and not any("setup" in lessons.tags(cell) for _, cell in code):
        lessons.tagged(code[0][1], "setup")
    metadata = document.get("metadata", {})
    document["metadata"] = {key: metadata[key] for key in KEPT & metadata.keys()}
    for cell in document["cells"]:
        for key in _OF_RUNS:
            cell["metadata"].pop(key, None)
    return found


def clear(document: Document) -> None:
    """Take away all outputs, and the numbers of their runs."""
    for _, cell in lessons.code_of(document):
        cell["outputs"], cell["execution_count"] = [], None


def said(text: str) -> list[dict[str, Any]]:
    """A printed text as the outputs of a cell."""
    stream = {"name": "stdout", "output_type": "stream", "text": lessons.lines(text)}
    return [stream]


def leaves_nothing(document: Document, names: set[str]) -> None:
    """See that no cell but those of the exercises answers one.

    Args:
        document: a blank notebook.
        names: its exercises.

    Raises:
        LessonError: one does; the sentence names it.
    """
    bodies = {name: (body(name), _values(name)) for name in sorted(names)}
    for number, cell in enumerate(document["cells"], start=1):
        own = lessons.tags(cell)
        if lessons.LEFT_OUT in own or "exercise" in own:
            continue
        text = lessons.source(cell)
        again = set(lessons.bound(text)) & names if cell["cell_type"] == "code" else ()
        code = [text] if cell["cell_type"] == "code" else _FENCED.findall(text)
        there: set[str] = set().union(*map(_expressions, code))
        held = [
            name
            for name, (rows, values) in bodies.items()
            if _holds(text, rows) or (values and values <= there)
        ]
        for name in [*sorted(again), *held]:
            raise LessonError(
                f"{lessons.numbered(number, cell)} holds an answer to {name}: delete "
                f"it, or give it the tag `{lessons.LEFT_OUT}`, and it is left out."
            )


def body(name: str) -> tuple[str, ...]:
    """The lines of a solution that its stub does not have, without spaces around."""
    _, rows = parted(exercises.get(name).solution_source)
    return tuple(" ".join(row.split()) for row in rows if row.strip())


def _values(name: str) -> frozenset[str]:
    """What a solution works out; nothing, if that is so little that it is no news.

    These expressions are the same beside other lines, with other spaces and remarks,
    and under another name of the function.
    """
    _, rows = parted(exercises.get(name).solution_source)
    tree = ast.parse(textwrap.dedent("\n".join(rows)))
    found = [
        value
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt | ast.comprehension)
        for key in ("value", "test", "iter")
        if isinstance(value := getattr(node, key, None), ast.expr)
        and not isinstance(value, ast.Name | ast.Constant)
    ]
    size = sum(len(list(ast.walk(value))) for value in found)
    return frozenset(map(ast.unparse, found)) if size >= FEWEST else frozenset()


def _expressions(code: str) -> set[str]:
    """All that some code works out; nothing, where Python does not take it."""
    try:
        tree = magics.parse(magics.plain(code)[0])
    except SyntaxError:
        return set()
    return {ast.unparse(n) for n in ast.walk(tree) if isinstance(n, ast.expr)}


def _holds(text: str, wanted: tuple[str, ...]) -> bool:
    """Whether all lines of a solution stand in a text, in any order."""
    return set(wanted) <= {" ".join(row.split()) for row in text.splitlines()}


def _told(cell: Cell) -> Iterator[str]:
    """The texts in the outputs of a cell."""
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        for text in (output.get("text", ""), *data.values()):
            yield "".join(text) if isinstance(text, str | list) else ""
