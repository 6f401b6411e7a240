"""Laws of the lesson on shaping heads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attnlib.clinic.probes_shaping import ONE_IDLE as LOSSES
from attnlib.clinic.sight import number
from attnlib.exercises.exercise import Call, Law

_rng = np.random.default_rng(14)
X, MIXED = _rng.normal(size=(2, 5, 4)), _rng.normal(size=(2, 3, 5, 2))
W_G, B_G = _rng.normal(size=(4, 3)), np.array([0.5, -1.0, 2.0])
SCORES = _rng.normal(size=(2, 3, 2, 4))
WEIGHTS = np.exp(SCORES) / np.exp(SCORES).sum(-1, keepdims=True)
COUNTED = np.array([[True, True], [True, False]])


def _kept(call: Call, loss_of: Callable[..., float], budget: int) -> list[int] | None:
    """The heads that are kept of 6; None if what is returned is no list of numbers."""
    found = call(loss_of, 6, budget)
    if found is None or found[0].ndim != 1:
        return None
    heads: list[int] = found[0].tolist()
    return heads


def heads_are_returned() -> Law:
    """What is returned are numbers of heads."""

    def broken(call: Call) -> str | None:
        kept = _kept(call, LOSSES[0], 4)
        if kept is None or set(kept) <= set(range(6)):
            return None
        return f"Of 6 heads, 0 to 5, yours returns {kept}."

    return Law("the heads that are kept are returned", broken)


def heads_in_rising_order() -> Law:
    """The heads that are kept are in order."""

    def broken(call: Call) -> str | None:
        for loss_of in LOSSES:
            kept = _kept(call, loss_of, 4)
            if kept is None:
                return None
            if kept != sorted(kept):
                return f"Of 6 heads, with a budget of 4, yours returns {kept}."
        return None

    return Law("the heads that are kept stand in rising order", broken)


def least_missed_goes_first() -> Law:
    """With room for all heads but one, it is known which one goes."""

    def broken(call: Call) -> str | None:
        every = list(range(6))
        for loss_of in LOSSES:
            kept = _kept(call, loss_of, 5)
            if kept is None:
                return None
            left = [[h for h in every if h != gone] for gone in every]
            best = min(left, key=loss_of)
            if kept != best:
                (gone,) = set(every) - set(best)
                return (
                    f"Of 6 heads, the loss is lowest without head {gone}: "
                    f"{number(loss_of(best))}. With a budget of 5, yours keeps "
                    f"{kept}."
                )
        return None

    return Law("the first head to go is the one that is missed least", broken)


def gates_are_a_tokens_own() -> Law:
    """One token changes, and only what was mixed for it is gated anew."""

    def broken(call: Call) -> str | None:
        other = X.copy()
        other[:, 3] += 1
        once, then = call(X, MIXED, W_G, B_G), call(other, MIXED, W_G, B_G)
        if once is None or then is None or once[0].shape != MIXED.shape:
            return None
        moved = np.abs(then[0].astype(float) - once[0].astype(float)).max((0, 1, 3))
        wrong = [t for t in range(5) if t != 3 and moved[t] > 1e-6]
        if not wrong:
            return None
        return (
            f"Token 3 of x was changed, and what was mixed for token {wrong[0]} moved "
            f"by {number(float(moved[wrong[0]]))}."
        )

    return Law("the gates of a token depend on that token alone", broken)


def gates_follow_x() -> Law:
    """One token changes, and what was mixed for it is gated anew."""

    def broken(call: Call) -> str | None:
        other = X.copy()
        other[:, 3] *= -1
        once, then = call(X, MIXED, W_G, B_G), call(other, MIXED, W_G, B_G)
        if once is None or then is None or once[0].shape != MIXED.shape:
            return None
        moved = np.abs(then[0].astype(float) - once[0].astype(float))
        if (moved[:, :, 3] > 1e-6).any():
            return None
        return (
            "Token 3 of x was changed, and what was mixed for it is multiplied by the "
            "same numbers as before."
        )

    return Law("the gates of a token follow that token of x", broken)


def gates_are_shares() -> Law:
    """Each gate is a number from 0 to 1."""

    def broken(call: Call) -> str | None:
        found = call(X, np.ones_like(MIXED), W_G, B_G)
        if found is None or found[0].shape != MIXED.shape:
            return None
        gates = found[0].astype(float)
        wrong = ~((gates > -1e-6) & (gates < 1 + 1e-6))
        if not wrong.any():
            return None
        text, head, token, _ = where = tuple(int(i) for i in np.argwhere(wrong)[0])
        return (
            "Where all that the heads mixed is 1, yours gives "
            f"{number(float(gates[where]))} for head {head} of token {token} "
            f"in text {text}."
        )

    return Law("a gate is a number from 0 to 1", broken)


def agreeing_costs_nothing() -> Law:
    """A student with the teacher's weights has a loss of 0."""

    def broken(call: Call) -> str | None:
        found = call(SCORES + 3, WEIGHTS, COUNTED)
        if found is None or found[0].size != 1 or abs(float(found[0])) < 1e-6:
            return None
        return (
            "The student looks exactly where the teacher looks, and yours gives "
            f"{number(float(found[0]))}."
        )

    return Law("who agrees has nothing to learn", broken)


def one_hot_costs_a_logarithm() -> Law:
    """A teacher that looks at one key alone asks for −ln of the student's weight."""

    def broken(call: Call) -> str | None:
        scores = np.broadcast_to(SCORES[:1, :1, :1], SCORES.shape)  # equal rows
        shares, losses = WEIGHTS[0, 0, 0], []
        for one_hot in np.eye(4):
            teacher = np.broadcast_to(one_hot, WEIGHTS.shape)
            found = call(scores.copy(), teacher.copy(), COUNTED)
            if found is None or found[0].size != 1:
                return None
            losses.append(float(found[0]))
        right = -np.log(shares)
        wrong = np.abs(losses - right) > 0.01  # a rounded number is told so elsewhere
        if not wrong.any() or np.ptp(losses / right) < 1e-6:  # and so is one factor
            return None
        key = int(wrong.argmax())
        return (
            f"In each row the student gives {number(float(shares[key]))} to that key. "
            f"−ln of it is {number(float(right[key]))}, and yours gives "
            f"{number(losses[key])}."
        )

    return Law("a teacher that looks at one key costs −ln s of that key", broken)


def each_row_counts() -> Law:
    """Each head of each real question has a part in the mean."""

    def broken(call: Call) -> str | None:
        once = call(SCORES, WEIGHTS[::-1], COUNTED)
        for text, query in np.argwhere(COUNTED):
            for head in range(SCORES.shape[1]):
                other = SCORES.copy()
                other[text, head, query] *= -1
                then = call(other, WEIGHTS[::-1], COUNTED)
                if once is None or then is None:
                    return None
                if once[0].size != 1 or then[0].size != 1:
                    return None
                if abs(float(once[0]) - float(then[0])) < 1e-9:
                    return (
                        f"The student looked elsewhere in head {head}, question "
                        f"{query} of text {text}, and yours stays "
                        f"{number(float(once[0]))}."
                    )
        return None

    return Law("each head of each real question counts", broken)


def fillers_say_nothing() -> Law:
    """What a filler looks at does not matter."""

    def broken(call: Call) -> str | None:
        other = SCORES.copy()
        other[1, :, 1] *= -4
        once, then = (call(s, WEIGHTS[::-1], COUNTED) for s in (SCORES, other))
        if once is None or then is None or once[0].size != 1 or then[0].size != 1:
            return None
        a, b = float(once[0]), float(then[0])
        if abs(a - b) < 1e-6:
            return None
        return (
            f"Only scores of a filler were changed, and yours went from {number(a)} to "
            f"{number(b)}."
        )

    return Law("what a filler looks at does not matter", broken)
