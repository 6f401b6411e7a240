"""Errors of habit: PyTorch's or Python's own way of saying what NumPy says otherwise.

Each is recognised by its message and by the line in which it arose.
"""

from __future__ import annotations

import ast
import re
from importlib.util import find_spec

import numpy as np

from attnlib.exercises.frames import Place

AXIS_AND_KEEPDIMS = "NumPy says `axis` and `keepdims`, where PyTorch has dim, keepdim."
PYTORCH = (
    "That is PyTorch. These lessons use NumPy: np.where, x[..., None], reshape, np.exp."
)
SIZE = "`.size` is a number in NumPy, and no function. One size is x.shape[-1]."
SHAPE = "`.shape` is no function. One size is x.shape[-1], in square brackets."
POWER = "`^` is no power in Python. Write `**`, as in d ** 0.5."
IMPORT_MATH = (
    "`math` has to be imported first: `import math`. Or use np.sqrt, np.exp and np.log."
)
WHOLE_ARRAYS = (
    "Python's own `{name}` compares the rows of a table with each other. Use "
    "np.{name}, with `axis` and keepdims=True."
)
NOT_ITERABLE = (
    "A loop goes over a single number here: this case has fewer axes than the loops "
    "expect. Work along the last axis, axis=-1, instead."
)
TOO_FEW_SIZES = (
    "The array has fewer axes than that. Count sizes from the end: x.shape[-1]."
)
ONE_NUMBER = "`math.{name}` and float() take one number. For arrays: np.{name}."
TURNED = (
    "`.transpose` lists the new order of *all* axes in NumPy. To exchange the last "
    "two, whatever stands in front: np.swapaxes({name}, -1, -2)."
)
NOT_A_TENSOR = (
    "PyTorch wants tensors, and the arguments here are NumPy arrays. "
    "torch.tensor(x) makes one of an array."
)
FORGETS = (
    "A NumPy array remembers nothing, and has no `.{name}`. Work it out by hand, or "
    "make tensors first: torch.tensor(x, requires_grad=True)."
)
SCALAR_ONLY = (
    "`.backward()` alone starts from a single number. From a table it starts with the "
    "gradient that arrives there: out.backward(torch.tensor(...))."
)
WHOLE_POWERS = (
    "Whole numbers have no negative powers in NumPy. Write the base with a point: "
    "10.0 ** -2."
)
STORED = (
    "What stands on the right has the shape {right}, and the place on the left that it "
    "is written to has {left}. Are sizes fixed, or is an axis cut twice?"
)
PIECES_IN_BRACKETS = (
    "The pieces stand in brackets of their own: np.concatenate([a, b])."
)
LARGEST_OF_TWO = (
    "np.{name} goes over one array, and takes the second argument for an axis. Of two "
    "numbers: {name}(a, b)."
)
HIDDEN_MODULE = (
    "Inside this function `{name}` is the argument: it hides the module of that name. "
    "Import the module under another name to use it here."
)
_REMEMBERS = ("backward", "grad", "detach", "requires_grad", "requires_grad_")

_TRANSPOSE = re.compile(r"(\w+)\.transpose\(\s*-?\d+\s*,\s*-?\d+\s*(?:,\s*-?\d+\s*)*\)")
_ALL_AXES = re.compile(r"np\.transpose\((\w+)\)")
_TORCH = ("torch", "F", "nn", "tf", "jnp", "jax")


def meaning(kind: str, message: str, place: Place | None) -> str:
    """What a habit of another library means here, or "" if it is none."""
    source = place.source if place else ""
    if kind == "NameError":
        return _name(message)
    if kind == "AttributeError":
        return _hidden(message, place) or _attribute(message)
    if kind == "IndexError" and "tuple index" in message and ".shape[" in source:
        return TOO_FEW_SIZES
    if kind == "TypeError":
        return _type(message, source)
    if kind == "ValueError":
        return _value(message, source, place)
    if kind == "RuntimeError" and "only for scalar outputs" in message:
        return SCALAR_ONLY
    return ""


def _name(message: str) -> str:
    name = _quoted(message)
    if name == "math":
        return IMPORT_MATH
    return PYTORCH if name in _TORCH else ""


def _hidden(message: str, place: Place | None) -> str:
    """`positions.rope(...)` where an argument has the name of the module."""
    missing = re.search(r"has no attribute '(\w+)'", message)
    if place is None or missing is None:
        return ""
    for name in place.arguments:
        if f"{name}.{missing[1]}" in place.source and find_spec(f"attnlib.{name}"):
            return HIDDEN_MODULE.format(name=name)
    return ""


def _attribute(message: str) -> str:
    """`x.exp()` and np.pinv: NumPy has it, under another name."""
    missing = re.search(r"has no attribute '(\w+)'", message)
    name = missing[1] if missing else ""
    if "numpy.ndarray" in message and name in _REMEMBERS:
        return FORGETS.format(name=name)
    if "numpy.ndarray" in message and callable(getattr(np, name, None)):
        return f"An array has no `.{name}`: NumPy writes np.{name}(x)."
    if "module 'numpy'" in message and callable(getattr(np.linalg, name, None)):
        return f"It is np.linalg.{name}."
    if "module 'numpy'" in message and name == "softmax":
        return "NumPy has no softmax: it is made of np.exp and a sum."
    return ""


def _type(message: str, source: str) -> str:
    if re.search(r"unexpected keyword argument '(dim|keepdim)'", message):
        return AXIS_AND_KEEPDIMS
    if "must be Tensor, not numpy" in message:
        return NOT_A_TENSOR
    if "not callable" in message and ".size(" in source:
        return SIZE
    if "not callable" in message and ".shape(" in source:
        return SHAPE
    if re.search(r"operand type.* for \^", message) or "'bitwise_xor'" in message:
        return POWER
    if "numpy.float64' object is not iterable" in message:
        return NOT_ITERABLE
    if "scalar" in message and re.search(r"np\.(concatenate|stack)\(", source):
        return PIECES_IN_BRACKETS
    two = re.search(r"np\.(max|min)\(", source)
    if two and "as an integer" in message:
        return LARGEST_OF_TWO.format(name=two[1])
    used = re.search(r"math\.(exp|log|sqrt)\(", source)
    if used and "scalar" in message:
        return ONE_NUMBER.format(name=used[1])
    return ""


def _value(message: str, source: str, place: Place | None) -> str:
    if "truth value of an array" in message:
        node = place.node if place else None
        own = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        name = node.func.id if own else ""  # type: ignore[union-attr]
        return WHOLE_ARRAYS.format(name=name) if name in ("max", "min") else ""
    if "negative integer powers" in message:
        return WHOLE_POWERS
    shapes = r"input array from shape (\(.*?\)) into shape (\(.*?\))"
    stored = re.search(shapes, message)
    if stored:
        return STORED.format(right=stored[1], left=stored[2])
    turned = _TRANSPOSE.search(source) or _ALL_AXES.search(source)
    if turned and re.search(r"matmul|not aligned|axes don't match", message):
        return TURNED.format(name=turned[1])
    return ""


def _quoted(message: str) -> str:
    found = re.search(r"'(\w+)'", message)
    return found[1] if found else ""
