"""Mistakes of attention on two levels: inside pieces, then to their means."""

from attnlib.clinic.catalogue import Mistake

_ALL = "Every token asks, and every token gets a result of its own."
_REST = (
    "The last piece may hold fewer tokens. They are tokens like all others, and their "
    "mean is their sum over their own number."
)
_MEANS = "The mean of a piece, over its tokens, stands for it: one row of d numbers."
_SUM = "out = local + far: what is near token by token, and what is far as means."

MISTAKES = (
    Mistake(
        "levels_article",
        "",
        "That is the article's snippet",
        "It pools the queries, and looks at every token. There is no local attention, "
        "half of all pairs are computed, and the result has half as many tokens.",
        "Local attention first, then its means as keys and values.",
    ),
    Mistake(
        "levels_queries_pooled",
        "",
        "The means ask, and the tokens are looked at",
        _ALL + " What is to be fewer are the keys.",
        "Exchange what asks and what is looked at.",
    ),
    Mistake(
        "levels_queries_pooled_x",
        "",
        "The means ask, and x is looked at",
        _ALL + " What is to be fewer are the keys.",
        "Exchange what asks and what is looked at.",
    ),
    Mistake(
        "levels_means_only",
        "",
        "Only the means look at each other",
        _ALL,
        "What asks on the second level?",
    ),
    Mistake(
        "levels_count_for_width",
        "",
        "The width is taken for the number of pieces",
        "A piece holds `width` tokens, however many pieces that makes.",
        "range(0, n, width) gives where the pieces begin.",
    ),
    Mistake(
        "levels_width_from_count",
        "",
        "There are `width` pieces, not pieces of `width` tokens",
        "A piece holds `width` tokens, however many pieces that makes.",
        "range(0, n, width) gives where the pieces begin.",
    ),
    Mistake(
        "levels_split_evenly",
        "",
        "The tokens are shared out evenly among the pieces",
        "All pieces but the last hold `width` tokens. " + _REST,
        "A slice x[start:start + width] may reach past the end, and is shorter then.",
    ),
    Mistake(
        "levels_padded",
        "",
        "Zeros fill up the last piece, and are attended to",
        _REST + " Zeros take weight, too.",
        "Leave the last piece short.",
    ),
    Mistake(
        "levels_causal",
        "",
        "Inside the pieces, later tokens are hidden",
        "Nothing is hidden here: each token of a piece sees all of it.",
        "Leave out the mask.",
    ),
    Mistake(
        "levels_local_unscaled",
        "M01",
        "Inside the pieces, the scores are not scaled",
        "Both levels are attention, and both divide by the root of d.",
        "Compare how the two levels make their scores.",
    ),
    Mistake(
        "levels_far_unscaled",
        "M01",
        "On the second level, the scores are not scaled",
        "Both levels are attention, and both divide by the root of d.",
        "Compare how the two levels make their scores.",
    ),
    Mistake(
        "levels_pieces_strided",
        "",
        "A piece is every so-manieth token, not neighbours",
        "A piece holds tokens that stand side by side.",
        "x[start : start + width].",
    ),
    Mistake(
        "levels_pieces_overlap",
        "",
        "Neighbouring pieces share a token",
        "Each token belongs to one piece. The article's pool has width 3 and steps of "
        "2; here both are `width`.",
        "Where does a piece end?",
    ),
    Mistake(
        "levels_rest_lost",
        "",
        "The tokens of the last piece are lost",
        _REST,
        "How many pieces are there, if the width does not divide n?",
    ),
    Mistake(
        "levels_local_missing",
        "",
        "There is no attention inside the pieces",
        "local is the attention of each piece to itself.",
        "First level: attention with a piece as queries, keys and values.",
    ),
    Mistake(
        "levels_local_full",
        "",
        "The first level looks at all tokens",
        "Each piece looks at itself only. All pairs are what had to be avoided.",
        "First level: attention with a piece as queries, keys and values.",
    ),
    Mistake(
        "levels_means_of_x",
        "",
        "The means are taken of x, not of what the pieces found",
        _MEANS + " It is the mean of the first level's result.",
        "Which array do you average?",
    ),
    Mistake(
        "levels_keys_not_pooled",
        "",
        "The second level looks at every token",
        _MEANS + " Without means, all pairs are computed after all.",
        "Keys and values of the second level are the means.",
    ),
    Mistake(
        "levels_sums",
        "",
        "Pieces are summed up, not averaged",
        _MEANS,
        "A mean divides.",
    ),
    Mistake(
        "levels_largest",
        "",
        "The largest of each feature is taken, not the mean",
        _MEANS,
        "Mean pooling, not max pooling.",
    ),
    Mistake(
        "levels_first_tokens",
        "",
        "The first token of a piece stands for it, not the mean",
        _MEANS,
        "Average over the tokens of the piece.",
    ),
    Mistake(
        "levels_last_tokens",
        "",
        "The last token of a piece stands for it, not the mean",
        _MEANS,
        "Average over the tokens of the piece.",
    ),
    Mistake(
        "levels_rest_diluted",
        "",
        "The mean of the last piece is divided by the full width",
        _REST + " Zeros that fill it up are no tokens.",
        "By how many tokens do you divide?",
    ),
    Mistake(
        "levels_rest_not_pooled",
        "",
        "The last piece has no mean",
        _REST,
        "How many means are there, if the width does not divide n?",
    ),
    Mistake(
        "levels_one_number",
        "",
        "A piece is averaged to one number",
        _MEANS + " A mean over all axes has no features left.",
        "Which axis holds the tokens?",
    ),
    Mistake(
        "levels_queries_are_x",
        "",
        "On the second level x asks, not what the pieces found",
        "local has read its piece already. The docstring lets it ask.",
        "What is the first argument of your second attention?",
    ),
    Mistake(
        "levels_far_only",
        "",
        "What the pieces found is not in the result",
        _SUM,
        "Add the two levels.",
    ),
    Mistake(
        "levels_local_only",
        "",
        "What is far is not in the result",
        _SUM,
        "Add the two levels.",
    ),
    Mistake(
        "levels_residual",
        "",
        "x is added as well",
        _SUM + " A residual connection belongs around it, not inside.",
        "Two summands.",
    ),
    Mistake(
        "levels_x_for_local",
        "",
        "x is added, in place of what the pieces found",
        _SUM,
        "Which array is local?",
    ),
    Mistake(
        "levels_halved",
        "",
        "The two levels are averaged, not added",
        _SUM,
        "Leave out the division.",
    ),
    Mistake(
        "levels_side_by_side",
        "",
        "The two levels stand side by side",
        _SUM + " The result has the shape of x.",
        "Add, do not concatenate.",
    ),
)
