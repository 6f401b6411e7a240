"""Exercises whose answer may take twice the room for twice the tokens, and no more.

`metered` measures one call of an answer: the most bytes that it held at once, how many
numbers it computed, how many lines it ran, and the bytes that it made in all. The laws
compare a text with one of twice its length. What grows fourfold has looked at all
pairs, whether it kept the table or made it row by row.

The meters run beside the answer. Where someone has a reason to forge them, the answer
runs elsewhere, and is asked one more thing that no meter says: a long text, in a room
that would not hold a table of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from attnlib.exercises.exercise import UNSEEN, Call, Law
from attnlib.exercises.metered import bytes_of, metered
from attnlib.sparse import window

Array = npt.NDArray[np.float64]
OPENING = "The numbers are right, but this is asked as well"
SHORT, LONG = 600, 1200  # tokens; a table of all scores takes 2.9 and 11.5 MB
LONGEST = 50_000  # tokens of one text more, for answers that run elsewhere
PLACE = 1_500_000_000  # bytes; a table of truth values of that text takes 2.5e9
WIDTH = 5  # keys that a query sees
TOO_FAST = 2.8  # twice is right, four times is n squared


class Meters(NamedTuple):
    """What one call took."""

    held: float  #     the most bytes at once
    numbers: float  #  computed, or read by a product or a sum
    lines: float  #    of the answer's own Python
    made: float  #     bytes in all


# Much work that grows twofold hides little that grows fourfold. So this counts, too:
# what comes on top of twice, for each pair of tokens that came on top of twice. A table
# of truth values takes a byte; half a row, read by a product, 2 numbers for each. With
# blocks that the text does not fill, it is up to 1.6 numbers, and as many bytes as a
# table of float16 makes: so `made` goes by its growth alone.
TOO_MANY = Meters(held=0.5, numbers=1.9, lines=0.4, made=np.inf)


def _measured(call: Call, n: int) -> Meters | None:
    """All meters; None if the numbers are not right."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(n, d)) for d in (4, 4, 3))
    right = window(q, k, v, left=WIDTH - 1).out.ravel()
    found = call(q, k, v, WIDTH, True)
    if found is None:
        return None
    row = np.asarray(found[0], dtype=np.float64)
    meters, outs = row[:4], row[4:]
    if outs.size != 2 * right.size:
        return None
    if not np.allclose(outs.reshape(2, -1), right, rtol=1e-3, atol=1e-4):
        return None
    return Meters(*meters.tolist())


def _both(call: Call) -> tuple[Meters, Meters] | None:
    """All meters for the short text and for the long one."""
    short, long = _measured(call, SHORT), _measured(call, LONG)
    return None if short is None or long is None else (short, long)


def _too_fast(name: str, short: Meters, long: Meters) -> tuple[float, float] | None:
    """A meter for both texts; None if it grows as it may."""
    least, most = getattr(short, name), getattr(long, name)
    per_pair = (most - 2 * least) / (2 * SHORT**2)
    if most <= TOO_FAST * max(least, 1) and per_pair <= getattr(TOO_MANY, name):
        return None
    return least, most


def _room(call: Call) -> str | None:
    both = _both(call)
    if both is None:
        return UNSEEN
    found = _too_fast("held", *both)
    if found is None:
        return None
    short, long = (bytes_ / 1e6 for bytes_ in found)
    return (
        f"For {SHORT} tokens your function holds {short:.1f} MB at once, for {LONG} "
        f"tokens {long:.1f} MB: {long / short:.1f} times as much. A table of n x n is "
        "made somewhere, of scores or of a mask. Make n x width scores only."
    )


def _work(call: Call) -> str | None:
    both = _both(call)
    if both is None:
        return UNSEEN
    said = {
        "numbers": "computes {:,.0f} numbers|{:,.0f}",
        "lines": "runs {:,.0f} lines|{:,.0f}",
        "made": "makes {:,.0f} bytes of arrays in all|{:,.0f}",
    }
    for name, words in said.items():
        found = _too_fast(name, *both)
        if found:
            return _fourfold(words, *found)
    return None


def _fourfold(words: str, short: float, long: float) -> str:
    what = words.format(short, long).split("|")
    return (
        f"For {SHORT} tokens your function {what[0]}, for {LONG} tokens {what[1]}: "
        f"{long / short:.1f} times as many. The table is never "
        "there as a whole, yet each query meets every key. Let it meet the keys of its "
        "window only."
    )


def _in_a_room(call: Call) -> str | None:
    """The right numbers for a text whose table has no place in the room."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(LONGEST, d)) for d in (4, 4, 3))
    found = call(q, k, v, WIDTH)
    if found is None:
        return (
            f"For {LONGEST} tokens it gives nothing, or needs more than "
            f"{PLACE / 1e9:.1f} GB. Keys and queries take 0.003 GB, and a table of "
            "n x n bytes 2.5 GB."
        )
    right = window(q, k, v, left=WIDTH - 1).out
    if found[0].shape != right.shape or not np.allclose(
        found[0].astype(float), right, rtol=1e-3, atol=1e-4
    ):
        return f"For {LONGEST} tokens the numbers are not right."
    return None


ROOM = Law("twice the tokens take twice the room", _room, OPENING, slower=4)
WORK = Law("twice the tokens take twice the work", _work, OPENING, slower=4)
PLACE_ENOUGH = Law(
    f"{LONGEST} tokens find place in {PLACE / 1e9:.1f} GB",
    _in_a_room,
    OPENING,
    slower=10,
    room=PLACE,
)

__all__ = ["PLACE_ENOUGH", "ROOM", "WORK", "Meters", "bytes_of", "metered"]
