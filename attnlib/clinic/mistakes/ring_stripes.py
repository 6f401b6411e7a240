"""Mistakes in ring attention: which tokens lie where, in stripes."""

from attnlib.clinic.catalogue import Mistake

_STRIPE = (
    "In stripes rank r holds tokens r, r + n_ranks, r + 2 n_ranks, and so on, and a "
    "query sees the tokens up to its own."
)
MISTAKES = (
    Mistake(
        "see_blocks",
        "",
        "The tokens are placed in blocks, not in stripes",
        _STRIPE + " In blocks rank 0 sees nothing of any other rank.",
        "Which tokens has rank 1 of 2?",
    ),
    Mistake(
        "see_runs_of_n_ranks",
        "",
        "The tokens of a rank are placed side by side, from rank * n_ranks on",
        _STRIPE,
        "Which tokens has rank 1 of 2?",
    ),
    Mistake(
        "see_places_only",
        "",
        "The places on the ranks are compared, not those in the text",
        _STRIPE + " Key 1 of a later rank stands after query 1 of an earlier one.",
        "Which token is query i of this rank?",
    ),
    Mistake(
        "see_ranks_only",
        "",
        "The ranks are compared, not the tokens",
        _STRIPE + " A later rank holds early tokens, too.",
        "Which token is query i of this rank?",
    ),
    Mistake(
        "see_strides_of_n_local",
        "",
        "The tokens of a rank stand n_local apart",
        _STRIPE,
        "Which tokens has rank 1 of 2, if there are 3 on each?",
    ),
    Mistake(
        "see_neighbours",
        "",
        "The tokens of a rank stand side by side",
        _STRIPE + " They are n_ranks apart.",
        "Which tokens has rank 1 of 2?",
    ),
    Mistake(
        "see_ranks_exchanged",
        "",
        "The tokens of the two ranks are exchanged",
        _STRIPE + " The queries lie on `rank`, the keys on `other`.",
        "Which of the two has the rows?",
    ),
    Mistake(
        "see_one_ahead",
        "",
        "A query sees one key more than it may",
        _STRIPE + " The key after it stands n_ranks further on.",
        "Is key i + 1 of the same rank before query i, or after it?",
    ),
    Mistake(
        "see_own_rank_only",
        "",
        "Nothing is seen of other ranks",
        _STRIPE + " The tokens before it lie on all ranks.",
        "What is the second block good for, if nobody may look at it?",
    ),
    Mistake(
        "see_other_ranks_whole",
        "",
        "All of every other rank is seen",
        _STRIPE + " Each rank holds late tokens as well.",
        "Where in the text is the last token of the other rank?",
    ),
)
