"""Solved notebooks: every stub filled in by its exercise, and its check asked.

What a check is expected to print is what it says of that solution, here and now. Every
other cell keeps its stored output: a solved lesson must show what the blank one shows.
"""

from __future__ import annotations

import ast
import contextlib
import io
from typing import Any

from attnlib.grading import lessons, release


class NotSolved(lessons.LessonError):
    """A stub has no solution, or its solution does not pass its own check."""


def solve(content: bytes, exercises: Any = None) -> bytes:
    """Return the solved form of a blank notebook, as the course stores it.

    Args:
        content: of the notebook. Its cell with the tag `setup` is run.
        exercises: where solutions and checks are; `attnlib.exercises` if left out.

    Raises:
        NotSolved: a stub is none, has no check, or its solution does not pass it.
    """
    if exercises is None:
        from attnlib import exercises
    notebook = lessons.read(content, "the notebook")
    cells = [cell for _, cell in lessons.code_of(notebook)]
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell, following in zip(cells, [*cells[1:], None], strict=True):
        if "setup" in lessons.tags(cell):
            _run(cell, names)
        if "exercise" not in lessons.tags(cell):
            continue
        name = stub_name(lessons.source(cell))
        wanted = f'check("{name}", {name})'
        if following is None or lessons.source(following) != wanted:
            raise NotSolved(
                f"{_where(cell)}: the stub {name} is not followed by its check, "
                f"{wanted}."
            )
        solution = exercises.get(name).solution_source.strip("\n")
        cell["source"] = lessons.lines(solution)
        _run(cell, names)
        told = _run(following, names)
        if exercises.judge(name, names[name]).status != "passed":
            raise NotSolved(
                f"{_where(cell)}: the solution of {name} does not pass its own check, "
                f"which says: {told}"
            )
        following["outputs"] = release.said(told)
    return lessons.to_bytes(notebook)


def solved(content: bytes, name: str) -> bytes:
    """The same for a teacher's copy, whatever was filled in, and if tags were lost.

    Args:
        content: of the notebook.
        name: its name, for sentences.

    Raises:
        LessonError: it cannot be read, or an exercise in it is not known.
        NotSolved: a solution does not pass its own check.
    """
    notebook = lessons.read(content, name)
    for stub, (cell, check) in release.blank(notebook).items():
        if check is None:  # as students get exercises that they cannot check
            place = next(i for i, one in enumerate(notebook["cells"]) if one is cell)
            check = lessons.new_code("", f"check-{stub}"[:64])
            if "id" not in cell:  # an older form knows none
                del check["id"]
            notebook["cells"].insert(place + 1, check)
        check["source"] = [f'check("{stub}", {stub})']
    return solve(lessons.to_bytes(notebook))


def stub_name(source: str) -> str:
    """The name that a stub defines: of its function, or of its value.

    Args:
        source: of the cell.

    Raises:
        NotSolved: it is no stub.
    """
    statements = ast.parse(source).body
    if len(statements) == 1:
        (only,) = statements
        if isinstance(only, ast.FunctionDef):
            return only.name
        if (
            isinstance(only, ast.Assign)
            and len(only.targets) == 1
            and isinstance(only.targets[0], ast.Name)
            and isinstance(only.value, ast.Constant)
            and only.value.value is Ellipsis
        ):
            return only.targets[0].id
    raise NotSolved(
        "a stub must be exactly one function, or one assignment `name = ...`; this is "
        f"{source!r}."
    )


def _where(cell: lessons.Cell) -> str:
    return f"cell {cell.get('id', 'without id')}"


def _run(cell: lessons.Cell, names: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(lessons.source(cell), f"<{_where(cell)}>", "exec"), names)
    return printed.getvalue()
