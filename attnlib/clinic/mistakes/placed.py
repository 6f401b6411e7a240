"""Mistakes in positions that only a part examined by itself can show."""

from attnlib.clinic.catalogue import Mistake

_ONE_FREQUENCY = (
    "The sine and the cosine of a pair share one frequency. Only then is a step of k "
    "tokens one and the same turn everywhere."
)

MISTAKES = (
    Mistake(
        "frequency_of_cosines",
        "M30",
        "The cosines have frequencies of their own: the odd column is doubled",
        _ONE_FREQUENCY + " The i of the formula counts pairs, and an odd column j is "
        "pair (j - 1) / 2.",
        "Which pair does column 1 belong to?",
        "SamLynnEvans/Transformer#25",
    ),
    Mistake(
        "frequency_of_odd_columns",
        "M30",
        "The cosines have the frequency of the next pair",
        _ONE_FREQUENCY + " Column 2 i + 1 has the exponent 2 i / d, not 2 (i + 1) / d.",
        "Which pair does column 1 belong to?",
        "jadore801120/attention-is-all-you-need-pytorch#32",
    ),
    Mistake(
        "odd_width_breaks",
        "M30",
        "An odd width is an error",
        "With d columns, d odd, there is one sine more than there are cosines. One "
        "table of angles does not fit both.",
        "Cut the cosines to the columns that are left: cos[:, : d // 2].",
        "gc-os-ai/pyaptamer#607",
    ),
    Mistake(
        "odd_width_cut",
        "M30",
        "With an odd width, a column is missing",
        "With d columns, d odd, there is one sine more than there are cosines. Rounded "
        "down, the last sine is lost, and the table fits no token.",
        "Round up, and cut the cosines to what is left.",
    ),
    Mistake(
        "odd_width_grows",
        "M30",
        "With an odd width, there is a column too many",
        "With d columns, d odd, there is one sine more than there are cosines. Rounded "
        "up on both sides, the table fits no token.",
        "Cut the cosines to the columns that are left.",
    ),
    Mistake(
        "base_10000",
        "M30",
        "The base is 10000, where another one is meant",
        "The base says how slow the slowest pair is. Trained weights fit one base.",
        "Hand the base of the model in.",
    ),
    Mistake(
        "places_along_heads",
        "M27",
        "Positions run along the heads, not along the tokens",
        "The axes are (batch, n_heads, n, d). All tokens of one head are turned by the "
        "same angle, so a score does not know where they stand.",
        "Which axis is that of the tokens? If yours are (batch, n, n_heads, d), say "
        "axes='tokens first'.",
        "nntile/nntile#360",
    ),
)
