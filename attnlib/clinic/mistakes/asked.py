"""Mistakes in what a mask is asked for: which keys, which sentence, which row."""

from attnlib.clinic.catalogue import Mistake

MISTAKES = (
    Mistake(
        "mask_additive_finite",
        "M08",
        "A mask to be added, of 0 and -1e9, where True and False are meant",
        "Such a mask is made for addition. This course keeps masks boolean, so that & "
        "and | combine them.",
        "A comparison gives truth values.",
        "huggingface/diffusers#14342",
    ),
    Mistake(
        "causal_square_keys",
        "M19",
        "n_q is not used: the mask is always square",
        "With a cache there are fewer queries than keys, and only they need a row.",
        "How many rows must the mask have?",
        "Dao-AILab/flash-attention#282",
    ),
    Mistake(
        "aligned_to_length",
        "M19",
        "The last query stands beside the last real key",
        "Fillers stand at the end here and count as keys, so every sentence has the "
        "same triangle. Yours gives each a triangle of its own.",
        "Where does the last query stand, whatever the lengths are?",
    ),
    Mistake(
        "padding_on_queries_placed",
        "M15",
        "The padding is masked on the axis of the queries",
        "A mask says who is read, so it closes columns. Yours closes rows: those of "
        "the padding are empty, which brings NaN elsewhere.",
        "Padding belongs to the last axis, the keys.",
        "hyunwoongko/transformer#40",
    ),
    Mistake(
        "padding_on_both_placed",
        "M15",
        "The padding is masked on both axes",
        "The rows of the padding become empty, which brings NaN elsewhere. It is "
        "enough that no one reads the padding.",
        "Padding belongs to the last axis, the keys.",
        "keras-team/keras-io#1046",
    ),
    Mistake(
        "padding_in_front",
        "M28",
        "The fillers are sought at the front",
        "Some models fill there. Here the words come first, and the fillers stand at "
        "the end.",
        "Is key 0 real?",
    ),
    Mistake(
        "batch_first",
        "M17",
        "Every sentence is masked by the length of the first",
        "The others then lose words, or their fillers are read.",
        "Each sentence must be masked by its own length.",
    ),
    Mistake(
        "combined_by_or_where_both",
        "M16",
        "Causal OR real, where causal AND real is meant",
        "With OR, one yes is enough: the future of real tokens and the padding of the "
        "past are both visible.",
        "Both conditions must hold.",
        "keras-team/keras-io#482",
    ),
    Mistake(
        "padding_overwritten",
        "M16",
        "Where is_causal is True, the lengths have no effect",
        "Padding and the causal mask are two questions. The second answer takes the "
        "place of the first, instead of joining it.",
        "Does the second `if` keep what the first one made?",
    ),
    Mistake(
        "causal_reversed",
        "M16",
        "is_causal is asked the wrong way round",
        "The future is hidden where it may be seen, and seen where it is to be hidden.",
        "What should happen if is_causal is True?",
    ),
    Mistake(
        "nothing_asked_nothing_open",
        "M14",
        "Where nothing is to be hidden, everything is",
        "Without lengths and without is_causal, every query may look at every key.",
        "Which mask hides nothing?",
    ),
    Mistake(
        "document_self_hidden",
        "M18",
        "A token may not look at itself",
        "It belongs to its own document. A document of one token would see nothing.",
        "What should stand on the diagonal?",
    ),
    Mistake(
        "document_from_here",
        "",
        "A token sees its document from its own place on only",
        "This function asks only which document a token belongs to, not which comes "
        "first.",
        "Leave the order of the tokens out.",
    ),
    Mistake(
        "document_sorted",
        "",
        "The documents are sorted first",
        "Row i belongs to token i, wherever its document stands in the sequence. "
        "Sorted, or laid out block by block, rows and tokens no longer agree.",
        "Leave the ids in their order.",
    ),
    Mistake(
        "empty_row_filled",
        "M14",
        "A query that may look at nothing looks at everything",
        "A fill such as -1e9 makes all scores of its row equal, and softmax sees "
        "differences only: each forbidden key gets the same share. The course decides: "
        "such a row gets zeros.",
        "With which fill can softmax tell that the whole row is hidden?",
        "pytorch/pytorch#103749",
    ),
    Mistake(
        "mask_replaced_by_causal",
        "M16",
        "The mask that is handed over is not used, but a causal one",
        "The caller decides who may look at whom: padding, documents and windows come "
        "this way, too.",
        "Where does your mask come from?",
    ),
    Mistake(
        "returned_masked_scores",
        "",
        "The scores are returned in place of the weights",
        "The output is right. What the caller wants to see are the weights, after the "
        "softmax.",
        "Return what the softmax gave.",
    ),
)
