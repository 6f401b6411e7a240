"""Laws of the lesson on shaping heads."""

from __future__ import annotations

import numpy as np

from attnlib.clinic.sight import number
from attnlib.exercises.exercise import Call, Law

_rng = np.random.default_rng(14)
X, MIXED = _rng.normal(size=(2, 5, 4)), _rng.normal(size=(2, 3, 5, 2))
W_G, B_G = _rng.normal(size=(4, 3)), np.array([0.5, -1.0, 2.0])
SCORES = _rng.normal(size=(2, 3, 2, 4))
WEIGHTS = np.exp(SCORES) / np.exp(SCORES).sum(-1, keepdims=True)
COUNTED = np.array([[True, True], [True, False]])


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
