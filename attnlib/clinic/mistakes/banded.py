"""Mistakes of attention in a window that never makes the whole table."""

from attnlib.clinic.catalogue import Mistake

_START = (
    "The first width - 1 queries stand so near the start that their windows reach out "
    "of the text. There is no key, so nothing may be weighed there."
)

MISTAKES = (
    Mistake(
        "band_hidden_after",
        "M10",
        "Places before the start are set to 0 after the softmax",
        _START + " Here they took their share of the softmax before they went.",
        "Make their scores -inf, before the softmax.",
    ),
    Mistake(
        "band_centred",
        "M32",
        "The window lies around the query, half of it ahead",
        "A causal window ends with the query's own key: all others lie before it.",
        "Which is the last key that query 0 sees?",
    ),
    Mistake(
        "band_centred_wide",
        "M32",
        "The window lies around the query, half of it ahead",
        "A causal window ends with the query's own key: all others lie before it.",
        "Which is the last key that query 0 sees?",
    ),
    Mistake(
        "band_wraps",
        "",
        "At the start of the text, queries see its end",
        _START + " A negative index counts from the end in Python, and gives a key.",
        "Scores of negative places become -inf before the softmax.",
    ),
    Mistake(
        "band_clipped",
        "",
        "At the start of the text, key 0 is counted several times",
        _START + " An index that is cut at 0 gives key 0 again and again.",
        "Scores of negative places become -inf before the softmax.",
    ),
    Mistake(
        "band_shifted_at_start",
        "",
        "The first queries see what comes after them",
        _START + " A window of full width that begins at key 0 ends behind them.",
        "The window ends with the query's own key, and is shorter at the start.",
    ),
    Mistake(
        "band_zeros_counted",
        "",
        "At the start of the text, zeros take some of the weight",
        _START + " A key of zeros has the score 0, and e^0 is 1, not 0.",
        "Scores of places that do not exist become -inf, not 0.",
    ),
    Mistake(
        "band_zero_scores_wrapped",
        "",
        "Scores before the start are 0, and still get weight",
        _START + " e^0 is 1. And a negative index takes its value from the end.",
        "Scores of places that do not exist become -inf, not 0.",
    ),
    Mistake(
        "band_first_rows_missing",
        "",
        "The first width - 1 queries get no row",
        _START + " Yet each query sees at least its own key, and each needs a result.",
        "Begin with query 0, whose window has one key.",
    ),
    Mistake(
        "band_first_rows_empty",
        "",
        "The first width - 1 queries get zeros",
        _START + " Yet each query sees at least its own key.",
        "Begin with query 0, whose window has one key.",
    ),
    Mistake(
        "scale_width",
        "M01",
        "Scores are divided by the root of the width of the window",
        "A score is a sum over the d_k features, however many keys there are.",
        "The root of q's last axis.",
    ),
    Mistake(
        "band_softmax_over_queries",
        "",
        "Softmax runs over the queries",
        "Upright, a row is a query and a column a neighbour. The weights of one query "
        "sum to 1.",
        "Which axis of your scores holds the keys of one query?",
    ),
    Mistake(
        "band_values_reversed",
        "",
        "Weights meet the values of the window in reversed order",
        "The nearest key's weight belongs to the nearest value.",
        "Use the same indices for k and for v.",
    ),
)
