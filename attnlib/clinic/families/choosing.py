"""Choosing a way under a budget: near the best, and the fastest of those."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults

Array = npt.NDArray[np.float64]


def pick_way(ms: Array, right: Array, budget: float, *, faults: Faults = RIGHT) -> int:
    """The fastest of those in the budget that lie within a spread of the best one."""
    fits = ms < budget if "pick_strict" in faults else ms <= budget
    if "pick_no_budget" in faults:
        fits = np.ones(len(ms), bool)
    elif "pick_budget_turned" in faults:
        fits = ms >= budget
    if not fits.any():
        return 0 if "pick_none_is_0" in faults else -1
    worth = _worth(right, faults)
    means = np.where(fits, worth, -np.inf)
    best = int((worth if "pick_best_of_all" in faults else means).argmax())
    if "pick_highest" in faults:
        return best
    if "pick_fastest" in faults:
        return int(np.where(fits, ms, np.inf).argmin())
    least = worth[best] - _spread(right, best, worth, faults)
    near = fits & (worth > least if "pick_near_strict" in faults else worth >= least)
    if not near.any():
        return 0  # argmin, where all are infinite
    if "pick_slowest" in faults:
        return int(np.where(near, ms, -np.inf).argmax())
    if "pick_first" in faults:
        return int(near.argmax())
    return int(np.where(near, ms, np.inf).argmin())


def _worth(right: Array, faults: Faults) -> Array:
    if "pick_luckiest" in faults:
        return np.asarray(right.max(axis=1))
    if "pick_unluckiest" in faults:
        return np.asarray(right.min(axis=1))
    if "pick_first_seed" in faults:
        return np.asarray(right[:, 0])
    return np.asarray(right.mean(axis=1))


def _spread(right: Array, best: int, worth: Array, faults: Faults) -> Array:
    """One spread for all, or with a mistake one for each."""
    if "pick_own_spread" in faults:
        return np.asarray(right.std(axis=1))
    if "pick_sample_spread" in faults:
        return np.asarray(right[best].std(ddof=1))
    if "pick_variance" in faults:
        return np.asarray(right[best].var())
    if "pick_two_spreads" in faults:
        return np.asarray(2 * right[best].std())
    if "pick_range" in faults:
        return np.asarray(np.ptp(right[best]))
    if "pick_spread_of_ways" in faults:
        return np.asarray(worth.std())
    if "pick_spread_of_all" in faults:
        return np.asarray(right.std())
    return np.asarray(right[best].std())


PICK_WAY = Family(
    "pick_way",
    pick_way,
    {
        "budget": ("pick_no_budget", "pick_strict", "pick_budget_turned"),
        "worth": ("pick_luckiest", "pick_unluckiest", "pick_first_seed"),
        "best": ("pick_best_of_all",),
        "spread": (
            "pick_own_spread",
            "pick_sample_spread",
            "pick_variance",
            "pick_two_spreads",
            "pick_range",
            "pick_spread_of_ways",
            "pick_spread_of_all",
            "pick_near_strict",
        ),
        "taken": (
            "pick_highest",
            "pick_fastest",
            "pick_slowest",
            "pick_first",
        ),
        "none": ("pick_none_is_0",),
    },
)
