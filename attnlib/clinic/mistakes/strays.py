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
)
