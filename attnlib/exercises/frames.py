"""Where in a learner's code an error arose, and what stood there.

Nothing of the learner's is called or compared: names are looked up, and only None,
whole numbers and plain arrays are recognised.
"""

from __future__ import annotations

import ast
import dis
import inspect
import itertools
import linecache
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from attnlib.exercises import stubs
from attnlib.exercises.afar import FarPlace, is_afar

STEPS = 10_000  # frames of a traceback that are looked at
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Place:
    """The last line of the learner's own code on the way to the error."""

    line: int  # counted from the `def`
    function: str
    source: str  # the line, stripped
    node: ast.expr | None  # the expression that failed, if it can be told
    values: Mapping[str, object]  # the names that can be seen there
    arguments: tuple[str, ...]

    @property
    def names(self) -> set[str]:
        """The names in the expression that failed; in the line, if it is not known."""
        if self.node is None:
            return set(re.findall(r"[^\W\d]\w*", self.source))
        return _names(self.node)

    @property
    def bare_names(self) -> set[str]:
        """The same without those that are handed to a function there."""
        node = self.node
        if node is None:
            return self.names
        calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
        handed = {id(n) for call in calls for n in ast.walk(call)}
        inside = [n for n in ast.walk(node) if id(n) not in handed]
        return {n.id for n in inside if isinstance(n, ast.Name)}

    @property
    def none_arguments(self) -> list[str]:
        """Arguments in the failed expression that are None in this call.

        Not those that stand in `n or m` or `n is None`: there they may be.
        """
        names = self.names - _asked_for(self.node)
        return [a for a in self.arguments if a in names and self._is_none(a)]

    @property
    def none_names(self) -> list[str]:
        """Other names in the failed expression that are None."""
        names = sorted(self.names - set(self.arguments))
        return [name for name in names if self._is_none(name)]

    def _is_none(self, name: str) -> bool:
        return name in self.values and self.values[name] is None

    def operands(self) -> tuple[ast.expr, ast.expr] | None:
        """The two sides of the operator, or the first two of a call, that failed."""
        node = self.node
        if isinstance(node, ast.BinOp):
            return node.left, node.right
        if isinstance(node, ast.Call) and len(node.args) == 1:
            method = node.func
            return (method.value, node.args[0]) if is_attribute(method) else None
        if isinstance(node, ast.Call) and len(node.args) > 1:
            return node.args[0], node.args[1]
        return None

    def shape(self, node: ast.expr) -> Shape | None:
        """The shape of a name, of `name.T` or of `name[i]`, without running it."""
        if isinstance(node, ast.Name):
            value = self.values.get(node.id)
            return _shape(value)
        if is_attribute(node) and node.attr == "T":
            inner = self.shape(node.value)
            return None if inner is None else inner[::-1]
        if isinstance(node, ast.Subscript) and self._is_number(node.slice):
            inner = self.shape(node.value)
            return None if inner is None else inner[1:]
        return None

    def _is_number(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return type(self.values.get(node.id)) is int
        return isinstance(node, ast.Constant) and type(node.value) is int


def _shape(value: object) -> Shape | None:
    kind = type(value)
    if kind is np.ndarray or (kind.__module__, kind.__name__) == ("torch", "Tensor"):
        return tuple(value.shape)  # type: ignore[attr-defined]
    return None


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _asked_for(node: ast.AST | None) -> set[str]:
    """The names of which an expression itself asks whether they are None."""
    found: set[str] = set()
    for part in ast.walk(node) if node is not None else ():
        if isinstance(part, ast.BoolOp) and isinstance(part.op, ast.Or):
            found.update(*map(_names, part.values[:-1]))
        elif isinstance(part, ast.IfExp):
            found |= _names(part.test)
    return found


def is_attribute(node: ast.expr) -> TypeGuard[ast.Attribute]:
    """Whether a node is `something.name`."""
    return isinstance(node, ast.Attribute)


def find(error: BaseException, function: Callable[..., object]) -> Place | None:
    """The last line of the learner's own code on the way to the error."""
    if is_afar(function):
        return _from_afar(function.place(error))
    plain = stubs.plain_function(function)
    code = plain.__code__ if plain else None
    home = code.co_filename if code else None
    last: types.TracebackType | None = None
    trace = error.__traceback__
    for _ in range(STEPS):
        if trace is None:
            break
        here = trace.tb_frame.f_code
        if here is code or (home and here.co_filename == home):
            last = trace
        trace = trace.tb_next
    if last is None:
        return None
    frame, line = last.tb_frame, last.tb_lineno
    here = frame.f_code
    return Place(
        line - here.co_firstlineno + 1,
        here.co_name,
        linecache.getline(here.co_filename, line).strip(),
        _expression(here, last.tb_lasti),
        {**frame.f_globals, **frame.f_locals},
        here.co_varnames[: here.co_argcount + here.co_kwonlyargcount],
    )


def _expression(code: types.CodeType, instruction: int) -> ast.expr | None:
    """The expression that was being worked out, from the positions in the code."""
    positions = list(code.co_positions())
    at = positions[instruction // 2] if instruction // 2 < len(positions) else None
    if at is None or None in at:
        return None
    first, last, start, end = (int(n or 0) for n in at)
    lines = [
        linecache.getline(code.co_filename, n).encode() for n in range(first, last + 1)
    ]
    if not lines:
        return None
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    return _parsed(b"".join(lines).decode("utf-8", "replace"))


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(f"({text})", mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _from_afar(told: FarPlace | None) -> Place | None:
    if told is None:
        return None
    node = _parsed(told.expression) if told.expression else None
    seen = told.line, told.function, told.source
    return Place(*seen, node, told.values, told.arguments)


@dataclass(frozen=True)
class Builtin:
    """What stands for a built-in function of another process."""

    name: str


def builtin_name(value: object) -> str:
    """The name of a built-in function, or ""."""
    if type(value) is types.BuiltinFunctionType:
        return value.__name__
    return value.name if type(value) is Builtin else ""


def outline(place: Place) -> dict[str, object]:
    """What can be told of a place to another process: see `afar.FarPlace`."""
    words = set(re.findall(r"[^\W\d]\w*", place.source)) | set(place.arguments)
    node = place.node
    words |= _names(node) if node is not None else set()
    values = {name: place.values[name] for name in words if name in place.values}
    return {
        "line": place.line,
        "function": place.function,
        "source": place.source,
        "expression": ast.unparse(node) if node is not None else "",
        "none": [name for name, value in values.items() if value is None],
        "whole": [name for name, value in values.items() if type(value) is int],
        "shapes": {
            name: list(shape)
            for name, value in values.items()
            if (shape := _shape(value)) is not None
        },
        "builtins": {
            name: told
            for name, value in values.items()
            if (told := builtin_name(value))
        },
        "arguments": list(place.arguments),
    }


def stub_called(function: Callable[..., object]) -> str:
    """The name of a function that this one uses and that is still a stub, or ""."""
    if is_afar(function):
        return function.told.stub_called
    plain = stubs.plain_function(function)
    if plain is None:
        return ""
    code = plain.__code__
    inside = zip(code.co_freevars, plain.__closure__ or (), strict=True)
    known = {**plain.__globals__, **{name: _held(cell) for name, cell in inside}}
    for name in (*code.co_names, *code.co_freevars):
        value = known.get(name)
        if type(value) is types.FunctionType and stubs.is_stub(value):
            return name
    return ""


def outer_numbers(function: Callable[..., object]) -> list[str]:
    """The arrays and whole numbers that a function takes from outside of itself."""
    if is_afar(function):
        return list(function.told.outer_numbers)
    plain = stubs.plain_function(function)
    if plain is None:
        return []
    steps = dis.get_instructions(plain)
    names = dict.fromkeys(s.argval for s in steps if s.opname == "LOAD_GLOBAL")
    kinds = (np.ndarray, int)
    return [n for n in names if type(plain.__globals__.get(n)) in kinds]


def _held(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def returns_something(function: Callable[..., object]) -> bool:
    """Whether a function has a `return` of anything but None."""
    if is_afar(function):
        return function.told.returns_something
    plain = stubs.plain_function(function)
    if plain is None:
        return True
    steps = list(dis.get_instructions(plain))
    for before, step in itertools.pairwise(steps):
        if step.opname == "RETURN_CONST" and step.argval is not None:
            return True
        constant = before.opname == "LOAD_CONST" and before.argval is None
        if step.opname == "RETURN_VALUE" and not constant:
            return True
    return False


def multiplies_infinity(function: Callable[..., object]) -> bool:
    """Whether `* -inf` stands in the code of a function, in one of its spellings."""
    if is_afar(function):
        return function.told.multiplies_infinity
    plain = stubs.plain_function(function)
    try:
        source = inspect.getsource(plain) if plain else ""
    except (OSError, TypeError):
        return False
    return bool(re.search(r"\*\s*\(?\s*-?\s*(float\(.-?inf|[\w.]*\binf\b)", source))


def none_by_default(function: Callable[..., object]) -> list[str]:
    """The arguments that are None if left out."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.default is None]
