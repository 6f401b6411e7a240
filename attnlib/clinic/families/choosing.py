"""Choosing a way under a budget: near the best, and the fastest of those."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults

Array = npt.NDArray[np.float64]
Truth = npt.NDArray[np.bool_]


def pick_way(ms: Array, right: Array, budget: float, *, faults: Faults = RIGHT) -> int:
    """The fastest of those in the budget that lie within a spread of the best one."""
    fits = ms < budget if "pick_strict" in faults else ms <= budget
    if "pick_budget_for_none" in faults and not fits.any():
        return -1
    if faults & {"pick_no_budget", "pick_budget_for_none"}:
        fits = np.ones(len(ms), bool)
    elif "pick_budget_turned" in faults:
        fits = ms >= budget
    if not fits.any():
        return _none(ms, faults)
    near, best = _near(ms, right, fits, faults)
    if not near.any():  # argmin, where all are infinite
        return -1 if "pick_best_of_all_none" in faults else 0
    way = _taken(ms, near, best, faults)
    if "pick_from_1" in faults:
        return way + 1
    if "pick_place_in_budget" in faults:
        return int(fits[:way].sum())
    if "pick_place_in_near" in faults:
        return int(near[:way].sum())
    return way


def _none(ms: Array, faults: Faults) -> int:
    """What is named where nothing is in the budget."""
    if "pick_none_is_fastest" in faults:
        return int(ms.argmin())
    return 0 if "pick_none_is_0" in faults else -1


def _near(ms: Array, right: Array, fits: Truth, faults: Faults) -> tuple[Truth, int]:
    """Who is not told apart from the best, and who that is."""
    worth = _worth(right, faults)
    everyone = faults & {"pick_best_of_all", "pick_best_of_all_none"}
    best = int((worth if everyone else np.where(fits, worth, -np.inf)).argmax())
    if "pick_fastest" in faults:
        return fits, best
    if "pick_cautious" in faults:
        best = int(np.where(fits, worth - right.std(axis=1), -np.inf).argmax())
    if faults & {"pick_highest", "pick_cautious"}:
        return np.arange(len(ms)) == best, best
    least = worth[best] - _spread(right, best, worth, faults)
    high = worth > least if "pick_near_strict" in faults else worth >= least
    return fits & high, best


def _taken(ms: Array, near: Truth, best: int, faults: Faults) -> int:
    """One of those that are near."""
    if "pick_slowest" in faults:
        return int(np.where(near, ms, -np.inf).argmax())
    if "pick_zeros" in faults:
        return int(np.where(near, ms, 0).argmin())
    return int(near.argmax() if "pick_first" in faults
               else np.where(near, ms, np.inf).argmin())  # fmt: skip


WORTH: dict[str, Callable[[Array], Array]] = {
    "pick_luckiest": lambda right: right.max(axis=1),
    "pick_unluckiest": lambda right: right.min(axis=1),
    "pick_first_seed": lambda right: right[:, 0],
    "pick_last_seed": lambda right: right[:, -1],
    "pick_median": lambda right: np.asarray(np.median(right, axis=1)),
    "pick_sum": lambda right: right.sum(axis=1),
}


def _worth(right: Array, faults: Faults) -> Array:
    for key in faults & WORTH.keys():
        return np.asarray(WORTH[key](right))
    return np.asarray(right.mean(axis=1))


# What is taken for the spread of row `best`: one number, or one for each way.
SPREADS: dict[str, Callable[[Array, int, Array], object]] = {
    "pick_own_spread": lambda right, best, worth: right.std(axis=1),
    "pick_sample_spread": lambda right, best, worth: right[best].std(ddof=1),
    "pick_variance": lambda right, best, worth: right[best].var(),
    "pick_standard_error": lambda right, best, worth: (
        right[best].std() / np.sqrt(right.shape[1])
    ),
    "pick_two_spreads": lambda right, best, worth: 2 * right[best].std(),
    "pick_overlap": lambda right, best, worth: right[best].std() + right.std(axis=1),
    "pick_range": lambda right, best, worth: np.ptp(right[best]),
    "pick_spread_of_ways": lambda right, best, worth: worth.std(),
    "pick_spread_of_all": lambda right, best, worth: right.std(),
    "pick_mean_spread": lambda right, best, worth: right.std(axis=1).mean(),
    "pick_largest_spread": lambda right, best, worth: right.std(axis=1).max(),
}


def _spread(right: Array, best: int, worth: Array, faults: Faults) -> Array:
    for key in faults & SPREADS.keys():
        return np.asarray(SPREADS[key](right, best, worth))
    return np.asarray(right[best].std())


PICK_WAY = Family(
    "pick_way",
    pick_way,
    {
        "budget": (
            "pick_no_budget",
            "pick_strict",
            "pick_budget_turned",
            "pick_budget_for_none",
        ),
        "worth": tuple(WORTH),
        "best": ("pick_best_of_all", "pick_best_of_all_none"),
        "spread": (*SPREADS, "pick_near_strict"),
        "taken": (
            "pick_highest",
            "pick_fastest",
            "pick_cautious",
            "pick_slowest",
            "pick_first",
            "pick_zeros",
        ),
        "none": ("pick_none_is_0", "pick_none_is_fastest"),
        "number": ("pick_from_1", "pick_place_in_budget", "pick_place_in_near"),
    },
)
