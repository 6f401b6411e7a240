"""Look at an answer without calling it: is it a stub, does it take the arguments?"""

from __future__ import annotations

import dis
import functools
import inspect
import types
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from attnlib.exercises import text
from attnlib.exercises.afar import is_afar

# What the compiled body of a stub consists of: `...`, `pass`, `return`, a docstring.
_IDLE = {
    "RESUME",
    "NOP",
    "COPY_FREE_VARS",
    "LOAD_CONST",
    "LOAD_SMALL_INT",
    "LOAD_COMMON_CONSTANT",
    "POP_TOP",
    "RETURN_VALUE",
    "RETURN_CONST",
}
MOST_NUMBERS = 60  # an array with more is not printed


def is_stub(answer: object) -> bool:
    """Whether this is the untouched stub: it does nothing, or is `...` itself."""
    if answer is Ellipsis:
        return True
    if is_afar(answer):
        return answer.told.stub
    if type(answer) is not types.FunctionType:
        return False
    steps = list(dis.get_instructions(answer))
    if any(step.opname not in _IDLE for step in steps):
        return False
    last = [s for s in steps if s.opname in ("LOAD_CONST", "RETURN_CONST")]
    return not last or last[-1].argval is None or last[-1].argval is Ellipsis


def wrong_arguments(
    solution: Callable[..., object],
    answer: Callable[..., object],
    args: tuple[object, ...],
) -> str:
    """A sentence if the answer cannot be called so, or has them in another order."""
    try:
        signature = inspect.signature(answer)
    except Exception:  # some built-in functions do not say what they take
        return ""
    wanted = inspect.signature(solution)
    names = [list(one.parameters) for one in (wanted, signature)]
    try:
        signature.bind(*args)
        signature.bind(*[None] * len(wanted.parameters))
        fits = names[0] == names[1] or sorted(names[0]) != sorted(names[1])
    except TypeError:
        fits = False
    if not fits:
        return text.wrong_arguments(
            f"{solution.__name__}{_plain(wanted)}",
            f"{name_of(answer) or 'yours'}{_plain(signature)}",
        )
    return ""


def plain_function(answer: object) -> types.FunctionType | None:
    """The `def` behind a partial, a method or an object with `__call__`."""
    if is_afar(answer):
        return None
    for _ in range(10):
        kind = type(answer)
        if kind is types.FunctionType:
            return answer  # type: ignore[return-value]
        if isinstance(answer, functools.partial) and kind is functools.partial:
            answer = answer.func
        elif kind is types.MethodType:
            answer = answer.__func__  # type: ignore[attr-defined]
        else:
            answer = vars(kind).get("__call__")
    return None


def name_of(answer: object) -> str:
    """The name of a function, or "" for what has none or will not say it."""
    try:
        name = getattr(answer, "__name__", "")
    except Exception:
        return ""
    return name if type(name) is str else ""


def _plain(signature: inspect.Signature) -> str:
    """The signature without type hints."""
    empty = inspect.Parameter.empty
    parameters = [p.replace(annotation=empty) for p in signature.parameters.values()]
    return str(inspect.Signature(parameters))


def none_arguments(
    solution: Callable[..., object], args: tuple[object, ...]
) -> list[str]:
    """The arguments that are None in a call, also where they are left out."""
    bound = inspect.signature(solution).bind(*args)
    bound.apply_defaults()
    return [name for name, value in bound.arguments.items() if value is None]


def _health(array: npt.NDArray[np.generic]) -> str:
    """The shape of an array, and how many of its numbers are not finite."""
    numbers = array.astype(float) if array.dtype.kind in "biuf" else np.zeros(0)
    counts = {
        "NaN": np.isnan(numbers).sum(),
        "inf": (numbers == np.inf).sum(),
        "-inf": (numbers == -np.inf).sum(),
    }
    ill = [f"{count} {kind}" for kind, count in counts.items() if count]
    return ", ".join([f"shape {array.shape}", *ill])


def shown(value: object, digits: int = 3) -> str:
    """A value as a learner sees it: few decimals, or its shape if it is large."""
    if type(value) is dict and all(type(v) is np.ndarray for v in value.values()):
        return "\n".join(f"{name}: {_health(v)}" for name, v in value.items())
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        return str(value)
    if array.size > MOST_NUMBERS:
        return f"(an array of shape {array.shape})"
    if array.ndim == 0 and array.dtype.kind == "f":
        return f"{float(array):.{digits + 3}g}"
    with np.printoptions(precision=digits, suppress=True):
        return str(array)
