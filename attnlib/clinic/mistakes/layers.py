"""Mistakes in the attention of a real layer."""

from attnlib.clinic.catalogue import Mistake

_ROPE = (
    "RoPE turns queries and keys, each head's own d_k features, by the place of their "
    "token. Then a score depends on how far apart two tokens stand."
)

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
        "Every distance has the wrong sign",
        _ROPE + " Yours is minus that: the places are counted from the last token, or "
        "the pairs are turned the other way.",
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
        "Which key head belongs to the last query head?",
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
        "kv_groups_of_three",
        "M33",
        "Always three query heads share a key head",
        "Three is right for the course's model: 6 query heads on 2 key heads. The "
        "size of a group is n_heads // n_kv_heads.",
        "Work it out from the arguments.",
    ),
    Mistake(
        "kv_columns_repeated",
        "M33",
        "The columns of the keys are repeated, not their heads",
        "Each head then holds a few features again and again. A whole head is shared,"
        " with all its features in order.",
        "Split first, then repeat along the axis of heads.",
    ),
    Mistake(
        "scale_of_24",
        "M02",
        "Divided by √24, whatever d_k is",
        "24 is the d_k of the course's model. Another layer has another.",
        "The last size of q says it.",
    ),
    Mistake(
        "diagonal_missing_nan",
        "M18",
        "A token may not look at itself, and the first sees nothing",
        "A softmax over no key at all is 0 / 0, so row 0 is NaN. What is shifted in "
        "training are the targets, not the mask.",
        "Is j = i allowed?",
        "pbloem/former#10",
    ),
)
