# mypy: allow-untyped-defs, allow-untyped-calls
"""The calls that the exercises on starting and staying stable are judged by."""

from __future__ import annotations

import numpy as np

from attnlib.clinic.case import Case


def init_cases(rng):
    """For `init_for_entropy(d_model, d_k, share)`."""
    widths = rng.permutation([24, 96, 300, 768]).tolist()
    heads = rng.permutation([5, 16, 40, 64]).tolist()
    shares = np.round(rng.uniform(0.62, 0.97, size=4), 2).tolist()
    named = [(128, 32, 0.8), *zip(widths, heads, shares, strict=True)]
    return tuple(Case("d_model={}, d_k={}, share={}".format(*a), a) for a in named)


def half_cases(rng):
    """For `half_scores(q, k, mask)`: all numbers are exact in float16.

    d_k is 16 or 256, so that its root and fourth root are whole numbers, and it does
    not matter in which step an answer rounds.
    """

    def half(*shape, low=-4, high=5):
        return rng.integers(low, high, size=shape).astype(np.float16)

    def loud(n, d_k, *sizes):
        rows = np.ones((n, d_k)) * np.array(sizes)[:, None]
        return rows.astype(np.float16)

    some = np.array([[True, True, False], [True, False, True]])
    empty = np.ones((3, 4), bool)
    empty[1] = empty[0, 1] = empty[2, 2] = False
    wide = np.ones((2, 5), bool)
    wide[0, 3] = wide[1, 0] = False
    return (
        Case("small numbers, 2 queries, 3 keys", (half(2, 16), half(3, 16), some)),
        Case(
            "large numbers, 2 queries, 3 keys",
            (loud(2, 16, 80, 48), loud(3, 16, 96, 72, -64), some),
        ),
        Case("an empty row", (half(3, 16), half(4, 16), empty)),
        Case(
            "scores below -20000",
            (loud(2, 16, 80, 64), loud(3, 16, -88, -80, -96), some),
        ),
        Case("d_k = 256", (half(2, 256), half(5, 256), wide)),
    )


def capped_cases(rng):
    """For `capped_scores(scores, mask, cap)`."""

    def scores(n_q, n_k, size):
        return np.round(rng.normal(size=(n_q, n_k)) * size, 2)

    some = np.array([[True, True, False], [True, False, True]])
    many = rng.random((4, 5)) < 0.7
    many[:, 1], many[0, 3], many[2] = True, False, False
    return (
        Case(
            "2 queries, 3 keys, cap 30",
            (np.array([[60.0, 55.0, 20.0], [-2.0, 90.0, 1.0]]), some, 30.0),
        ),
        Case("2 queries, 3 keys, cap 5", (scores(2, 3, 4.0), some, 5.0)),
        Case("4 queries, 5 keys, an empty row, cap 8", (scores(4, 5, 9.0), many, 8.0)),
        Case("a cap of 2.5", (scores(2, 3, 3.0), some, 2.5)),
    )


def stage_cases(rng):
    """For `first_bad(stages)`."""

    def stages(**changed):
        n_q, n_k, d = 2, 3, 4
        healthy = {
            "q": rng.normal(size=(n_q, d)),
            "k": rng.normal(size=(n_k, d)),
            "v": rng.normal(size=(n_k, 5)),
            "raw_scores": rng.normal(size=(n_q, n_k)),
            "scores": rng.normal(size=(n_q, n_k)),
            "weights": np.full((n_q, n_k), 1 / n_k),
            "out": rng.normal(size=(n_q, 5)),
        }
        for name, places in changed.items():
            for place, value in places.items():
                healthy[name][place] = value
        return (healthy,)

    def everywhere(rows, columns):
        return {(i, j): nan for i in range(rows) for j in range(columns)}

    def half(args):
        return ({name: x.astype(np.float16) for name, x in args[0].items()},)

    def later(args):
        """As if a function had got its raw scores from elsewhere."""
        return (dict(list(args[0].items())[3:]),)

    nan, inf = np.nan, np.inf
    row = {(1, j): nan for j in range(3)}
    out, up = {(1, j): nan for j in range(5)}, {(1, 2): inf}
    hidden = {(0, 2): -inf, (1, 1): -inf}
    empty = {(1, j): -inf for j in range(3)}
    return (
        Case("a masked attention, well", stages(scores=hidden)),
        Case(
            "an overflow",
            stages(raw_scores=up, scores=up, weights=row, out=out),
        ),
        Case("an empty row", stages(scores=empty, weights=row, out=out)),
        Case(
            "an overflow to the negative side",
            stages(raw_scores={(0, 0): -inf}, scores={(0, 0): -inf}),
        ),
        Case("a saturated row", stages(weights={(0, 0): 1, (0, 1): 0, (0, 2): 0})),
        Case(
            "a mask times infinity",
            stages(scores={(1, 0): nan, **hidden}, weights=row, out=out),
        ),
        Case("a value that is NaN", stages(v={(2, 3): nan}, out={(0, 3): nan})),
        Case(
            "a value of minus infinity",
            stages(v={(1, 2): -inf}, out={(0, 2): -inf, (1, 2): -inf}),
        ),
        Case(
            "a token that is NaN",
            stages(q=dict(list(row.items())[:1]), raw_scores=row, scores=row),
        ),
        Case("an output out of range", stages(out={(1, 4): -inf})),
        Case(
            "an overflow of the scores alone",
            stages(scores={(0, 2): inf}, weights={(0, 2): nan}, out={(0, 1): nan}),
        ),
        Case(
            "values that are all NaN",
            stages(v=everywhere(3, 5), out=everywhere(2, 5)),
        ),
        Case(
            "large numbers in float16, well",
            half(stages(raw_scores=dict.fromkeys(hidden, 65504.0) | {(0, 0): 5e4})),
        ),
        Case("only the last four stages", later(stages(scores=hidden, weights=row))),
        Case(
            "only the last four stages, an empty row mended",
            later(stages(scores=empty, weights=dict.fromkeys(row, 0.0))),
        ),
        Case(
            "a saturated row before an overflow",
            stages(weights={(0, 0): 1, (0, 1): 0, (0, 2): 0}, out={(0, 0): inf}),
        ),
    )
