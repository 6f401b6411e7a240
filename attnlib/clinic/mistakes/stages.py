"""Mistakes in finding the first stage that is not finite."""

from attnlib.clinic.catalogue import Mistake

_HIDDEN = "In `scores`, and only there, -inf is what a mask writes."

MISTAKES = (
    Mistake(
        "hidden_flagged",
        "",
        "Hidden scores are taken for broken ones",
        _HIDDEN + " Every masked attention would be called ill.",
        "One value, in one stage, is well.",
    ),
    Mistake(
        "infinities_missed",
        "M35",
        "Only NaN is looked for",
        "Infinity comes first: in an overflow the raw scores are infinite, and only "
        "the weights are NaN. You find the place where it shows, not where it began.",
        "np.isfinite is False for both.",
    ),
    Mistake(
        "nan_missed",
        "",
        "Only infinities are looked for",
        "0/0, 0 · inf and inf - inf are NaN without an infinity in that stage.",
        "np.isfinite is False for both.",
    ),
    Mistake(
        "minus_missed",
        "M35",
        "-inf is let pass everywhere",
        _HIDDEN + " In raw_scores, before any mask, it is an overflow.",
        "Ask which stage it is.",
    ),
    Mistake(
        "scores_skipped",
        "",
        "The stage scores is not looked at",
        _HIDDEN + " NaN and +inf are broken there as well.",
        "Let one value pass, not the whole stage.",
    ),
    Mistake(
        "raw_scores_excused",
        "M35",
        "-inf is let pass in raw_scores, too",
        _HIDDEN + ' A test such as "scores" in name is also true of raw_scores.',
        "Compare the whole name.",
    ),
    Mistake(
        "saturated_flagged",
        "",
        "Weights near 1 are taken for broken ones",
        "So says the article. A saturated weight is finite: it is another illness, and "
        "tells nothing about where NaN began.",
        "Ask whether the numbers are finite, in each stage.",
    ),
    Mistake(
        "all_for_any",
        "",
        "A stage counts only if all its numbers are broken",
        "NaN begins in one number.",
        "One is enough.",
    ),
    Mistake(
        "first_number_only",
        "",
        "Only the first number of each stage is looked at",
        "NaN may begin in any of them.",
        "One is enough, wherever it stands.",
    ),
    Mistake(
        "last_bad",
        "",
        "The last bad stage, where the first is meant",
        "What follows a broken stage is broken by it. The cause is where it begins.",
        "Stop at the first.",
    ),
    Mistake(
        "finite_stage",
        "",
        "True and False are exchanged: you find the first stage that is well",
        "np.isfinite is True for numbers that are well.",
        "One `not`.",
    ),
    Mistake(
        "out_only",
        "",
        "Only the last stage is looked at",
        "That the output is broken is known already. Where does it begin?",
        "Look at every stage, in order.",
    ),
    Mistake(
        "weights_only",
        "",
        "Only the weights are looked at",
        "There an overflow shows, and an empty row; neither a broken value nor where "
        "it began.",
        "Look at every stage, in order.",
    ),
    Mistake(
        "counted_from_one",
        "",
        "Counted from 1",
        "The first stage has the number 0.",
        "Start enumerate at 0.",
    ),
    Mistake(
        "well_is_zero",
        "",
        "0 is returned where all is well",
        "0 is the number of the first stage.",
        "What should be returned if no stage is bad?",
    ),
    Mistake(
        "well_is_length",
        "",
        "The number of stages is returned where all is well",
        "It could be the number of a stage that comes later.",
        "What should be returned if no stage is bad?",
    ),
    Mistake(
        "bad_counted",
        "",
        "The bad stages are counted",
        "How many they are says little: one cause breaks all that follow.",
        "Return the number of the first.",
    ),
    Mistake(
        "each_answered",
        "",
        "An answer for each stage, where the first is meant",
        "True and False for each is the table; the first True in it is the answer.",
        "Return one whole number.",
    ),
)
