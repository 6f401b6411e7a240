"""What one top-level statement does to names, read off its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterable

_CHANGING, _CHANGING_FIRST, _SETTINGS = (
    frozenset(words.split())
    for words in (
        # Methods that change the object they are called on, besides those with a `_`.
        "append extend insert add update setdefault pop remove clear sort reverse fill "
        "put eval train load_state_dict register_buffer register_parameter setflags",
        # Functions that change what they are given first.
        "fill_diagonal shuffle put place copyto putmask put_along_axis heappush "
        "heapify setattr delattr",
        # Calls that change how a whole library works.
        "set_default_dtype set_default_device set_default_tensor_type set_grad_enabled "
        "manual_seed seed seterr setrecursionlimit",
    )
)


def kind(node: ast.stmt) -> str:
    """def, import, star (import *), value, setting (torch.manual_seed) or other."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return "def"
        case ast.ImportFrom(names=[ast.alias(name="*")]):
            return "star"
        case ast.Import() | ast.ImportFrom():
            return "import"
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=attr))):
            return "setting" if attr in _SETTINGS else "other"
        case ast.Assign() | ast.AnnAssign():
            return "value"
    return "other"


def now(node: ast.stmt) -> frozenset[str]:
    """The names that are read before they are given a value, functions unopened."""
    first: dict[str, str] = {}
    try:
        _visit(node, first)
    except RecursionError:  # a sum of a thousand terms
        names = (n for n in ast.walk(node) if isinstance(n, ast.Name))
        first = {n.id: "read" for n in names}
    return frozenset(name for name, event in first.items() if event == "read")


def _visit(node: ast.AST | None, first: dict[str, str]) -> None:
    """Note for each name whether it is read or bound first, in the order of running."""
    match node:
        case None:
            return
        case ast.Name():
            loads = isinstance(node.ctx, ast.Load)
            first.setdefault(node.id, "read" if loads else "bound")
        case ast.Assign() | ast.AnnAssign() | ast.NamedExpr():
            _visit(node.value, first)
            if isinstance(node, ast.AnnAssign):
                _visit(node.annotation, first)
            _all(node.targets if isinstance(node, ast.Assign) else [node.target], first)
        case ast.AugAssign(target=target):
            if isinstance(target, ast.Name):
                first.setdefault(target.id, "read")
            _all([target, node.value], first)
        case ast.For() | ast.AsyncFor():
            _all([node.iter, node.target, *node.body, *node.orelse], first)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            _all(getattr(node, "decorator_list", []), first)
            _all([*node.args.defaults, *filter(None, node.args.kw_defaults)], first)
            if not isinstance(node, ast.Lambda):
                arguments = [n for n in ast.walk(node.args) if isinstance(n, ast.arg)]
                _all([*(a.annotation for a in arguments), node.returns], first)
                first.setdefault(node.name, "bound")
        case ast.ClassDef():
            _all([*node.decorator_list, *node.bases, *node.keywords], first)
            _inside(node.body, first)
            first.setdefault(node.name, "bound")
        case ast.ListComp(elt=made) | ast.SetComp(elt=made):
            _inside([*node.generators, made], first)
        case ast.GeneratorExp(generators=generators, elt=made):
            _inside([*generators, made], first)
        case ast.DictComp(generators=generators, key=key, value=value):
            _inside([*generators, key, value], first)
        case ast.comprehension():
            _all([node.iter, node.target, *node.ifs], first)
        case ast.Import() | ast.ImportFrom():
            for alias in node.names:
                first.setdefault(bound_by(alias), "bound")
        case ast.ExceptHandler():
            _visit(node.type, first)
            if node.name:
                first.setdefault(node.name, "bound")
            _all(node.body, first)
        case _:
            _all(ast.iter_child_nodes(node), first)


def _all(nodes: Iterable[ast.AST | None], first: dict[str, str]) -> None:
    for node in nodes:
        _visit(node, first)


def _inside(nodes: Iterable[ast.AST], first: dict[str, str]) -> None:
    """Visit what has names of its own: those that it binds are none of the outer."""
    own: dict[str, str] = {}
    _all(nodes, own)
    for name, event in own.items():
        if event == "read":
            first.setdefault(name, event)


def bound_by(alias: ast.alias) -> str:
    """The name that a part of an import defines: `np`, and `os` of `import os.path`."""
    return alias.asname or alias.name.split(".")[0]


def _root(node: ast.AST) -> str:
    """`x` of x[0].y"""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _last_word(node: ast.AST | None) -> str:
    """`check` of exercises.check"""
    match node:
        case ast.Attribute(attr=word) | ast.Name(id=word):
            return word
    return ""


def touched(node: ast.stmt) -> frozenset[str]:
    """The names whose value a statement changes: x[0] = 1, x.y = 1, x.append(1)."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return frozenset()
    found: set[str] = set()
    for inner in ast.walk(node):
        match inner:
            case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
                found.add(_root(inner))
            case ast.AugAssign(target=target):
                found.add(_root(target))
            case ast.Expr(value=ast.Call(func=called, args=args)):
                word = _last_word(called)
                if word in _CHANGING or word.endswith("_"):  # x.append(1), x.zero_()
                    found.add(_root(called))
                if word.endswith("_"):  # nn.init.zeros_(layer.weight)
                    found.update(map(_root, args))
                if word in _CHANGING_FIRST:  # np.fill_diagonal(x, 0)
                    found.update(map(_root, args[:1]))
    return frozenset(found - {""})


def calls(node: ast.stmt) -> frozenset[str]:
    """The function whose result a statement forgets: `setup()`."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Name(id=name))):
            return frozenset({name})
    return frozenset()


def checks(node: ast.stmt) -> frozenset[str]:
    """The exercises that are checked: check("softmax", softmax)."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return frozenset()
    found: set[str] = set()
    for inner in ast.walk(node):
        match inner:
            case ast.Call(func=called, args=args, keywords=named):
                if _last_word(called) in ("check", "judge"):
                    given = [*args, *(keyword.value for keyword in named)]
                    texts = (g.value for g in given if isinstance(g, ast.Constant))
                    found.update(text for text in texts if isinstance(text, str))
    return frozenset(found)


def is_stub(node: ast.stmt) -> bool:
    """Whether an exercise is not begun: `...`, pass, NotImplementedError."""
    match node:
        case ast.Assign(value=value) | ast.AnnAssign(value=value):
            return isinstance(value, ast.Constant) and value.value is Ellipsis
        case ast.FunctionDef(body=body) | ast.AsyncFunctionDef(body=body):
            return all(_idle(inner) for inner in body)
    return False


def _idle(node: ast.stmt) -> bool:
    match node:
        case ast.Pass() | ast.Expr(value=ast.Constant()) | ast.Return(value=None):
            return True
        case ast.Return(value=ast.Constant(value=value)):
            return value is None or value is Ellipsis
        case ast.Raise(exc=ast.Call(func=raised)) | ast.Raise(exc=raised):
            return "NotImplemented" in _last_word(raised)
    return False
