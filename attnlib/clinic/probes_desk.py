# mypy: allow-untyped-defs, allow-untyped-calls
"""Cases for timing a request, and for choosing a way under a budget."""

from __future__ import annotations

import numpy as np

from attnlib.clinic.case import Case


def latency_cases(rng):
    """For `median_ms` on a played machine: durations, n_warm, n_timed."""

    def case(n_warm, n_timed, slow=(), unit=1e-3, quick=False):
        seconds = unit * (1 + rng.random(n_warm + n_timed + 5))
        seconds[:n_warm] *= 5 + 10 * rng.random(n_warm)  # cold
        if quick:  # so that who leaves out the slowest calls is found out
            seconds[n_warm - 1] = 0.6 * unit
        for call in slow:
            seconds[n_warm + call] *= 30  # held up
        name = f"{n_warm} to warm up, {n_timed} timed"
        return Case(name, (np.round(seconds, 6), n_warm, n_timed))

    return (
        case(2, 3, slow=(1,)),
        case(3, 4, slow=(0,), quick=True),
        case(4, 7, slow=(2, 3), unit=2e-2),
        case(0, 5, slow=(4,)),
        case(5, 2),
        case(2, 8, slow=(7, 1, 3)),
    )


def pick_cases(rng):
    """For `pick_way(ms, right, budget)`."""

    def case(name, ms, means, spreads, budget, first=0):
        # Runs that lie as far to both sides of the mean: np.std is the spread itself.
        # Uneven, so that no median is a mean; scaled to a spread of 1.
        signs = np.array([1.3, -0.4, -0.9] if len(ms) % 2 else [0.9, -0.3, -1.3, 0.7])
        signs = np.roll(signs, -first) / signs.std()
        turned = np.where(rng.random(len(ms)) < 0.5, 1.0, -1.0)
        right = np.array(means)[:, None] + np.outer(turned * np.array(spreads), signs)
        return Case(name, (np.array(ms), np.round(right, 6), budget))

    return (
        case("4 ways, all in the budget", [4.0, 1.0, 2.0, 8.0],
             [0.80, 0.60, 0.79, 0.805], [0.01, 0.01, 0.002, 0.016], 9.0),
        case("5 ways, the best over the budget", [9.0, 3.0, 5.0, 1.0, 2.0],
             [0.90, 0.70, 0.71, 0.50, 0.685], [0.03, 0.002, 0.02, 0.02, 0.05], 5.0),
        case("4 ways, none in the budget", [4.0, 3.0, 6.0, 8.0],
             [0.8, 0.6, 0.5, 0.7], [0.01, 0.02, 0.01, 0.03], 2.0),
        case("3 ways, the first two are not told apart", [6.0, 5.0, 1.0],
             [0.70, 0.66, 0.55], [0.05, 0.01, 0.30], 7.0),
        case("6 ways, wide spreads", [2.0, 7.0, 3.0, 6.0, 4.0, 5.0],
             [0.40, 0.58, 0.45, 0.57, 0.60, 0.52],
             [0.01, 0.06, 0.25, 0.01, 0.09, 0.02], 6.5),
        case("3 ways, without any spread", [3.0, 2.0, 1.0],
             [0.75, 0.75, 0.5], [0.0, 0.0, 0.0], 2.0),
        case("4 ways, the best of them by luck", [1.0, 2.0, 3.0, 4.0],
             [0.50, 0.62, 0.65, 0.40], [0.05, 0.02, 0.30, 0.01], 5.0),
        case("4 ways, one of them unsteady", [2.0, 3.0, 1.0, 6.0],
             [0.60, 0.70, 0.68, 0.72], [0.15, 0.01, 0.001, 0.01], 5.0),
        case("4 ways, one just too far below", [4.0, 1.0, 2.0, 3.0],
             [0.80, 0.69, 0.74, 0.785], [0.10, 0.01, 0.02, 0.20], 9.0),
        case("4 ways, a small spread", [1.0, 2.0, 3.0, 4.0],
             [0.50, 0.786, 0.791, 0.80], [0.02, 0.01, 0.004, 0.011], 3.5),
        case("4 ways, a first run like the mean", [3.0, 1.0, 4.0, 2.0],
             [0.80, 0.77, 0.60, 0.50], [0.05, 0.0, 0.01, 0.02], 5.0, first=1),
        *(by_lot(rng, *sizes) for sizes in MANY_WAYS),
    )  # fmt: skip


# How many ways, how many seeds, and whether the dearer is always the better.
MANY_WAYS = (
    (14, 9, False),
    (18, 10, False),
    (22, 11, True),
    (26, 12, True),
    (30, 13, True),
)


def by_lot(rng, n_ways, n_seeds, stairs):
    """Many ways, of which two rules seldom pick the same one by luck.

    On stairs the pick tells how large a spread was taken. Drawn anew until the best is
    not the fastest near it, the fastest of all is not near it, and nothing lies at the
    edge, where rounding would decide.
    """
    budget = 38.5 + np.floor(0.7 * n_ways)
    while True:
        ms, means = 38.0 + rng.permutation(n_ways), rng.uniform(0.62, 0.8, n_ways)
        if stairs:
            means = np.linspace(0.62, 0.8, n_ways)[ms.astype(int) - 38]
        drawn = rng.standard_normal((n_ways, n_seeds))
        drawn -= drawn.mean(axis=1, keepdims=True)
        spreads = rng.uniform(0.02, 0.07, (n_ways, 1)) / drawn.std(
            axis=1, keepdims=True
        )
        right = np.round(means[:, None] + spreads * drawn, 4)
        worth = np.where(ms < budget, right.mean(axis=1), -1.0)
        best = worth.argmax()
        least = worth[best] - right[best].std()
        near = worth >= least
        edges = np.append(np.delete(worth, best) - worth[best], worth - least)
        if (
            np.abs(edges).min() > 5e-4
            and near.sum() > 3
            and not near[ms.argmin()]
            and np.where(near, ms, np.inf).argmin() != best
            and right.mean(axis=1).argmax() != best
        ):
            return Case(f"{n_ways} ways by lot", (ms, right, budget))
