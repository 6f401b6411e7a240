"""Mutants: a solution with its syntax tree changed in one place.

They know nothing of the clinic's families, so they ask a question that the families
cannot: what of a solution could be wrong without the check noticing?
"""

from __future__ import annotations

import ast
import linecache
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

from attnlib.exercises.changes import Change, changes, docstring, fixed

ARROW = " -> "


@dataclass(frozen=True)
class Mutant:
    """One wrong version of a solution: the lines that changed, and its source."""

    exercise: str
    number: int
    changed: str  # "scores = q @ k.T -> scores = q @ k"
    source: str

    def make(self, solution: Callable[..., object]) -> Callable[..., object]:
        """The function, among the names that the solution sees.

        Its source can be read, as that of a notebook's cell can.
        """
        file = f"<mutant {self.number} of {self.exercise}>"
        lines = self.source.splitlines(keepends=True)
        linecache.cache[file] = len(self.source), None, lines, file
        names = dict(solution.__globals__)
        code = _compiled(self.source, file)
        assert code is not None
        exec(code, names)
        return cast("Callable[..., object]", names[self.exercise])


def mutants(
    name: str, source: str, example: Mapping[str, object] | None = None
) -> tuple[Mutant, ...]:
    """All mutants of a function, in the order of its source; no two are the same.

    `example` holds the arguments of one call. Mutants that take a size or a number from
    there, whatever they are called with, are added.
    """
    tree = ast.parse(source)
    function = tree.body[0]
    if not isinstance(function, ast.FunctionDef):
        raise TypeError(f"The source of {name} begins with no function.")
    before = ast.unparse(tree)
    found: dict[str, str] = {}
    for change in _changed(function, example or {}):
        after = ast.unparse(ast.fix_missing_locations(change))
        if after != before and _compiled(after):
            found.setdefault(after, difference(before, after))
    return tuple(
        Mutant(name, number, changed, source)
        for number, (source, changed) in enumerate(found.items())
    )


def _compiled(source: str, file: str = "<mutant>") -> types.CodeType | None:
    """The code of a mutant; None for one that is no Python, such as `f((*x))`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # `if 3 is None`
        try:
            return compile(source, file, "exec")
        except SyntaxError:
            return None


def difference(before: str, after: str) -> str:
    """The lines in which two sources differ, old and new, on one line."""
    old, new = before.splitlines(), after.splitlines()
    while old and new and old[0] == new[0]:
        del old[0], new[0]
    while old and new and old[-1] == new[-1]:
        del old[-1], new[-1]
    return ARROW.join(" / ".join(map(str.strip, lines)) for lines in (old, new))


def _neighbours(function: ast.FunctionDef) -> dict[str, list[str]]:
    """For each name those that may be taken for it: beside it, or made just before."""
    names = [a.arg for a in function.args.args]
    found: dict[str, list[str]] = {}
    for a, b in pairwise(names):
        found.setdefault(a, []).append(b)
        found.setdefault(b, []).append(a)
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign):
            continue
        made = [n.id for n in ast.walk(node.targets[0]) if isinstance(n, ast.Name)]
        for a, b in pairwise(made):
            found.setdefault(a, []).append(b)
            found.setdefault(b, []).append(a)
        for name in made:
            if names and name not in names:
                found.setdefault(name, []).append(names[-1])
        names += [name for name in made if name not in names]
    return found


def _changed(
    function: ast.FunctionDef, example: Mapping[str, object]
) -> Iterator[ast.FunctionDef]:
    """The function, changed in one place after the other and put back each time."""
    neighbours = _neighbours(function)
    skipped = docstring(function)

    def instead(node: ast.AST, parent: ast.AST) -> Iterator[Change]:
        yield from changes(node, parent, neighbours)
        if isinstance(node, ast.expr) and not isinstance(node, ast.Constant):
            yield from fixed(node, example)

    for parent in list(ast.walk(function)):
        for name, value in list(ast.iter_fields(parent)):
            if isinstance(value, list):
                for i, node in enumerate(value):
                    if isinstance(node, ast.AST) and node is not skipped:
                        for change in instead(node, parent):
                            value[i : i + 1] = change
                            yield function
                            value[i : i + len(change)] = [node]
            elif isinstance(value, ast.AST):
                for change in instead(value, parent):
                    if len(change) == 1:
                        setattr(parent, name, change[0])
                        yield function
                        setattr(parent, name, value)
