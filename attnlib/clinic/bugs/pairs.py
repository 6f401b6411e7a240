"""Two bugs at once: every pair of shown bugs that sit in different steps."""

from __future__ import annotations

from itertools import combinations

from attnlib.clinic.bugs.bug import Bug, of_family
from attnlib.clinic.bugs.shown import SHOWN

# Two of one step exclude each other: there is one scale, one softmax, one mask.
_STEPS = {
    "scale": ("scale_missing", "scale_d_k", "scale_d_v", "scale_n_k", "scale_after"),
    "score": ("roles_swapped",),
    "axis": ("axis_second_last", "axis_all", "axis_one"),
    "softmax": ("softmax_twice", "sign_flipped", "not_normalised"),
    "shift": ("not_stable", "shift_global"),
    "mix": ("values_are_keys", "weights_transposed"),
    "mask": (
        "mask_ignored",
        "mask_inverted",
        "mask_added",
        "mask_fill_zero",
        "mask_after",
        "mask_fill_10",
        "mask_before_scale",
    ),
    "mask axes": ("mask_transposed",),
    "empty": ("empty_row_nan", "empty_row_filled"),
}
_STEP = {fault: step for step, faults in _STEPS.items() for fault in faults}


def pairs() -> tuple[tuple[Bug, Bug, Bug], ...]:
    """Triples: one bug, another, and both in one attention."""
    single = {f: bug for bug in SHOWN for f in bug.faults if f in _STEP}
    return tuple(
        (
            single[a],
            single[b],
            of_family(
                f"{single[a].name} and {single[b].name}", "", "", "Two at once.", a, b
            ),
        )
        for a, b in combinations(single, 2)
        if _STEP[a] != _STEP[b]
    )
