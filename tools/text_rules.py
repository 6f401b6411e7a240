"""What the text of a lesson may say: numbers that stand in a cell, names that hold.

A number in the text that no cell printed is how the articles came to print a table
that cannot exist. So each number with two decimals or more must stand in a cell or in
an output of the same lesson, rounded or not. Quizzes may invent numbers: what stands
behind a question to click on is left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from notebook_source import where

from attnlib.grading.solutions import NotSolved, stub_name

NUMBER = re.compile(r"(?<![\w.])\d[\d ,]*(?:\.\d+)?(?:e-?\d+)?(?![\w.]*\d)")
QUIZ = "## Check yourself"
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|TBD)\b")


def broken_text_rules(lesson: str, cells: list[Any]) -> list[str]:
    """Numbers that no cell shows, imports that a stub hides, and words left to do."""
    return [
        *_unshown(lesson, cells),
        *_hidden_imports(lesson, cells),
        *_unfinished(lesson, cells),
    ]


def _unfinished(lesson: str, cells: list[Any]) -> Iterator[str]:
    for cell in cells:
        found = UNFINISHED.search(cell.source)
        if found:
            yield f"{where(lesson, cell)} says {found[0]}: it was left for later."


def _unshown(lesson: str, cells: list[Any]) -> Iterator[str]:
    shown: set[float] = set()
    for cell in cells:
        if cell.cell_type == "code":
            for text in (cell.source, *_outputs(cell)):
                shown |= {value for value, _ in numbers(text)}
    for cell in cells:
        if cell.cell_type != "markdown":
            continue
        if cell.source.startswith(QUIZ):
            return
        text = re.sub(r"<details>.*?</details>", "", cell.source, flags=re.DOTALL)
        for value, digits in numbers(text):
            if digits >= 2 and not _is_shown(value, digits, shown):
                yield (
                    f"{where(lesson, cell)} says {value:.{digits}f}, which stands in "
                    f"no cell and no output of the lesson."
                )


def numbers(text: str) -> list[tuple[float, int]]:
    """The numbers of a text, without their signs, each with its decimals.

    >>> numbers("1 050 624 parameters, 0.50 of them −3.125, v1 and 2,000")
    [(1050624.0, 0), (0.5, 2), (3.125, 3), (2000.0, 0)]
    """
    found = []
    for match in NUMBER.findall(text):
        plain = re.sub(r"[ ,](?=\d{3}(?!\d))", "", match)
        for part in re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", plain):
            decimals = re.search(r"\.(\d+)$", part)
            found.append((float(part), len(decimals[1]) if decimals else 0))
    return found


def _is_shown(value: float, digits: int, shown: set[float]) -> bool:
    # Half a unit of the last digit, and a little for what binary fractions lose. A
    # share in the text may be a percentage in the output.
    slack = 0.5 * 10.0**-digits + 1e-9
    return any(abs(s - value) <= slack or abs(s / 100 - value) <= slack for s in shown)


def _outputs(cell: Any) -> Iterator[str]:
    for output in cell.outputs:
        yield output.get("text", "")
        yield output.get("evalue", "")
        yield output.get("data", {}).get("text/plain", "")
        html = output.get("data", {}).get("text/html", "")
        yield re.sub(r"<[^>]*>", " ", html)


def _hidden_imports(lesson: str, cells: list[Any]) -> Iterator[str]:
    """A stub that takes the name of an import breaks every cell that uses it."""
    code = [cell for cell in cells if cell.cell_type == "code"]
    imported: set[str] = set()
    for cell in code:
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                imported |= {alias.asname or alias.name for alias in node.names}
    for cell in code:
        if "exercise" not in cell.metadata.get("tags", []):
            continue
        try:
            name = stub_name(cell.source)
        except NotSolved:
            continue  # another rule says so
        if name in imported:
            yield (
                f"{where(lesson, cell)}: the answer {name} would hide the import of "
                f"that name, and cells run again would use it; import the module."
            )
