"""Mistakes in the numbers that find a head."""

from attnlib.clinic.catalogue import Mistake

_MEAN = "The number is a mean over rows, one for each head: it lies from 0 to 1."
_ROWS = "The mean is over the rows that the docstring names, and over no other."

MISTAKES = (
    Mistake(
        "looks_forward",
        "",
        "Rows and keys are exchanged",
        "weights[..., i, j] is what query i gives to key j. The key lies before the "
        "query, so j is the smaller one.",
        "Which index is the query?",
    ),
    Mistake(
        "rows_wrap",
        "",
        "Rows without such a key take one from the end",
        "A negative index is no error in NumPy: -1 is the last key. " + _ROWS,
        "Which is the first row that counts?",
    ),
    Mistake(
        "key_from_the_end",
        "",
        "Every row is asked about one and the same key",
        "The key moves along with the query.",
        "The key of row i is i - offset.",
    ),
    Mistake(
        "key_from_the_front",
        "",
        "Every row is asked about one and the same key",
        "The key moves along with the query. One key for all rows is how a sink is "
        "measured.",
        "The key of row i is i - offset.",
    ),
    Mistake(
        "offsets_up_to",
        "",
        "Nearer keys are counted, too",
        "Only the key exactly so many places back is asked about.",
        "There is one key for each row.",
    ),
    Mistake(
        "offset_one_more",
        "",
        "The key stands one place too far back",
        "One place back from row i is i - 1; the row itself is 0 places back.",
        "What should offset 0 be?",
    ),
    Mistake(
        "offset_one_less",
        "",
        "The key stands one place too near",
        "One place back from row i is i - 1; the row itself is 0 places back.",
        "What should offset 0 be?",
    ),
    Mistake(
        "offset_always_one",
        "",
        "The offset is not used",
        "It says how many places back; yours looks one place back, always.",
        "Where should offset stand?",
    ),
    Mistake(
        "key_always_one_back",
        "",
        "The rows are right, and the key is always one place back",
        "It stands offset places back.",
        "Where should offset stand?",
    ),
    Mistake(
        "row_dropped",
        "",
        "One row too many is left out",
        _ROWS,
        "Which is the first row that counts?",
    ),
    Mistake(
        "row_too_early",
        "",
        "One row too early",
        "Row period - 1 is the last token that stands there for the first time. No "
        "copy of it came before.",
        "Which is the first row whose token was there before?",
    ),
    Mistake(
        "same_token",
        "",
        "The key is the last copy of the token itself",
        "A head that looks there finds the same token again. Induction looks at what "
        "came after it: that is what may come next.",
        "One key further on.",
    ),
    Mistake(
        "token_before",
        "",
        "The key is the one before the last copy",
        "Induction looks at what came after the last copy of the token.",
        "The last copy of row i is i - period. And after it?",
    ),
    Mistake(
        "two_after",
        "",
        "The key stands two after the last copy",
        "Induction looks at the one right after the last copy of the token.",
        "The last copy of row i is i - period. And after it?",
    ),
    Mistake(
        "first_copy_only",
        "",
        "Only the second copy counts, and not those after it",
        "The tokens may come again more than once, and each row of each copy counts.",
        "Up to which row does it go on?",
    ),
    Mistake(
        "last_copy_only",
        "",
        "Only the last rows count",
        "The tokens may come again more than once, and each row of each copy counts.",
        "From which row on has each token been there before?",
    ),
    Mistake(
        "all_copies",
        "",
        "All earlier copies are added up",
        "Asked for is the key after the last copy, one for each row.",
        "There is one key for each row.",
    ),
    Mistake(
        "all_rows_counted",
        "",
        "Divided by all rows, also by those that do not count",
        _ROWS,
        "By how many rows must the sum be divided?",
    ),
    Mistake(
        "sum_for_mean",
        "",
        "A sum, where a mean is meant",
        _MEAN,
        "A text twice as long must not double the number.",
    ),
    Mistake(
        "largest_for_mean",
        "",
        "The largest weight, where the mean is meant",
        _MEAN + " Almost every head looks there once.",
        "Take the mean over the rows.",
    ),
    Mistake(
        "middle_for_mean",
        "",
        "The median, where the mean is meant",
        _MEAN,
        "Take the mean over the rows.",
    ),
    Mistake(
        "wins_counted",
        "",
        "Rows are counted in which this key gets most",
        "Asked for is how much weight lies there, not how often it is the largest.",
        "Take the mean of the weights themselves.",
    ),
    Mistake(
        "mean_over_heads",
        "",
        "One mean over all heads",
        _MEAN + " A single number cannot say which head it was.",
        "Take the mean along the last axis only.",
    ),
    Mistake(
        "not_yet_averaged",
        "",
        "The weights are picked, and not yet averaged",
        _MEAN,
        "What is left to do along the last axis?",
    ),
    Mistake(
        "rows_clipped",
        "",
        "Rows without such a key take key 0 in its place",
        _ROWS,
        "Leave these rows out.",
    ),
    Mistake(
        "rows_from_one",
        "",
        "The rows begin at 1, whatever the offset",
        "That fits for one place back. With offset 2, row 1 has no such key: it would"
        " be -1, and -1 is the last one in NumPy.",
        "Which is the first row that has such a key?",
    ),
    Mistake(
        "last_row_dropped",
        "",
        "The last row is left out",
        "np.arange(a, b) and range(a, b) end before b, so the last row is n - 1 "
        "already.",
        "Up to which number must it go?",
    ),
    Mistake(
        "column_of_offset",
        "",
        "The offset is taken for the number of a key",
        "weights[..., offset] is what all queries give to one key. The key moves "
        "along with the query.",
        "The key of row i is i - offset.",
    ),
    Mistake(
        "whole_rows",
        "",
        "The mean is taken over all keys of a row",
        "The weights of a row sum to 1, so their mean is 1 / n, whatever a head does.",
        "Take one weight from each row.",
    ),
    Mistake(
        "farther_keys_too",
        "",
        "Keys farther back are counted, too",
        "Only the key exactly so many places back is asked about.",
        "There is one key for each row.",
    ),
    Mistake(
        "block_for_pairs",
        "",
        "All these rows meet all these keys",
        "Two steps cut out a block, each row with each key. One index with both "
        "lists, weights[..., rows, keys], takes row and key in pairs.",
        "There is one key for each row.",
    ),
    Mistake(
        "sign_turned",
        "",
        "The key is i - period - 1, where i - period + 1 is meant",
        "What came after the last copy stands one further to the right. In i - "
        "(period + 1) the 1 is taken away as well.",
        "Which sign has the 1?",
    ),
    Mistake(
        "always_first_copy",
        "",
        "Every copy looks back into the first one",
        "Asked for is what came after the token the last time. From the third copy "
        "on, that stands in the copy before.",
        "The last copy of row i is i - period. And after it?",
    ),
    Mistake(
        "next_in_first_copy",
        "",
        "Every row looks for its next token in the first copy",
        "The next token stands there, but not after the last copy of this one: the "
        "last token of a copy is followed by the first of the next copy.",
        "The last copy of row i is i - period. And after it?",
    ),
    Mistake(
        "all_pairs_counted",
        "",
        "Divided by all weights of the map",
        "A mean over a map that was set to 0 elsewhere divides by n times n. " + _MEAN,
        "By how many rows must the sum be divided?",
    ),
    Mistake(
        "one_more_counted",
        "",
        "Divided by one row too many",
        _ROWS,
        "By how many rows must the sum be divided?",
    ),
    Mistake(
        "period_counted",
        "",
        "Divided by the period",
        "With two copies that is the number of rows; with three, or with half a one, "
        "it is not. " + _ROWS,
        "By how many rows must the sum be divided?",
    ),
)
