"""What is told where there was nothing to judge, all in one place; and a number."""

from __future__ import annotations

import re
from collections.abc import Sequence

from attnlib.exercises import text

MISSING = "It is not in the notebook: no cell defines this name."
NOT_STARTED = "{name}: not started yet. Replace the `...` by your answer."
SLOW = (
    "What stands above it in the notebook, and what it needs of that, did not end in "
    "time."
)
LOST = {
    "timeout": (
        "It did not end in time, and it could not be stopped from inside. Is there a "
        "loop that never ends?"
    ),
    "memory": "It took more memory than there is for an exercise.",
    "killed": "Its process was ended by force, or crashed.",
    "ended": "It ended the program, as exit() does. A function should only return.",
    "broke": "Its process sent what is no answer.",
    "output": "It printed far too much, or its result is far too large.",
}
UNGRADED = (
    "{name}: not graded. That is a fault of the grader or of its machine, and no zero: "
    "{why}"
)

# Where a sandbox lay on the disk, and an object in memory: other ones at every run.
_PLACES = re.compile(r"[\w./-]{0,200}attnlib-room-\w{0,20}/?| at 0x[0-9a-f]{4,16}\b")


def without_places(words: str) -> str:
    """What a student's error says, without what is by chance."""
    return _PLACES.sub("", words)


def missing(name: str) -> str:
    return f"{name}: {MISSING[0].lower()}{MISSING[1:]}"


def not_started(name: str) -> str:
    """As `check` says it, but for a page: no cell stands beside it."""
    return NOT_STARTED.format(name=name)


def leans_on(names: Sequence[str]) -> str:
    """Why an answer may be wrong that has no mistake of its own."""
    listed = text.listed([f"`{name}`" for name in names])
    right, it = ("is", "that") if len(names) == 1 else ("are", "those")
    return (
        f"It uses your {listed}, which {right} not right yet: mend {it} first, then "
        "look at this one again."
    )


def syntax(name: str, notes: Sequence[str]) -> str:
    return text.not_yet(name, " ".join(["Its cell cannot be read by Python.", *notes]))


def undefined(name: str, errors: Sequence[str], slow: bool) -> str:
    said = SLOW if slow else f"Nothing was defined under the name {name}."
    return text.not_yet(name, " ".join([said, *errors]))


def lost(name: str, reason: str) -> str:
    return text.not_yet(name, LOST[reason])


def detail(reason: str, words: str) -> tuple[str, ...]:
    """What more is known of a lost process, unless `lost` has said it."""
    if not words or words.removeprefix("it ") in LOST[reason]:
        return ()
    return (f"{words[:1].upper()}{words[1:]}.",)


def ungraded(name: str, why: str) -> str:
    return UNGRADED.format(name=name, why=why)


def counted(n: int, what: str) -> str:
    """A number with its noun: 1 student, 2 students."""
    return f"{n} {what}{'' if n == 1 else 's'}"
