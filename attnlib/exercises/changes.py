"""What may be wrong at one place of a syntax tree: what can stand there instead."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

# What stands instead of one node; nothing, where the node may be left out of a list.
Change = list[ast.AST]
Node = TypeVar("Node", bound=ast.AST)

# Functions and attributes that are taken for each other.
TAKEN_FOR: dict[str, tuple[str, ...]] = {
    "max": ("min", "mean"),
    "min": ("max",),
    "sum": ("mean", "max"),
    "mean": ("sum", "max"),
    "any": ("all",),
    "all": ("any",),
    "exp": ("exp2", "expm1"),
    "log": ("log2", "log1p"),
    "log2": ("log",),
    "sin": ("cos",),
    "cos": ("sin",),
    "tanh": ("sin", "arctan"),
    "tril": ("triu",),
    "ones": ("zeros",),
    "isfinite": ("isnan", "isinf"),
    "isneginf": ("isposinf", "isinf"),
    "pinv": ("transpose",),
    "out": ("weights",),
    "weights": ("out",),
    "float64": ("float32",),
}
INSTEAD: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div, ast.Add),
    ast.Div: (ast.Mult, ast.FloorDiv),
    ast.FloorDiv: (ast.Mult, ast.Mod, ast.Div),
    ast.Pow: (ast.Mult, ast.Add),
    ast.BitAnd: (ast.BitOr, ast.BitXor),
    ast.BitOr: (ast.BitAnd, ast.BitXor),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
    ast.Lt: (ast.LtE, ast.Gt, ast.NotEq),
    ast.LtE: (ast.Lt, ast.GtE, ast.Eq),
    ast.Gt: (ast.GtE, ast.Lt, ast.NotEq),
    ast.GtE: (ast.Gt, ast.LtE, ast.Eq),
    ast.Eq: (ast.NotEq, ast.LtE, ast.GtE),
    ast.NotEq: (ast.Eq, ast.Lt, ast.Gt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}


def docstring(function: ast.FunctionDef) -> ast.stmt | None:
    """The statement that is the docstring, which is not changed."""
    return function.body[0] if ast.get_docstring(function) is not None else None


def changes(
    node: ast.AST, parent: ast.AST, neighbours: Mapping[str, Sequence[str]]
) -> Iterator[Change]:
    """All that may stand instead of one node. The node itself stays as it is."""
    if type(node) in INSTEAD:
        for other in INSTEAD[type(node)]:
            yield [other()]
    elif isinstance(node, ast.stmt):
        yield from _statement(node)
    elif isinstance(node, ast.keyword):
        yield []
    elif isinstance(node, ast.expr):
        if isinstance(parent, ast.Call) and node in parent.args:
            yield []  # an argument left out
        elif isinstance(parent, ast.Tuple) and isinstance(parent.ctx, ast.Load):
            yield []
        for new in _expression(node, parent, neighbours):
            yield [new]


def fixed(node: ast.expr, example: Mapping[str, object]) -> Iterator[Change]:
    """The size or number that an argument has in an example, written as it is there."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    sized = isinstance(node, ast.Name) or ".shape[" in ast.unparse(node)
    if not (sized and names and names <= example.keys()):
        return
    try:
        value = eval(ast.unparse(node), {}, dict(example))
    except Exception:  # no size, or not in this example
        return
    if type(value) in (int, float, bool, str):
        yield [ast.Constant(value)]


def _statement(node: ast.stmt) -> Iterator[Change]:
    yield [ast.Pass()]
    if isinstance(node, ast.If):
        yield [*node.body]
        if node.orelse:
            yield [*node.orelse]


def _expression(
    node: ast.expr, parent: ast.AST, neighbours: Mapping[str, Sequence[str]]
) -> Iterator[ast.expr]:
    number = _number(node)
    if number is not None and not isinstance(parent, ast.UnaryOp):
        yield from (ast.Constant(n) for n in _near(number))
    elif isinstance(node, ast.Constant) and not isinstance(parent, ast.Expr):
        yield from _other_constant(node)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield from (ast.Name(name, ast.Load()) for name in neighbours.get(node.id, ()))
    elif isinstance(node, ast.Attribute):
        yield from (_with(node, attr=a) for a in TAKEN_FOR.get(node.attr, ()))
        if node.attr == "T":
            yield node.value
    elif isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
        if not isinstance(node.op, ast.Add | ast.Mult | ast.BitAnd | ast.BitOr):
            yield _with(node, left=node.right, right=node.left)
    elif isinstance(node, ast.BoolOp):
        yield from node.values
    elif isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
        yield _with(node, body=node.orelse, orelse=node.body)
    elif isinstance(node, ast.Compare):
        yield ast.Constant(value=True)
        yield ast.Constant(value=False)
    elif isinstance(node, ast.Call):
        yield from _call(node)
    elif isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load):
        yield from (_with(node, elts=elts) for elts in _exchanged(node.elts))
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield node.value
    elif isinstance(node, ast.Slice):
        yield from _slice(node)


def _number(node: ast.expr) -> int | float | None:
    """The number that is written here, its sign included."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value  # type: ignore[return-value]
    return None


def _near(number: float) -> Iterator[float]:
    """Numbers that people write instead: one more, one less, none, the other sign."""
    seen = {number}
    for near in (number + 1, number - 1, number * 0, -number, number / 2, number * 2):
        whole = isinstance(number, int)
        if near not in seen and not (whole and near != int(near)):
            seen.add(near)
            yield int(near) if whole else near


def _other_constant(node: ast.Constant) -> Iterator[ast.expr]:
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, str):
        yield ast.Constant(node.value + "s")


def _call(node: ast.Call) -> Iterator[ast.expr]:
    yield from node.args  # np.sqrt(x) -> x, max(1, scale) -> scale
    if isinstance(node.func, ast.Attribute) and not _is_module(node.func.value):
        yield node.func.value  # x.mean(axis=-1) -> x
    yield from (_with(node, args=args) for args in _exchanged(node.args))


def _is_module(node: ast.expr) -> bool:
    """Whether a name is no array: np, np.linalg, masks, F."""
    root = node
    while isinstance(root, ast.Attribute):
        root = root.value
    modules = {"np", "torch", "F", "heads", "masks", "attention", "positions"}
    return isinstance(root, ast.Name) and root.id in modules | {"diagnostics"}


def _exchanged(parts: Sequence[ast.expr]) -> Iterator[list[ast.expr]]:
    """The same parts with two neighbours exchanged."""
    for i in range(len(parts) - 1):
        yield [*parts[:i], parts[i + 1], parts[i], *parts[i + 2 :]]


def _slice(node: ast.Slice) -> Iterator[ast.expr]:
    if node.lower is not None and _number(node.lower) != 0:
        yield _with(node, lower=None)
    if node.upper is not None:
        yield _with(node, upper=None)
    if node.lower is None or node.upper is None:
        yield _with(node, lower=node.upper, upper=node.lower)
    if node.step is not None:
        yield _with(node, step=None)


def _with(node: Node, **fields: object) -> Node:
    """A copy of a node with other fields."""
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new
