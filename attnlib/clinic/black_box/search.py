"""Find the mistakes that give just these outputs.

A variant has to give on every question what the subject gave, NaN and errors included.
First the right one, then single mistakes, then pairs, each in several ways of writing
that are no mistakes. Two things keep it fast: what failed one question is not asked the
next, and a mistake that changes nothing on a question is left out of the pairs there,
so that most pairs need no run of their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import combinations, product

import numpy as np

from attnlib.clinic.black_box.remembered import Table
from attnlib.clinic.black_box.scores import Unforeseen
from attnlib.clinic.case import RIGHT, Faults
from attnlib.clinic.match import EXACT, HALF_PRECISION, SINGLE_PRECISION
from attnlib.shapes import Array

Seen = Array | None  # None: the call raised
SLOW = frozenset({"online"})  # slots whose pairs take long, and are tried last
NORMED = (1e-3, 2e-4)  # a norm adds a small number, not always the same, to a square
CLOCK = 64  # comparisons between two looks at the clock, which may take long
LOWERED_SHOWS = frozenset(  # what tells a very low score from one of -inf
    {"exp_missing", "hidden_twice", "scores_clipped", "nan_zeroed"}
    | {"guarded", "empty_zeroed"}
)
ANYTHING: Array = np.full((), np.nan)  # a variant of which this answer is unforeseen
Simulate = Callable[[int, Faults], Array]  # (number of the question, faults) -> out


@dataclass
class Patience:
    """How long a search goes on that finds nothing.

    Comparisons are counted, so that every machine says the same of the same subject;
    seconds bound only what is large.
    """

    comparisons: float = np.inf
    seconds: float = np.inf  # of process_time, from the first comparison
    _until: float | None = None
    _count: int = 0
    _late: bool = False

    def is_over(self) -> bool:
        """Count one comparison."""
        self.comparisons -= 1
        self._count += 1
        if self._count % CLOCK == 1:
            now = time.process_time()
            self._until = now + self.seconds if self._until is None else self._until
            self._late = now > self._until
        return self.comparisons < 0 or self._late


@dataclass
class Variants:
    """All variants of one kind of attention on one list of questions."""

    simulate: Simulate
    slots: Mapping[str, tuple[str, ...]]
    ways: Sequence[Faults] = (RIGHT,)  # of writing: no mistakes, and not counted
    plain: frozenset[int] = frozenset()  # questions on which no way shows
    patience: Patience = field(default_factory=lambda: Patience())
    known: Callable[[int, Faults], Table] | None = None  # what ran before, by question
    normed: bool = False  # queries and keys are
    _ran: dict[int, Table] = field(default_factory=dict)
    _silent: dict[tuple[int, str], bool] = field(default_factory=dict)

    def out(self, question: int, faults: Faults = RIGHT) -> Seen:
        """What this variant gives; None where it raises."""
        if question in self.plain:
            faults = faults - self._all_ways
        ran = self._ran.setdefault(question, {})
        if faults not in ran:
            known = ran if self.known is None else self.known(question, faults)
            if faults not in known:
                known[faults] = self._new(question, faults)
            ran[faults] = known[faults]
        return ran[faults]

    def _new(self, question: int, faults: Faults) -> Seen:
        """The same, of a variant that did not run yet."""
        idle = idle_among(faults)
        if idle:
            without = self.out(question, faults - idle)
            if without is not None and np.isfinite(without).all():
                return without
        return self._run(question, faults)

    def _run(self, question: int, faults: Faults) -> Seen:
        with np.errstate(all="ignore"):
            try:
                return np.asarray(self.simulate(question, faults), np.float64)
            except Unforeseen:
                return ANYTHING
            except (ValueError, IndexError, TypeError):
                return None

    @cached_property
    def _all_ways(self) -> Faults:
        return RIGHT.union(*self.ways)

    def find(
        self,
        seen: Sequence[Seen],
        most: int = 2,
        ways: Sequence[Faults] | None = None,
        beside: str = "",
    ) -> list[Faults]:
        """Return the smallest sets of mistakes that give all of `seen`; RIGHT first.

        Args:
            seen: what the subject gave on each question, None where it raised.
            most: how many mistakes a set holds; 0 for a right one.
            ways: of writing that are tried; all if left out.
            beside: a slot of which every pair must hold one; without a name, pairs of
                all slots but those that are `SLOW`.

        Returns:
            All sets of that size that fit, in the order of the slots.
        """
        ways = self.ways if ways is None else ways
        allowed = tolerances(seen)
        if self.normed:
            allowed = tuple(NORMED if t == SINGLE_PRECISION else t for t in allowed)
        for tolerance in allowed:
            for way in ways if most == 0 else ():
                if self.fits(way, seen, tolerance):
                    return [way]
        for tolerance in allowed if most else ():
            found = self._sets(seen, most, tolerance, ways, beside)
            if found:
                return found
        return []

    def _sets(
        self,
        seen: Sequence[Seen],
        count: int,
        tolerance: tuple[float, float],
        ways: Sequence[Faults],
        beside: str,
    ) -> list[Faults]:
        # Where no way shows, all ways are one: these questions thin the sets out first.
        plain = sorted(self.plain)
        others = [number for number in range(len(seen)) if number not in self.plain]
        sets = sets_of(tuple(self.slots.items()), count, beside)
        for question in plain:
            sets = self._left(question, seen[question], sets, RIGHT, tolerance)
        found: dict[Faults, Faults] = {}
        for way in ways:
            alive = sets
            for question in others:
                alive = self._left(question, seen[question], alive, way, tolerance)
            for faults in alive:
                whole = faults | way
                if self.fits(whole, seen, tolerance) and self._all_count(faults, way):
                    found.setdefault(faults, whole)
        return list(found.values())

    def _left(
        self,
        question: int,
        yours: Seen,
        alive: Sequence[Faults],
        way: Faults,
        tolerance: tuple[float, float],
    ) -> list[Faults]:
        """Those that give this answer; nothing when the patience is over.

        Sets that differ in silent members only are one question, asked once.
        """
        verdicts: dict[Faults, bool] = {}
        left: list[Faults] = []
        silent = self._silent_among(question, RIGHT.union(*alive))
        for faults in alive:
            loud = faults - silent
            verdict = verdicts.get(loud)
            if verdict is None:
                if self.patience.is_over():
                    return []
                verdict = same(yours, self.out(question, loud | way), tolerance)
                verdicts[loud] = verdict
            if verdict:
                left.append(faults)
        return left

    def _all_count(self, faults: Faults, way: Faults) -> bool:
        """Whether no member of a set can be left out."""
        if len(faults) < 2:
            return True
        whole = faults | way
        return all(
            any(
                not same(self.out(i, whole), self.out(i, whole - {key}), EXACT)
                for i in self._ran
            )
            for key in faults
        )

    def _silent_among(self, question: int, keys: Faults) -> Faults:
        """Those that, each for itself, change nothing on this question."""
        for key in keys:
            if (question, key) not in self._silent:
                out = self.out(question, frozenset([key]))
                silent = out is not ANYTHING and same(out, self.out(question), EXACT)
                self._silent[question, key] = silent
        return frozenset(key for key in keys if self._silent[question, key])

    def fits(
        self, faults: Faults, seen: Sequence[Seen], tolerance: tuple[float, float]
    ) -> bool:
        """Whether one set of mistakes gives all answers, within a tolerance.

        Two of the answers must be foreseen: a set that foretells nothing fits all.
        """
        for question, yours in enumerate(seen):
            if not same(yours, self.out(question, faults), tolerance):
                return False
        given = [i for i, yours in enumerate(seen) if yours is not None]
        foreseen = [i for i in given if self.out(i, faults) is not ANYTHING]
        return len(foreseen) >= min(2, len(given)) > 0


def idle_among(faults: Faults) -> Faults:
    """The ways of writing in a set that show only where without them a NaN comes out.

    They say what becomes of a row that sees nothing, or put a very low number in place
    of -inf, whose exponential is 0 as well unless a row has no other.
    """
    idle = frozenset() if "nan_zeroed" in faults else faults & {"guarded"}
    lowered = faults & {"fill_lowest_finite", "hidden_lowered"}
    if lowered and faults.isdisjoint(LOWERED_SHOWS):
        idle |= lowered
    return idle


@lru_cache(maxsize=32)
def sets_of(
    slots: tuple[tuple[str, tuple[str, ...]], ...], count: int, beside: str
) -> Sequence[Faults]:
    """All sets of so many mistakes, each of another slot; see `Variants.find`."""

    def counts(names: tuple[str, ...]) -> bool:
        if count < 2:
            return True
        return beside in names if beside else not SLOW & set(names)

    keys = dict(slots)
    return [
        frozenset(chosen)
        for names in combinations(keys, count)
        if counts(names)
        for chosen in product(*(keys[name] for name in names))
    ]


def tolerances(seen: Sequence[Seen]) -> tuple[tuple[float, float], ...]:
    """What two equal results may differ by: the outputs tell in which type they are."""
    arrays = [yours for yours in seen if yours is not None]
    if any(wider_than(a, np.float32) for a in arrays):
        return EXACT, SINGLE_PRECISION
    if any(wider_than(a, np.float16) for a in arrays):
        return (SINGLE_PRECISION, HALF_PRECISION)
    return (SINGLE_PRECISION, HALF_PRECISION)


def wider_than(array: Array, dtype: type[np.floating]) -> bool:
    """Whether an array holds numbers that this type cannot."""
    with np.errstate(over="ignore"):
        return not np.array_equal(array.astype(dtype), array, equal_nan=True)


def same(a: Seen, b: Seen, tolerance: tuple[float, float]) -> bool:
    """Whether two results agree; two errors do."""
    if a is ANYTHING or b is ANYTHING:
        return True
    if a is None or b is None:
        return a is b
    if a.shape != b.shape:
        return False
    rtol, atol = tolerance
    sizes = np.abs(b)
    largest = float(sizes.max(initial=1.0))
    if largest < np.inf:  # nearly always, and ten times faster than `allclose`
        return bool((np.abs(a - b) <= atol * largest + rtol * sizes).all())
    size = float(sizes[np.isfinite(b)].max(initial=1.0))
    return bool(np.allclose(a, b, rtol=rtol, atol=atol * size, equal_nan=True))
