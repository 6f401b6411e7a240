"""Laws of the lesson on diagnosing an attention."""

from __future__ import annotations

import numpy as np

from attnlib.clinic.probes_monitors import Attend
from attnlib.clinic.sight import number
from attnlib.exercises.exercise import Call, Law

MIXED = np.sin(np.arange(72.0)).reshape(2, 3, 4, 3)
EVEN = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])


def twice_as_loud() -> Law:
    """Twice the numbers, twice the loudness."""

    def broken(call: Call) -> str | None:
        once, twice = call(MIXED), call(2 * MIXED)
        if once is None or twice is None or once[0].shape != twice[0].shape:
            return None
        a, b = once[0].astype(float), twice[0].astype(float)
        if np.allclose(b, 2 * a, rtol=1e-3, atol=1e-9):
            return None
        return (
            f"Twice the numbers should be twice as loud. Head 0: yours gives "
            f"{number(float(a.flat[0]))}, then {number(float(b.flat[0]))}."
        )

    return Law("twice the numbers are twice as loud", broken)


def same_twice() -> Law:
    """The same texts once more are as loud as they were."""

    def broken(call: Call) -> str | None:
        once, twice = call(MIXED), call(np.concatenate([MIXED, MIXED]))
        if once is None or twice is None or once[0].shape != twice[0].shape:
            return None
        a, b = once[0].astype(float), twice[0].astype(float)
        if np.allclose(a, b, rtol=1e-3, atol=1e-9):
            return None
        return (
            "The same texts twice are as loud as once. Head 0: yours gives "
            f"{number(float(a.flat[0]))}, then {number(float(b.flat[0]))}."
        )

    return Law("a larger batch is not louder", broken)


def an_empty_text_changes_nothing() -> Law:
    """A text of nothing but fillers says nothing about any head."""

    def broken(call: Call) -> str | None:
        weights = np.stack([EVEN, EVEN[::-1]])[None]
        fuller = np.concatenate([weights, np.zeros_like(weights)])
        once, twice = call(weights), call(fuller)
        if once is None or twice is None or once[0].shape != twice[0].shape:
            return None
        a, b = once[0].astype(float), twice[0].astype(float)
        if np.allclose(a, b, rtol=1e-3, atol=1e-9):
            return None
        return (
            "A text whose rows are all empty was added, and head 0 went from "
            f"{number(float(a.flat[0]))} to {number(float(b.flat[0]))} keys."
        )

    return Law("an empty text changes nothing", broken)


def causal_is_zero() -> Law:
    """In a causal attention nothing earlier moves, however long the text."""

    def broken(call: Call) -> str | None:
        table = np.array([[1.0, 0.5], [-0.5, 1.0]])
        attend = Attend(table, table, table, np.tri(7, dtype=bool))
        x = np.cos(np.arange(14.0)).reshape(7, 2)
        found = call(attend, x)
        if found is None or found[0].size != 1 or abs(float(found[0])) < 1e-9:
            return None
        return f"Yours gives {number(float(found[0]))} for a causal attention."

    return Law("a causal attention has 0", broken)
