"""Which modules of attnlib an answer is given: those that it imports in the open.

In the room of a sandbox there is nothing of attnlib that computes attention. An answer
that writes `from attnlib import masks`, as lessons do, has that module and what it
imports sent along; one that writes nothing of attnlib has nothing of it, under whatever
name it asks. So what is used can be read, and `spotted` tells the teacher of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache

from attnlib.grading.sandbox.room import LEFT_OUT, PACKAGE

NAME = "attnlib"


def given(sources: Iterable[str]) -> dict[str, str]:
    """The modules for an answer: their text by their path, such as attnlib/masks.py.

    Where the name attnlib itself is bound, or stands in a string, and for an
    `import *`, it is all of them.

    Args:
        sources: of the statements of the answer.
    """
    wanted: set[str] = set()
    for source in sources:
        if NAME in source:
            wanted |= _named(source)
    found = set(_modules()) if NAME in wanted else _with_what_they_import(wanted)
    return {_modules()[name]: _text(name) for name in sorted(found)}


def _named(source: str) -> set[str]:
    """The modules that a statement names; `attnlib` stands for all of them."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()  # nor can it be run
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            ours = [a for a in node.names if _is_ours(a.name)]
            found |= {a.name for a in ours} | {NAME for a in ours if not a.asname}
        elif isinstance(node, ast.ImportFrom) and _is_ours(node.module or ""):
            names = [f"{node.module}.{a.name}" for a in node.names]
            kept = {name for name in names if name in _modules()}
            found |= kept if node.module == NAME else {node.module or "", *kept}
            found |= {NAME} if any(a.name == "*" for a in node.names) else set()
        elif isinstance(node, ast.Constant) and _is_ours(node.value):
            found.add(NAME)
    return found


def _is_ours(name: object) -> bool:
    return isinstance(name, str) and name.split(".")[0].strip() == NAME


def _with_what_they_import(wanted: set[str]) -> set[str]:
    """These modules, the packages that they are in, and what all of them import."""
    found: set[str] = set()
    waiting = list(wanted)
    while waiting:
        name = waiting.pop()
        if name in found or name not in _modules():
            continue
        found.add(name)
        waiting += [*_imports(name), name.rpartition(".")[0]]
    return found


@cache
def _imports(name: str) -> frozenset[str]:
    return frozenset(_named(_text(name)) - {NAME})


@cache
def _modules() -> dict[str, str]:
    """All modules that may be given, by name, with their path in a room."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        where = path.relative_to(PACKAGE)
        if where.parts[0] in LEFT_OUT or where.name == "__main__.py":
            continue
        parts = [NAME, *where.with_suffix("").parts]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name != NAME:
            found[name] = f"{NAME}/{where.as_posix()}"
    return found


@cache
def _text(name: str) -> str:
    return (PACKAGE.parent / _modules()[name]).read_text(encoding="utf-8")
