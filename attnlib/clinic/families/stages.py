"""Where NaN and infinities begin, with every mistake built in."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from attnlib.clinic.case import RIGHT, Family, Faults, Result


def first_bad(stages: Mapping[str, Result], *, faults: Faults = RIGHT) -> object:
    """The number of the first stage that holds NaN or an infinity; -1 if none does."""
    found = [_bad(name, np.asarray(s), faults) for name, s in stages.items()]
    if "finite_stage" in faults:
        found = [not bad for bad in found]
    if "out_only" in faults:
        found = [bad and i == len(found) - 1 for i, bad in enumerate(found)]
    elif "weights_only" in faults:
        found = [
            bad and name == "weights" for bad, name in zip(found, stages, strict=True)
        ]
    if "each_answered" in faults:
        return np.array(found)
    if "bad_counted" in faults:
        return sum(found)
    bad = [i for i, is_bad in enumerate(found) if is_bad]
    if not bad:
        if "well_is_zero" in faults:
            return 0
        if "well_is_length" in faults:
            return len(found)
        return 0 if "counted_from_one" in faults else -1
    place = bad[-1] if "last_bad" in faults else bad[0]
    return place + 1 if "counted_from_one" in faults else place


def _bad(name: str, array: Result, faults: Faults) -> bool:
    stage = array.astype(np.float64)
    nan, up, down = np.isnan(stage), stage == np.inf, stage == -np.inf
    if "saturated_flagged" in faults:
        return name == "weights" and bool(((stage > 0.99) | np.isnan(stage)).any())
    if "infinities_missed" in faults:
        where = nan
    elif "nan_missed" in faults:
        where = up | (down & (name != "scores"))
    elif "hidden_flagged" in faults:
        where = nan | up | down
    elif "minus_missed" in faults:
        where = nan | up
    elif "scores_skipped" in faults:
        where = (nan | up | down) & (name != "scores")
    elif "raw_scores_excused" in faults:
        where = nan | up | (down & ("scores" not in name))
    else:
        where = nan | up | (down & (name != "scores"))
    if "all_for_any" in faults:
        return bool(where.all())
    return (
        bool(where.ravel()[0]) if "first_number_only" in faults else bool(where.any())
    )


FIRST_BAD = Family(
    "first_bad",
    first_bad,
    {
        "what": (
            "hidden_flagged",
            "infinities_missed",
            "nan_missed",
            "minus_missed",
            "scores_skipped",
            "raw_scores_excused",
            "saturated_flagged",
        ),
        "how much": ("all_for_any", "first_number_only"),
        "which": ("last_bad", "finite_stage", "out_only", "weights_only"),
        "returned": (
            "counted_from_one",
            "well_is_zero",
            "well_is_length",
            "bad_counted",
            "each_answered",
        ),
    },
    pairs=False,  # whole numbers from -1 to 6: pairs would fit by chance
)
