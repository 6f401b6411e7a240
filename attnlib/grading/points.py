"""Points for what is right, in whole hundredths.

An exercise is worth its minutes, so that a longer one weighs more, or as much as every
other (`equal`). A passed answer has all of it. Another one has its share:

- a function: the cases that it gets right, of all cases that count. A case does not
  count that an answer without thought gets right, too: nothing but zeros or ones, or an
  argument as it came. An answer that is right in all cases, and breaks what else is
  asked, such as to make no whole matrix, has half, and its share of the other half. One
  that changes its input has no point for that case, and one that gives the same
  whatever it is asked has none at all;
- a check of lesson 17: the share of the bugs that it caught, and nothing if it blamed
  a right attention;
- a value: the entries of a tuple or a dict that are right, and nothing if all entries
  are the same; any other value is right or wrong.

So an answer with one mistake may have many points, or none: a forgotten scale is wrong
in every case. Not started is nothing. Where the grader failed there is no grade.
"""

from __future__ import annotations

import hashlib

from attnlib.exercises.exercise import AnyExercise
from attnlib.exercises.judging import Verdict

POINT = 100  # hundredths
SEEDS = 2**32  # what NumPy's older random numbers can be started with


def of(exercise: AnyExercise, equal: bool = False) -> int:
    """What an exercise is worth, in hundredths.

    Args:
        exercise: it has minutes.
        equal: one point for each exercise.
    """
    return POINT if equal else POINT * exercise.minutes


def earned(verdict: Verdict, worth: int) -> int:
    """What an answer gets of that, in hundredths; always rounded down."""
    if verdict.passed:
        return worth
    shares = verdict.shares
    if shares is None or shares.of <= 0 or verdict.status == "not started":
        return 0
    return worth * max(0, min(shares.right, shares.of)) // shares.of


def seed_of(secret: str, name: str) -> int:
    """The seed of an exercise: the same for all students of a class.

    Args:
        secret: what nobody knows but the teacher.
        name: of the exercise.
    """
    told = f"{secret.strip()}\n{name}".encode()
    return int.from_bytes(hashlib.sha256(told).digest()[:8], "big") % SEEDS
