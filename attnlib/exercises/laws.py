"""Laws: what holds for every right answer, whatever its numbers.

They locate a mistake that the catalogue does not know, and they catch an answer that
has learnt the cases by heart. Each maker returns a `Law`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import Result
from attnlib.exercises.exercise import Call, Law

Array = npt.NDArray[np.float64]

CLOSE = 2e-4  # also a float32 answer keeps a law to this


def invariant(
    name: str,
    before: tuple[object, ...],
    after: tuple[object, ...],
    sentence: str,
    same: Callable[[Result], Result] = lambda result: result,
    part: int = 0,
) -> Law:
    """The answer to `after` is `same` of the answer to `before`."""

    def broken(call: Call) -> str | None:
        first, second = call(*before), call(*after)
        if first is None or second is None:
            return None
        expected, found = np.asarray(same(first[part])), second[part]
        if expected.shape != found.shape:
            return None
        apart = float(np.max(np.abs(_float(expected) - _float(found)), initial=0.0))
        if apart <= CLOSE:
            return None
        if expected.dtype.kind == found.dtype.kind == "b":
            where = np.argwhere(expected != found)
            place = [int(i) for i in where[0]]
            return (
                f"{sentence} They differ at {len(where)} of {found.size} places, the "
                f"first at {place}."
            )
        return f"{sentence} Yours differ by up to {apart:.3g}."

    return Law(name, broken)


def rows_sum_to_one(args: tuple[object, ...], part: int = 0) -> Law:
    """Every query hands out a weight of 1 in all, over the last axis."""

    def broken(call: Call) -> str | None:
        results = call(*args)
        if results is None or results[part].ndim == 0:
            return None
        sums = _float(results[part]).sum(axis=-1).ravel()
        wrong = sums[~(np.abs(sums - 1) <= CLOSE)]
        if not wrong.size:
            return None
        near = abs(wrong[0] - 1) < 5e-3
        why = " Is something rounded, or computed in float16?" if near else ""
        return f"One of your rows sums to {wrong[0]:.{5 if near else 3}f}.{why}"

    return Law("every row of weights sums to 1", broken)


def never_negative(args: tuple[object, ...], part: int = 0) -> Law:
    """Weights are shares: none lies below zero."""

    def broken(call: Call) -> str | None:
        results = call(*args)
        if results is None:
            return None
        least = float(np.min(_float(results[part]), initial=0.0))
        return f"Your smallest weight is {least:.3f}." if least < -CLOSE else None

    return Law("no weight is negative", broken)


def finite(args: tuple[object, ...], what: str) -> Law:
    """No NaN and no infinity on extreme input."""

    def broken(call: Call) -> str | None:
        results = call(*args)
        if results is None or all(np.isfinite(_float(r)).all() for r in results):
            return None
        return f"Given {what}, your result is not finite."

    return Law("the result stays finite", broken)


def batch_independent(args: tuple[object, ...], batched: tuple[int, ...]) -> Law:
    """One item of a batch gives the same alone: `batched` are the arguments to cut."""

    def broken(call: Call) -> str | None:
        alone = tuple(
            np.asarray(a)[0] if i in batched else a for i, a in enumerate(args)
        )
        together, single = call(*args), call(*alone)
        if together is None or single is None:
            return None
        for whole, one in zip(together, single, strict=True):
            if whole.ndim and whole[0].shape == one.shape:
                apart = float(np.max(np.abs(_float(whole[0]) - _float(one)), initial=0))
                if apart > CLOSE:
                    return (
                        "The first item of a batch gives other numbers alone than in "
                        f"the batch: they differ by up to {apart:.3g}. Count axes and "
                        "sizes from the end, -1 and -2: that fits with a batch and "
                        "without."
                    )
        return None

    return Law("the items of a batch do not see each other", broken)


def _float(array: Result) -> Array:
    return np.asarray(array, dtype=np.float64)
