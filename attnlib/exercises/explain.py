"""Say in one line what a learner's own error means, and where it arose."""

from __future__ import annotations

import linecache
import re
import types
from collections.abc import Callable

from attnlib.exercises import text

LONGEST = 160  # characters of a message

# (class name or "", pattern in the message, meaning). The first that fits is used.
MEANINGS: tuple[tuple[str, str, str], ...] = (
    (
        "ValueError",
        r"matmul|shapes .* not aligned",
        "`A @ B` needs as many columns in A as B has rows. "
        "Which of the two has to be turned over, with np.swapaxes(B, -1, -2)?",
    ),
    (
        "ValueError",
        r"could not be broadcast|shape mismatch",
        "Two arrays of different shapes meet here. Print both shapes. "
        "After a sum or a max, keepdims=True keeps the axis.",
    ),
    (
        "ValueError",
        r"cannot reshape",
        "reshape keeps the number of elements: the new sizes must multiply to the "
        "old number.",
    ),
    (
        "ValueError",
        r"truth value of an array",
        "`if` wants one True or False, and this is a whole array. "
        "Use np.where, .any() or .all().",
    ),
    ("ValueError", r"axes don't match|repeated axis", "The list of axes does not fit."),
    (
        "ValueError",
        r"unpack",
        "The number of names on the left is not the number of values on the right. "
        "Batches bring extra axes: use x.shape[-1], not a fixed number of sizes.",
    ),
    ("AxisError", r"", "The array has fewer axes than that. Axes count from 0, or -1."),
    (
        "TypeError",
        r"NoneType",
        "One of the values is None. Does a function you call have no `return` yet?",
    ),
    (
        "TypeError",
        r"ellipsis",
        "One of the values is still `...`.",
    ),
    ("TypeError", r"not callable", "Something that is no function is called with ()."),
    (
        "TypeError",
        r"only .*(scalar|length-1|0-dimensional)",
        "math.exp and float() take one number. For arrays: np.exp.",
    ),
    ("UFuncTypeError|_UFunc", r"", "The result of this operation fits no such dtype."),
    (
        "AttributeError",
        r"numpy.ndarray.*'(masked_fill|unsqueeze|view|softmax|permute|size|dim|exp)'"
        r"|numpy.*'(nn|tensor|softmax|cat)'",
        "That is PyTorch. These lessons use NumPy: np.where, x[..., None], reshape, "
        "np.exp.",
    ),
    ("AttributeError", r"", "The object has nothing of that name. Is it misspelt?"),
    (
        "UnboundLocalError",
        r"",
        "This name is used before it gets a value inside the function.",
    ),
    ("NameError", r"", "Nothing has this name. Is it misspelt, or is a cell not run?"),
    ("IndexError", r"", "The index is outside the array. Does the code fix a size?"),
    ("KeyError", r"", "There is no such key."),
    ("ModuleNotFoundError", r"", "The lesson needs nothing but NumPy."),
    ("ZeroDivisionError", r"", "Something is divided by zero."),
    ("RecursionError", r"", "The function calls itself without end."),
    ("MemoryError", r"", "The array would be far too large."),
    ("AssertionError", r"", "Your own assert failed."),
)


def raised(error: BaseException, function: Callable[..., object], case: str) -> str:
    """One sentence on the error, the line it arose in, and what it usually means."""
    kind = type(error).__name__
    if kind == "NoKeyboard":
        return text.KEYBOARD
    if not isinstance(error, Exception):
        return text.exits(kind)
    message = _message(error)
    meaning = next(
        (
            meaning
            for name, pattern, meaning in MEANINGS
            if re.search(name, kind) and re.search(pattern, message)
        ),
        "",
    )
    return text.raised(kind, message, _where(error, function), meaning, case)


def _message(error: BaseException) -> str:
    try:
        message = " ".join(str(error).split())
    except BaseException:  # a class of the learner's own may do anything here
        return ""
    if len(message) > LONGEST:
        message = message[:LONGEST].rstrip() + " ..."
    return message.rstrip(".")


def _where(error: BaseException, function: Callable[..., object]) -> str:
    """The last line of the learner's own code on the way to the error."""
    code = getattr(function, "__code__", None)
    home = getattr(code, "co_filename", None)
    last: tuple[types.CodeType, int] | None = None
    trace = error.__traceback__
    steps = 0
    while trace is not None and steps < 10_000:
        frame_code = trace.tb_frame.f_code
        if frame_code is code or (home and frame_code.co_filename == home):
            last = (frame_code, trace.tb_lineno)
        trace = trace.tb_next
        steps += 1
    if last is None:
        return ""
    found, line = last
    source = linecache.getline(found.co_filename, line).strip()
    return text.at_line(line - found.co_firstlineno + 1, found.co_name, source)
