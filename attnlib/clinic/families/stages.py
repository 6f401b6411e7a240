"""Where NaN and infinities begin, with every mistake built in."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults, Result

FORMULA = ("q", "k", "v", "raw_scores", "scores", "weights", "out")  # as in the lesson
MANY = 9000.0  # finite, and in no stage that is well unless it is meant to be large


def first_bad(stages: Mapping[str, Result], *, faults: Faults = RIGHT) -> object:
    """The number of the first stage that holds NaN or an infinity; -1 if none does."""
    if "excused_by_place" in faults:  # the fifth of seven, whatever it is called
        names = [f"stage {i}" for i in range(len(stages))]
        names[4:5] = ["scores"]
        stages = dict(zip(names, stages.values(), strict=False))
    found = [_bad(name, np.asarray(s), faults) for name, s in stages.items()]
    if "inputs_skipped" in faults:
        found = [
            bad and name not in FORMULA[:3]
            for bad, name in zip(found, stages, strict=True)
        ]
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
    if "never_found" in faults:
        bad = []
    elif "first_stage_only" in faults:
        bad = [i for i in bad if i == 0]
    if "bad_listed" in faults:
        return np.array(bad)
    if "whether_only" in faults:
        return bool(bad)
    if not bad:
        if "well_is_zero" in faults:
            return 0
        if "well_is_length" in faults:
            return len(found)
        if "well_is_last" in faults:
            return len(found) - 1
        return 0 if "one_too_many" in faults else -1
    place = bad[-1] if "last_bad" in faults else bad[0]
    if "place_of_the_list" in faults:
        return FORMULA.index(list(stages)[place])
    if "numbers_counted" in faults or "place_inside" in faults:
        name, stage = list(stages.items())[place]
        where = _where(name, np.asarray(stage, float), faults).ravel()
        return int(where.sum() if "numbers_counted" in faults else where.argmax())
    later = "one_too_many" in faults or "counted_from_one" in faults
    return place + 1 if later else place


def _bad(name: str, array: Result, faults: Faults) -> bool:
    stage = array.astype(np.float64)
    extreme = name == "weights" and bool(((stage > 0.99) | np.isnan(stage)).any())
    if "saturated_flagged" in faults:
        return extreme
    where = _where(name, stage, faults)
    if "saturated_too" in faults:
        return extreme or bool(where.any())
    if "empty_row_flagged" in faults and name == "scores":
        return bool(where.any() or (stage == -np.inf).all(axis=-1).any())
    if "all_for_any" in faults:
        return bool(where.all())
    if "first_row_only" in faults:
        return bool(where[0].any())
    return (
        bool(where.ravel()[0]) if "first_number_only" in faults else bool(where.any())
    )


def _where(
    name: str, stage: npt.NDArray[np.float64], faults: Faults
) -> npt.NDArray[np.bool_]:
    """Which numbers of a stage are taken for broken ones."""
    nan, up, down = np.isnan(stage), stage == np.inf, stage == -np.inf
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
    elif "plus_excused" in faults:
        where = nan | ((up | down) & (name != "scores"))
    elif "wrong_infinity_excused" in faults:
        where = nan | down | (up & (name != "scores"))
    elif "nan_of_scores_excused" in faults:
        where = up | ((nan | down) & (name != "scores"))
    elif "nan_and_scores_missed" in faults:
        where = (up | down) & (name != "scores")
    elif "later_excused" in faults:
        where = nan | up | (down & (name not in FORMULA[4:]))
    else:
        where = nan | up | (down & (name != "scores"))
    if "large_flagged" in faults:
        where = where | (np.abs(stage) > MANY) & ~down
    return np.asarray(where)


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
            "plus_excused",
            "wrong_infinity_excused",
            "nan_of_scores_excused",
            "nan_and_scores_missed",
            "later_excused",
            "excused_by_place",
            "saturated_flagged",
            "saturated_too",
            "large_flagged",
            "empty_row_flagged",
        ),
        "how much": ("all_for_any", "first_number_only", "first_row_only"),
        "which": (
            "last_bad",
            "finite_stage",
            "out_only",
            "weights_only",
            "inputs_skipped",
            "never_found",
            "first_stage_only",
        ),
        "returned": (
            "counted_from_one",
            "one_too_many",
            "well_is_zero",
            "well_is_length",
            "well_is_last",
            "bad_counted",
            "bad_listed",
            "numbers_counted",
            "place_inside",
            "place_of_the_list",
            "whether_only",
            "each_answered",
        ),
    },
    pairs=False,  # whole numbers from -1 to 6: pairs would fit by chance
)
