"""A lesson as an assignment of nbgrader, for those who must use it.

Its cells carry what nbgrader 0.9 reads (schema 3): the cell of an exercise is a
solution between `### BEGIN SOLUTION` and `### END SOLUTION`, and below its check stands
a locked cell with points that asks the course's judge. The judge runs in the student's
process there, so an answer can change what it says; `attnlib grade` keeps them apart.
"""

from __future__ import annotations

from typing import Any

from attnlib import exercises
from attnlib.exercises.exercise import parted
from attnlib.grading import lessons, points, release

SCHEMA = 3
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
TEST = """\
# {name}: {points} points; a part of them for what is right in part
from attnlib.exercises import judge
from attnlib.grading import points

verdict = judge("{name}", {name}, counted=True)
print(verdict.text)
points.earned(verdict, {worth}) / points.POINT"""


def assignment(content: bytes, name: str) -> bytes:
    """Return the instructor's version of an assignment.

    Args:
        content: of the teacher's notebook, blank or filled in.
        name: its name, for sentences.

    Raises:
        LessonError: it cannot be read, holds no exercise or an unknown one, or a cell
            that students would get holds a solution.
    """
    document = lessons.read(content, name)
    found = release.blank(document)
    if not found:
        raise lessons.LessonError(f"{name} holds no exercise.")
    release.leaves_nothing(document, set(found))
    release.clear(document)
    for cell in document["cells"]:
        cell["metadata"].pop("nbgrader", None)
    tests = {id(check or cell): _test(stub) for stub, (cell, check) in found.items()}
    for stub, (cell, _) in found.items():
        cell["source"] = lessons.lines(instructors(stub))
        cell["metadata"]["nbgrader"] = _marks(stub, solution=True)
    cells = []
    for cell in document["cells"]:
        if lessons.LEFT_OUT in lessons.tags(cell):
            continue
        cells.append(cell)
        if id(cell) in tests:
            cells.append(tests[id(cell)])
    document["cells"] = cells
    document["nbformat"], document["nbformat_minor"] = 4, 5
    for number, cell in enumerate(cells):
        cell.setdefault("id", f"cell-{number}")
    return lessons.to_bytes(document)


def instructors(name: str) -> str:
    """The cell of an exercise with its solution between nbgrader's two marks."""
    exercise = exercises.get(name)
    head, rows = parted(exercise.solution_source.strip("\n"))
    if not head:
        stub = exercise.stub_source.strip("\n")
        return "\n".join([stub, BEGIN, *rows, END])
    return "\n".join([*head, f"    {BEGIN}", *rows, f"    {END}"])


def _test(name: str) -> lessons.Cell:
    worth = points.of(exercises.get(name))
    text = TEST.format(name=name, points=worth // points.POINT, worth=worth)
    marks = _marks(f"{name}_points", grade=True, locked=True)
    marks["points"] = worth // points.POINT
    cell = lessons.new_code(text, f"points-{_ascii(name)}"[:64])
    cell["metadata"]["nbgrader"] = marks
    return cell


def _marks(name: str, **chosen: bool) -> dict[str, Any]:
    none = {"grade": False, "locked": False, "solution": False, "task": False}
    return {"grade_id": _ascii(name), "schema_version": SCHEMA, **none, **chosen}


def _ascii(name: str) -> str:
    """A name in the letters that nbgrader allows in a grade_id.

    >>> _ascii("softmax"), _ascii("größe")
    ('softmax', 'gr-f6--df-e')
    """
    return "".join(c if c.isascii() else f"-{ord(c):x}-" for c in name)
