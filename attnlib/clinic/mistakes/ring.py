"""Mistakes in ring attention: joining parts."""

from attnlib.clinic.catalogue import Mistake

_SHARE = (
    "Each side counts by its share of the whole sum of exponentials: e^(its log - "
    "joined log). The two shares of a query sum to 1."
)
_LOG = (
    "The joined log is the logarithm of e^L1 + e^L2. The next step needs it, and so "
    "does the backward pass."
)
MISTAKES = (
    Mistake(
        "join_averaged",
        "",
        "The two sides are averaged, as if they weighed the same",
        _SHARE + " They are equal only where both logs are.",
        "What does a side with one good key count beside one with many poor ones?",
    ),
    Mistake(
        "join_averaged_where_seen",
        "",
        "Where both sides saw something, they are averaged",
        _SHARE + " They are equal only where both logs are.",
        "What does a side with one good key count beside one with many poor ones?",
    ),
    Mistake(
        "join_added",
        "",
        "The two sides are added",
        _SHARE + " Each side is a mean already; a sum of means is none.",
        "What should come out if all values are 1?",
    ),
    Mistake(
        "join_by_logs",
        "",
        "The logs themselves are taken as shares",
        _SHARE + " Logs may be negative, or 0.",
        "What is the log-sum-exp the logarithm of?",
    ),
    Mistake(
        "join_larger_only",
        "",
        "Only the side with the larger log counts",
        _SHARE + " The smaller side has a share as well.",
        "Which share does each side have?",
    ),
    Mistake(
        "join_not_divided",
        "",
        "The sums of exponentials are not divided by the whole sum",
        _SHARE,
        "What should come out if all values are 1?",
    ),
    Mistake(
        "join_shares_bare",
        "",
        "The shares are made of bare exponentials, which overflow",
        _SHARE + " e^800 is infinity in float64, and e^-800 is 0.",
        "Subtract the joined log first, then take the exponential.",
    ),
    Mistake(
        "join_logs_subtracted",
        "",
        "The logs are subtracted, and no exponential is taken",
        _SHARE + " Its log minus the joined log is never above 0.",
        "What is still between a log and a share?",
    ),
    Mistake(
        "join_from_larger",
        "",
        "The exponentials are measured from the larger log, and not divided",
        _SHARE + " Measured from the larger one, they sum to more than 1.",
        "What should come out if all values are 1?",
    ),
    Mistake(
        "join_part_only",
        "",
        "What was found before is dropped",
        _SHARE + " The last block does not replace the others.",
        "Which argument did you not use?",
    ),
    Mistake(
        "join_old_kept",
        "",
        "The new part is dropped",
        _SHARE,
        "Which argument did you not use?",
    ),
    Mistake(
        "join_shares_exchanged",
        "",
        "Each side counts by the share of the other",
        _SHARE,
        "Which log belongs to which out?",
    ),
    Mistake(
        "join_share_for_both",
        "",
        "Both sides count by the share of the old one",
        _SHARE,
        "Which log belongs to which out?",
    ),
    Mistake(
        "join_old_not_shrunk",
        "",
        "What was found before is not shrunk",
        _SHARE + " What came first counts less with every part that joins it.",
        "What should come out if all values are 1?",
    ),
    Mistake(
        "join_part_not_shrunk",
        "",
        "The new part is not shrunk",
        _SHARE + " A part is divided by its own sum, not yet by the whole one.",
        "What should come out if all values are 1?",
    ),
    Mistake(
        "join_shares_inverted",
        "",
        "The shares are upside down",
        _SHARE + " Upside down each is above 1.",
        "A share is never above 1.",
    ),
    Mistake(
        "join_over_queries",
        "",
        "The shares are made to sum to 1 over the queries",
        _SHARE + " Queries have nothing to do with one another.",
        "Which sum is 1?",
    ),
    Mistake(
        "join_log_is_max",
        "",
        "The larger log is taken for the joined one",
        _LOG + " The maximum leaves out the smaller side.",
        "Two equal sides: is the joined log the log of one of them?",
    ),
    Mistake(
        "join_log_is_sum",
        "",
        "The logs are added",
        _LOG + " A sum of logs is the log of a product.",
        "Add the sums, not their logarithms.",
    ),
    Mistake(
        "join_not_stable",
        "",
        "The exponentials are summed as they are, and overflow",
        _LOG + " e^800 is infinity in float64.",
        "The lesson has a function of NumPy that does it without overflow.",
    ),
    Mistake(
        "join_exponentials_bare",
        "",
        "The bare exponentials are summed, and overflow",
        _SHARE + " e^800 is infinity in float64, and infinity / infinity is NaN.",
        "The lesson has a function of NumPy that joins logs without overflow.",
    ),
    Mistake(
        "join_empty_nan",
        "",
        "A query that saw nothing on either side becomes NaN",
        "There both logs are -inf, and so is the joined one: -inf minus -inf is NaN. "
        "Its out should stay at zeros.",
        "Subtract 0 where the joined log is -inf.",
    ),
    Mistake(
        "join_one_empty_dropped",
        "",
        "A query that saw nothing on one side loses what it saw on the other",
        "It takes the other side as it is: there its share is 1. Only a query that saw "
        "nothing on both sides stays at zeros.",
        "What is the share of a side with a log of -inf?",
    ),
    Mistake(
        "join_empty_stays",
        "",
        "A query that had seen nothing stays so, whatever the new part brings",
        "It takes the new part as it is: there the share of the new part is 1.",
        "What is the share of a side with a log of -inf, and of the other one?",
    ),
    Mistake(
        "join_empty_as_zero",
        "",
        "A log of -inf is replaced by 0 before the logs are joined",
        "A log of 0 says that something was seen, with a sum of 1. A side that saw "
        "nothing then gets a share.",
        "Where is the stand-in needed: in the logs, or in what is subtracted?",
    ),
    Mistake(
        "join_minus_billion",
        "",
        "A log of -inf is replaced by a finite number, and comes out again",
        "Where nothing was seen, the log stays -inf: the next step asks for just that.",
        "Keep the logs, and use the stand-in only in what is subtracted.",
    ),
    Mistake(
        "join_returns_max",
        "",
        "The log that is returned is the larger of the two",
        _LOG,
        "You have computed the joined log; return it.",
    ),
    Mistake(
        "join_returns_sum",
        "",
        "The log that is returned is the sum of the two",
        _LOG + " A sum of logs is the log of a product.",
        "You have computed the joined log; return it.",
    ),
    Mistake(
        "join_returns_mean",
        "",
        "The log that is returned is the mean of the two",
        _LOG + " It is at least as large as the larger of the two.",
        "Add the sums, not their logarithms.",
    ),
    Mistake(
        "join_log_not_updated",
        "",
        "The old log is returned",
        _LOG + " With the old one the next part would count too much.",
        "Return the joined log.",
    ),
    Mistake(
        "join_log_of_part",
        "",
        "The log of the new part is returned",
        _LOG + " With that of the last part the next one would count too much.",
        "Return the joined log.",
    ),
    Mistake(
        "join_returns_total",
        "",
        "The sum of exponentials is returned, not its logarithm",
        _LOG,
        "Return the logarithm.",
    ),
    Mistake(
        "join_guard_stored",
        "",
        "The stand-in for -inf is returned",
        _LOG + " A log of 0 says that something was seen, with a sum of 1.",
        "Use the stand-in inside, and return the log itself.",
    ),
    Mistake(
        "join_log_finite",
        "",
        "The joined log of an empty query is returned as a finite number",
        "Where nothing was seen, the log stays -inf. np.nan_to_num makes it the lowest "
        "number there is.",
        "Mend the shares, and leave the log alone.",
    ),
    Mistake(
        "join_larger_not_added",
        "",
        "The larger log was subtracted, and is not added again",
        _LOG + " The log of the sum of what is left is measured from the larger log.",
        "What is log(e^L1 + e^L2), if e^m is taken out of the sum?",
    ),
    Mistake(
        "join_exchanged",
        "",
        "out and the log are returned in the other order",
        "out comes first, then the log.",
        "Exchange the two.",
    ),
)
