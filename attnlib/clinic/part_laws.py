"""What holds for every right part: laws that are asked when no mistake is known."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import Result
from attnlib.clinic.part import Broken, Call, Law
from attnlib.clinic.sight import number

CLOSE = 1e-4
Float = npt.NDArray[np.float64]


def _float(array: Result) -> Float:
    return np.asarray(array, dtype=np.float64)


def _toeplitz(call: Call) -> Broken | None:
    """Dot products of two positions depend on their distance alone."""
    for n, d in ((3, 2), (3, 4), (4, 6), (6, 8)):
        table = call(n, d)
        if table is None:
            continue
        table = _float(table)
        while table.ndim > 2 and table.shape[0] == 1:
            table = table[0]
        if table.shape != (n, d):
            continue
        products = table @ table.T
        for i in range(n - 2):
            a, b = products[i, i + 1], products[i + 1, i + 2]
            if abs(a - b) > CLOSE:
                return Broken(
                    f"Positions {i} and {i + 1} have the dot product {number(a)}, "
                    f"positions {i + 1} and {i + 2} have {number(b)}.",
                    f"n = {n}\nd_model = {d}",
                )
    return None


def _pair(call: Call, x: Float, place: int) -> Float | None:
    """x turned at one position; a part may want a list of positions or a start."""
    for places in (np.array([place]), place):
        found = call(x, places)
        if found is not None and found.shape == x.shape:
            return _float(found)
    return None


def _vectors(d: int) -> Float:
    return np.eye(d)[:, None, :] + 0.25


def _keeps_lengths(call: Call) -> Broken | None:
    for d in (2, 4):
        for place in (1, 2, 7):
            for x in _vectors(d):
                turned = _pair(call, x, place)
                if turned is None:
                    continue
                before, after = (float(np.linalg.norm(a)) for a in (x, turned))
                if abs(before - after) > CLOSE:
                    return Broken(
                        f"A token of length {number(before)} has length "
                        f"{number(after)} afterwards.",
                        f"x = {x.tolist()}\npositions = [{place}]",
                    )
    return None


def _position_zero(call: Call) -> Broken | None:
    for d in (2, 4):
        for x in _vectors(d):
            turned = _pair(call, x, 0)
            if turned is not None and np.abs(turned - x).max() > CLOSE:
                shown = [round(float(v), 3) for v in turned.ravel()]
                return Broken(
                    f"At position 0 nothing is turned, and it gives {shown}.",
                    f"x = {x.tolist()}\npositions = [0]",
                )
    return None


def _sees_distances(call: Call) -> Broken | None:
    """All positions moved by one number: no score changes."""
    x = np.array([[1.0, 0.5], [0.25, -1.0]])
    x = np.concatenate([x, x[::-1] + 0.5], axis=-1)
    near, far = (call(x, np.array([0, 1]) + shift) for shift in (0, 3))
    if near is None or far is None or near.shape != x.shape or far.shape != x.shape:
        return None
    a, b = (float(_float(t)[0] @ _float(t)[1]) for t in (near, far))
    if abs(a - b) <= CLOSE:
        return None
    return Broken(
        f"Two tokens have the score {number(a)} at positions 0 and 1, and "
        f"{number(b)} at 3 and 4.",
        f"x = {x.tolist()}\npositions = [0, 1], then [3, 4]",
    )


def _fall_evenly(call: Call) -> Broken | None:
    """At a power of two, each slope is the one before times 2^(-8 / n)."""
    for n in (2, 4, 8, 16):
        slopes = call(n)
        if slopes is None or slopes.size != n:
            return Broken(
                f"With {n} heads there should be {n} slopes.", f"n_heads = {n}"
            )
        slopes = _float(slopes).ravel()
        factors, right = slopes[1:] / slopes[:-1], 2 ** (-8 / n)
        wrong = np.abs(factors - right) > CLOSE
        if wrong.any():
            h = int(np.argmax(wrong)) + 1
            return Broken(
                f"With {n} heads, slope {h} is {number(float(factors[h - 1]))} times "
                f"slope {h - 1}; {number(right)} is right.",
                f"n_heads = {n}",
            )
    return None


def _rows_sum(call: Call) -> Broken | None:
    for x in ([[0.0, 1.0]], [[2.0, -1.0, 0.5], [0.0, 3.0, 1.0]]):
        weights = call(np.array(x))
        if weights is None or weights.shape != np.shape(x):
            continue
        sums = _float(weights).sum(axis=-1)
        if np.abs(sums - 1).max() > CLOSE:
            worst = float(sums[np.abs(sums - 1).argmax()])
            return Broken(f"A row of weights sums to {number(worst)}.", f"x = {x}")
    return None


def _shift(call: Call) -> Broken | None:
    x = np.array([[0.0, 1.0]])
    a, b = call(x), call(x + 3)
    if a is None or b is None or a.shape != x.shape or b.shape != x.shape:
        return None
    apart = float(np.abs(_float(a) - _float(b)).max())
    if apart <= CLOSE:
        return None
    return Broken(
        f"A constant added to all scores changes weights by {number(apart)}.",
        "x = [[0, 1]], then [[3, 4]]",
    )


def _blind_to_size(call: Call) -> Broken | None:
    rng = np.random.default_rng(0)
    for shape in ((2, 3, 4, 6), (3, 4, 6), (4, 6)):
        q = np.round(rng.normal(size=shape) * 8) / 8 + 0.0625
        a, b = call(q), call(10 * q)
        if a is None or b is None or a.shape != q.shape or b.shape != q.shape:
            continue
        apart = float(np.abs(_float(a) - _float(b)).max())
        if apart > 1e-3:
            return Broken(
                f"Queries ten times as large give other results, by {number(apart)}.",
                f"q of shape {shape}, then 10 q",
            )
        return None
    return None


def _capped(call: Call) -> Broken | None:
    for cap in (2.0, 30.0):
        scores = np.array([[-1000.0, 0.0, 1000.0]])
        capped = call(scores, cap)
        if capped is None or capped.shape != scores.shape:
            continue
        most = float(np.abs(_float(capped)).max())
        if most > cap * (1 + CLOSE):
            return Broken(
                f"With a cap of {number(cap)} a score of {number(most)} is left.",
                f"scores = {scores.tolist()}\ncap = {cap}",
            )
    return None


def _no_divergence(call: Call) -> Broken | None:
    """Equal logits: 0. A certain teacher and an even student: ln n."""
    logits = np.array([[1.0, -0.5, 2.0]])
    same = call(logits, logits)
    same = call(logits, logits, 1.0) if same is None else same
    if same is None or same.size != 1:
        return None
    if abs(float(same)) > CLOSE:
        return Broken(
            f"Student and teacher agree, and the loss is {number(float(same))}, not 0.",
            f"student = teacher = {logits.tolist()}",
        )
    return None


def _log_n(call: Call) -> Broken | None:
    teacher, student = np.array([[60.0, 0.0, 0.0, 0.0]]), np.zeros((1, 4))
    loss = call(student, teacher, 1.0)
    loss = call(student, teacher) if loss is None else loss
    if loss is None or loss.size != 1 or abs(float(loss) - math.log(4)) < CLOSE:
        return None
    return Broken(
        f"The teacher is certain and the student knows nothing of 4 classes: the loss "
        f"is {number(float(loss))}, where ln 4 = {number(math.log(4))} is right.",
        f"student = {student.tolist()}\nteacher = {teacher.tolist()}",
    )


TOEPLITZ = Law("the dot product of two positions depends on their distance", _toeplitz)
KEEPS_LENGTHS = Law("a turn keeps the length of each token", _keeps_lengths)
POSITION_ZERO = Law("position 0 leaves a token as it is", _position_zero)
SEES_DISTANCES = Law("scores depend on the distance of two tokens", _sees_distances)
FALL_EVENLY = Law("the slopes of a power of two fall by one factor", _fall_evenly)
ROWS_SUM = Law("each row of weights sums to 1", _rows_sum)
SHIFT = Law("a constant added to all scores changes no weight", _shift)
BLIND_TO_SIZE = Law("the size of a query does not matter", _blind_to_size)
CAPPED = Law("no score is larger than the cap", _capped)
NO_DIVERGENCE = Law("equal logits have no divergence", _no_divergence)
LOG_N = Law("a certain teacher costs an ignorant student ln n", _log_n)
