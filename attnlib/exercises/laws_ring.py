"""Laws of the lesson on rings: of joining, of stripes, and of bytes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.sight import number
from attnlib.exercises.exercise import Call, Law
from attnlib.exercises.laws import CLOSE
from attnlib.exercises.laws_heads import COARSE
from attnlib.exercises.text import listed

_rng = np.random.default_rng(16)
OUT, PART = _rng.normal(size=(2, 3, 2))
LOG, PART_LOG = np.array([1.0, -0.5, 3.0]), np.array([2.0, 0.5, 2.5])
NOTHING = np.zeros_like(OUT), np.full_like(LOG, -np.inf)

_Floats = npt.NDArray[np.float64]
_Truth = npt.NDArray[np.bool_]
_Pair = tuple[_Floats, _Floats]


# --- joining --------------------------------------------------------------------------
def _joined(call: Call, *args: object) -> _Pair | None:
    """What the answer gives, as floats, where it has the right shapes.

    Of float16 others have more to say: 802 has no third digit in it.
    """
    found = call(*(np.array(a) for a in args))
    if found is None or any(a.dtype == np.float16 for a in found):
        return None
    out, log = (np.asarray(a, float) for a in found)
    rows = np.asarray(args[1]).shape
    return (out, log) if log.shape == rows and out.shape[:-1] == rows else None


def _apart(one: _Pair, other: _Pair) -> tuple[str, int, float, float] | None:
    """Where two results differ most: in what, at which query, and both numbers."""
    for name, a, b in zip(("out", "log_sum_exp"), one, other, strict=True):
        if a.shape != b.shape:
            continue
        apart = np.nan_to_num(np.abs(a - b), nan=0 if np.array_equal(a, b) else np.inf)
        if apart.max() > COARSE:
            place = np.unravel_index(apart.argmax(), apart.shape)
            return name, int(place[0]), float(a[place]), float(b[place])
    return None


def ones_stay_ones() -> Law:
    """Where all values are 1, a mean of them is 1."""
    ones = np.ones_like(OUT)

    def broken(call: Call) -> str | None:
        found = _joined(call, ones, LOG, ones, PART_LOG)
        if found is None or np.abs(found[0] - 1).max() <= COARSE:
            return None
        query = int(np.abs(found[0] - 1).max(axis=-1).argmax())
        return (
            f"All values on both sides are 1, and yours gives "
            f"{number(float(found[0][query, 0]))} for query {query}. Its two shares "
            "should sum to 1."
        )

    return Law("joined means are a mean", broken)


def an_empty_part_changes_nothing() -> Law:
    """A block of which no query sees anything, and a first block."""

    def broken(call: Call) -> str | None:
        sides = (
            ("Of the new part no query sees anything", (OUT, LOG, *NOTHING)),
            ("Nothing was seen so far", (*NOTHING, OUT, LOG)),
        )
        for told, args in sides:
            found = _joined(call, *args)
            off = None if found is None else _apart(found, (OUT, LOG))
            if off:
                name, query, yours, good = off
                return (
                    f"{told}, and the {name} of query {query} becomes {number(yours)}; "
                    f"on the other side it was {number(good)}."
                )
        return None

    return Law("who saw nothing on one side takes the other as it is", broken)


def a_query_is_joined_by_itself() -> Law:
    """The rows of a call have nothing to do with one another."""

    def broken(call: Call) -> str | None:
        whole = _joined(call, OUT, LOG, PART, PART_LOG)
        if whole is None:
            return None
        for i in range(len(OUT)):
            alone = _joined(call, *(a[i : i + 1] for a in (OUT, LOG, PART, PART_LOG)))
            if alone is None:
                return None
            off = _apart((whole[0][i : i + 1], whole[1][i : i + 1]), alone)
            if off:
                name, _, together, by_itself = off
                return (
                    f"Asked alone, the {name} of query {i} is {number(by_itself)}; "
                    f"among three queries it is {number(together)}."
                )
        return None

    return Law("each query has shares of its own", broken)


def which_side_comes_first() -> Law:
    """Two sides, exchanged."""

    def broken(call: Call) -> str | None:
        one = _joined(call, OUT, LOG, PART, PART_LOG)
        other = _joined(call, PART, PART_LOG, OUT, LOG)
        off = None if one is None or other is None else _apart(one, other)
        if off is None:
            return None
        name, query, before, after = off
        return (
            f"With the two sides exchanged, the {name} of query {query} goes from "
            f"{number(before)} to {number(after)}."
        )

    return Law("parts may be joined in any order", broken)


def joined_to_itself() -> Law:
    """A part and a copy of it: the same mean, and twice the sum."""

    def broken(call: Call) -> str | None:
        found = _joined(call, OUT, LOG, OUT, LOG)
        off = None if found is None else _apart(found, (OUT, LOG + np.log(2)))
        if off is None:
            return None
        name, query, yours, good = off
        return (
            f"The {name} of query {query} is {number(yours)} in yours, and should be "
            f"{number(good)}" + (", log(2 e^L)." if name == "log_sum_exp" else ".")
        )

    return Law("a part joined to itself has the same out, and twice the sum", broken)


def all_logs_moved() -> Law:
    """800 more in all logs: the shares stay, and so does out."""

    def broken(call: Call) -> str | None:
        before = _joined(call, OUT, LOG, PART, PART_LOG)
        after = _joined(call, OUT, LOG + 800, PART, PART_LOG + 800)
        if before is None or after is None:
            return None
        off = _apart((after[0], after[1] - 800), before)
        if off is None:
            return None
        name, query, then, once = off
        more = 800 if name == "log_sum_exp" else 0
        return (
            f"The {name} of query {query} was {number(once)}, and is "
            f"{number(then + more)} with 800 added to all logs."
        )

    return Law("shares ask only how far the logs are apart", broken)


# --- stripes --------------------------------------------------------------------------
def one_of_two_sees_the_other() -> Law:
    """Of two tokens one comes first; and a token sees itself."""
    n_ranks, n_local = 5, 3

    def broken(call: Call) -> str | None:
        for a in range(n_ranks):
            for b in range(a, n_ranks):
                one, other = call(a, b, n_ranks, n_local), call(b, a, n_ranks, n_local)
                if one is None or other is None:
                    return None
                there, back = one[0].astype(bool), other[0].astype(bool)
                if not there.shape == back.shape == (n_local, n_local):
                    return None
                said = _pair_broken(there, back.T, a, b, n_ranks)
                if said:
                    return said
        return None

    return Law("of two tokens, the later one sees the earlier", broken)


def _pair_broken(there: _Truth, back: _Truth, a: int, b: int, n_ranks: int) -> str:
    step = np.arange(len(there))
    mine, theirs = (a + n_ranks * step)[:, None], b + n_ranks * step
    wrong = (there != (theirs <= mine)) | (back != (mine <= theirs))
    if not wrong.any():
        return ""
    i, j = (int(k) for k in np.argwhere(wrong)[0])
    t, u = int(mine[i, 0]), int(theirs[j])
    which = f"query {i} of rank {a} is token {t}"
    if t == u:
        return f"With {n_ranks} ranks {which}, and does not see itself in yours."
    said = "the earlier sees the later"
    if there[i, j] == back[i, j]:
        said = f"{'each' if there[i, j] else 'neither'} sees the other"
    return (
        f"With {n_ranks} ranks {which}, and key {j} of rank {b} is token {u}. In yours "
        f"{said}."
    )


# --- bytes ----------------------------------------------------------------------------
def twice_as_much() -> Law:
    """Of what twice as much makes twice as many bytes, and of what it does not."""
    names = "n", "n_ranks", "n_heads", "n_kv_heads", "d_k", "itemsize"
    sizes = 24, 3, 4, 2, 8, 4

    def broken(call: Call) -> str | None:
        before = call(*sizes)
        if before is None:
            return None
        for i in (0, 3, 4, 5, 2):
            after = call(*(2 * s if i == at else s for at, s in enumerate(sizes)))
            if after is None:
                return None
            wanted = 1 if names[i] == "n_heads" else 2
            for way, a, b in zip(("forward", "backward"), before, after, strict=True):
                if a.size != 1 or b.size != 1 or not float(a.item()):
                    return None
                times = float(b.item()) / float(a.item())
                if abs(times - wanted) > CLOSE:
                    return (
                        f"With {names[i]} twice as large, your {way} count is "
                        f"{number(times)} times as large, and should be {wanted} times."
                    )
        return None

    return Law("bytes grow with what travels", broken)


def blocks_by_ranks() -> Law:
    """How many blocks of 8 tokens two, three and four ranks send."""
    block = 8 * 2 * 2 * 8 * 4  # tokens, key and value, heads, numbers, bytes
    right = {"forward": (1, 2, 3), "backward": (3, 5, 7)}

    def broken(call: Call) -> str | None:
        found = [call(8 * n_ranks, n_ranks, 4, 2, 8, 4) for n_ranks in (2, 3, 4)]
        for part, (way, wanted) in enumerate(right.items()):
            counts = [f[part] for f in found if f is not None and f[part].size == 1]
            yours = [float(c.item()) / block for c in counts]
            if len(yours) < 3 or np.allclose(yours, wanted):
                continue
            said, good = (listed([number(n) for n in ns]) for ns in (yours, wanted))
            return (
                f"With 2, 3 and 4 ranks, and 8 tokens on each, yours sends {said} "
                f"blocks {way}, and should send {good}."
            )
        return None

    return Law("whole blocks travel", broken)
