"""Mistakes in cutting and joining heads, and in what all heads share."""

from attnlib.clinic.catalogue import Mistake

_BATCH = "A batch has axes in front, and they must stay where they are."
_FROM_THE_END = "Count the axes from the end: -3 and -2, and keep x.shape[:-3]."

MISTAKES = (
    Mistake(
        "split_overlapping",
        "M20",
        "The heads overlap: head h begins at feature h",
        "Each head has d features of its own, so head h begins after the h * d "
        "features of those before it.",
        "Where does head 1 begin?",
    ),
    Mistake(
        "split_turned_first",
        "M20",
        "The tokens are turned over before they are cut",
        "After the swap, the numbers of one token no longer lie side by side, and "
        "reshape cuts through all tokens.",
        "First cut the features of each token, then exchange two axes.",
    ),
    Mistake(
        "merge_along_tokens",
        "M21",
        "The heads are joined along the tokens",
        "There are as many tokens as before, each with the numbers of all heads.",
        "Which axis should become longer?",
    ),
    *(
        Mistake(
            key,
            "M17",
            "The first axis is taken for the heads",
            _BATCH + " With one in front, the sentences are joined and not the heads.",
            _FROM_THE_END,
        )
        for key in ("merge_items", "merge_items_stacked")
    ),
    Mistake(
        "merge_batch_flattened",
        "M17",
        "The sentences of a batch are strung together",
        _BATCH,
        _FROM_THE_END,
    ),
    Mistake(
        "heads_all_first",
        "M20",
        "All heads take the columns of head 0",
        "Then they all say the same. Head h has its own columns of W_q, W_k and W_v.",
        "Which columns belong to head 1?",
    ),
    Mistake(
        "scale_d_model_part",
        "M02",
        "Divided by √(d_model // n_heads), where √d_k is meant",
        "Often the two are equal, but a head may be wider or narrower. The dot product "
        "adds d_k numbers.",
        "Take d_k from the queries themselves: what is left after the split?",
    ),
    Mistake(
        "scale_d_model_share",
        "M02",
        "Divided by √(d_model / n_heads), where √d_k is meant",
        "Often the two are equal, but a head may be wider or narrower. The dot product "
        "adds d_k numbers.",
        "Take d_k from the queries themselves: what is left after the split?",
    ),
    Mistake(
        "axis_heads",
        "M04",
        "The softmax runs over the heads, not the keys",
        "Heads do not compete. Each query hands out 1 over its keys, in every head.",
        "Sum over the last axis.",
        "facebookresearch/detr#247",
    ),
    Mistake(
        "weights_averaged",
        "M42",
        "The weights of the heads are averaged before they mix the values",
        "Then all heads look at the same tokens, and there is but one pattern again.",
        "Let each head mix its values by its own weights.",
    ),
    Mistake(
        "W_o_first_rows",
        "M21",
        "Every head meets the same rows of W_o",
        "Heads added up before W_o, or all multiplied by its first d_v rows. W_o has "
        "d_v rows for each head.",
        "Which rows of W_o belong to head 1?",
    ),
)
