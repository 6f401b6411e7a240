"""Mistakes in masks of two parts, and what lesson 03 adds to the others."""

from attnlib.clinic.catalogue import Mistake

MISTAKES = (
    Mistake(
        "head_axis_first",
        "M17",
        "The axis of 1 for the heads stands before the batch",
        "The scores are (batch, n_heads, n_q, n_k), matched from the right. Your batch "
        "meets the heads there.",
        "Which axis of the scores does each of your four meet?",
    ),
    Mistake(
        "causal_always",
        "M16",
        "The future is hidden also where is_causal is False",
        "A model that reads a whole text at once may look in both directions.",
        "When is the triangle wanted?",
    ),
    Mistake(
        "causal_forgotten_with_padding",
        "M16",
        "With lengths given, nothing hides the future",
        "Padding and the causal mask are two questions. Your mask answers one or the "
        "other, never both.",
        "Is the second `if` reached when the first one was true?",
    ),
    Mistake(
        "article_as_printed",
        "M16",
        "The function of the article, with is_causal defined and nothing else changed",
        "The triangle is cut from a single row of keys, so only key 0 is left; and "
        "without an axis for the heads, sentences and heads are mixed up.",
        "From which table must the triangle be cut, and how many axes have the scores?",
    ),
    Mistake(
        "tril_of_one_row",
        "M16",
        "The triangle is cut from a single row of keys",
        "The lower triangle of one row is its first place: every query sees key 0 "
        "alone.",
        "From which table must the triangle be cut?",
    ),
    Mistake(
        "article_boolean",
        "M16",
        "The function of the article, with truth values and nothing else changed",
        "The triangle is cut from a single row of keys, so only key 0 is left; and "
        "without an axis for the heads, sentences and heads are mixed up.",
        "From which table must the triangle be cut, and how many axes have the scores?",
    ),
    Mistake(
        "only_padding",
        "M16",
        "Only the fillers are hidden, not the future",
        "Every query sees the tokens after its own.",
        "Which keys come later than query i?",
    ),
    Mistake(
        "only_causal",
        "M16",
        "Only the future is hidden, not the fillers",
        "Sentences differ in length, so the mask cannot be the same for all of them.",
        "Which keys are real?",
    ),
    Mistake(
        "padding_column",
        "M15",
        "The padding is masked on the axis of the queries",
        "A mask says who is read. Here the fillers still are, and only their own rows "
        "are empty.",
        "Padding belongs to the last axis, the keys.",
        "hyunwoongko/transformer#40",
    ),
    Mistake(
        "triu",
        "M07",
        "The upper triangle: the mask is upside down",
        "triu with k=1 marks what is blocked. Here True = may look, so every token "
        "sees only what comes after it.",
        "Which triangle holds the past?",
        "rasbt/LLMs-from-scratch#1061",
    ),
    Mistake(
        "triu_shifted",
        "M07",
        "The causal part is upside down",
        "Yours marks what is blocked. Here True = may look, so every token sees only "
        "what comes after it.",
        "Which triangle holds the past?",
        "rasbt/LLMs-from-scratch#1061",
    ),
    Mistake(
        "document_later_too",
        "M16",
        "Later documents are visible",
        "Packed documents must not see each other, in either direction.",
        "When do two tokens belong together?",
    ),
    Mistake(
        "empty_row_unmasked",
        "M14",
        "A row that may look at nothing sees everything",
        "A constant such as -1e9, added to every score of the row, drops out in the "
        "softmax: the row looks as if there were no mask.",
        "Decide for zeros: what must the weights of such a row be?",
        "pytorch/pytorch#103749",
    ),
    Mistake(
        "mask_all_false",
        "M14",
        "Nobody may look at anything",
        "Every place of the mask is False, so every row is empty.",
        "Which pairs should be True?",
    ),
    Mistake(
        "offset_negated",
        "M19",
        "The triangle is shifted to the wrong side",
        "A positive k moves the diagonal to the right. With more keys than queries the "
        "first query already has a past.",
        "How many keys may query 0 see, if there are 2 queries and 4 keys?",
        "pytorch/pytorch#108108",
    ),
    Mistake(
        "document_runs",
        "",
        "A number that comes again counts as a new document",
        "The same number means the same document, also further on: in 7, 7, 4, 7 the "
        "last token belongs to the first two.",
        "Compare the numbers themselves, not where they change.",
    ),
    Mistake(
        "document_nonzero",
        "",
        "Tokens see each other wherever both numbers are not 0",
        "The numbers are names. 7 and 4 are two documents, and 0 is one as well.",
        "When do two tokens belong together?",
    ),
    Mistake(
        "document_zero_hidden",
        "",
        "Document 0 is hidden",
        "0 is a number like any other here, and no sign for a filler.",
        "When do two tokens belong together?",
    ),
    Mistake(
        "mask_after_divided",
        "M10",
        "The mask comes after exp, and the rows are divided by their sums",
        "That holds while the scores are close. Beside a hidden score 1000 above, the "
        "allowed ones are rounded to 0 before they are divided. A hidden score that "
        "counts when the largest is sought does the same.",
        "Mask first; then the largest, exp and the sum.",
    ),
    Mistake(
        "mask_after_divided_nan",
        "M10",
        "The mask comes after the softmax, and the rows are divided by their sums",
        "Beside a hidden score 1000 above, the allowed ones are rounded to 0, and "
        "0 / 0 is NaN; so it is in a row that may look at nothing.",
        "Mask first, then softmax.",
    ),
    Mistake(
        "mask_times_infinity",
        "",
        "A mask of 0 and 1 is multiplied by -inf",
        "1 times -inf hides a key, but 0 times -inf is NaN, and the NaN lands on the "
        "keys that are allowed.",
        "np.where chooses between two numbers, and multiplies nothing.",
    ),
    Mistake(
        "mask_nan_throughout",
        "",
        "Every weight is NaN",
        "If you multiply a mask of 0 and 1 by -inf: 0 times -inf is NaN. One NaN in a "
        "row makes the whole row NaN.",
        "np.where chooses between two numbers, and multiplies nothing.",
    ),
)
