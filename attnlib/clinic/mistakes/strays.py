"""Mistakes in counting numbers that stand in the row of another token."""

from attnlib.clinic.catalogue import Mistake

MISTAKES = (
    Mistake(
        "strays_by_place",
        "M22",
        "Numbers of the right token count as strays",
        "You compare with one certain split, place by place. Another order of the "
        "columns keeps every token whole, too.",
        "Ask whether a number belongs to its token, not whether it is at one place.",
    ),
    Mistake(
        "strays_by_division",
        "",
        "You read the token off the number itself",
        "`tags // 8` worked in the lesson, because those numbers were counted out row "
        "by row. Here a number does not say where it comes from; only x does.",
        "Ask whether a number is among those of x[i].",
    ),
    Mistake(
        "strays_anywhere",
        "M20",
        "Nothing is ever a stray",
        "A wrong split has the right shape, and holds every number of x. Only the row "
        "tells.",
        "Compare row i of a head with token i alone.",
    ),
    Mistake(
        "strays_at_home",
        "",
        "You count the numbers that are at home",
        "Wanted are the others.",
        "Turn True and False around before you count.",
    ),
    Mistake(
        "strays_first_head",
        "",
        "Only head 0 is looked at",
        "Head 0 begins with token 0 in a wrong split as well, and a stray may stand in "
        "the last head alone.",
        "Go through all heads.",
    ),
    Mistake(
        "strays_rows",
        "",
        "You count rows, not numbers",
        "A row with three strays in it counts as three.",
        "Count every number that is not at home.",
    ),
    Mistake(
        "strays_tokens",
        "",
        "You count tokens, not numbers",
        "A token has a row in every head, and each may hold several strays.",
        "Count every number that is not at home.",
    ),
    Mistake(
        "strays_share",
        "",
        "You return the share of strays, not their number",
        "A mean of truth values is a share; their sum is a count.",
        "Sum instead of taking the mean.",
    ),
    Mistake(
        "strays_whether",
        "",
        "You say whether there are strays, not how many",
        "Two exchanged numbers and a missing transpose would look the same.",
        "Count them all, instead of stopping at the first.",
    ),
    Mistake(
        "strays_by_eight",
        "",
        "You read the token off the number itself",
        "`tags // 8` worked in the lesson, because those numbers were counted out row "
        "by row. Here a number does not say where it comes from; only x does.",
        "Ask whether a number is among those of x[i].",
    ),
    Mistake(
        "strays_by_wrong_place",
        "M20",
        "You compare with a split that has the mistake in it",
        "x reshaped at once is just what is to be caught: it counts 0 there, and many "
        "in a right split.",
        "Ask whether a number belongs to its token, not whether it is at one place.",
    ),
    Mistake(
        "strays_merged_at_once",
        "M21",
        "The heads are merged without a transpose before you count",
        "That undoes a split without a transpose, so nothing is found there.",
        "split[:, i] holds the rows of token i.",
    ),
    Mistake(
        "strays_head_as_token",
        "",
        "Heads are taken for tokens",
        "The axes of split are head, token, feature: split[i] is head i, with a row "
        "for every token.",
        "split[h, i] is the row of token i in head h.",
    ),
)
