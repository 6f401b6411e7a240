"""The top-level statements of a notebook: what each binds, and which names it needs.

Read off the source, without running any of it.
"""

from __future__ import annotations

import ast
import re
import symtable
from dataclasses import dataclass, field, replace
from functools import lru_cache

from attnlib.grading import letters, magics, syntax
from attnlib.grading.notebook import Notebook

LONGEST_CELL = 200_000  # characters
MOST_STATEMENTS = 20_000


@dataclass(frozen=True)
class Statement:
    """One top-level statement. `place` counts all of the notebook, from 0."""

    place: int
    cell: int
    line: int
    source: str
    kind: str  # "def", "import", "star", "value", "setting", "other"
    binds: frozenset[str] = frozenset()  # names it gives a value
    sure: frozenset[str] = frozenset()  # those it certainly gives one, and a whole one
    touches: frozenset[str] = frozenset()  # names whose value it changes
    now: frozenset[str] = frozenset()  # names that must be there when it runs
    later: frozenset[str] = frozenset()  # names that its functions want when called
    stub: bool = False
    checks: frozenset[str] = frozenset()  # exercises that it checks
    calls: frozenset[str] = frozenset()  # functions it calls and forgets the result of
    writes: frozenset[str] = frozenset()  # `global` names its functions give a value


@dataclass(frozen=True)
class Broken:
    """A cell that Python does not take, and where it stopped."""

    cell: int
    line: int
    message: str
    source: str
    at: str  # the line, by number and by what stands there

    def defines(self, name: str) -> bool:
        """Whether the name seems to be given a value in this cell."""
        word = re.escape(name)
        pattern = rf"^\s*(?:(?:async\s+)?def\s+|class\s+){word}\b|^\s*{word}\s*=(?!=)"
        return re.search(pattern, self.source, re.MULTILINE) is not None


@dataclass(frozen=True)
class Program:
    """All statements of a notebook, the broken cells, and the cells left out."""

    statements: tuple[Statement, ...]
    broken: tuple[Broken, ...]
    notes: tuple[str, ...]
    by_name: dict[str, list[int]] = field(compare=False, hash=False)


@lru_cache(maxsize=4)
def program_of(notebook: Notebook) -> Program:
    """Take the code of a notebook apart; no cell can spoil another."""
    statements: list[Statement] = []
    broken, notes = [], []
    for cell in notebook.cells:
        if not cell.source.strip():
            continue
        if len(cell.source) > LONGEST_CELL:
            notes.append(
                f"Cell {cell.number} has {len(cell.source)} characters; unread."
            )
            continue
        source, note = magics.plain(cell.source)
        if note:
            notes.append(f"Cell {cell.number} {note}")
        try:
            body = magics.parse(source).body
        except SyntaxError as error:
            broken.append(_broken(error, cell.number, 1, source))
            continue
        lines = source.split("\n")
        for node in body[: MOST_STATEMENTS - len(statements)]:
            first, text = _segment(node, lines)
            plain = Statement(len(statements), cell.number, first, text, "other")
            try:
                statements.append(_statement(node, plain))
            except SyntaxError as error:  # `nonlocal x` outside a function, say
                broken.append(_broken(error, cell.number, first, text))
    if len(statements) >= MOST_STATEMENTS:
        notes.append(f"Only the first {MOST_STATEMENTS} statements are read.")
    statements = _with_context(statements)
    by_name: dict[str, list[int]] = {}
    for statement in statements:
        for name in statement.binds | statement.touches:
            by_name.setdefault(name, []).append(statement.place)
    return Program(tuple(statements), tuple(broken), tuple(notes), by_name)


def trimmed(statement: Statement, names: set[str]) -> Statement:
    """An import of the wanted names alone: the others may be slow, or not be there."""
    if statement.kind != "import" or statement.binds <= names:
        return statement
    node = magics.parse(statement.source).body[0]
    if isinstance(node, ast.Import | ast.ImportFrom):
        node.names = [a for a in node.names if syntax.bound_by(a) in names]
    return replace(statement, source=ast.unparse(node), binds=statement.binds & names)


def _with_context(statements: list[Statement]) -> list[Statement]:
    """What only the others tell: `setup()` changes W if setup says `global W`.

    And nn.init.zeros_(W) does not change nn, which is a module.
    """
    modules = {n for s in statements if s.kind == "import" for n in s.binds}
    modules -= {n for s in statements if s.kind != "import" for n in s.binds}
    writers = {n: s.writes for s in statements if s.writes for n in s.binds}
    for place, statement in enumerate(statements):
        touched = statement.touches
        if statement.kind == "other" and touched & modules:
            touched -= modules
        for called in statement.calls & set(writers):
            touched |= writers[called]
        if touched != statement.touches:
            statements[place] = replace(statement, touches=touched)
    return statements


def _broken(error: SyntaxError, cell: int, first: int, source: str) -> Broken:
    message = letters.clean(error.msg or "invalid syntax")[:200]
    line = min(max(error.lineno or 1, 1), source.count("\n") + 1)
    at = f"line {first + line - 1}{letters.quoted(source.split(chr(10))[line - 1])}"
    return Broken(cell, first + line - 1, message, source, at)


def _statement(node: ast.stmt, plain: Statement) -> Statement:
    """A statement with all that is known of its names."""
    with magics.parsing():
        table = symtable.symtable(plain.source, "<cell>", "exec")
    later: set[str] = set()
    writes: set[str] = set()
    _functions(table, later, writes)
    binds = frozenset(
        s.get_name()
        for s in table.get_symbols()
        if (s.is_assigned() or s.is_imported()) and not isinstance(node, ast.Delete)
    )
    if isinstance(node, ast.AugAssign) or getattr(node, "value", node) is None:
        binds = frozenset()  # `x += 1` and `x: int` need an x that is there
    return replace(
        plain,
        kind=syntax.kind(node),
        binds=binds,
        sure=_sure(node, binds),
        touches=syntax.touched(node),
        now=syntax.now(node),
        later=frozenset(later),
        stub=syntax.is_stub(node),
        checks=syntax.checks(node),
        calls=syntax.calls(node),
        writes=frozenset(writes),
    )


def _sure(node: ast.stmt, binds: frozenset[str]) -> frozenset[str]:
    """The names whose earlier value no longer counts after a statement."""
    if isinstance(node, ast.Import):  # `import a.c` leaves the a.b of before
        return frozenset(a.asname or a.name for a in node.names) & binds
    return binds if isinstance(node, _WHOLE) else frozenset()


_WHOLE = (
    ast.FunctionDef
    | ast.AsyncFunctionDef
    | ast.ClassDef
    | ast.ImportFrom
    | ast.Assign
    | ast.AnnAssign
    | ast.Expr
)


def _segment(node: ast.stmt, lines: list[str]) -> tuple[int, str]:
    """First line and text of a statement; columns of a tree count bytes of UTF-8."""
    marks = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(mark.lineno for mark in marks)])
    last = node.end_lineno or first
    kept = lines[first - 1 : last]
    kept[-1] = kept[-1].encode()[: node.end_col_offset].decode("utf-8", "ignore")
    start = node.col_offset if first == node.lineno else 0
    if start:  # after a `;`
        kept[0] = kept[0].encode()[start:].decode("utf-8", "ignore")
    return first, "\n".join(kept)


def _functions(table: symtable.SymbolTable, later: set[str], writes: set[str]) -> None:
    """The global names that the functions under a table read, and those they write."""
    waiting = list(table.get_children())
    while waiting:
        inner = waiting.pop()
        waiting += inner.get_children()
        for symbol in inner.get_symbols():
            if symbol.is_global() and symbol.is_referenced():
                later.add(symbol.get_name())
            if symbol.is_declared_global() and symbol.is_assigned():
                writes.add(symbol.get_name())  # and reads it, in `n += 1`
                later.add(symbol.get_name())
