"""Mistakes in repeating shared keys, and in normalising queries."""

from attnlib.clinic.catalogue import Mistake

_SHARED = "Neighbouring query heads share a key head: 0 0 1 1."
_NORM = (
    "Each query of each head is divided by its own size, over its d_k features. Then "
    "no score can grow with the size of the weights."
)

MISTAKES = (
    Mistake(
        "repeat_missing",
        "M33",
        "Nothing is repeated",
        _SHARED,
        "How many heads come out?",
    ),
    Mistake(
        "repeat_one_more",
        "M33",
        "Each key head is there once too often",
        "n_rep is how many query heads share a key head, itself included.",
        "How many heads come out?",
    ),
    Mistake(
        "repeat_to_n_rep",
        "M33",
        "n_rep is taken for the count of all heads",
        "With 2 key heads and n_rep = 3 there are 6 heads.",
        "How many heads come out?",
    ),
    Mistake(
        "repeat_mean",
        "M33",
        "All heads get the mean of the key heads",
        _SHARED + " A mean makes one key head of all.",
        "Copies are wanted, and no mixture.",
    ),
    Mistake(
        "repeat_zeros",
        "M33",
        "The copies are empty",
        _SHARED,
        "Where do the numbers of the second copy come from?",
    ),
    Mistake(
        "repeat_on_tokens",
        "M33",
        "The tokens are repeated, not the heads",
        "The axes are (batch, n_kv_heads, n, d). Repeated along the tokens, each key "
        "stands there several times, and there are no more heads than before.",
        "Which axis is that of the heads?",
        "PrimeIntellect-ai/prime-rl#2681",
    ),
    Mistake(
        "repeat_on_features",
        "M33",
        "The features are repeated, not the heads",
        "repeat_interleave without an axis of the heads doubles every number of a key.",
        "Which axis is that of the heads?",
    ),
    Mistake(
        "repeat_on_batch",
        "M33",
        "The items of the batch are repeated, not the heads",
        "A repeat along axis 0 makes a longer batch.",
        "Which axis is that of the heads?",
    ),
    Mistake(
        "repeat_mixed",
        "M33",
        "Heads and tokens are mixed while heads are repeated",
        _SHARED + " An expanded array has a new axis beside that of the heads. Reshape "
        "joins neighbours only, and here other axes were neighbours.",
        "Which two axes does the reshape join?",
    ),
    Mistake(
        "norm_missing",
        "M38",
        "Nothing is normalised",
        _NORM + " It was built, perhaps, and is never called.",
        "Multiply the input by 10: nothing should change.",
        "Cerebras/modelzoo#85",
    ),
    Mistake(
        "norm_over_tokens",
        "M38",
        "The size is taken over the tokens, not over the features",
        _NORM + " Over the tokens, a query depends on all the others, later ones "
        "included.",
        "The last axis.",
        "flagos-ai/FlagScale#210",
    ),
    Mistake(
        "norm_over_heads",
        "M38",
        "The size is taken over the heads, not over the features",
        _NORM,
        "The last axis.",
        "flagos-ai/FlagScale#210",
    ),
    Mistake(
        "norm_over_batch",
        "M38",
        "The size is taken over the batch, not over the features",
        _NORM + " Texts of one batch have nothing to do with each other.",
        "The last axis.",
    ),
    Mistake(
        "norm_over_tokens_too",
        "M38",
        "One size for all tokens of a head",
        _NORM,
        "The last axis alone, and keepdims.",
    ),
    Mistake(
        "norm_over_all",
        "M38",
        "One size for all heads and tokens",
        _NORM,
        "The last axis alone, and keepdims.",
    ),
    Mistake(
        "norm_over_everything",
        "M38",
        "One size for the whole batch",
        _NORM + " Texts of one batch have nothing to do with each other.",
        "The last axis alone, and keepdims.",
    ),
    Mistake(
        "norm_of_merged",
        "M38",
        "One size for all heads of a token",
        _NORM + " Some models normalise before the split on purpose; their weights fit "
        "that.",
        "Normalise after the split into heads.",
    ),
    Mistake(
        "norm_largest",
        "M38",
        "Divided by the largest feature, not by the size",
        _NORM,
        "The size is the root of the mean square.",
    ),
    Mistake(
        "norm_sum",
        "M38",
        "Divided by the sum of the features, not by the size",
        _NORM,
        "The size is the root of the mean square.",
    ),
    Mistake(
        "norm_without_root",
        "M38",
        "The root is missing: divided by the square of the size",
        _NORM + " Divided by the square, a larger query comes out smaller.",
        "Multiply the input by 10: nothing should change.",
    ),
    Mistake(
        "norm_root_twice",
        "M38",
        "The root is taken twice",
        _NORM,
        "Multiply the input by 10: nothing should change.",
    ),
    Mistake(
        "norm_multiplied",
        "M38",
        "Multiplied by the size, where it should be divided",
        _NORM,
        "rsqrt is 1 / sqrt already.",
    ),
    Mistake(
        "norm_clipped",
        "M38",
        "Only large queries are normalised",
        _NORM + " Small ones keep their size here.",
        "Multiply the input by 10: nothing should change.",
    ),
    Mistake(
        "norm_returned",
        "M38",
        "The size itself is returned",
        _NORM,
        "Divide by it.",
    ),
)
