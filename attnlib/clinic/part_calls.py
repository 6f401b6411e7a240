"""Call a part: with arrays or tensors, in the float type it takes, under guard."""

from __future__ import annotations

import inspect
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlib.clinic.case import Case, Outcome, Result
from attnlib.clinic.part import Form, Takes
from attnlib.clinic.run import Ran, run
from attnlib.clinic.tensors import as_tensors
from attnlib.clinic.words import a

FAILED = "CallFailed"  # whatever was raised: NumPy and torch name the same slip apart
LARGEST = 10**6  # numbers in a result
_REFUSALS = r"odd|even|divis|multiple|power|support|must|expect(s|ed) (a|an|the) "
_ACCIDENTS = r"broadcast|expanded size|size of tensor|shape mismatch|could not"


class CallFailed(Exception):
    """Stands for any error that a wrong version raises."""


@dataclass(frozen=True)
class Format:
    """How numbers are handed in."""

    tensors: bool = False
    floats: str = "float64"
    whole_as_floats: bool = False  # positions and lengths, too, where they are arrays

    @property
    def words(self) -> str:
        """What the part is handed, as it is said in the report."""
        return "torch tensors" if self.tensors else "NumPy arrays"

    def hand_in(self, value: object) -> object:
        """An argument as this format has it."""
        if isinstance(value, (list, tuple)):
            return [self.hand_in(v) for v in value]
        if not isinstance(value, np.ndarray):
            return value
        kinds = "fi" if self.whole_as_floats else "f"
        if value.dtype.kind in kinds:
            value = value.astype(self.floats, copy=False)
        return as_tensors((value,))[0] if self.tensors else value


@dataclass(frozen=True)
class Calls:
    """One form of a part, called on all its cases."""

    form: Form
    format: Format
    cases: tuple[Case, ...]
    runs: tuple[Ran, ...]
    outcomes: tuple[Outcome, ...]
    sentences: tuple[str, ...]  # why a result could not be read; "" where it could

    @property
    def failed(self) -> float:
        """The share of calls that gave no numbers."""
        gave = sum(bool(outcome.arrays) for outcome in self.outcomes)
        return 1 - gave / len(self.cases)

    @property
    def refusing(self) -> bool:
        """Whether each failed call was refused in words, as far as can be told."""
        return all(refused(ran.error) for ran in self.runs if ran.error is not None)


def takes(thing: Callable[..., object]) -> Takes | None:
    """What the signature of a function or module says; None if it has none."""
    forward = getattr(thing, "forward", None)
    target = forward if callable(forward) and not inspect.isclass(thing) else thing
    try:
        parameters = list(inspect.signature(target).parameters.values())
    except Exception:  # a signature of the thing itself may raise anything
        return None
    places = [
        p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    keywords = [p for p in parameters if p.kind == p.KEYWORD_ONLY]
    return Takes(
        tuple(p.name for p in places),
        sum(p.default is p.empty for p in places),
        any(p.kind == p.VAR_POSITIONAL for p in parameters),
        tuple(p.name for p in keywords),
        tuple(p.name for p in keywords if p.default is p.empty),
        _width(thing),
    )


WIDTHS = ("head_dim", "d_head", "d_k", "rotary_dim", "dim", "d_model")


def _width(thing: object) -> int | None:
    """For how many features a module is built, as far as it says so."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(thing, torch.nn.Module):
        return None
    shape = getattr(thing, "normalized_shape", None)
    if isinstance(shape, tuple) and len(shape) == 1:
        return int(shape[0])
    tensors = [*thing.named_buffers(), *thing.named_parameters()]
    for name, tensor in tensors:
        if "freq" in name and tensor.ndim == 1:
            return 2 * len(tensor)
    own = vars(thing)
    said = [own[name] for name in WIDTHS if isinstance(own.get(name), int)]
    alone = [len(tensor) for _, tensor in tensors if tensor.ndim == 1]
    found = next((n for n in (*said, *alone) if n > 1), None)
    return None if found is None else int(found)


def formats(dtype: str | None) -> tuple[Format, ...]:
    """The formats to try, in order: arrays first, tensors where torch is loaded."""
    floats = (dtype,) if dtype else ("float64", "float32")
    found = [Format(False, floats[0])]
    if "torch" in sys.modules:
        found += [
            Format(True, name, whole) for name in floats for whole in (False, True)
        ]
    return tuple(found)


class Caller:
    """Calls one thing, and keeps to the time that is left."""

    def __init__(self, thing: Callable[..., object], seconds: float, limit: float):
        self._thing = thing
        self._limit = limit
        self._end = time.monotonic() + seconds

    @property
    def out_of_time(self) -> bool:
        """Whether the examination has had its seconds."""
        return time.monotonic() > self._end

    def call(
        self, args: Sequence[object], format: Format, form: Form | None = None
    ) -> Ran:
        """One call; its value is an array, or a sentence that says why it is none."""
        thing = self._thing
        keywords = form.keywords if form else ()
        wanted = _wanted(form, args) if form else None
        if form and form.order:
            args = [args[i] for i in form.order if i < len(args)]

        def inside(*given: object) -> object:
            handed = [format.hand_in(value) for value in given]
            n = len(handed) - len(keywords)
            named = dict(zip(keywords, handed[n:], strict=True))
            return plain(thing(*handed[:n], **named), wanted)

        left = max(0.05, self._end - time.monotonic())
        return run(inside, tuple(args), min(self._limit, left))

    def ask(
        self, form: Form, format: Format, cases: Sequence[Case], first: Ran | None
    ) -> Calls:
        """All cases of a form. `first` is the run of the first, if there was one."""
        runs: list[Ran] = []
        outcomes: list[Outcome] = []
        sentences: list[str] = []
        for i, case in enumerate(cases):
            done = first if i == 0 else None
            ran = done or self.call(case.args, format, form)
            runs.append(ran)
            value = ran.value
            good = isinstance(value, np.ndarray)
            sentences.append(value if isinstance(value, str) else "")
            outcomes.append(Outcome((value,)) if good else Outcome(error=FAILED))  # type: ignore[arg-type]
            if ran.timed_out:
                break
        return Calls(
            form, format, tuple(cases), tuple(runs), tuple(outcomes), tuple(sentences)
        )


def _wanted(form: Form, args: Sequence[object]) -> tuple[int, ...] | None:
    """The shape of the right result, axes of size 1 left out."""
    meant = form.meant[0]
    try:
        right = meant.family.implementation(*meant.complete(Case("", tuple(args))).args)
    except Exception:  # a law asks with fewer arguments
        return None
    return _no_ones(np.asarray(right).shape)


def _no_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for n in shape if n != 1)


def plain(value: object, wanted: tuple[int, ...] | None = None) -> Result | str:
    """A plain NumPy copy of what a part returned, or words for what it is instead.

    Of several results that one is taken that has the shape that is wanted, else the
    first: an output may come with its log-sum-exp, or behind it.
    """
    if value is None:
        return "None"
    if type(value) is tuple and value and not _number(value[0]):
        shapes = [_no_ones(tuple(getattr(v, "shape", ()))) for v in value]
        value = value[shapes.index(wanted) if wanted in shapes else 0]
    try:
        value = _of_tensor(value)
        if isinstance(value, (list, tuple)):
            value = [_of_tensor(v) for v in value]
        array = np.array(value, copy=True, subok=False)
    except Exception:
        return a(type(value).__name__)
    if array.dtype.kind not in "biuf":
        return "complex numbers" if array.dtype.kind == "c" else a(type(value).__name__)
    if array.size > LARGEST:
        return f"an array of {array.size} numbers, more than can be compared"
    return array


def _number(value: object) -> bool:
    return isinstance(value, (int, float, np.number))


def _of_tensor(value: Any) -> Any:
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return value
    value = value.detach().cpu()
    # NumPy has no bfloat16; float32 holds each of its numbers.
    return (value.float() if value.dtype == torch.bfloat16 else value).numpy()


def refused(error: BaseException | None) -> bool:
    """Whether an error was raised on purpose, as far as its words tell."""
    if error is None:
        return True
    if isinstance(error, (AssertionError, NotImplementedError)):
        return True
    said = str(error).lower()
    return bool(re.search(_REFUSALS, said)) and not re.search(_ACCIDENTS, said)


def said(error: BaseException | None) -> str:
    """The error in a few words."""
    if error is None:
        return "no error"
    lines = str(error).splitlines()
    text = lines[0][:120].rstrip(". ") if lines and lines[0] else ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
