"""Mistakes in the attention of a real layer, and in the numbers that find a head."""

from attnlib.clinic.catalogue import Mistake

_ROPE = (
    "RoPE turns queries and keys, each head's own d_k features, by the place of their "
    "token. Then a score depends on how far apart two tokens stand."
)
_MEAN = "The number is a mean over rows, one for each head: it lies from 0 to 1."
_ROWS = "What counts is every row that has such a key, and no other."

MISTAKES = (
    Mistake(
        "rope_forgotten",
        "M27",
        "Nothing says where a token stands",
        _ROPE + " Row 0 comes out right without it, for it has one key only.",
        "What happens to q and k before they meet?",
    ),
    Mistake(
        "rope_half_layout",
        "M26",
        "Feature i is turned with i + d/2, where neighbours are meant",
        "Both layouts are in use, and the weights decide. These were trained with "
        "neighbours, 2 i and 2 i + 1. Row 0 comes out right with either.",
        "Which layout does positions.rope take by itself?",
        "huggingface/transformers#25199",
    ),
    Mistake(
        "rope_on_q_only",
        "M27",
        "Only the queries are turned",
        _ROPE + " With one of the two turned, a score depends on where the query "
        "stands, not on the distance.",
        "What else has a place?",
    ),
    Mistake(
        "rope_on_k_only",
        "M27",
        "Only the keys are turned",
        _ROPE + " With one of the two turned, a score depends on where the key "
        "stands, not on the distance.",
        "What else has a place?",
    ),
    Mistake(
        "rope_on_v",
        "M27",
        "The values are turned as well",
        _ROPE + " Values are what is said, and stay as they are.",
        "Which two of the three meet in a score?",
    ),
    Mistake(
        "rope_before_split",
        "M27",
        "The heads are turned together, as if they were one",
        _ROPE + " Over the width of all heads the frequencies are others: head 0 gets "
        "the fast ones, the last head the slow ones.",
        "Split first: the last axis must be d_k.",
    ),
    Mistake(
        "rope_on_x",
        "M27",
        "The tokens are turned, before they become queries and keys",
        _ROPE + " A table of weights mixes all features of a token: pairs that were "
        "turned before it are no pairs behind it.",
        "Turn q and k, not what they are made from.",
    ),
    Mistake(
        "rope_places_reversed",
        "M27",
        "The places are counted from the last token",
        _ROPE + " Counted backwards, every distance has the wrong sign.",
        "Which place has the first token?",
    ),
    Mistake(
        "rope_places_doubled",
        "M27",
        "Queries and keys are turned twice",
        _ROPE + " A second turn makes every distance twice as long.",
        "How often is rope called for q?",
        "NeuraLegion/shainet#110",
    ),
    Mistake(
        "kv_head_first_only",
        "M33",
        "All query heads use the first key head",
        "Key heads are shared by neighbours: with 4 query heads on 2 key heads, 0 0 1 "
        "1.",
        "What does heads.repeat_heads do?",
    ),
    Mistake(
        "kv_heads_reversed",
        "M33",
        "The key heads are in reverse order",
        "Neighbouring query heads share a key head, in order: 0 0 1 1.",
        "Which key head belongs to query head 0?",
    ),
    Mistake(
        "norm_again",
        "",
        "The tokens are normed once more",
        "What the function gets is normed already: in the model, the norm comes before "
        "the attention, with its gain.",
        "Use it as it comes.",
    ),
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
        "Which is the first row that has such a key?",
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
        "Which is the first row that has such a key?",
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
        "Divided by all rows, also by those that have no such key",
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
)
