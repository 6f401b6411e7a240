"""Mistakes in a sliding window and in a padding mask."""

from attnlib.clinic.catalogue import Mistake

_COUNT = (
    "A window of w keys is the query's own key and the w - 1 before it; with `left` "
    "keys before the query it is left + 1 keys."
)

MISTAKES = (
    Mistake(
        "window_one_more",
        "M32",
        "The window is one key too wide",
        _COUNT + " flash-attn counts window_size=(w - 1, 0) for w keys.",
        "Count the keys that the last query sees.",
        "huggingface/transformers#39408",
    ),
    Mistake(
        "window_one_less",
        "M32",
        "The window is one key too narrow",
        _COUNT + " A strict < beside a distance of w - 1 takes one off twice.",
        "Count the keys that the last query sees.",
    ),
    Mistake(
        "window_two_more",
        "M32",
        "The window is two keys too wide",
        _COUNT,
        "Count the keys that the last query sees.",
    ),
    Mistake(
        "window_right_one_more",
        "M32",
        "The window reaches one key too far ahead",
        "Keys behind the query are another side, counted apart. A window that is "
        "causal sees none of them.",
        "Which is the last key that query 0 sees?",
    ),
    Mistake(
        "window_right_one_less",
        "M32",
        "The window ends one key too early",
        "The query's own key belongs to the window, whatever its width.",
        "Does a query see itself?",
    ),
    Mistake(
        "window_both_one_more",
        "M32",
        "The window is one key too wide on both sides",
        _COUNT,
        "Count the keys that a query in the middle sees.",
    ),
    Mistake(
        "window_both_one_less",
        "M32",
        "The window is one key too narrow on both sides",
        _COUNT,
        "Count the keys that a query in the middle sees.",
    ),
    Mistake(
        "window_halved",
        "M32",
        "Half of the window is missing",
        "Half of the width goes to each side only where a query sees both sides. A "
        "causal window lies before the query altogether.",
        "Count the keys that the last query sees.",
    ),
    Mistake(
        "window_two_sided",
        "M32",
        "The window is open ahead, too",
        "|i - j| does not tell past and future apart. A causal window is cut at the "
        "query's own place.",
        "Combine it with the causal mask.",
    ),
    Mistake(
        "window_not_causal",
        "M32",
        "The window has no end: all of the future is in it",
        "Two conditions make a causal window: not too far back, and not ahead.",
        "Which keys does query 0 see?",
    ),
    Mistake(
        "window_missing",
        "M32",
        "There is no window: the whole past is seen",
        "The mask is causal, and the width that is handed in changes nothing.",
        "Count the keys that the last query sees.",
    ),
    Mistake(
        "window_ahead",
        "M32",
        "The window lies ahead of the query, not behind it",
        "key - query is negative in the past. One of the two was subtracted the wrong "
        "way round.",
        "Which keys does the last query see?",
    ),
    Mistake(
        "window_self_hidden",
        "M32",
        "A query does not see itself",
        "The query's own key belongs to the window, and in row 0 there is no other.",
        "Is it < or <=?",
    ),
    Mistake(
        "window_blocks",
        "M32",
        "The window does not slide: tokens are cut into blocks",
        "The first token of a block then sees itself alone, and not the ones before.",
        "The window is counted from each query.",
    ),
    Mistake(
        "window_outside",
        "M32",
        "What lies outside the window is seen",
        "The comparison is turned round: the near keys are hidden, the far ones seen.",
        "Which way does the comparison with the width go?",
    ),
    Mistake(
        "padding_last_only",
        "M16",
        "Only the last real key is seen",
        "A length is a count: all the keys before it are real.",
        "A comparison with <, and not with ==.",
    ),
)
