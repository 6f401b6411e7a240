"""Solve the notebooks: python tools/solve.py [01 03 ...] fills build/solved.

Every stub (tag `exercise`) is replaced by the reference solution of attnlib.exercises,
and what its check is expected to print by what the check says of that solution, asked
here and now. Every other cell keeps its stored output: a solved lesson must show what
the blank one shows. The tests then run the solved notebooks as strictly as the others.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
SOLVED = ROOT / "build" / "solved"


class NotSolved(Exception):
    """A stub has no solution, or its solution does not pass its own check."""


def solve(content: bytes, exercises: Any = None) -> bytes:
    """Return the solved form of a stored notebook, by attnlib.exercises."""
    if exercises is None:
        from attnlib import exercises
    notebook = json.loads(content)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell, following in zip(cells, [*cells[1:], None], strict=True):
        tags = cell["metadata"].get("tags", [])
        if "setup" in tags:
            _run(cell, names)
        if "exercise" not in tags:
            continue
        name = stub_name(_source(cell))
        if following is None or _source(following) != f'check("{name}", {name})':
            raise NotSolved(
                f"cell {cell['id']}: the stub {name} is not followed by its check, "
                f'check("{name}", {name}).'
            )
        cell["source"] = _lines(exercises.get(name).solution_source.strip("\n"))
        _run(cell, names)
        told = _run(following, names)
        if exercises.judge(name, names[name]).status != "passed":
            raise NotSolved(
                f"cell {cell['id']}: the solution of {name} does not pass its own "
                f"check, which says: {told}"
            )
        following["outputs"] = [
            {"name": "stdout", "output_type": "stream", "text": _lines(told)}
        ]
    solved = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True)
    return (solved + "\n").encode("utf-8")


def stub_name(source: str) -> str:
    """The name that a stub defines: of its function, or of its value."""
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


def _run(cell: Any, names: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(_source(cell), f"<cell {cell['id']}>", "exec"), names)
    return printed.getvalue()


def _source(cell: Any) -> str:
    return "".join(cell["source"])


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def write_solved(stored: Path) -> bool:
    """Write the solved form of one notebook; False if it was there already."""
    content = stored.read_bytes()
    parts = [*sorted((ROOT / "attnlib").rglob("*.py")), Path(__file__)]
    digest = hashlib.sha256(content)
    for part in parts:
        digest.update(part.read_bytes())
    target, seal = SOLVED / stored.name, SOLVED / f"{stored.stem}.seal"
    if target.exists() and seal.exists() and seal.read_text() == digest.hexdigest():
        return False
    SOLVED.mkdir(parents=True, exist_ok=True)
    # Two test workers may do this at once: each writes whole files, and the same.
    _write(target, solve(content))
    _write(seal, digest.hexdigest().encode())
    return True


def _write(path: Path, content: bytes) -> None:
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_bytes(content)
    fresh.replace(path)


def main(names: list[str]) -> int:
    for stored in sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb")):
        if names and not any(stored.stem.startswith(name) for name in names):
            continue
        try:
            made = write_solved(stored)
        except Exception as error:
            print(f"FAILED  lesson {stored.stem}, {type(error).__name__}: {error}")
            return 1
        print(f"{'solved' if made else 'same  '}  build/solved/{stored.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
