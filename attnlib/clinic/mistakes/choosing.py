"""Mistakes in choosing a way to attend under a budget."""

from attnlib.clinic.catalogue import Mistake

_BUDGET = "A way that takes more than the budget is out, however good it is."
_SEEDS = (
    "Each way was trained several times, and its runs differ by luck. Its worth is "
    "their mean."
)
_SPREAD = (
    "Two means that lie nearer than the best one's runs lie to each other are not "
    "told apart: np.std of the row of the best."
)
_FASTEST = "Of ways that cannot be told apart, the fastest is taken."

MISTAKES = (
    Mistake(
        "pick_no_budget",
        "",
        "The budget is not asked about",
        _BUDGET,
        "ms <= budget says which are left.",
    ),
    Mistake(
        "pick_strict",
        "",
        "What takes exactly the budget is left out",
        "It keeps the budget.",
        "<= or <?",
    ),
    Mistake(
        "pick_budget_turned",
        "",
        "What keeps the budget is left out, and the rest is kept",
        _BUDGET,
        "Which way round is your comparison?",
    ),
    Mistake(
        "pick_budget_for_none",
        "",
        "The budget is asked about only to see whether anything is in it",
        _BUDGET,
        "Those over the budget are out before the best is looked for.",
    ),
    Mistake(
        "pick_luckiest",
        "",
        "Each way is judged by its luckiest run",
        _SEEDS,
        "Mean, not max, over axis 1.",
    ),
    Mistake(
        "pick_unluckiest",
        "",
        "Each way is judged by its unluckiest run",
        _SEEDS,
        "Mean, not min, over axis 1.",
    ),
    Mistake(
        "pick_first_seed",
        "",
        "One seed is looked at",
        _SEEDS,
        "right has a column for each seed.",
    ),
    Mistake(
        "pick_last_seed",
        "",
        "One seed is looked at",
        _SEEDS,
        "right has a column for each seed.",
    ),
    Mistake(
        "pick_median",
        "",
        "Each way is judged by its median run",
        _SEEDS,
        "right.mean(axis=1).",
    ),
    Mistake(
        "pick_sum",
        "",
        "The runs of a way are summed, and its spread is not",
        "A difference of sums is as many times too large as there are seeds.",
        "mean, not sum, over axis 1.",
    ),
    Mistake(
        "pick_best_of_all",
        "",
        "The best is looked for among all, in the budget or not",
        _BUDGET + " Nobody is compared with it then.",
        "np.where(fits, means, -np.inf) leaves the others no chance.",
    ),
    Mistake(
        "pick_best_of_all_none",
        "",
        "The best is looked for among all, and -1 is given where it is over the budget",
        _BUDGET + " -1 says that nothing keeps the budget.",
        "np.where(fits, means, -np.inf) leaves the others no chance.",
    ),
    Mistake(
        "pick_own_spread",
        "",
        "Each way is given its own spread",
        _SPREAD,
        "One number for all: that of the best.",
    ),
    Mistake(
        "pick_sample_spread",
        "",
        "The spread is divided by one seed less",
        "Both are in use. Here it is np.std as it stands.",
        "Leave ddof alone.",
    ),
    Mistake(
        "pick_variance",
        "",
        "That is the variance, not its root",
        _SPREAD,
        "std, not var.",
    ),
    Mistake(
        "pick_standard_error",
        "",
        "The spread is divided by the root of the number of seeds",
        "That is how far the mean may be off. Here one spread is asked for: np.std.",
        "right[best].std(), and no more.",
    ),
    Mistake(
        "pick_two_spreads",
        "",
        "Two spreads are allowed, or one on each side",
        _SPREAD,
        "One spread below the best mean.",
    ),
    Mistake(
        "pick_overlap",
        "",
        "Each way is given its own spread beside that of the best",
        _SPREAD,
        "One number for all: that of the best.",
    ),
    Mistake(
        "pick_range",
        "",
        "That is the range of the best one's runs",
        _SPREAD,
        "std, not the difference of the extremes.",
    ),
    Mistake(
        "pick_spread_of_ways",
        "",
        "That is how far the ways differ from each other",
        _SPREAD,
        "Of one row: right[best].",
    ),
    Mistake(
        "pick_spread_of_all",
        "",
        "That is the spread of all runs of all ways",
        _SPREAD,
        "Of one row: right[best].",
    ),
    Mistake(
        "pick_mean_spread",
        "",
        "That is the mean of all spreads",
        _SPREAD,
        "Of one row: right[best].",
    ),
    Mistake(
        "pick_largest_spread",
        "",
        "That is the largest spread of all",
        _SPREAD,
        "Of one row: right[best].",
    ),
    Mistake(
        "pick_near_strict",
        "",
        "What lies exactly one spread below is left out",
        "With equal runs the spread is 0, and the best itself would be out.",
        ">= or >?",
    ),
    Mistake(
        "pick_highest",
        "",
        "The highest mean is taken, whatever it costs",
        _FASTEST,
        "Who lies within a spread of it, and takes less?",
    ),
    Mistake(
        "pick_fastest",
        "",
        "The fastest is taken, however bad it is",
        _FASTEST + " Others are out.",
        "First who is near the best, then the fastest of these.",
    ),
    Mistake(
        "pick_cautious",
        "",
        "The highest mean less its spread is taken",
        _SPREAD + " " + _FASTEST,
        "First the best mean, then who lies near it, then the fastest of these.",
    ),
    Mistake(
        "pick_slowest",
        "",
        "The slowest of those near the best is taken",
        _FASTEST + " A budget need not be spent.",
        "argmin, with np.inf for those that are out.",
    ),
    Mistake(
        "pick_first",
        "",
        "The first of those near the best is taken",
        _FASTEST,
        "Look at ms once more.",
    ),
    Mistake(
        "pick_zeros",
        "",
        "Those that are out count as if they took 0 ms",
        _FASTEST + " 0 is less than what any of them takes.",
        "np.where(near, ms, np.inf): infinity is never the least.",
    ),
    Mistake(
        "pick_none_is_0",
        "",
        "Where nothing keeps the budget, way 0 is named",
        "It does not keep the budget either.",
        "-1 says that there is none. argmax of all False is 0.",
    ),
    Mistake(
        "pick_none_is_fastest",
        "",
        "Where nothing keeps the budget, the fastest is named",
        "It does not keep the budget either.",
        "-1 says that there is none.",
    ),
    Mistake(
        "pick_from_1",
        "",
        "The ways are counted from 1",
        "The first way is number 0, as in NumPy.",
        "Leave the number as argmin gives it.",
    ),
    Mistake(
        "pick_place_in_budget",
        "",
        "That is its place among those in the budget",
        "In an array that was filtered the ways have other numbers.",
        "Keep all ways in their places: np.where(fits, means, -np.inf).",
    ),
    Mistake(
        "pick_place_in_near",
        "",
        "That is its place among those near the best",
        "In an array that was filtered the ways have other numbers.",
        "Keep all ways in their places: np.where(near, ms, np.inf).",
    ),
)
