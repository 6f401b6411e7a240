"""The rules of a lesson that can be read off its notebook without a kernel.

How a lesson is built, and how long its cells may be. What its outputs may hold is in
output_rules.py. Each rule gives one sentence for each place where it is broken; the
build prints them as notes, and tests/test_notebooks.py demands that there are none.

A stub (tag `exercise`) may have 30 lines: its docstring is the task, and the learner
writes into it. Every other code cell has at most 12, and the median of those is at
most 4. Blank lines count, for they take room on the page.
"""

from __future__ import annotations

import ast
import json
import re
import statistics
from pathlib import Path
from typing import Any

from notebook_source import SOURCES, from_bytes, where
from output_rules import broken_output_rules
from text_rules import broken_text_rules

from attnlib.grading.solutions import NotSolved, stub_name

MAX_LINES, MAX_MEDIAN, MAX_STUB, MAX_WIDTH, MAX_WORDS = 12, 4, 30, 79, 120
MAX_BYTES = 600_000
MAX_UNCHECKED = 2  # cells of one lesson whose output nbval does not compare
UNCHECKED = SOURCES / "unchecked.json"
LAST_SETUP_LINE = "np.set_printoptions(precision=3, suppress=True)"
NUMPY_LESSONS = ("00", "01", "02", "03", "04")
# A heading or a bold line beginning with these words, in this order.
SKELETON = (
    "You will be able to",
    "You need",
    "Exercises",
    "Check yourself",
    "What to keep",
    "Next",
    "Sources",
)


def broken_rules(
    lesson: str, stored: bytes, unchecked: list[dict[str, str]] | None = None
) -> list[str]:
    """Every rule that the stored notebook of a lesson breaks, in sentences."""
    notebook = from_bytes(stored)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    listed = read_unchecked() if unchecked is None else unchecked
    faults = [
        *_skeleton(lesson, notebook.cells),
        *_setup(lesson, code),
        *_lengths(lesson, notebook.cells),
        *_exercises(lesson, notebook.cells),
        *_unchecked(lesson, code, listed),
        *broken_output_rules(lesson, notebook.cells),
        *broken_text_rules(lesson, notebook.cells),
    ]
    if len(stored) > MAX_BYTES:
        faults.append(f"lesson {lesson} has {len(stored)} bytes; at most {MAX_BYTES}.")
    return faults


def read_unchecked(path: Path = UNCHECKED) -> list[dict[str, str]]:
    """The cells that nbval does not compare: lesson, first line, reason."""
    if not path.exists():
        return []
    entries: list[dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))
    return entries


def _tags(cell: Any) -> list[str]:
    tags: list[str] = cell.metadata.get("tags", [])
    return tags


def _skeleton(lesson: str, cells: list[Any]) -> list[str]:
    faults = []
    text = "\n\n".join(c.source for c in cells if c.cell_type == "markdown")
    title = text.splitlines()[0] if text else ""
    if cells[0].cell_type != "markdown" or not re.fullmatch(r"# .*\?", title):
        faults.append(f"lesson {lesson} must begin with a title that is a question.")
    place = 0
    for part in SKELETON:
        found = re.compile(rf"^(#{{2,4}} |\*\*){part}", re.MULTILINE).search(text)
        if found is None:
            faults.append(f"lesson {lesson} has no part {part!r}.")
        elif found.start() < place:
            faults.append(f"lesson {lesson}: the part {part!r} stands too early.")
        else:
            place = found.start()
    for part in ("You will be able to", "What to keep"):
        body = re.search(
            rf"^(?:#{{2,4}} |\*\*){part}[^\n]*\n(.*?)(?=^#|^\*\*|\Z)",
            text,
            re.MULTILINE | re.DOTALL,
        )
        items = re.findall(r"^(?:[-*]|\d\.) ", body[1], re.MULTILINE) if body else []
        if body and len(items) != 3:
            faults.append(f"lesson {lesson}: {part!r} has {len(items)} items, not 3.")
    return faults


def _setup(lesson: str, code: list[Any]) -> list[str]:
    tagged = [cell for cell in code if "setup" in _tags(cell)]
    if len(tagged) != 1 or tagged[0] is not code[0]:
        return [
            f"lesson {lesson} has {len(tagged)} cells tagged setup; it must be one, "
            f"the first code cell."
        ]
    faults = []
    if tagged[0].source.rstrip().splitlines()[-1] != LAST_SETUP_LINE:
        faults.append(f"{where(lesson, tagged[0])} must end with {LAST_SETUP_LINE}.")
    for cell in code:
        imported = _imports(cell.source)
        if imported and cell is not tagged[0]:
            faults.append(f"{where(lesson, cell)} imports; only the setup cell may.")
        if "torch" in imported and lesson[:2] in NUMPY_LESSONS:
            faults.append(f"{where(lesson, cell)} imports torch in a NumPy lesson.")
    return faults


def _imports(source: str) -> set[str]:
    modules: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add((node.module or "").split(".")[0])
    return modules


def _lengths(lesson: str, cells: list[Any]) -> list[str]:
    faults, lengths = [], []
    for cell in cells:
        if cell.cell_type == "markdown":
            words = count_words(cell.source)
            if words > MAX_WORDS:
                faults.append(
                    f"{where(lesson, cell)} has {words} words; at most {MAX_WORDS}. "
                    f"A line +++ begins a new cell."
                )
            continue
        lines = cell.source.splitlines()
        most = MAX_STUB if "exercise" in _tags(cell) else MAX_LINES
        if most == MAX_LINES:
            lengths.append(len(lines))
        if not lines or len(lines) > most:
            faults.append(f"{where(lesson, cell)} has {len(lines)} lines; 1 to {most}.")
        faults += [
            f"{where(lesson, cell)}: this line has {len(line)} characters, at most "
            f"{MAX_WIDTH}: {line.strip()}"
            for line in lines
            if len(line) > MAX_WIDTH
        ]
    median = statistics.median(lengths)
    if median > MAX_MEDIAN:
        faults.append(
            f"lesson {lesson}: the median code cell has {median} lines; at most "
            f"{MAX_MEDIAN}."
        )
    return faults


def count_words(text: str) -> int:
    """Words as a reader meets them: no tags, no addresses of links, no rules of tables.

    >>> count_words("**Two** <b>words</b> | |---| [and](a/b.c) $x + y$ - 1.")
    5
    """
    text = re.sub(r"<[^>]*>|\]\([^)]*\)", " ", text)
    text = re.sub(r"\$[^$]*\$|`[^`]*`", " formula ", text)
    return len(re.findall(r"\S*\w\S*", text))


def _exercises(lesson: str, cells: list[Any]) -> list[str]:
    faults = []
    for cell, following in zip(cells, [*cells[1:], None], strict=True):
        if "exercise" not in _tags(cell):
            continue
        try:
            name = stub_name(cell.source)
        except NotSolved as error:
            faults.append(f"{where(lesson, cell)}: {error}")
            continue
        wanted = f'check("{name}", {name})'
        if (
            following is None
            or "check" not in _tags(following)
            or following.source != wanted
        ):
            faults.append(
                f"{where(lesson, cell)}: the next cell must be tagged check and be "
                f"{wanted}"
            )
            continue
        told = "".join(output.get("text", "") for output in following.outputs)
        if not re.fullmatch(rf"{name}: not started yet\.([^\n]*\n){{1,2}}", told):
            faults.append(
                f"{where(lesson, following)} must print one sentence, `{name}: not "
                f"started yet.`, but stores {told!r}."
            )
    return faults


def _unchecked(lesson: str, code: list[Any], listed: list[dict[str, str]]) -> list[str]:
    reasons = {e["first_line"]: e["reason"] for e in listed if e["lesson"] == lesson}
    tagged = [cell for cell in code if "nbval-ignore-output" in _tags(cell)]
    first_lines = {cell.source.splitlines()[0] for cell in tagged}
    faults = [
        f"{where(lesson, cell)}: its output is not compared, so {UNCHECKED.name} must "
        f"say why."
        for cell in tagged
        if len(reasons.get(cell.source.splitlines()[0], "")) < 20
    ]
    faults += [
        f"{UNCHECKED.name} lists a cell that lesson {lesson} has not: {line}"
        for line in sorted(set(reasons) - first_lines)
    ]
    if len(tagged) > MAX_UNCHECKED:
        faults.append(
            f"lesson {lesson} has {len(tagged)} cells whose output is not compared; "
            f"at most {MAX_UNCHECKED}."
        )
    comments = re.compile(r"^\s*#\s*(NBVAL_|PYTEST_VALIDATE)", re.MULTILINE)
    faults += [
        f"{where(lesson, cell)} steers nbval by a comment; use a tag."
        for cell in code
        if comments.search(cell.source)
    ]
    return faults
