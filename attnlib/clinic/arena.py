"""The arena of lesson 17: checks against bugs, and a score.

A check is a function that takes an attention, `(q, k, v, mask=None) -> out` in NumPy,
and returns True if it found a fault. `score` shows it wrong attentions and right ones:

>>> from attnlib.clinic import arena
>>> def not_finite(attention):
...     q, k, v = np.random.default_rng(0).normal(size=(3, 4, 2))
...     return not np.isfinite(attention(q, k, v)).all()
>>> result = arena.score(not_finite)
>>> len(result.caught), len(result.false_alarms)
(0, 0)

All attentions come through one door, the same function each time, so that a check can
only tell them apart by what they compute. It is Python, and someone who wants to cheat
can; there is nothing to win here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from attnlib.clinic import arena_text
from attnlib.clinic.arena_legal import legal
from attnlib.clinic.bugs.bug import LAWS, Array, Bug, Mask
from attnlib.clinic.bugs.hidden import held_back
from attnlib.clinic.bugs.pairs import pairs
from attnlib.clinic.bugs.right import EQUIVALENT, RIGHT, RIGHT_HIDDEN
from attnlib.clinic.bugs.shown import SHOWN
from attnlib.clinic.bugs.shown_masks import MASK_BUGS
from attnlib.clinic.run import run
from attnlib.shapes import ShapeError

Check = Callable[[Callable[..., Array]], bool]
MOST_CALLS = 1000  # of one attention by one check
LIMIT = 20.0  # seconds for all looks of one check


@dataclass(frozen=True)
class Score:
    """What checks caught, what got away, and which right attentions they blamed.

    `alarms` has a row for each bug and a column for each check, `wolf` a row for each
    right attention. `calls` says how often each check calls a right attention. `faults`
    are sentences on checks that did not work as checks; with any, the score is 0.
    """

    bugs: tuple[Bug, ...]
    right: tuple[Bug, ...]
    alarms: npt.NDArray[np.bool_]  # (n_bugs, n_checks)
    wolf: npt.NDArray[np.bool_]  #   (n_right, n_checks)
    calls: tuple[int, ...]
    faults: tuple[str, ...] = ()
    error: BaseException | None = None  # what a check raised on a right attention

    @property
    def caught(self) -> tuple[Bug, ...]:
        """Bugs that at least one check saw."""
        return _chosen(self.bugs, self.alarms.any(axis=1))

    @property
    def missed(self) -> tuple[Bug, ...]:
        """Bugs that no check saw."""
        return _chosen(self.bugs, ~self.alarms.any(axis=1))

    @property
    def false_alarms(self) -> tuple[Bug, ...]:
        """Right attentions that at least one check blamed."""
        return _chosen(self.right, self.wolf.any(axis=1))

    @property
    def mutation_score(self) -> float:
        """The share of bugs caught; 0 with a false alarm or a check that fails."""
        if self.false_alarms or self.faults:
            return 0.0
        return len(self.caught) / len(self.bugs)

    def __str__(self) -> str:
        return arena_text.score(self)

    __repr__ = __str__


def score(
    checks: Check | Sequence[Check],
    bugs: Sequence[Bug] = SHOWN,
    right: Sequence[Bug] = RIGHT,
    *,
    seed: int = 0,
    limit: float = LIMIT,
) -> Score:
    """Show every attention to every check, and count.

    mutation score = bugs caught / bugs, and 0 if a right attention is blamed

    A check that raises has raised the alarm, as a test would have failed. Each pair is
    looked at twice, in two orders drawn by `seed`: a check that answers otherwise the
    second time remembers something, or draws numbers without a seed, and is a fault.

    Args:
        checks: one function, or several: attention -> bool, True if a fault was found.
        bugs: the wrong attentions.
        right: the right ones.
        seed: draws the order in which they come.
        limit: seconds for all looks of one check.

    Returns:
        The score. It holds all alarms, for tables of your own.

    Raises:
        TypeError: something in `checks` is not a function.

    Cost: 2 (bugs + right) looks a check, a few milliseconds each.
    Source: DeMillo, Lipton and Sayward 1978 (mutation testing).
    Lesson: 17.

    >>> print(score(lambda attention: True))
    37 of 37 caught, 8 of 8 right ones blamed: score 0.00, 0 calls
    """
    several = tuple(checks) if isinstance(checks, Sequence) else (checks,)
    if not all(callable(check) for check in several):
        raise TypeError("checks must be functions: attention -> True or False.")
    everyone = (*bugs, *right)
    looks = [_looks(check, bugs, right, seed, limit) for check in several]
    alarms = np.array([look.alarms for look in looks], bool).reshape(-1, len(everyone))
    calls = [max(look.calls[len(bugs) :], default=0) for look in looks]
    faults = [look.fault for look in looks if look.fault]
    return Score(
        tuple(bugs),
        tuple(right),
        alarms.T[: len(bugs)],
        alarms.T[len(bugs) :],
        tuple(calls),
        tuple(dict.fromkeys(faults)),
        next((look.error for look in looks if look.error), None),
    )


@dataclass
class _Look:
    """What one check said of everyone."""

    alarms: list[bool]
    calls: list[int]
    fault: str = ""
    error: BaseException | None = None
    done: int = 0  # looks that came to an end


def _looks(
    check: Check, bugs: Sequence[Bug], right: Sequence[Bug], seed: int, limit: float
) -> _Look:
    """All looks of one check under one guard: to guard each costs more than to look."""
    everyone = (*bugs, *right)
    look = _Look([False] * len(everyone), [0] * len(everyone))
    name = str(getattr(check, "__name__", "the check"))
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(len(everyone)) for _ in range(2)]

    def all_of_them() -> None:
        for second, order in enumerate(orders):
            for i in map(int, order):
                said, calls, raised = _ask(check, everyone[i], name, seed)
                if second and said != look.alarms[i]:
                    raised = raised or arena_text.unsteady(name)
                look.alarms[i], look.calls[i] = said, calls
                look.done += 1
                if isinstance(raised, str) and raised:  # the next would show the same
                    look.fault = raised
                    return
                if i >= len(bugs) and not isinstance(raised, str):
                    look.error = look.error or raised

    patience = getattr(type(check), "patience", 1)  # elsewhere, others keep the time
    if run(all_of_them, (), patience * limit).timed_out:
        look.fault = arena_text.too_slow(name, limit, look.done, 2 * len(everyone))
    return look


def _ask(
    check: Check, bug: Bug, name: str, seed: int
) -> tuple[bool, int, str | BaseException]:
    """One check on one attention: the alarm, the calls, and a fault or an error."""
    visit = _Visit(bug.make())
    np.random.seed(seed)  # noqa: NPY002 - for checks that draw from the global state
    value: object = None
    error: BaseException | None = None
    _visits.append(visit)
    try:
        value = check(attention)
    except (Exception, SystemExit) as raised:
        error = raised
    finally:
        _visits.pop()
        visit.put_back()
    if visit.illegal:
        return False, visit.calls, arena_text.illegal(name, visit.illegal)
    if visit.calls > MOST_CALLS:
        return False, visit.calls, arena_text.too_many_calls(name, MOST_CALLS)
    if error is not None:
        return True, visit.calls, error
    if not _is_truth(value):
        return False, visit.calls, arena_text.no_bool(name, value)
    return bool(value), visit.calls, ""


def _is_truth(value: object) -> bool:
    """True or False, or an array or a tensor that is one of the two."""
    if getattr(value, "shape", None) != ():
        return isinstance(value, bool)
    return str(getattr(value, "dtype", "")) in ("bool", "torch.bool")


class _Visit:
    """One attention behind the door, and what happened to the caller's arrays."""

    def __init__(self, attention: Callable[..., Array]) -> None:
        self.attention = attention
        self.calls = 0
        self.illegal = ""
        self._before: list[tuple[npt.NDArray[np.generic], Array]] = []

    def call(self, q: object, k: object, v: object, mask: object) -> Array:
        self.calls += 1
        if self.calls > MOST_CALLS:
            raise RuntimeError(f"{MOST_CALLS} calls are enough.")
        try:
            arrays, allowed = legal(q, k, v, mask)
        except (ShapeError, TypeError, ValueError) as error:
            self.illegal = self.illegal or str(error)
            raise
        for array in arrays:
            self._before.append((array, array.copy()))
        with np.errstate(all="ignore"):
            return np.asarray(self.attention(*arrays, allowed))

    def put_back(self) -> None:
        """Undo what a bug wrote into arrays that the check may use again."""
        for array, copy in reversed(self._before):
            if array.flags.writeable:
                array[...] = copy


_visits: list[_Visit] = []


def attention(q: object, k: object, v: object, mask: object = None) -> Array:
    """An attention of the arena; which one, only its numbers can tell."""
    if not _visits:
        raise RuntimeError("the arena's attention can only be called by a check.")
    return _visits[-1].call(q, k, v, mask)


def _chosen(bugs: tuple[Bug, ...], where: npt.ArrayLike) -> tuple[Bug, ...]:
    return tuple(b for b, chosen in zip(bugs, np.asarray(where), strict=True) if chosen)


__all__ = [
    "EQUIVALENT",
    "LAWS",
    "MASK_BUGS",
    "RIGHT",
    "RIGHT_HIDDEN",
    "SHOWN",
    "Array",
    "Bug",
    "Mask",
    "Score",
    "attention",
    "held_back",
    "legal",
    "pairs",
    "score",
]
