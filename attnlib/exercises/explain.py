"""Say in a few lines what a learner's own error means, where it arose, what to do."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from attnlib.exercises import frames, habits, meanings, text, torch_habits
from attnlib.exercises.frames import Place

LONGEST = 160  # characters of a message


@dataclass(frozen=True)
class _Error:
    """An error, where it arose, and what the exercise has to say about shapes."""

    message: str
    place: Place | None
    function: Callable[..., object]
    advice: str
    tensors: bool


def raised(
    error: BaseException,
    function: Callable[..., object],
    case: str,
    advice: str = "",
    tensors: bool = False,
) -> str:
    """Where it arose, what it usually means, and the error in its own words."""
    kind = type(error).__name__
    if kind == "NoKeyboard":
        return text.KEYBOARD
    if not isinstance(error, Exception):
        return text.exits(kind)
    place = frames.find(error, function)
    message = _message(error)
    meaning = _meaning(kind, _Error(message, place, function, advice, tensors))
    where = text.at_line(place.line, place.function, place.source) if place else ""
    return text.raised(kind, _shortened(message), where, meaning, case)


def says_unfinished(error: BaseException | None) -> bool:
    """Whether a learner wrote `raise NotImplementedError`; torch raises it, too."""
    if not isinstance(error, NotImplementedError):
        return False
    return "not implemented for '" not in _message(error)


def returned_none(function: Callable[..., object], none: list[str]) -> str:
    """Why a function gave None; `none` are its arguments that were None."""
    stub = frames.stub_called(function)
    if stub:
        return text.RETURNS_NONE_OF_STUB.format(name=stub)
    if not frames.returns_something(function):
        return text.RETURNS_NONE
    if none:
        return text.RETURNS_NONE_FOR.format(name=none[0])
    return text.RETURNS_NONE_ONCE


def _message(error: BaseException) -> str:
    try:
        return " ".join(str(error).split()).rstrip(".")
    except BaseException:  # a class of the learner's own may do anything here
        return ""


def _shortened(message: str) -> str:
    message = re.sub(r"Input operand .* gufunc signature \S+ ", "", message)
    message = re.sub(r" \(has 0, gufunc .*", "", message)
    if len(message) > LONGEST:
        message = message[:LONGEST].rstrip() + " ..."
    return message


def _meaning(kind: str, error: _Error) -> str:
    # The library's own error names the sizes, and None may well be meant there.
    none = "" if kind == "ShapeError" else _about_none(error)
    if none:
        return none
    own = torch_habits.meaning if error.tensors else habits.meaning
    habit = own(kind, error.message, error.place)
    if habit:
        return habit
    for name, pattern, meaning in MEANINGS:
        if re.search(name, kind) and re.search(pattern, error.message):
            return meaning if isinstance(meaning, str) else meaning(error)
    return ""


def _about_none(error: _Error) -> str:
    """That something is None, if it was that."""
    place = error.place
    said = "NoneType" in error.message
    if error.tensors and not said:  # torch says so, and to many calls None is handed
        return ""
    if place is not None and place.none_arguments:
        return meanings.argument_is_none(place.none_arguments[0])
    nothing = "has 0, gufunc" in error.message  # None @ array
    if not said and not nothing and not (place and place.none_names):
        return ""
    stub = frames.stub_called(error.function)
    if stub:
        return meanings.stub_returned(stub)
    if place is not None and place.none_names:
        return meanings.name_is_none(place.none_names[0])
    return meanings.SOMETHING_IS_NONE if said else ""


def _matmul(error: _Error) -> str:
    if "enough dimensions" in error.message:
        return meanings.MATMUL_OF_A_NUMBER
    place = error.place
    pair = place.operands() if place else None
    if place is None or pair is None:
        return _sizes(error)
    left, right = (place.shape(node) for node in pair)
    a, b = (ast.unparse(node) for node in pair)
    if left is None or right is None:
        return _sizes(error)
    said = meanings.matmul_shapes(a, left, b, right)
    turned = pair[1]
    if frames.is_attribute(turned) and turned.attr == "T" and len(right) > 2:
        return f"{said} {meanings.turns_all(ast.unparse(turned.value))}"
    if len(right) > 1 and left[-1:] == right[-1:]:
        return f"{said} {meanings.turned_would_fit(b)}"
    return f"{said} {error.advice or meanings.PRINT_SHAPES}"


def _sizes(error: _Error) -> str:
    """What can be said about `@` if only the two sizes that clash are known."""
    sizes = re.search(r"size (\d+) is different from (\d+)", error.message)
    said = meanings.matmul_sizes(sizes[2], sizes[1]) if sizes else meanings.MATMUL
    return f"{said} {error.advice or meanings.PRINT_SHAPES}"


def _broadcast(error: _Error) -> str:
    shapes = re.findall(r"\(([\d,]+)\)", error.message)
    axes = {len([n for n in shape.split(",") if n]) for shape in shapes}
    if len(axes) > 1:
        return f"{meanings.BROADCAST} {meanings.KEEPDIMS}"
    return f"{meanings.BROADCAST} {error.advice or meanings.PRINT_SHAPES}"


def _places(error: _Error) -> str:
    return f"{meanings.PLACES} {error.advice}".rstrip()


def _own_advice(error: _Error) -> str:
    return error.advice


def _reshape(error: _Error) -> str:
    return f"{meanings.RESHAPE} {error.advice}".rstrip()


def _concatenate(error: _Error) -> str:
    return f"{meanings.CONCATENATE} {error.advice}".rstrip()


def _truth(error: _Error) -> str:
    place = error.place
    given = [a for a in place.arguments if a in place.bare_names] if place else []
    optional = [a for a in given if a in frames.none_by_default(error.function)]
    return meanings.was_it_given(optional[0]) if optional else meanings.TRUTH


def _axis(error: _Error) -> str:
    node = error.place.node if error.place else None
    fixed = isinstance(node, ast.Call) and any(
        k.arg == "axis" and isinstance(k.value, ast.Constant) for k in node.keywords
    )
    if fixed and error.place is not None and "axis" in error.place.arguments:
        return meanings.AXIS_IS_FIXED
    return meanings.AXIS


def _assertion(error: _Error) -> str:
    own = error.place is not None and error.place.source.startswith("assert")
    return meanings.ASSERTION if own else ""  # a library's says itself what it means


# (class name or "", pattern in the message, meaning). The first that fits is used.
MEANINGS: tuple[tuple[str, str, str | Callable[[_Error], str]], ...] = (
    ("ValueError", r"matmul|shapes .* not aligned", _matmul),
    ("ValueError", r"could not be broadcast|shape mismatch", _broadcast),
    ("ShapeError", r"do not broadcast|is not a multiple of n_heads", _own_advice),
    ("ShapeError", r"^d must be at least 2, but it is 0", meanings.NO_COLUMNS),
    ("ShapeError", r"is odd, but RoPE", meanings.ODD_WIDTH),
    ("ShapeError", r"x and positions must agree", _places),
    ("TypeError", r"it is an? (Attention|MultiHead) of", meanings.NOT_ITS_ARRAY),
    ("ValueError", r"must be 1- or 2-d", meanings.DIAGONAL),
    ("ValueError", r"cannot reshape", _reshape),
    ("ValueError", r"concatenation axis|must have the same shape", _concatenate),
    ("ValueError", r"truth value of an array", _truth),
    ("ValueError", r"equal division", meanings.SPLIT_EVENLY),
    ("ValueError", r"subscripts", meanings.LETTERS),
    ("ValueError", r"axes don't match|repeated axis", meanings.AXES),
    ("ValueError", r"unpack", meanings.UNPACK),
    ("ValueError", r"inhomogeneous", meanings.RAGGED),
    ("ValueError", r"both or neither of x and y", meanings.THREE_THINGS),
    ("RuntimeError", r"Half without overflow", meanings.TOO_LARGE_FOR_HALF),
    ("AxisError", r"", _axis),
    ("TypeError", r"ellipsis", meanings.SOMETHING_IS_ELLIPSIS),
    ("TypeError", r"Cannot interpret '\d+' as a data type", meanings.SIZES_IN_BRACKETS),
    ("TypeError", r"'(bitwise|invert)", meanings.BITWISE),
    ("TypeError", r"not callable", meanings.NOT_CALLABLE),
    ("TypeError", r"unsupported operand .*'(method|function)'", meanings.NOT_CALLED),
    ("TypeError", r"ufunc '\w+' not supported", meanings.NO_SUCH_VALUES),
    ("TypeError", r"unpack non-iterable (Attention|MultiHead)", meanings.ONE_OBJECT),
    ("TypeError", r"only .*(scalar|length-1|0-dimensional)", meanings.ONE_NUMBER),
    ("TypeError", r"as an integer|slice indices must", meanings.WHOLE_NUMBER),
    ("IndexError", r"only integers", meanings.WHOLE_NUMBER),
    ("UFuncTypeError|_UFunc", r"Cannot cast", meanings.DTYPE),
    ("UFuncTypeError|_UFunc", r"", meanings.NO_SUCH_VALUES),
    (
        "AttributeError",
        r"numpy.ndarray.*'(masked_fill|unsqueeze|view|softmax|permute|size|dim)'"
        r"|numpy.*'(nn|tensor|softmax|cat)'",
        habits.PYTORCH,
    ),
    ("AttributeError", r"'range' object", meanings.RANGE_IS_FIXED),
    ("AttributeError", r"", meanings.ATTRIBUTE),
    ("UnboundLocalError", r"", meanings.UNBOUND),
    ("NameError", r"", meanings.NAME),
    ("ValueError", r"list\.remove\(x\)|is not in list", meanings.NOT_IN_LIST),
    ("IndexError", r"pop index|list assignment index", meanings.PLACE_IN_LIST),
    ("IndexError", r"shape of the mask", meanings.MASK_FITS),
    ("IndexError", r"tensors used as indices", meanings.MASK_KINDS),
    ("TypeError", r"'(int|float)' has no len", meanings.NO_LENGTH),
    ("TypeError", r"[<>]=?' not supported .*'list'", meanings.LIST_COMPARED),
    ("RuntimeError", r"size for first two dimensions", _matmul),
    ("IndexError", r"too many indices", meanings.AXIS),
    ("IndexError", r"boolean index", meanings.BOOLEAN_INDEX),
    ("IndexError", r"", meanings.INDEX),
    ("KeyError", r"", meanings.KEY),
    ("ModuleNotFoundError", r"", meanings.MODULE),
    ("ZeroDivisionError", r"", meanings.ZERO),
    ("RecursionError", r"", meanings.RECURSION),
    ("MemoryError", r"", meanings.MEMORY),
    ("AssertionError", r"", _assertion),
)


def why_not_finite(
    args: tuple[object, ...],
    function: Callable[..., object] | None = None,
    empty_mean: bool = False,
) -> str:
    """The likely cause of NaN or infinity, read off arguments and code; or nothing.

    `empty_mean`: NumPy warned of a mean over nothing.
    """
    if empty_mean:
        return meanings.MEAN_OF_NOTHING
    if function is not None and frames.multiplies_infinity(function):
        return text.ZERO_TIMES_INFINITY
    arrays = [a for a in args if isinstance(a, np.ndarray) and a.dtype.kind == "f"]
    finite = [np.abs(a[np.isfinite(a)]).max(initial=0.0) for a in arrays]
    hidden = [np.isneginf(a) for a in arrays if np.isneginf(a).any()]
    if any(a.ndim < 2 or a.all(-1).any() for a in hidden):
        return text.EMPTY_ROW
    if hidden:
        return meanings.ZERO_TIMES_HIDDEN
    return text.OVERFLOW if max(finite, default=0.0) > 700 else ""
