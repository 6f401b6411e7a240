"""Mistakes in splitting and merging heads, and in multi-head attention."""

from attnlib.clinic.catalogue import Mistake

_VIEW = "reshape keeps the order in which the numbers are read."
_BATCH = "A batch has axes in front, and they must stay where they are."
_FROM_THE_END = "Keep x.shape[:-1], and count the axes from the end: -3 and -2."

MISTAKES = (
    Mistake(
        "split_no_transpose",
        "M20",
        "The heads are split without a transpose",
        _VIEW + " Going straight to (n_heads, n, d) cuts the tokens, not the features.",
        "First cut the features of each token, then exchange two axes.",
        "reczoo/FuxiCTR#30",
    ),
    Mistake(
        "split_only_reshaped",
        "M20",
        "The heads are cut, but still stand after the tokens",
        "The last two axes must be token and feature, so that q @ kᵀ compares tokens.",
        "Exchange the axis of the tokens with that of the heads.",
    ),
    Mistake(
        "heads_never_moved",
        "M20",
        "The heads are cut, but the heads of one token look at each other",
        "The last two axes must be token and feature, so that q @ kᵀ compares tokens. "
        "Yours are head and feature: no token hears another.",
        "Exchange the axis of the tokens with that of the heads before q meets k, and "
        "back before merging.",
    ),
    Mistake(
        "split_interleaved",
        "M22",
        "The features are dealt out to the heads like cards",
        "Head 0 then gets features 0, n_heads, 2 n_heads, and so on. That is allowed "
        "only if the columns of the weights are sorted likewise.",
        "Head 0 takes the first d features, side by side.",
    ),
    Mistake(
        "split_features_first",
        "M20",
        "The axes stand in the order head, feature, token",
        "The last two axes must be token and feature.",
        "Exchange only two axes.",
    ),
    Mistake(
        "split_wrong_axes",
        "M20",
        "The wrong two axes are exchanged",
        "Feature and head have changed places, and the tokens still come first.",
        "Exchange the axis of the tokens with that of the heads.",
    ),
    Mistake(
        "split_heads_before_batch",
        "M17",
        "The heads stand before the batch",
        "Every batch axis stays to the left of the heads.",
        "Count the axes from the end: -2 and -3.",
    ),
    Mistake(
        "split_no_batch",
        "M20",
        "Only tables of two axes are split rightly",
        _BATCH,
        _FROM_THE_END,
    ),
    Mistake(
        "split_first_axes",
        "M20",
        "Only tables of two axes are split rightly",
        _BATCH + " Axis 0 is the batch then, and no longer the tokens.",
        "Count the axes from the end: -3 and -2.",
    ),
    Mistake(
        "heads_of_size_n_heads",
        "M20",
        "The number of heads and the size of a head are exchanged",
        "n_heads says how many heads there are. Their size is d_model / n_heads.",
        "Which of the two is d_model // n_heads?",
    ),
    Mistake(
        "merge_no_transpose",
        "M21",
        "The heads are merged without a transpose",
        _VIEW + " The features of one token stand in different heads, so they must be "
        "brought together first.",
        "Exchange two axes first, then reshape.",
        "jsbaan/transformer-from-scratch#6",
    ),
    Mistake(
        "merge_interleaved",
        "M22",
        "The features of the heads are shuffled into each other",
        "Feature 0 of every head comes first, then feature 1. W_o expects head 0 "
        "whole, then head 1.",
        "Before the reshape the axes are: token, head, feature.",
    ),
    Mistake(
        "merge_features_first",
        "M21",
        "The wrong two axes are exchanged before merging",
        _VIEW + " Token and feature have changed places here.",
        "Before the reshape the axes are: token, head, feature.",
        "ajhalthor/Transformer-Neural-Network#8",
    ),
    Mistake(
        "merge_not_reshaped",
        "M21",
        "The axes are exchanged, but head and feature not yet joined",
        "One step is missing: the two last axes become one.",
        "What shape should the result have?",
    ),
    Mistake(
        "merge_sum",
        "M21",
        "The heads are added up",
        "Heads are put side by side; W_o decides how they mix.",
        "Keep all n_heads * d numbers of each token.",
    ),
    Mistake(
        "merge_mean",
        "M21",
        "The heads are averaged",
        "Heads are put side by side; W_o decides how they mix.",
        "Keep all n_heads * d numbers of each token.",
    ),
    Mistake(
        "merge_no_batch",
        "M21",
        "Only heads without a batch are merged rightly",
        _BATCH,
        "Count the axes from the end: -3 and -2, and keep x.shape[:-3].",
    ),
    *(
        Mistake(
            key,
            "M21",
            "Only heads without a batch are merged rightly",
            _BATCH + " Axis 0 is the batch then, and no longer the heads.",
            "Count the axes from the end: -3 and -2, and keep x.shape[:-3].",
        )
        for key in ("merge_first_axes", "merge_first_axes_counted")
    ),
    Mistake(
        "merge_mean_repeated",
        "M21",
        "The heads are averaged",
        "Heads are put side by side; W_o decides how they mix. A mean has lost what "
        "each of them found.",
        "Keep all n_heads * d_v numbers of each token.",
    ),
    Mistake(
        "out_mean",
        "M21",
        "The heads are averaged",
        "What each head contributes, its numbers times its own rows of W_o, is added "
        "up. Nothing divides by the number of heads.",
        "Sum instead of taking the mean.",
    ),
    Mistake(
        "residual_added",
        "",
        "The tokens are added to the result",
        "A whole block of a model does that, around its attention. The layer itself "
        "returns only what its heads found.",
        "Return what comes out of W_o.",
    ),
    Mistake(
        "scale_all_heads",
        "M02",
        "The scale uses the width of all heads together",
        "A score adds up the products of one head, d_k of them. W_q has n_heads * d_k "
        "columns.",
        "Divide by the root of what is left after the split.",
    ),
    Mistake(
        "weights_W_reshaped",
        "M20",
        "The tables are reshaped, not cut into columns",
        "The tables of the heads lie side by side. " + _VIEW + " Going straight to "
        "(n_heads, d_model, d) cuts rows, not columns.",
        "Head 0 has the first d columns. Or multiply first, and split x @ W_q.",
    ),
    Mistake(
        "one_head",
        "",
        "All features are attended as one head",
        "One head gives each query one row of weights. n_heads heads give n_heads "
        "rows, each from its own columns of q and k.",
        "Split q, k and v before they meet.",
    ),
    Mistake(
        "shared_q_k",
        "M46",
        "Queries and keys come from the same weights",
        "Then the scores are symmetric: what A thinks of B, B thinks of A.",
        "Which weights make the keys?",
    ),
    Mistake(
        "softmax_over_heads",
        "M05",
        "The softmax runs over all heads together",
        "Heads do not compete. Each hands out a 1 of its own.",
        "Sum over the keys of one head.",
        "facebookresearch/detr#247",
    ),
    Mistake(
        "W_o_missing",
        "M47",
        "W_o is missing",
        "Without W_o the heads stand side by side and never mix.",
        "What happens after merging?",
    ),
    Mistake(
        "W_o_transposed",
        "M47",
        "W_o is transposed",
        "Row vectors are multiplied from the left: x @ W. nn.Linear keeps its weights "
        "transposed, this course does not.",
        "Leave W_o as it is.",
    ),
    Mistake(
        "weights_W_transposed",
        "M47",
        "W_q, W_k and W_v are transposed",
        "Row vectors are multiplied from the left: x @ W. nn.Linear keeps its weights "
        "transposed, this course does not.",
        "Leave the weights as they are.",
    ),
    Mistake(
        "mask_tiled_over_heads",
        "M17",
        "The masks of the batch are dealt out to the wrong heads",
        "A batch of masks repeated head by head needs each mask n_heads times in a "
        "row, not the whole batch n_heads times.",
        "Give the mask an axis of 1 for the heads, and let it broadcast.",
        "lsdefine/attention-is-all-you-need-keras#36",
    ),
    Mistake(
        "kv_heads_tiled",
        "M33",
        "The shared keys are tiled, not repeated",
        "Neighbouring query heads share a key head: 0 0 1 1, not 0 1 0 1.",
        "Which key head belongs to query head 1?",
        "onnx/onnx#7274",
    ),
    *(
        Mistake(
            key,
            "M33",
            f"The shared {what} are tiled, the {other} are repeated",
            "Keys and values of a token belong together: query head h reads both from "
            "the same shared head. Here each takes another one.",
            "Repeat keys and values in the same way: neighbours share.",
            "onnx/onnx#7274",
        )
        for key, what, other in (
            ("key_heads_tiled", "keys", "values"),
            ("value_heads_tiled", "values", "keys"),
        )
    ),
)
