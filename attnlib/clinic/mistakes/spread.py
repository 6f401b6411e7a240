"""Mistakes in predicting how far scores spread, and in measuring how weights do."""

from attnlib.clinic.catalogue import Mistake

_ADD = "Variances of independent numbers add; standard deviations do not."
_PRODUCT = (
    "The variance of a product of two independent numbers is the product of theirs."
)
_NATS = "Nats are what ln measures: e to the entropy is the number of effective keys."

MISTAKES = (
    Mistake(
        "variance_for_std",
        "",
        "The variance, where the std is meant",
        "The variance is the square of the std. Scores are compared with numbers, "
        "not with their squares.",
        "One root is missing, at the very end.",
    ),
    Mistake(
        "std_grows_as_d_k",
        "M03",
        "The std grows with d_k, where it should grow with a root",
        _ADD + " Random products partly cancel, so a sum of d_k spreads less than d_k "
        "times one. Dividing by d_k comes from the same thought.",
        "Which of the two adds up, d_k times: the variance or the std?",
        "huggingface/transformers#38290",
    ),
    Mistake(
        "std_does_not_grow",
        "M01",
        "The std does not depend on d_k",
        "That is the std of a single product, or of the scores after the division. "
        "Raw scores are sums of d_k products.",
        "How many products does one score add, and what does that do to the variance?",
    ),
    Mistake(
        "std_shrinks",
        "",
        "The std shrinks when d_k grows",
        "A mean of d_k numbers has a std that shrinks. A score is their sum.",
        "Sums of more numbers lie further from 0.",
    ),
    Mistake(
        "std_of_q_only",
        "",
        "The std of k is not used",
        _PRODUCT,
        "Both q and k are in each product.",
    ),
    Mistake(
        "stds_taken_as_one",
        "",
        "The numbers of q and k are taken to have std 1",
        "The lesson drew them so. Here they have std_q and std_k.",
        "Where did the four lines use a variance of 1?",
    ),
    Mistake(
        "stds_added",
        "",
        "The two stds are added, where they should be multiplied",
        _PRODUCT,
        "A score multiplies q by k. What does a factor of 2 in q do to it?",
    ),
    Mistake(
        "variances_added",
        "",
        "The variances of q and k are added, where they should be multiplied",
        "Variances add when numbers are added. Inside one product numbers are "
        "multiplied.",
        "A score multiplies q by k. What does a factor of 2 in q do to it?",
    ),
    Mistake(
        "stds_under_the_root",
        "",
        "The stds stand under the root without being squared",
        "Under the root stands a variance: d_k times the square of each std.",
        "Square before you take the root, or leave them outside it.",
    ),
    Mistake(
        "variances_outside_the_root",
        "",
        "The stds are squared, but stand outside the root",
        "The variance is d_k times both squares; the root is taken of all of it.",
        "Take the root of each factor: of d_k, and of the two squares.",
    ),
    Mistake(
        "log_of_zero",
        "",
        "0 times ln 0 gives NaN",
        "ln 0 is minus infinity, and 0 times infinity is not a number. A key without "
        "weight adds nothing to the entropy; masks make many such keys.",
        "Keep zeros away from the logarithm.",
    ),
    Mistake(
        "minus_missing",
        "",
        "The minus is missing",
        "Logarithms of weights below 1 are negative. Entropy is not.",
        "One sign.",
    ),
    Mistake(
        "log_base_two",
        "",
        "A logarithm to base 2: bits, where nats are meant",
        _NATS,
        "Use the natural logarithm.",
    ),
    Mistake(
        "log_base_ten",
        "",
        "A logarithm to base 10, where nats are meant",
        _NATS,
        "Use the natural logarithm.",
    ),
    Mistake(
        "sum_over_everything",
        "",
        "Summed over the whole table",
        "Each query has an entropy of its own. One number for all hides the sick row "
        "among the healthy.",
        "State the axis. A filter such as w[w > 0] leaves no rows to sum over: it "
        "makes one flat list of all. Put a number in the place of the zeros instead.",
    ),
    Mistake(
        "sum_over_first_axis",
        "M04",
        "Summed over the first axis, where the last is meant",
        "The weights of one query lie along the last axis.",
        "Which axis holds the keys?",
    ),
    Mistake(
        "mean_for_sum",
        "",
        "A mean over the keys, where a sum is meant",
        "The weights in front of the logarithms already make it a weighted mean. "
        "A second division makes it n_k times too small.",
        "Add up, and stop there.",
    ),
    Mistake(
        "sum_missing",
        "",
        "The terms are not added",
        "There is one number for each weight. A row has one entropy.",
        "Add the terms of a row up.",
    ),
    Mistake(
        "entropy_axis_kept",
        "",
        "The summed axis is kept, with size 1",
        "keepdims=True is for a result that meets the table again, as in softmax. Here "
        "one number for each row is wanted.",
        "Leave keepdims out.",
    ),
    Mistake(
        "weight_factor_missing",
        "",
        "The logarithms are not weighted",
        "Each logarithm counts as much as its weight says; small weights have large "
        "logarithms and hardly count.",
        "Two factors stand in each term.",
    ),
    Mistake(
        "effective_keys_for_entropy",
        "",
        "The number of effective keys, where the entropy is meant",
        "e to the entropy is easier to read, but the exercise asks for the entropy.",
        "Leave the last step out.",
    ),
    Mistake(
        "entropy_normalised",
        "",
        "Divided by ln n_k",
        "That is a share of the largest possible entropy, between 0 and 1. It is used "
        "too, but the exercise asks for nats.",
        "Leave the last division out.",
    ),
    Mistake(
        "std_of_k_only",
        "",
        "The std of q is not used",
        _PRODUCT,
        "Both q and k are in each product.",
    ),
    Mistake(
        "stds_averaged",
        "",
        "The mean of the two stds, where their product is meant",
        _PRODUCT,
        "A score multiplies q by k. What does a factor of 2 in q do to it?",
    ),
    Mistake(
        "std_q_not_squared",
        "",
        "std_q stands under the root without its square",
        "Under the root stands a variance: d_k times the square of each std.",
        "Square both, or leave them outside the root.",
    ),
    Mistake(
        "std_k_not_squared",
        "",
        "std_k stands under the root without its square",
        "Under the root stands a variance: d_k times the square of each std.",
        "Square both, or leave them outside the root.",
    ),
    Mistake(
        "std_q_twice",
        "",
        "std_q is used twice, std_k not at all",
        _PRODUCT,
        "Both q and k are in each product.",
    ),
    Mistake(
        "half_of_d_k",
        "",
        "Half of d_k, where its root is meant",
        "In Python ** comes before /: d_k ** 1/2 is (d_k ** 1) / 2.",
        "Write d_k ** 0.5, or np.sqrt(d_k).",
    ),
    Mistake(
        "std_grows_as_square",
        "",
        "The std grows with the square of d_k",
        _ADD,
        "Which of the two adds up, d_k times: the variance or the std?",
    ),
    Mistake(
        "width_of_64",
        "",
        "The width is taken to be 64",
        "The lesson often had d_k = 64, whose root is 8. Here it is an argument.",
        "Where does d_k stand in your formula?",
    ),
    Mistake(
        "zero_counts_one",
        "",
        "Each weight of 0 adds a term of 1",
        "np.where puts the 1 in the place of the product, where it counts. In the "
        "place of the weight inside the logarithm it would not.",
        "What should a weight of 0 add to the sum?",
    ),
    Mistake(
        "row_with_zero_lost",
        "",
        "A row with a weight of 0 has the entropy 0",
        "The sum of such a row was NaN, and the NaN was replaced by 0: the other "
        "weights are lost with it.",
        "Look after the zeros before you add.",
    ),
    Mistake(
        "log_of_one_plus",
        "",
        "The logarithm of 1 + w",
        "np.log1p keeps 0 away from the logarithm, and changes all other weights too.",
        "Use np.log, and look after the zeros.",
    ),
    Mistake(
        "softmax_of_weights",
        "M47",
        "A softmax of the weights comes first",
        "They are weights already, and sum to one. A second softmax flattens them.",
        "Use the weights as they are.",
    ),
    Mistake(
        "distance_to_uniform",
        "",
        "How far from equal weights: ln n_k minus the entropy",
        "That is 0 where the entropy is largest.",
        "Leave out what is subtracted from.",
    ),
    Mistake(
        "entropy_of_uniform",
        "",
        "ln n_k: the weights do not matter",
        "That is the entropy of n_k equal weights. -ln(1/n_k) is not -ln w.",
        "Whose logarithm stands in each term?",
    ),
    Mistake(
        "gini",
        "",
        "1 minus the sum of the squares",
        "That is another measure of spread, named after Gini. Entropy has a logarithm.",
        "Two factors stand in each term: w and ln w.",
    ),
)
