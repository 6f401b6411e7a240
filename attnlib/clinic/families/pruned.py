"""Heads taken away one after the other, with every mistake built in."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from attnlib.clinic.case import RIGHT, Family, Faults

LossOf = Callable[[Sequence[int]], float]


def prune_to_budget(
    loss_of: LossOf, n_heads: int, budget: int, *, faults: Faults = RIGHT
) -> object:
    """The heads left when the one that is missed least goes, round after round."""
    every = list(range(n_heads))
    target = _target(n_heads, budget, faults)
    order = _order(loss_of, every, target, faults)
    kept = [head for head in every if head not in order]
    if "prune_best_set" in faults:
        sets = itertools.combinations(every, target)
        kept = list(min(sets, key=lambda some: loss_of(list(some))))
    elif "prune_built_up" in faults:
        kept = []
        while len(kept) < target:
            left = [h for h in every if h not in kept]
            kept = sorted([*kept, min(left, key=lambda h: loss_of([*kept, h]))])
    gone = [head for head in every if head not in kept]
    if "prune_removed_returned" in faults:
        return np.array(gone)
    if "prune_order_returned" in faults:
        return np.array(order)
    if "prune_backwards" in faults:
        return np.array(kept[::-1])
    if "prune_mask_returned" in faults:
        return np.array([head in kept for head in every])
    if "prune_loss_returned" in faults:
        return float(loss_of(kept))
    if "prune_counted_from_one" in faults:
        return np.array(kept) + 1
    return np.array(kept)


def _target(n_heads: int, budget: int, faults: Faults) -> int:
    """How many heads are to be kept."""
    if "prune_one_too_many" in faults:
        return max(budget - 1, 0)
    if "prune_one_too_few" in faults:
        return min(budget + 1, n_heads)
    if "prune_budget_removed" in faults:
        return n_heads - budget
    return budget


def _order(loss_of: LossOf, every: list[int], target: int, faults: Faults) -> list[int]:
    """Which heads go, the first to go first."""
    n_gone = len(every) - target
    if "prune_ranked_once" in faults:
        missed = {h: loss_of([k for k in every if k != h]) for h in every}
        return sorted(every, key=missed.__getitem__)[:n_gone]
    if "prune_most_missed_once" in faults:
        missed = {h: loss_of([k for k in every if k != h]) for h in every}
        return sorted(every, key=missed.__getitem__, reverse=True)[:n_gone]
    if "prune_ranked_alone" in faults:
        return sorted(every, key=lambda h: -loss_of([h]))[:n_gone]
    if "prune_best_alone_removed" in faults:
        return sorted(every, key=lambda h: loss_of([h]))[:n_gone]
    if "prune_last_heads" in faults:
        return every[target:]
    if "prune_first_heads" in faults:
        return every[:n_gone]
    kept, whole = list(every), loss_of(every)
    order: list[int] = []
    while len(kept) > target:
        losses = [loss_of([k for k in kept if k != h]) for h in kept]
        if "prune_size_of_change" in faults:
            losses = [abs(loss - loss_of(kept)) for loss in losses]
        elif "prune_size_of_change_from_all" in faults:
            losses = [abs(loss - whole) for loss in losses]
        elif "prune_off_handed_over" in faults:
            losses = [loss_of([*order, h]) for h in kept]
        elif "prune_places_left_out" in faults:
            n_left = range(len(kept))
            losses = [loss_of([k for k in kept if k != place]) for place in n_left]
        place = int(np.argmin(losses))
        if "prune_most_missed" in faults:
            place = int(np.argmax(losses))
        elif "prune_two_a_round" in faults and len(kept) - target > 1:
            order.append(kept.pop(place))
            losses.pop(place)
            place = int(np.argmin(losses))
        elif "prune_place_for_head" in faults:
            kept.remove(place)  # raises where that head has gone already
            order.append(place)
            continue
        order.append(kept.pop(place))
    return order


PRUNED = Family(
    "prune_to_budget",
    prune_to_budget,
    {
        "which": (
            "prune_ranked_once",
            "prune_most_missed",
            "prune_most_missed_once",
            "prune_ranked_alone",
            "prune_best_alone_removed",
            "prune_two_a_round",
            "prune_last_heads",
            "prune_first_heads",
            "prune_size_of_change",
            "prune_size_of_change_from_all",
            "prune_off_handed_over",
            "prune_place_for_head",
            "prune_places_left_out",
            "prune_built_up",
            "prune_best_set",
        ),
        "count": (
            "prune_one_too_many",
            "prune_one_too_few",
            "prune_budget_removed",
        ),
        "returned": (
            "prune_removed_returned",
            "prune_order_returned",
            "prune_backwards",
            "prune_mask_returned",
            "prune_loss_returned",
            "prune_counted_from_one",
        ),
    },
)
