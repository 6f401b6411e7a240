"""Mistakes in measuring how loud a head is."""

from attnlib.clinic.catalogue import Mistake

_HEADS = "A sick head among healthy ones disappears in their mean."
_ROOT = (
    "A norm grows with the number of texts, tokens and features, so the numbers of two "
    "batches cannot be compared."
)

MISTAKES = (
    Mistake(
        "token_for_head",
        "",
        "Token i is taken for head i",
        "So does the article's monitor: output[:, i]. It gives some number for each i, "
        "and a dead head never shows in it.",
        "mixed is (batch, n_heads, n_q, d_v). On which axis are the heads?",
    ),
    Mistake(
        "text_for_head",
        "",
        "Text i is taken for head i",
        "The first axis is the batch.",
        "mixed is (batch, n_heads, n_q, d_v). Which axis has to stay?",
    ),
    Mistake(
        "feature_for_head",
        "",
        "One number for each feature",
        "The last axis holds the d_v numbers of one head.",
        "mixed is (batch, n_heads, n_q, d_v). Which axis has to stay?",
    ),
    Mistake(
        "merged_before",
        "M21",
        "The heads are cut anew without moving the axes",
        "A reshape reads the numbers in the order in which they lie, and mixes heads "
        "and tokens.",
        "The axis of the heads is there already; no reshape is needed.",
        "jsbaan/transformer-from-scratch#6",
    ),
    Mistake(
        "root_missing",
        "",
        "The root is missing",
        "The mean of the squares has the square of the unit: twice as loud would show "
        "as four times.",
        "One step, at the very end.",
    ),
    Mistake(
        "absolute_for_square",
        "",
        "The mean of absolute values, where the root mean square is meant",
        "It measures loudness, too, but another one: a few large numbers count less.",
        "Square, mean, root.",
    ),
    Mistake(
        "signs_kept",
        "",
        "The plain mean",
        "Numbers above and below 0 cancel: a loud head may have a mean of 0.",
        "Square first.",
    ),
    Mistake(
        "mean_taken_off",
        "",
        "The standard deviation, where the root mean square is meant",
        "A head that says one large number everywhere is loud, and has a std of 0.",
        "Square, mean, root; no mean is taken off.",
    ),
    Mistake(
        "norm_for_mean",
        "",
        "The norm, which grows with the batch",
        _ROOT,
        "Take the mean of the squares, not their sum.",
    ),
    Mistake(
        "features_summed",
        "",
        "Squares are summed over the features",
        _ROOT + " Here it still grows with d_v.",
        "The mean of the squares is taken over all three other axes.",
    ),
    Mistake(
        "tokens_summed",
        "",
        "Squares are summed over the tokens",
        _ROOT + " Here it still grows with n_q.",
        "The mean of the squares is taken over all three other axes.",
    ),
    Mistake(
        "texts_summed",
        "",
        "Squares are summed over the texts",
        _ROOT + " Here it still grows with the batch.",
        "The mean of the squares is taken over all three other axes.",
    ),
    Mistake(
        "texts_separate",
        "",
        "A number for each head of each text",
        "The task asks for one number a head.",
        "The mean is taken over the texts, too.",
    ),
    Mistake(
        "tokens_separate",
        "",
        "A number for each head and token",
        "The task asks for one number a head.",
        "The mean is taken over the tokens, too.",
    ),
    Mistake(
        "one_for_all_heads",
        "",
        "One loudness for all heads together",
        _HEADS,
        "The axis of the heads stays.",
    ),
    Mistake(
        "loudest_number",
        "",
        "The largest number, where a mean is meant",
        "The largest of many grows with how many there are.",
        "Square, mean, root.",
    ),
    Mistake(
        "mean_of_token_norms",
        "",
        "A mean of the tokens' norms",
        "A norm still grows with the features; and the mean of roots is not the root "
        "of the mean.",
        "Square, mean over everything but the heads, root: in this order.",
    ),
    Mistake(
        "mean_of_tokens",
        "",
        "The root is taken for each token, and the mean after that",
        "The mean of roots is not the root of the mean: loud tokens count less.",
        "Square, mean over everything but the heads, root: in this order.",
    ),
    Mistake(
        "mean_of_texts",
        "",
        "A mean over texts of root mean squares",
        "The mean of roots is not the root of the mean.",
        "Square, mean over everything but the heads, root: in this order.",
    ),
    Mistake(
        "share_of_all",
        "",
        "A share of the loudness of all heads",
        "When all heads fade together, shares stay as they are.",
        "Leave out the last division.",
    ),
)
