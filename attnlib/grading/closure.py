"""Which statements of a notebook an answer needs. Nothing of the notebook is run.

The answer is the last definition of its name that is no stub. A name that it uses has
the value that it had at the answer's check: the last one given above the first
`check("name", name)` below the answer. Names that only stand below are taken from
there, for a notebook's cells are not always run in their order.
"""

from __future__ import annotations

import builtins
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from attnlib import exercises
from attnlib.exercises.exercise import AnyExercise
from attnlib.grading import letters, lost, spotted
from attnlib.grading.notebook import Notebook
from attnlib.grading.statements import Program, Statement, program_of, trimmed

MOST_STEPS = 200_000
MOST_CHANGES = 2_000  # of one name
MOST_UNREAD = 5  # notes on what was not read, where an answer is missing
# What IPython gives to a notebook besides Python's own names.
_GIVEN = {*dir(builtins), "display", "get_ipython", "In", "Out", "_", "__name__"}
# Imports that bring torch: torch itself, and the parts of attnlib that stand on it.
_TORCH = re.compile(r"\b(?:torch|nn|clinic)\b|\bimport +\*")


@dataclass(frozen=True)
class Piece:
    """One top-level statement: its cell, its first line there, its text."""

    cell: int
    line: int
    source: str


@dataclass(frozen=True)
class Answer:
    """The pieces of an answer, in the order in which to run them.

    `status` is found, missing, stub or syntax; `cell` and `line` are those of the
    definition, also of a stub; `notes` are sentences for the teacher, none a zero.
    """

    name: str
    pieces: tuple[Piece, ...]
    status: str
    notes: tuple[str, ...] = ()
    cell: int | None = None
    line: int | None = None

    @property
    def begins(self) -> str:
        """The first line of the definition: by that its cell is found."""
        own = [
            p.source for p in self.pieces if (p.cell, p.line) == (self.cell, self.line)
        ]
        return letters.quoted(own[-1]) if own else ""

    @property
    def needs_torch(self) -> bool:
        """Whether a piece imports torch, or what imports torch of attnlib."""
        imports = (p.source for p in self.pieces if "import" in p.source)
        return any(_TORCH.search(source) for source in imports)


def answer(
    notebook: Notebook, name: str, exercise: AnyExercise | None = None
) -> Answer:
    """Find the answer to an exercise, and all that it needs.

    Args:
        notebook: the code cells, as `read` returns them.
        name: the name of the exercise, which is that of its function or value.
        exercise: what was asked; the course's of that name, if left out.
    """
    if exercise is None:
        exercise = exercises.of_the_course().get(name)
    program = program_of(notebook)
    found = _definitions(program, name)
    real = [statement for statement in found if not statement.stub]
    broken = [cell for cell in program.broken if cell.defines(name)]
    if not real and broken:
        last = broken[-1]
        note = f"Cell {last.cell}, {last.at}: {last.message}."
        return Answer(name, (), "syntax", (note,), last.cell, last.line)
    if not real and not found:
        unread = (*notebook.notes, *program.notes)[:MOST_UNREAD]
        return Answer(name, (), "missing", (*spotted.alike(program, name), *unread))
    if not real:
        stub = found[-1]
        piece = Piece(stub.cell, stub.line, stub.source)
        return Answer(name, (piece,), "stub", (), stub.cell, stub.line)
    target = real[-1]
    closure = _Closure(program, target, name, exercise)
    statements = closure.statements()
    pieces = tuple(Piece(target.cell, 1, line) for line in closure.lost.values())
    pieces += tuple(Piece(s.cell, s.line, s.source) for s in statements)
    notes = [*closure.notes()]
    if len(real) > 1:
        cells = ", ".join(str(statement.cell) for statement in real[:10])
        notes.append(f"{name} is defined in the cells {cells}: the last one counts.")
    for cell in (one for one in broken if one.cell > target.cell):
        notes.append(
            f"Another {name} stands in cell {cell.cell}, which has a syntax error in "
            f"{cell.at}."
        )
    solution = getattr(exercise, "solution_source", "")
    notes += spotted.taken(statements, name, solution)
    return Answer(name, pieces, "found", tuple(notes), target.cell, target.line)


def _definitions(program: Program, name: str) -> list[Statement]:
    """The statements that give the name a value, in their order.

    An import is one only where the exercise stands in this notebook: a later lesson
    imports what an earlier one let its readers write.
    """
    all_of_it = [program.statements[place] for place in program.by_name.get(name, [])]
    binding = [s for s in all_of_it if name in s.binds]
    asked = any(name in s.checks for s in program.statements)
    asked = asked or any(s.kind != "import" for s in binding)
    return [s for s in binding if s.kind != "import" or asked]


class _Closure:
    """The statements that one definition needs, found by following names."""

    def __init__(
        self,
        program: Program,
        target: Statement,
        name: str,
        exercise: AnyExercise | None,
    ) -> None:
        self.program, self.target, self.name = program, target, name
        self.needed: dict[int, set[str]] = {target.place: {name}}  # and for which names
        self.unknown: set[str] = set()
        self.below: dict[int, set[int]] = {}  # what must be moved above a statement
        self.found: dict[tuple[str, int], list[Statement]] = {}
        self.waiting: list[tuple[str, int]] = []
        self.real: dict[str, list[Statement]] = {}
        self.steps = 0
        places = [s.place for s in program.statements if name in s.checks]
        after = [place for place in places if place > target.place]
        self.checked = bool(after)
        last = [s.place for s in program.statements if s.cell == target.cell]
        self.horizon = after[0] if after else last[-1] + 1
        self._follow()
        imports = {n: lost.import_of(exercise, n) for n in sorted(self.unknown)[:50]}
        self.lost = {
            n: line for n, line in imports.items() if line and not self._own(n)
        }

    def _own(self, name: str) -> bool:
        """Whether the student gives the name a value of their own, in a broken cell."""
        return any(cell.defines(name) for cell in self.program.broken)

    def _follow(self) -> None:
        self._ask(self.target.now, self.target.place)
        self._ask({*self.target.later, self.name}, self.horizon)
        self._walk()
        imports = [s for s in self._chosen() if s.kind == "import"]
        libraries = {name for s in imports for name in s.binds}
        if any(_TORCH.search(s.source) for s in imports):
            libraries.add("torch")
        drawn = any("rand" in s.source for s in self._chosen() if s not in imports)
        for statement in self.program.statements[: self.horizon]:
            if "seed" in statement.source and not drawn:
                continue
            if statement.kind == "setting" and statement.now & libraries:
                self.needed.setdefault(statement.place, set())
                self._ask(statement.now, statement.place)
        self._walk()

    def _chosen(self) -> list[Statement]:
        return [self.program.statements[place] for place in sorted(self.needed)]

    def _ask(self, names: Iterable[str], horizon: int) -> None:
        """Note that these names must have a value just before a place."""
        fresh = [(n, horizon) for n in names if (n, horizon) not in self.found]
        self.found.update((one, []) for one in fresh)
        self.waiting += fresh

    def _walk(self) -> None:
        while self.waiting and self.steps < MOST_STEPS:
            name, horizon = self.waiting.pop()
            self.found[name, horizon] = self._binders(name, horizon)
            for statement in self.found[name, horizon]:
                self.needed.setdefault(statement.place, set()).add(name)
                if statement.place > horizon != self.horizon:
                    self.below.setdefault(horizon, set()).add(statement.place)
                self._ask(statement.now, statement.place)
                self._ask(statement.later, max(horizon, statement.place))

    def _wants(self, statement: Statement, horizon: int) -> set[int]:
        """The places of what a statement needs that is moved up to another place."""
        keys = [(name, statement.place) for name in statement.now]
        for place in (horizon, statement.place, self.horizon):
            keys += [(name, place) for name in statement.later]
        return {one.place for key in keys for one in self.found.get(key, ())}

    def _real(self, name: str) -> list[Statement]:
        """What gives the name a value or changes it; stubs only if all are."""
        if name not in self.real:
            places = self.program.by_name.get(name, [])
            every = [self.program.statements[place] for place in places]
            self.real[name] = [s for s in every if not s.stub] or every
        return self.real[name]

    def _binders(self, name: str, horizon: int) -> list[Statement]:
        """The statements that make the value a name has just before a place."""
        real = self._real(name)
        if not self.checked and horizon == self.horizon and real:
            last = real[-1]
            mended = last.kind in ("def", "import") and name not in _GIVEN
            if mended:  # a helper, below
                horizon = last.place + 1
        first_below = bisect_left(real, horizon, key=lambda s: s.place)
        made: list[Statement] = []
        for statement in reversed(
            real[max(0, first_below - MOST_CHANGES) : first_below]
        ):
            self.steps += 1
            made.append(statement)
            if name in statement.sure:
                return made
        if any(name in s.binds for s in made):
            return made
        if name in _GIVEN:  # a `sum = 0` below is not meant
            return []
        below = real[first_below : first_below + MOST_CHANGES]
        self.steps += len(below)
        binding = [s for s in below if name in s.binds and s.place != horizon]
        if binding:
            last = binding[-1]
            return [last if last.kind in ("def", "import") else binding[0]]
        self.unknown.add(name)
        return []

    def statements(self) -> list[Statement]:
        """What is needed, in the notebook's order, except where that cannot run."""
        whole = self.program.statements
        used = {name for name, _ in self.found}
        for statement in whole[: self.horizon]:
            if statement.kind == "star" and (self.unknown or used & _GIVEN):
                self.needed.setdefault(statement.place, set())
        order: list[int] = []
        done: set[int] = set()
        for place in sorted(self.needed):
            self._emit(place, order, done)
        return [trimmed(whole[place], self.needed[place]) for place in order]

    def _emit(self, place: int, order: list[int], done: set[int]) -> None:
        """Put a statement into the order, after those that must be moved above it."""
        stack = [(place, False)]
        while stack:
            current, ready = stack.pop()
            if ready:
                order.append(current)
            elif current not in done:
                done.add(current)
                stack.append((current, True))
                first = self.below.get(current, set())
                if current != place:
                    first = first | self._wants(self.program.statements[current], place)
                stack += [(one, False) for one in sorted(first, reverse=True)]

    def notes(self) -> Iterator[str]:
        """What a teacher may want to know of the way these statements were found."""
        if self.steps >= MOST_STEPS:
            yield f"{self.name} needs too many statements; some are left out."
        star = any(s.kind == "star" for s in self.program.statements)
        written = {name for s in self._chosen() for name in s.writes}
        for name in sorted(self.unknown - written)[: 0 if star else 10]:
            for cell in self.program.broken:
                if cell.defines(name):
                    yield (
                        f"{self.name} uses {name} of cell {cell.cell}, which has a "
                        f"syntax error in {cell.at}: {cell.message}."
                    )
                    break
            else:
                yield f"{self.name} uses {name}, which nothing in the notebook defines."
            if name in self.lost:
                yield f"{name} was imported for it."
        moved = sorted({place for places in self.below.values() for place in places})
        for place in moved[:5]:
            below = self.program.statements[place]
            where = f"cell {below.cell}{letters.quoted(below.source)}"
            yield f"{self.name} needs what is only defined below it, in {where}."
