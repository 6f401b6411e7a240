"""Laws of the lesson on starting and staying stable."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from attnlib.clinic.sight import number, place
from attnlib.exercises.exercise import Call, Law

Floats = npt.NDArray[np.float64]

SOME = np.array([[True, True, False], [True, False, True]])


def share_is_used() -> Law:
    """Another share asks for another std."""

    def broken(call: Call) -> str | None:
        few, many = _one(call, 256, 24, 0.7), _one(call, 256, 24, 0.95)
        if few is None or many is None or few != many:
            return None
        return f"Yours gives {number(few)} for a share of 0.7, and for one of 0.95."

    return Law("another share needs other tables", broken)


def wish_comes_true(d_model: int = 256, d_k: int = 24, share: float = 0.9) -> Law:
    """Tables of this std give scores that use the share, by the lesson's rule."""

    def broken(call: Call) -> str | None:
        std = _one(call, d_model, d_k, share)
        if std is None or not 0 <= std < 1e6:
            return None
        spread = d_model * std**2
        found = math.exp(-(spread**2) / 2)
        if abs(found - share) < 1e-4:
            return None
        said = (
            f"With d_model={d_model} and a share of {share} yours gives "
            f"{std:.4g}. Scores then have a std of {number(spread)}, and use a share "
            f"of {number(found)}."
        )
        near = " Was it measured? The rule is meant, solved for std."
        return said + (near if abs(found - share) < 0.03 else "")

    return Law("such tables use the share that was wished for", broken)


def stays_half() -> Law:
    """float16 goes in, and float16 comes out."""

    def broken(call: Call) -> str | None:
        q, k = np.ones((2, 16), np.float16), np.ones((3, 16), np.float16)
        results = call(q, k, SOME)
        if results is None or results[0].dtype == np.float16:
            return None
        return (
            f"Yours returns {results[0].dtype}. NumPy widens a float16 array as soon "
            "as it meets an array, or a number of NumPy's own, of a wider type: "
            "np.sqrt(16) is one, 16 ** 0.5 and -np.inf are not. (A list forgets its "
            "type.)"
        )

    return Law("float16 stays float16", broken)


def divided_by_the_root(d_k: int = 20) -> Law:
    """Scores are scaled by the root of d_k, also where it is no whole number."""
    rng = np.random.default_rng(9)
    q, k = (rng.integers(-3, 4, (n, d_k)).astype(np.float16) for n in (3, 4))
    right = q.astype(float) @ k.T.astype(float) / math.sqrt(d_k)

    def broken(call: Call) -> str | None:
        mine = _table(call, right.shape, q, k, np.ones(right.shape, bool))
        if mine is None or not np.isfinite(mine).all():
            return None
        if np.allclose(mine, right, rtol=1e-2, atol=2e-2):
            return None
        factor = float((mine * right).sum() / (right**2).sum())
        if np.allclose(mine, factor * right, rtol=1e-2, atol=2e-2):
            return f"With d_k = {d_k} yours is {number(factor)} times the right result."
        where = tuple(np.unravel_index(np.abs(mine - right).argmax(), right.shape))
        return (
            f"With d_k = {d_k} and nothing hidden yours gives "
            f"{number(float(mine[where]))} at {place(where)}, where "
            f"{number(float(right[where]))} is right."
        )

    return Law("the scores are q @ k.T over the root of d_k", broken)


def hidden_is_minus_infinity(args: tuple[object, ...], at: int) -> Law:
    """What the mask, argument `at`, hides is -inf, and nothing else."""
    mask = np.asarray(args[at], bool)

    def broken(call: Call) -> str | None:
        mine = _table(call, mask.shape, *args)
        if mine is None:
            return None
        wrong = ~mask & ~np.isneginf(mine)
        if not wrong.any():
            return None
        where = tuple(np.argwhere(wrong)[0])
        value = float(mine[where])
        row = "" if mask[where[0]].any() else ", in a row that may look at nothing"
        why = "A number is a score like any other, however low."
        if np.isnan(value):
            why = "NaN would spread over the whole row."
        elif value > 0 and np.isinf(value):
            why = "The sign is lost: the hidden key would get all the attention."
        return f"Yours is {_shown(value)} at {place(where)}{row}. {why}"

    return Law("what is hidden is -inf", broken)


CAP = 40.0
# Small scores, scores as large as the cap, and large ones; a row each.
SIZES = np.array([[0.4, -0.4, 0.0], [CAP, -CAP, 0.0], [400.0, -400.0, 0.0]])


def within_the_cap() -> Law:
    """No score is larger than the cap, above and below."""

    def broken(call: Call) -> str | None:
        mine = _capped(call)
        if mine is None or np.abs(mine).max() <= CAP * (1 + 1e-4):
            return None
        where = np.unravel_index(np.abs(mine).argmax(), mine.shape)
        return _becomes(SIZES[where], mine[where])

    return Law("no seen score lies beyond the cap", broken)


def small_ones_stay() -> Law:
    """Far below the cap nothing changes."""

    def broken(call: Call) -> str | None:
        mine = _capped(call)
        if mine is None:
            return None
        wrong = ~np.isclose(mine[0], SIZES[0], rtol=5e-3, atol=1e-3)
        if not wrong.any():
            return None
        first = int(wrong.argmax())
        return _becomes(SIZES[0, first], mine[0, first])

    return Law("small scores stay what they are", broken)


def bent_like_tanh() -> Law:
    """At the cap itself the curve of a tanh stands at 0.76."""

    def broken(call: Call) -> str | None:
        mine = _capped(call)
        right = CAP * np.tanh(SIZES / CAP)
        if mine is None or np.allclose(mine, right, rtol=1e-3, atol=1e-3):
            return None
        return _becomes(SIZES[1, 0], mine[1, 0])

    return Law("a score as large as the cap becomes 0.76 of it, as in a tanh", broken)


def _capped(call: Call) -> Floats | None:
    mine = _table(call, SIZES.shape, SIZES, np.ones(SIZES.shape, bool), CAP)
    return None if mine is None or not np.isfinite(mine).all() else mine


def _becomes(score: float, yours: float) -> str:
    return (
        f"With a cap of {number(CAP)} your score of {number(float(score))} becomes "
        f"{number(float(yours))}."
    )


def _one(call: Call, *args: object) -> float | None:
    results = call(*args)
    if results is None or results[0].ndim or results[0].dtype.kind not in "iuf":
        return None
    return float(results[0])


def _table(call: Call, shape: tuple[int, ...], *args: object) -> Floats | None:
    results = call(*args)
    if results is None or results[0].shape != shape:
        return None
    return results[0].astype(np.float64)


def _shown(value: float) -> str:
    """Also a number with 308 zeros in few characters."""
    return f"{value:.2g}" if abs(value) >= 1e5 else number(value)
