"""Laws of the lesson on a real model: of one layer, and of numbers that find a head."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from attnlib.clinic.sight import number
from attnlib.exercises.exercise import Call, Law
from attnlib.exercises.laws import CLOSE

Floats = npt.NDArray[np.float64]

COARSE = 1e-2  # a result in float16 is off by less: of that, others have more to say


# --- a layer --------------------------------------------------------------------------
def nothing_of_the_future(args: tuple[object, ...]) -> Law:
    """Another last token changes no earlier result."""
    x = np.array(args[0], float)
    x[..., -1, :] += 1.5

    def broken(call: Call) -> str | None:
        before, after = call(*args), call(x, *args[1:])
        if before is None or after is None or before[0].shape != after[0].shape:
            return None
        moved = np.asarray(after[0], float) - np.asarray(before[0], float)
        by_token = np.abs(moved[..., :-1, :]).max(axis=-1)
        if by_token.max() <= CLOSE:
            return None
        first = int(np.argmax(by_token > CLOSE))
        return (
            f"With another last token, the result of token {first} changes by up to "
            f"{number(float(by_token[first]))}."
        )

    return Law("no token hears a later one", broken)


def first_hears_itself(args: tuple[object, ...]) -> Law:
    """Row 0 needs no score: it is the token's own values, joined, times W_o."""

    def broken(call: Call) -> str | None:
        results = call(*args)
        first = _first_row(args)
        if results is None or results[0].shape[1:] != first.shape:
            return None
        apart = float(np.abs(np.asarray(results[0], float)[0] - first).max())
        if apart <= COARSE * max(1.0, float(np.abs(first).max())):
            return None
        return (
            "Token 0 may look at itself alone, so its scores do not matter: its result "
            "is its own value for each head, joined, times W_o. Yours is off by up to "
            f"{number(apart)}. Look at v, at which head gets which, at the joining, "
            "and at the mask."
        )

    return Law("the first token hears only itself", broken)


def scores_make_the_rest(
    args: tuple[object, ...], solution: Callable[..., object]
) -> Law:
    """The way of the values is right (see row 0); what is left are the scores."""

    def broken(call: Call) -> str | None:
        results, good = call(*args), np.asarray(solution(*args), float)
        if results is None or results[0].shape != good.shape:
            return None
        apart = np.abs(np.asarray(results[0], float) - good).max(axis=-1)
        if apart[0] > CLOSE or apart.max() <= COARSE * max(1.0, np.abs(good).max()):
            return None
        return (
            f"Yours has token 0 right, which needs no score, and token "
            f"{int(apart.argmax())} is off by up to {number(float(apart.max()))}. So "
            "W_v, the joining and W_o are used as they should be. Look at the scores: "
            "at q, k and their heads, the turning (v stays unturned), the scale, the "
            "mask, the softmax."
        )

    return Law("scores decide what later tokens hear", broken)


def _first_row(args: tuple[object, ...]) -> Floats:
    x, W_v, W_o = (np.asarray(args[i], float) for i in (0, 3, 4))
    n_heads, n_kv_heads = (int(str(n)) for n in args[5:7])
    v = (x[0] @ W_v).reshape(n_kv_heads, -1)
    return np.asarray(np.repeat(v, n_heads // n_kv_heads, axis=0).ravel() @ W_o)


# --- a number for a head --------------------------------------------------------------
def sure_heads(first: int, back: int, told: str, argument: int) -> Law:
    """Heads that put all their weight there in all rows that count, or in every other.

    `first` is the first row that counts, `back` how far its key stands before it.
    """
    n = first + 4
    always, sometimes = _looks(n, first, back, 1), _looks(n, first, back, 2)
    name = f"a head that looks {told} in every row has 1, in every other row 0.5"

    def broken(call: Call) -> str | None:
        found = [call(np.array(w), argument) for w in (always, sometimes)]
        if any(f is None or f[0].size != 1 for f in found):
            return None
        got = [float(f[0].ravel()[0]) for f in found if f is not None]
        if abs(got[0] - 1) <= CLOSE and abs(got[1] - 0.5) <= CLOSE:
            return None
        rows = f"(n={n}; rows {first} to {n - 1} count)"
        return f"Yours gives {number(got[0])} and {number(got[1])} {rows}."

    return Law(name, broken)


def a_quarter(first: int, back: int, told: str, argument: int) -> Law:
    """A quarter of each row there counts as a quarter, wherever the rest lies."""
    n = first + 4
    there = np.eye(n, k=-back) * 0.25
    near = there + np.eye(n) * 0.75
    spread = there + (1 - np.eye(n, k=-back)) * 0.75 / (n - 1)

    def broken(call: Call) -> str | None:
        found = [call(np.array(w), argument) for w in (near, spread)]
        if any(f is None or f[0].size != 1 for f in found):
            return None
        got = [float(f[0].ravel()[0]) for f in found if f is not None]
        if max(abs(g - 0.25) for g in got) <= CLOSE:
            return None
        return (
            f"Yours gives {number(got[0])} with the rest on one key, and "
            f"{number(got[1])} with the rest spread out."
        )

    return Law(f"a head with a quarter of each row {told} has 0.25", broken)


def _looks(n: int, first: int, back: int, step: int) -> Floats:
    """All weight `back` before every `step`-th row that counts, else on the row."""
    weights = np.eye(n)
    for i in range(first, n, step):
        weights[i] = np.eye(n)[i - back]
    return weights
