"""What an exercise is.

How to add one to lesson NN, in `attnlib/exercises/lesson_NN.py`:

1. First line of the file: `# mypy: allow-untyped-defs, allow-untyped-calls`, so that
   the solutions read like a learner's code.
2. Write the solution as a top-level function with the name of the exercise. Its source
   is what `solution` prints, its signature and docstring are the stub. Use only `np`
   and what the setup cell of the lesson imports, never another exercise.
3. Find or write the wrong versions: a `Family` in `attnlib/clinic/families/`, whose
   implementation takes `faults=` and is right for the empty set; mistakes that exclude
   each other share a slot. Describe each new key in `attnlib/clinic/mistakes/`, and
   give it a measure in `attnlib/clinic/evidence.py` if a number can show it.
4. Write `cases(rng)`: 4 to 8 `Case`s, the smallest first, all sizes different. See
   `attnlib/clinic/probes.py`. No case may be needed that the docstring does not cover.
5. Add `Exercise(name, lesson, minutes, solution, cases, returns, family, laws, hints,
   why)`. `returns` names each result and its axes: `Part("weights", "n_q n_k")`; an
   axis left of those is a batch axis. `kind="truth"` for masks, `"flag"` for one bool.
6. An answer that is a value: `ValueExercise(name, lesson, minutes, right, hints, why,
   wrong, show)`. `right` is a number, text, tuple, dict or array; `wrong` is a tuple of
   `Misconception(value, sentence)`; `solution` prints `show`, a line of code.
7. Put all in `EXERCISES = (...)` at the end of the file. Nothing else: the files named
   `lesson_*.py` are found by their names.
8. Where the answer is written in PyTorch: `tensors=True`. Cases and family stay NumPy;
   each array becomes a tensor just before the call, and in-place changes are seen. The
   solution takes `torch` and `F` from `attnlib.clinic.tensors`, which import late.
   Where the answer is no function of arrays, `around=` makes one of it, such as
   `kernels.on_a_chip`; the cases hold the arguments of what it makes. A grader runs it
   on its own side of the sandbox, and sends over what the answer is called with. If it
   measures the answer, it must run beside it: `beside` in `afar` names those.
9. An answer that is a check of attentions: `HuntExercise`, graded by the arena. An
   answer that is an input on which a bug shows: `WitnessExercise`. See lesson 17.
10. Three hints: where to look; the idea; nearly the line. None holds the solution.
11. Copy `get(name).stub_source` into the exercise cell of the notebook.
12. Run `pytest tests/test_exercises_*.py tests/test_clinic_*.py`: they take in every
    exercise and every family by themselves.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal

import numpy as np

from attnlib.clinic.bugs.bug import Bug
from attnlib.clinic.case import Case, Family, Outcome, Result
from attnlib.clinic.match import Table

Kind = Literal["number", "truth", "flag"]


@dataclass(frozen=True)
class Part:
    """One result of a function: its name, its last axes, and what is in it."""

    name: str
    axes: str = ""
    kind: Kind = "number"


UNSEEN = ""  # of a law: there were no right numbers to measure


@dataclass(frozen=True)
class Law:
    """Something that holds for every right answer, whatever its numbers.

    `broken` gets a function that calls the answer, and returns a sentence on how the
    law was broken, or None. It sees numbers only: a call that failed gives None. Where
    a meter could see nothing, for that reason, it returns UNSEEN: in a notebook others
    say what is wrong, and elsewhere the law is not kept.
    """

    name: str
    broken: Callable[[Call], str | None]
    opening: str = "I know no such mistake, but this should always hold"
    slower: float = 1.0  # so many times as long may a call take: meters cost time
    room: int | None = None  # bytes that a call may take: asked only of answers afar


def source_of(solution: Callable[..., object]) -> str:
    """The source text of a solution."""
    return textwrap.dedent(inspect.getsource(solution))


def parted(source: str) -> tuple[list[str], list[str]]:
    """The lines of a solution: its head with the docstring, and its body.

    What is no function, such as a line that gives a value, is all body.
    """
    first, rows = ast.parse(source).body[0], source.splitlines()
    if not isinstance(first, ast.FunctionDef) or ast.get_docstring(first) is None:
        return [], rows
    end = first.body[0].end_lineno
    return rows[:end], rows[end:]


def stub_of(name: str, source: str) -> str:
    """The source of a solution without its body."""
    head, _ = parted(source)
    if not head:
        raise TypeError(f"The solution of {name} is no function with docstring.")
    return "\n".join([*head, "    ...", ""])


# Calls an answer safely. Gives its arrays, or None if it raised or gave no numbers.
Call = Callable[..., tuple[Result, ...] | None]
Around = Callable[[Callable[..., object]], Callable[..., object]]


@dataclass(frozen=True, eq=False)  # by identity, so that tables can be cached
class Exercise:
    """A function that the learner writes."""

    name: str
    lesson: int
    minutes: int
    solution: Callable[..., object]
    cases: Callable[[np.random.Generator], Sequence[Case]]
    returns: tuple[Part, ...]
    family: Family
    hints: tuple[str, str, str]
    why: str
    laws: tuple[Law, ...] = ()
    advice: str = ""  # what to say when shapes do not fit, beside the shapes
    tensors: bool = False  # the answer is called with tensors, not with arrays
    around: Around | None = None  # what is called in place of the answer, made of it

    def called(self, answer: Callable[..., object]) -> Callable[..., object]:
        """What is called with the arguments of a case."""
        return answer if self.around is None else self.around(answer)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the arguments of a case."""
        return tuple(inspect.signature(self.called(self.solution)).parameters)

    def handed(self, case: Case) -> tuple[object, ...]:
        """Arguments for the answer itself: those of a case, or as many as it takes."""
        n_taken = len(inspect.signature(self.solution).parameters)
        return case.args if self.around is None else (None,) * n_taken

    @cached_property
    def solution_source(self) -> str:
        """The source text of the solution, as `solution` prints it."""
        return source_of(self.solution)

    @cached_property
    def stub_source(self) -> str:
        """The cell that the learner starts from: the solution without its body."""
        return stub_of(self.name, self.solution_source)

    def table(self, seed: int = 0) -> Table:
        """All wrong versions on the cases of one seed; built once, on first use."""
        return _table(self, seed)


@dataclass(frozen=True)
class Misconception:
    """A wrong value that people give, and what to say to them."""

    value: object
    sentence: str


@dataclass(frozen=True)
class ValueExercise:
    """A value that the learner finds: a number, a choice, a tuple, a dict, an array.

    `show` is the line of code that `solution` prints. `tolerance` is absolute. `tidy`
    takes away what does not matter in an answer, such as spaces. `form` says how an
    answer should look, to those whose answer is no misconception either. `names` are
    all values that a dict may hold: another one is a slip of the pen, and no wrong
    answer yet.
    """

    name: str
    lesson: int
    minutes: int
    right: object
    hints: tuple[str, str, str]
    why: str
    show: str
    wrong: tuple[Misconception, ...] = ()
    tolerance: float = 0.005
    tidy: Callable[[object], object] | None = None
    form: str = ""
    names: tuple[object, ...] = ()

    @property
    def solution_source(self) -> str:
        """The line of code that replaces the stub."""
        return self.show.rstrip() + "\n"

    @property
    def stub_source(self) -> str:
        """The cell that the learner starts from."""
        return f"{self.name} = ...\n"


@dataclass(frozen=True, eq=False)
class HuntExercise:
    """A check that the learner writes: attention -> True if it has a fault.

    It is shown the bugs of one seed and all right attentions, and passes with at least
    the share `wanted` of the bugs and no false alarm.
    """

    name: str
    lesson: int
    minutes: int
    solution: Callable[..., object]
    bugs: Callable[[int], Sequence[Bug]]
    right: Sequence[Bug]
    wanted: float
    hints: tuple[str, str, str]
    why: str

    @cached_property
    def solution_source(self) -> str:
        """The source text of the solution, as `solution` prints it."""
        return source_of(self.solution)

    @cached_property
    def stub_source(self) -> str:
        """The cell that the learner starts from."""
        return stub_of(self.name, self.solution_source)


@dataclass(frozen=True, eq=False)
class WitnessExercise:
    """Arrays q, k, v (and mask) that the learner finds, on which a bug shows.

    With no more numbers than `fewest`. `show` is the line that `solution` prints.
    """

    name: str
    lesson: int
    minutes: int
    bug: Bug
    fewest: int
    hints: tuple[str, str, str]
    why: str
    show: str

    @property
    def solution_source(self) -> str:
        """The line of code that replaces the stub."""
        return self.show.rstrip() + "\n"

    @property
    def stub_source(self) -> str:
        """The cell that the learner starts from."""
        return f"{self.name} = ...\n"


AnyExercise = Exercise | ValueExercise | HuntExercise | WitnessExercise


@cache
def _table(exercise: Exercise, seed: int) -> Table:
    cases = exercise.cases(np.random.default_rng(seed))
    table = Table(exercise.family, cases)
    broken = [o.error for o in table.right if o.error]
    if broken:
        raise TypeError(f"The right answer of {exercise.name} raises {broken[0]}.")
    return table


__all__ = [
    "AnyExercise",
    "Call",
    "Case",
    "Exercise",
    "Family",
    "HuntExercise",
    "Law",
    "Misconception",
    "Outcome",
    "Part",
    "ValueExercise",
    "WitnessExercise",
]
