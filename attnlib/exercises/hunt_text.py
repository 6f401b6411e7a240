"""What the exercises of lesson 17 say."""

from __future__ import annotations

from collections.abc import Sequence

from attnlib.clinic.bugs.bug import Bug
from attnlib.exercises.text import listed

NONE = " It says False to everyone. Is True what it says where it finds a fault?"
AWAY = "Got away:"
TURNED = (
    "\nIs it turned over? True means that a fault was found; a right attention gets "
    "False. Or does it ask for what is not so: rows that sum to one where nothing may "
    "be seen, NaN in an empty row?"
)
NEVER_CALLED = (
    "It finds faults and never calls a right attention. Only what an attention "
    "computes may tell: call it."
)
ALL_BLAMED = (
    "\nWhoever always cries wolf catches everything. Let it say False where nothing is "
    "wrong; and compare with a tolerance."
)
ROUNDING = (
    "\nWhat computes in float32 is off by rounding, about 1e-6 where scores are small, "
    "and more the larger they are. Allow for it."
)
BLAMED = (
    "\nThese are right, only written otherwise. Which of your inputs sets them apart, "
    "and by how much? A tolerance, or what an empty row gets, may be the reason."
)
FORM = (
    "Give the arrays as a tuple: (q, k, v), or (q, k, v, mask), each with two axes: "
    "(n_q, d_k), (n_k, d_k), (n_k, d_v)."
)


def caught(n: int, of: int) -> str:
    """How many of the bugs, and that no right attention was blamed."""
    return f"It catches {n} of {of} bugs, and blames nothing that is right."


def too_few(n: int, of: int, wanted: float) -> str:
    """How many of the bugs, and how many are wanted."""
    share = f"{n / of:.0%}" if n * 100 % of == 0 else f"{n / of:.1%}"
    return f"It catches {n} of {of} bugs, {share}; {wanted:.0%} is wanted."


def blamed(names: Sequence[str], of: int) -> str:
    """Which right attentions got an alarm."""
    if len(names) == of:
        return f"It blames all {of} right attentions, so its score is 0."
    return f"It blames what is right, so its score is 0: {listed(names[:4])}."


def raised_on(name: str) -> str:
    """An error on a right attention."""
    return f"An error counts as an alarm, and `{name}` is right: the score is 0."


def rest(bugs: tuple[Bug, ...]) -> str:
    """What got away though it was enough."""
    return f"Still at large: {', '.join(map(repr, bugs))}."


def not_legal(error: str) -> str:
    """Arrays that no attention takes."""
    return f"No attention takes this: {error}"


def hidden(apart: float) -> str:
    """The bug does not show."""
    return (
        f"Wrong and right agree on it, to within {apart:.1g}: here the bug cannot be "
        "seen."
    )


def too_large(numbers: int) -> str:
    """It shows, but with more numbers than needed."""
    return f"The bug shows. But there are {numbers} numbers in it, and fewer will do."
