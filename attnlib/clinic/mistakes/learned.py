"""Mistakes in learned positions, in positions beside fillers, and in ALiBi's bias."""

from attnlib.clinic.catalogue import Mistake

_ROWS = "Token i behind `past` cached ones has row past + i of the table."
_HISTORY = " Trained weights fit one way of counting, whatever its reason."
_PADDED = (
    "With fillers in front, the position of a token is its place among the real ones: "
    "the running sum of the mask, minus 1."
)
_BIAS = "ALiBi takes slope times distance off a score, and every head has its slope."

MISTAKES = (
    Mistake(
        "learned_offset_two",
        "M29",
        "All rows are two too far down",
        _ROWS + " OPT and BART begin at row 2, because their tables have two rows "
        "for padding." + _HISTORY,
        "Which row does the first token get? If your weights are those of OPT, say so: "
        "offset=2.",
        "huggingface/transformers#20761",
    ),
    Mistake(
        "learned_from_one",
        "M29",
        "Positions are counted from 1",
        _ROWS + _HISTORY,
        "Which row does the first token get?",
    ),
    Mistake(
        "learned_one_early",
        "M29",
        "All rows are one too early",
        _ROWS + " The first token then gets row -1, and that is the last of the table.",
        "Which row does the first token get?",
    ),
    Mistake(
        "learned_offset_missing",
        "M29",
        "The rows that the table keeps for padding are not skipped",
        "These weights begin at a later row of the table." + _HISTORY,
        "Add the offset of the model.",
    ),
    Mistake(
        "learned_past_ignored",
        "M29",
        "Behind a cache, positions begin at 0 again",
        _ROWS + " A new token gets the row of the first one.",
        "Add the length of the cache.",
    ),
    Mistake(
        "learned_past_one_less",
        "M29",
        "Behind a cache, positions are one too low",
        _ROWS + " The last cached token stands at past - 1, so the new one at past.",
        "With 3 tokens in the cache, which row does the next one get?",
    ),
    Mistake(
        "learned_past_one_more",
        "M29",
        "Behind a cache, positions are one too high",
        _ROWS + " With 3 cached tokens the rows 0, 1 and 2 are taken.",
        "With 3 tokens in the cache, which row does the next one get?",
    ),
    Mistake(
        "learned_past_doubled",
        "M29",
        "The length of the cache is added twice",
        _ROWS,
        "Is n the count of new tokens, or of all?",
    ),
    Mistake(
        "learned_all_rows",
        "M29",
        "The rows of the cached tokens come along",
        _ROWS + " Only the new tokens need their rows.",
        "How many rows should there be?",
    ),
    Mistake(
        "learned_last_rows",
        "M29",
        "The last rows of the table are taken",
        _ROWS,
        "A slice [-n:] counts from the end.",
    ),
    Mistake(
        "learned_reversed",
        "M29",
        "The rows are in reverse order",
        _ROWS,
        "Which row does the first token get?",
    ),
    Mistake(
        "learned_first_row",
        "M29",
        "Every token gets the row of the first one",
        _ROWS + " One row for all tells no position apart.",
        "One row a token.",
    ),
    Mistake(
        "learned_from_the_end",
        "M29",
        "The table is read from its end",
        _ROWS,
        "Which row does the first token get?",
    ),
    Mistake(
        "padded_by_place",
        "M28",
        "Fillers in front are counted as tokens",
        _PADDED + " Counted by place, a text has other positions in a batch than it "
        "has alone, and other outputs.",
        "cumsum of the mask.",
        "lucidrains/x-transformers#185",
    ),
    Mistake(
        "padded_from_one",
        "M28",
        "Positions begin at 1",
        _PADDED,
        "The running sum is 1 at the first token.",
    ),
    Mistake(
        "padded_from_two",
        "M28",
        "Positions begin at 2",
        _PADDED + " A table with rows for padding adds its own offset later.",
        "The running sum is 1 at the first token.",
    ),
    Mistake(
        "padded_from_the_end",
        "M28",
        "Positions are counted from the end",
        _PADDED,
        "Which position has the first real token?",
    ),
    Mistake(
        "padded_over_batch",
        "M28",
        "The sum runs down the batch, not along the tokens",
        _PADDED + " Texts of one batch have nothing to do with each other.",
        "Along which axis does it run?",
    ),
    Mistake(
        "padded_through_batch",
        "M28",
        "The sum runs on from one text into the next",
        _PADDED + " Each row begins anew.",
        "cumsum needs an axis.",
    ),
    Mistake(
        "padded_like_first",
        "M28",
        "Every text gets the positions of the first one",
        _PADDED + " Each text has its own fillers.",
        "One row of positions a text.",
    ),
    Mistake(
        "padded_fillers_counted",
        "M28",
        "The fillers are counted, not the tokens",
        _PADDED,
        "True is a real token here.",
    ),
    Mistake(
        "padded_whether",
        "M28",
        "Positions are only 1 for a token and 0 for a filler",
        _PADDED,
        "A running sum is missing.",
    ),
    Mistake(
        "bias_from_top_left",
        "M31",
        "Distances are counted from the top left corner",
        "Query i stands at position n_k - n_q + i, behind the cached keys. Counted "
        "from i, its nearest keys look far away.",
        "Where does the only query stand, with 7 keys?",
    ),
    Mistake(
        "bias_squared",
        "M31",
        "The distance is squared",
        _BIAS,
        "Twice as far costs twice as much.",
    ),
    Mistake(
        "bias_of_queries",
        "M31",
        "The bias counts the query's place, not the distance",
        _BIAS + " One number for a whole row changes no weight.",
        "It has to differ from key to key.",
    ),
    Mistake(
        "bias_logarithm",
        "M31",
        "The logarithm of the distance is taken",
        _BIAS + " T5 has buckets that grow like that; ALiBi is straight.",
        "Twice as far costs twice as much.",
    ),
    Mistake(
        "bias_one_slope",
        "M31",
        "All heads have one slope",
        _BIAS + " Some heads look near and others far.",
        "The slopes need an axis of their own: (n_heads, 1, 1).",
    ),
    Mistake(
        "bias_no_slope",
        "M31",
        "There are no slopes: the bare distance is taken off",
        _BIAS,
        "Multiply each head's distances by its slope.",
    ),
    Mistake(
        "bias_sign",
        "M31",
        "Far keys are favoured: the minus is missing",
        _BIAS + " Added, it makes the farthest key the strongest.",
        "What should a far key lose?",
    ),
)
