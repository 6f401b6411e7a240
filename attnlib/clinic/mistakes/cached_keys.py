"""Mistakes of new tokens that look at a cache."""

from attnlib.clinic.catalogue import Mistake

_ORDER = (
    "A cache holds what came before, so the new tokens stand behind it: old ones "
    "first, then new ones. The causal mask counts on that order."
)
_AXIS = (
    "Keys are (..., n, d_k). Tokens stand on the last axis but one, with a batch and "
    "without."
)
_PLACE = "New token i stands at place n_old + i of the text, and sees all up to itself."
_KEPT = "The next call gets what this one returns, and needs every token so far."

MISTAKES = (
    Mistake(
        "cache_new_first",
        "",
        "The new tokens stand before the old ones",
        _ORDER,
        "Exchange the two that are joined.",
    ),
    Mistake(
        "cache_keys_new_first",
        "",
        "New keys stand before the old ones, and new values behind them",
        _ORDER + " Now weight j meets the value of another token.",
        "Join keys and values in the same order.",
    ),
    Mistake(
        "cache_values_new_first",
        "",
        "New values stand before the old ones, and new keys behind them",
        _ORDER + " Now weight j meets the value of another token.",
        "Join keys and values in the same order.",
    ),
    Mistake(
        "cache_first_axis",
        "",
        "Axis 0 is taken for that of the tokens",
        _AXIS + " Axis 0 is theirs only where there is no batch.",
        "Count axes from the end: axis=-2, with a batch and without.",
    ),
    Mistake(
        "cache_axis_of_heads",
        "",
        "Old and new are joined along the axis of heads, or of the batch",
        _AXIS,
        "Count axes from the end.",
    ),
    Mistake(
        "cache_own_missing",
        "M19",
        "The new tokens look at the cache only, not at themselves",
        _PLACE + " The cache has to grow before it is looked at.",
        "Join first, then attend.",
    ),
    Mistake(
        "causal_at_start_only",
        "M19",
        "Nothing hides the future once there is something in the cache",
        _PLACE + " One new token has no future to hide. Several have, also behind a "
        "cache: a prompt that is read in pieces.",
        "The same mask for every call, with an offset of n_old.",
    ),
    Mistake(
        "causal_behind_cache_only",
        "M19",
        "Nothing hides the future while the cache is empty",
        _PLACE + " With an empty cache n_old is 0, and the rule is the same.",
        "The same mask for every call, with an offset of n_old.",
    ),
    Mistake(
        "cache_hidden",
        "M19",
        "The new tokens do not see the cache",
        _PLACE + " All of the cache came before.",
        "Attend over the joined keys; in the mask the columns of the cache are True.",
    ),
    Mistake(
        "cache_oldest_hidden",
        "",
        "The oldest token of the cache is hidden",
        _PLACE + " The first token counts as well.",
        "Where does your slice of the cache begin?",
    ),
    Mistake(
        "cache_triangle_too",
        "M19",
        "A triangle lies over the cache as well",
        _PLACE + " All of the cache came before: only the new tokens hide each other.",
        "In the mask the columns of the cache are True.",
    ),
    Mistake(
        "cache_sizes_in_front",
        "",
        "The mask takes its sizes from axis 0",
        _AXIS + " Axis 0 is theirs only where there is no batch, and so is `len`.",
        "q.shape[-2] and keys.shape[-2].",
    ),
    Mistake(
        "offset_is_n_new",
        "M19",
        "The triangle is moved by n_new, where n_old is meant",
        _PLACE,
        "At which place does the first new token stand?",
    ),
    Mistake(
        "mirrored_top_left",
        "M19",
        "The triangle is upside down, and starts at the top left",
        _PLACE + " Yours hides the past.",
        "What must the last row look like?",
    ),
    Mistake(
        "parts_added",
        "",
        "The cache and the new tokens have a softmax each, and both are added",
        "A query has one sum of 1 to hand out, over old and new keys together. Two "
        "softmaxes hand out 2.",
        "Join first, then attend once.",
    ),
    Mistake(
        "parts_averaged",
        "",
        "The cache and the new tokens have a softmax each, and get a half each",
        "A query has one sum of 1 to hand out, over old and new keys together. How "
        "much of it the cache gets is for the scores to say.",
        "Join first, then attend once.",
    ),
    Mistake(
        "kept_before_out",
        "",
        "The cache is returned before the result",
        "out, keys, values is the order that the docstring asks for.",
        "What stands first in your return?",
    ),
    Mistake(
        "kept_nothing_new",
        "",
        "The cache comes back as it was, without the new tokens",
        _KEPT,
        "Return the joined keys and values.",
    ),
    Mistake(
        "kept_new_only",
        "",
        "Only the new tokens are kept",
        _KEPT,
        "Return the joined keys and values.",
    ),
    Mistake(
        "kept_new_first",
        "",
        "In the cache that comes back, the new tokens stand before the old ones",
        _ORDER,
        "Exchange the two that are joined, and the halves of the mask with them.",
    ),
    Mistake(
        "kept_keys_twice",
        "",
        "The keys are kept twice, and the values are lost",
        _KEPT,
        "What stands third in your return?",
    ),
    Mistake(
        "kept_swapped",
        "",
        "Keys and values are returned in each other's place",
        "out, keys, values is the order that the docstring asks for.",
        "What stands second in your return?",
    ),
    Mistake(
        "kept_scaled",
        "M03",
        "The keys are kept divided by √d_k",
        _KEPT + " The next call divides again, so that old keys are scaled twice.",
        "Scale the scores, not what is kept.",
    ),
    Mistake(
        "kept_last_dropped",
        "",
        "The newest token is not kept",
        _KEPT,
        "Return the joined keys and values, all of them.",
    ),
    Mistake(
        "kept_first_dropped",
        "",
        "The oldest token is dropped from the cache",
        _KEPT + " Dropping is for attention with a window (lesson 13).",
        "Return the joined keys and values, all of them.",
    ),
)
