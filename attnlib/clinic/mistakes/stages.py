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
        "0/0, 0 · inf and inf - inf are NaN without an infinity in that stage. And "
        "x == np.nan finds none, for NaN equals nothing.",
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
        "plus_excused",
        "",
        "+inf is let pass in scores, too",
        _HIDDEN + " +inf is an overflow there as anywhere: its row becomes NaN.",
        "np.isinf does not ask for the sign. Let one value pass.",
    ),
    Mistake(
        "wrong_infinity_excused",
        "",
        "In scores +inf is let pass, and -inf is not",
        _HIDDEN + " +inf is an overflow there as anywhere.",
        "Look at the sign.",
    ),
    Mistake(
        "nan_of_scores_excused",
        "",
        "NaN is let pass in scores, too",
        "NaN is neither above -inf nor below: x > -inf is False for it, and what you "
        "pick by that has lost it.",
        "Ask for what is equal to -inf, and for nothing else.",
    ),
    Mistake(
        "nan_and_scores_missed",
        "",
        "Only infinities are looked for, and none in scores",
        "0/0, 0 · inf and inf - inf are NaN without an infinity in that stage. And in "
        "scores +inf is broken as anywhere.",
        "np.isfinite is False for NaN and for both infinities.",
    ),
    Mistake(
        "later_excused",
        "",
        "-inf is let pass in scores and in all that follows",
        _HIDDEN + " Softmax makes 0 of it: in the weights and the output it is ill.",
        "Ask which stage it is, again for each.",
    ),
    Mistake(
        "excused_by_place",
        "",
        "-inf is let pass in stage number 4, whatever its name",
        "In the lesson scores is number 4. Other dicts hold more stages, or fewer.",
        "Ask for the name.",
    ),
    Mistake(
        "large_flagged",
        "",
        "Large numbers are taken for broken ones",
        "A number is finite or it is not, and 65504 is. A sum does not tell either: in "
        "float16 a sum of finite numbers may overflow.",
        "np.isfinite asks each number.",
    ),
    Mistake(
        "empty_row_flagged",
        "",
        "A row of -inf in scores is taken for broken",
        _HIDDEN + " A whole row of it is an empty row: whether that breaks anything, "
        "the softmax decides, one stage later.",
        "Let -inf pass in scores, in one place or in all.",
    ),
    Mistake(
        "saturated_too",
        "",
        "A weight near 1 is taken for a broken one",
        "So says the article. A saturated weight is finite: it is another illness.",
        "Ask whether the numbers are finite, and nothing else.",
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
        "first_row_only",
        "",
        "Only the first row of each stage is looked at",
        "NaN may begin with any query.",
        "One is enough, wherever it stands.",
    ),
    Mistake(
        "inputs_skipped",
        "",
        "q, k and v are not looked at",
        "What comes in may be broken already. Then all that follows is.",
        "Look at every stage, in order.",
    ),
    Mistake(
        "never_found",
        "",
        "Nothing is ever found",
        "Two tests look well and find nothing: x == np.nan, for NaN equals nothing, "
        "not even itself; and a method without brackets, as in .all or .any.",
        "np.isfinite(x) is the test, and .all() needs its brackets.",
    ),
    Mistake(
        "first_stage_only",
        "",
        "Only the first stage is looked at",
        "-1 is returned as soon as one stage is well.",
        "When is it certain that all are well? How far to the right does that line "
        "belong?",
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
        "one_too_many",
        "",
        "Every number is one too large",
        "The first stage has the number 0, and where all is well it is -1.",
        "Start counting at 0.",
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
        "well_is_last",
        "",
        "Where all is well, the last stage is named",
        "After a loop its variable keeps the last value, whether the loop was left "
        "early or not.",
        "What should be returned if no stage is bad?",
    ),
    Mistake(
        "bad_listed",
        "",
        "All bad stages are listed",
        "What follows a broken stage is broken by it. The cause is where it begins.",
        "Return the number of the first; -1 if there is none.",
    ),
    Mistake(
        "numbers_counted",
        "",
        "The broken numbers are counted",
        "How many of them a stage has says little.",
        "Return the number of the stage.",
    ),
    Mistake(
        "place_inside",
        "",
        "The place inside the stage, where the number of the stage is meant",
        "np.argmax and np.argwhere look into one array.",
        "Count the stages: the name and its number come from the dict.",
    ),
    Mistake(
        "place_of_the_list",
        "",
        "The number comes from a list of your own",
        "The stages are numbered as they stand in this dict, and a dict may hold fewer "
        "or others.",
        "enumerate the dict that is handed over.",
    ),
    Mistake(
        "whether_only",
        "",
        "Whether a stage is bad, where the question is which",
        "True or False is returned.",
        "Return the number of the first bad stage; -1 if there is none.",
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
