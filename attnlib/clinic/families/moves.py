"""How far an output moves when later tokens change, with every mistake built in."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults

Float = npt.NDArray[np.float64]


def moves_earlier(
    attend: Callable[[Float], Float], x: Float, *, faults: Faults = RIGHT
) -> object:
    """How far outputs before a changed token move, at most."""
    x = np.array(x, dtype=float)
    before = np.asarray(attend(x), dtype=float)
    other, most = x.copy(), []
    for j in _changed(len(x), faults):
        if not {"changes_pile_up", "changes_pile_up_from_second"} & faults:
            other = x.copy()
        if "later_ones_turned" in faults:
            other[j:] *= -1
        else:
            other[j] = _other(other[j], faults)
        move = np.asarray(attend(other), dtype=float) - before
        if "signs_not_dropped" not in faults:
            move = np.abs(move)
        most.append(_summed(_looked_at(move, j, faults), faults))
    found = _together(most, faults)
    if "whether_it_leaks" in faults:
        return bool(found > 1e-9)
    if "causal_is_true" in faults:
        return bool(found <= 1e-9)
    if "each_token" in faults:
        return np.array(most)
    return found


def _changed(n: int, faults: Faults) -> range:
    if {"own_output_from_second", "changes_pile_up_from_second"} & faults:
        return range(1, n)
    if "last_token_alone" in faults:
        return range(n - 1, n)
    if "first_tokens_alone" in faults:
        return range(1, 2)
    if "last_token_left" in faults:
        return range(n - 1)
    return range(n)


def _other(row: Float, faults: Faults) -> Float:
    if "token_zeroed" in faults:
        return np.zeros_like(row)
    if "one_added" in faults:
        return row + 1
    if "one_feature_turned" in faults:
        return np.concatenate([-row[:1], row[1:]])
    return -row


def _looked_at(move: Float, j: int, faults: Faults) -> Float:
    if {"own_output_counted", "own_output_from_second"} & faults:
        return move[: j + 1]
    if "later_outputs" in faults:
        return move[j + 1 :]
    if "from_the_token_on" in faults:
        return move[j:]
    if "all_outputs" in faults:
        return move
    if "neighbour_alone" in faults:
        return move[max(j - 1, 0) : j]
    if "neighbour_left_out" in faults:
        return move[: max(j - 1, 0)]
    if "first_output_alone" in faults:
        return move[: min(j, 1)]
    return move[:j, :1] if "first_feature_alone" in faults else move[:j]


def _summed(move: Float, faults: Faults) -> float:
    if "changes_averaged" in faults:
        return float(move.mean()) if move.size else 0.0
    if "changes_summed" in faults:
        return float(move.sum())
    if "length_of_change" in faults:
        return float(np.sqrt((move**2).sum()))
    if "rows_lengths" in faults:
        return float(np.sqrt((move**2).sum(-1)).max(initial=0.0))
    return float(move.max(initial=0.0))


def _together(most: list[float], faults: Faults) -> float:
    if "smallest_change" in faults:
        return min(most[1:])
    if "tokens_averaged" in faults:
        return float(np.mean(most))
    if "tokens_added" in faults:
        return float(np.sum(most))
    return max(most)


MOVES_EARLIER = Family(
    "moves_earlier",
    moves_earlier,
    {
        "which": ("last_token_alone", "first_tokens_alone", "last_token_left"),
        "change": (
            "changes_pile_up",
            "changes_pile_up_from_second",
            "token_zeroed",
            "one_added",
            "one_feature_turned",
            "later_ones_turned",
        ),
        "look": (
            "own_output_counted",
            "own_output_from_second",
            "later_outputs",
            "from_the_token_on",
            "all_outputs",
            "neighbour_alone",
            "neighbour_left_out",
            "first_output_alone",
            "first_feature_alone",
        ),
        "size": (
            "signs_not_dropped",
            "changes_averaged",
            "changes_summed",
            "length_of_change",
            "rows_lengths",
        ),
        "together": (
            "smallest_change",
            "tokens_averaged",
            "tokens_added",
            "whether_it_leaks",
            "causal_is_true",
            "each_token",
        ),
    },
)
