"""Mistakes inside the softmax: the axis, the shift, the sum, the exponential."""

from attnlib.clinic.catalogue import Mistake

MISTAKES = (
    Mistake(
        "axis_ignored",
        "M04",
        "The argument `axis` is not used",
        "Whoever asks for another axis still gets the last one.",
        "Where does `axis` have to arrive?",
        "PetrochukM/PyTorch-NLP#2",
    ),
    Mistake(
        "axis_zero",
        "M04",
        "The softmax always runs over axis 0",
        "In a table of scores each row belongs to one query, and each query hands out "
        "1 over its keys. Axis 0 runs down the queries.",
        "Sum over the axis that was asked for: the last one, if none was.",
        "jadore801120/attention-is-all-you-need-pytorch#52",
    ),
    Mistake(
        "axis_one",
        "M04",
        "The softmax always runs over axis 1",
        "Axis 1 is the last one in a table only. With a batch in front it is another, "
        "and a single row has none.",
        "Count from the end: the last axis is -1, however many there are.",
    ),
    Mistake(
        "axis_second_last",
        "M04",
        "The softmax runs over the queries, not the keys",
        "Each query hands out 1 over its keys. Here each key hands out 1 over the "
        "queries.",
        "Sum along the rows.",
        "jadore801120/attention-is-all-you-need-pytorch#52",
    ),
    Mistake(
        "axis_all",
        "M04",
        "The softmax runs over the whole table at once",
        "Each query hands out 1 of its own. Here all of them share a single 1.",
        "Sum along one axis, not over everything.",
        "nerminnuraydogan/vision-transformer#1",
    ),
    Mistake(
        "not_stable",
        "M06",
        "The largest score is not subtracted first",
        "exp overflows above 709 in float64, above 88 in float32 and above 11 in "
        "float16; far below 0, as at -20000, it is 0, and 0 / 0 is left. Subtracting "
        "one number from a whole row changes nothing in its softmax.",
        "Make the largest score of each row 0 before exp.",
    ),
    Mistake(
        "shift_global",
        "M06",
        "The largest score of the whole array is subtracted, not of each row",
        "A row far below the largest score then underflows to zeros.",
        "Take the largest along the same axis as the sum.",
    ),
    Mistake(
        "keepdims_max",
        "",
        "keepdims is missing in the max",
        "Without keepdims=True the row maxima lie flat, and NumPy subtracts them "
        "column by column.",
        "Keep the axis that you take the max over.",
    ),
    Mistake(
        "keepdims_sum",
        "",
        "keepdims is missing in the sum",
        "Without keepdims=True the row sums lie flat, and NumPy divides column by "
        "column.",
        "Keep the axis that you sum over.",
    ),
    Mistake(
        "not_normalised",
        "M47",
        "The exponentials are not divided by their sum",
        "exp makes scores positive. Only the division makes them shares of one.",
        "What is still to be done so that a row sums to 1?",
    ),
    Mistake(
        "divides_by_mean",
        "M47",
        "Divided by the mean, where the sum is meant",
        "A row then sums to its length, not to 1.",
        "What must you divide by so that a row sums to 1?",
    ),
    Mistake(
        "divides_by_norm",
        "",
        "Divided by the length of the row as a vector",
        "Then the squares sum to 1. Softmax is about shares: the weights themselves "
        "sum to 1.",
        "What must you divide by so that a row sums to 1?",
    ),
    Mistake(
        "sign_flipped",
        "",
        "The sign is turned: the smallest score gets the largest weight",
        "Softmax keeps the order of the scores.",
        "Look for a minus that should not be there.",
    ),
    Mistake(
        "shift_reversed",
        "",
        "The score is subtracted from the largest, not the largest from it",
        "Then the smallest score gets the largest weight, and a score far below the "
        "largest overflows.",
        "Which of the two must come first?",
    ),
    Mistake(
        "base_two",
        "",
        "Powers of 2, where powers of e are meant",
        "That is a softmax of scores 0.693 times as large.",
        "Which function raises e to each score?",
    ),
    Mistake(
        "exp_missing",
        "M47",
        "The exponential is missing",
        "Scores divided by their sum can be negative, and the sum can be 0.",
        "First make every score positive.",
    ),
    Mistake(
        "sigmoid",
        "",
        "A sigmoid, where a softmax is meant",
        "A sigmoid looks at one score alone. In a softmax the scores of a row compete "
        "for one 1.",
        "Divide by a sum over the row.",
    ),
    Mistake(
        "log_softmax",
        "M47",
        "The logarithm of the softmax",
        "Logarithms of weights are negative and do not sum to 1.",
        "Leave the log out.",
    ),
    Mistake(
        "log_of_weights",
        "",
        "The logarithm of the weights",
        "Logarithms of weights are negative and do not sum to 1.",
        "Leave the log out.",
    ),
    Mistake(
        "empty_row_nan",
        "M14",
        "A row of -inf throughout gives NaN",
        "A query that may look at nothing has only scores of -inf. -inf minus -inf "
        "and 0 / 0 are NaN. The course decides: such a row gets zeros.",
        "What do you subtract there, and what do you divide by?",
        "pytorch/pytorch#41508",
    ),
    Mistake(
        "empty_row_uniform",
        "M14",
        "A row of -inf throughout gets equal weights",
        "A query that may look at nothing then looks at everything. The course "
        "decides: such a row gets zeros.",
        "-inf as a score means: no weight, also when the whole row says so.",
        "pytorch/pytorch#103749",
    ),
    Mistake(
        "softmax_twice",
        "M47",
        "The softmax is applied twice",
        "The second one takes weights for scores. They lie between 0 and 1, so it "
        "flattens them.",
        "One softmax is enough.",
    ),
    Mistake(
        "axis_default_zero",
        "M04",
        "Without `axis` the softmax runs over axis 0",
        "The stub says axis=-1: the last axis is what a caller gets who names none.",
        "What does your first line say about `axis`?",
    ),
    Mistake(
        "axis_in_max_only",
        "M04",
        "The sum does not use `axis`",
        "The max is taken along the axis that was asked for, the sum along the last "
        "one. Which number is subtracted does not matter, so only the sum shows.",
        "Where else does `axis` have to arrive?",
    ),
    Mistake(
        "axis_in_sum_only",
        "M04",
        "The max does not use `axis`",
        "Along the axis of the sum each score then has another number subtracted, and "
        "that changes the weights.",
        "Where else does `axis` have to arrive?",
    ),
    Mistake(
        "shift_mean",
        "M06",
        "The mean is subtracted, not the largest score",
        "A score far above the mean can still overflow, and one score of -inf makes "
        "the mean -inf.",
        "Which score must become 0, so that no exponential is larger than 1?",
    ),
    Mistake(
        "shift_smallest",
        "M06",
        "The smallest score is subtracted, not the largest",
        "Then no score is negative, and a large one still overflows; one score of -inf"
        " makes the smallest -inf.",
        "Which score must become 0, so that no exponential is larger than 1?",
    ),
    Mistake(
        "shift_absolute",
        "M06",
        "The largest size is subtracted, not the largest score",
        "In a row of scores around -900 the largest size is 900. Subtracted, it leaves"
        " -1800, and exp makes 0 of all of them.",
        "Leave the sign of the scores as it is.",
    ),
    Mistake(
        "scores_clipped",
        "M06",
        "The scores are clipped before exp",
        "Scores beyond the clip become equal, and so do their weights. The weights "
        "depend on differences only: a shift keeps them, a clip does not.",
        "Which number can you subtract from a whole row?",
    ),
    Mistake(
        "largest_only",
        "",
        "The largest score gets everything",
        "That is the hard version, a yes or no. Softmax lets every key have a share, "
        "and a gradient.",
        "First make every score positive, then divide by the sum.",
    ),
    Mistake(
        "divides_by_largest",
        "",
        "Divided by the largest score, where it should be subtracted",
        "Division changes the differences between scores, and with them the weights. "
        "If the largest is negative, the order turns.",
        "The shift is a subtraction.",
    ),
    Mistake(
        "nan_replaced",
        "M06",
        "NaN is replaced at the end, instead of being avoided",
        "A row of -inf comes out right, but a row that overflowed gets zeros too: the "
        "replacement hides a mistake.",
        "Mend what makes the NaN.",
    ),
    Mistake(
        "infinity_empties_row",
        "M14",
        "One -inf empties the whole row",
        "A score of -inf hides one key. The others of its row keep their weights; only"
        " a row of -inf throughout becomes zeros.",
        "Do you ask for any, or for all?",
    ),
)
