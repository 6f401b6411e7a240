"""Mistakes on the way to PyTorch: gradients by hand, its masks, its stored weights."""

from attnlib.clinic.catalogue import Mistake

_ROW = (
    "What one key gains the others pay: a row of weights sums to 1, so a row of "
    "gradients of scores sums to 0."
)
_ROW_MEND = "Write the rule for one row with numbers, and sum it."
_BACK = "Scores are raw scores divided by √d_k, so the gradient is divided by it, too."
_BACK_MEND = "On the way back, where does the gradient pass the division?"
_FUSED = (
    "in_proj_weight has the 3 · d_model rows of nn.Linear: first those of W_q, then of "
    "W_k, then of W_v."
)
_FUSED_MEND = "Which rows belong to W_q? Count in blocks of d_model."
_TWO_RULES = "Mask and causal are two rules, and a key must pass both."

MISTAKES = (
    Mistake(
        "softmax_not_differentiated",
        "",
        "The softmax is left out on the way back",
        "The gradient of the weights is handed on as that of the scores. Between them "
        "lies the Jacobian of softmax, lesson 02.",
        "How does weight i answer to score j?",
    ),
    Mistake(
        "softmax_sum_missing",
        "",
        "The sum is missing in the gradient of softmax",
        _ROW + " weights * grad_weights alone forgets that all share one sum.",
        _ROW_MEND,
    ),
    Mistake(
        "softmax_diagonal_only",
        "",
        "Each weight answers to its own score only",
        "w(1 - w) is the diagonal of the Jacobian. The others, -wᵢwⱼ, count as well. "
        + _ROW,
        _ROW_MEND,
    ),
    Mistake(
        "softmax_sum_unweighted",
        "",
        "The sum in the gradient of softmax is not weighted",
        "What is subtracted is the mean of grad_weights under the weights, "
        "Σ wⱼ gⱼ, not Σ gⱼ. " + _ROW,
        _ROW_MEND,
    ),
    Mistake(
        "softmax_mean_for_sum",
        "",
        "A plain mean is subtracted in the gradient of softmax",
        "What is subtracted is the mean of grad_weights under the weights, Σ wⱼ gⱼ. "
        "The plain mean is the same only for equal weights. " + _ROW,
        _ROW_MEND,
    ),
    Mistake(
        "softmax_sum_over_queries",
        "M04",
        "The sum in the gradient of softmax runs over the queries",
        "Each query's row has a softmax of its own. " + _ROW,
        "Over which axis did softmax divide?",
    ),
    *(
        Mistake(
            key,
            "M04",
            "The sum in the gradient of softmax runs over too much",
            "Each query's row has a softmax of its own, and so a sum of its own. "
            + _ROW,
            "Sum over the keys, and keep the axis.",
        )
        for key in ("softmax_sum_over_all", "softmax_sum_everywhere")
    ),
    Mistake(
        "softmax_factor_missing",
        "",
        "The factor `weights` is missing in the gradient of softmax",
        "A weight of 0 does not answer to its score at all; yours does. " + _ROW,
        _ROW_MEND,
    ),
    Mistake(
        "softmax_sum_not_shared",
        "",
        "The sum in the gradient of softmax is not multiplied by the weights",
        "Each key pays in proportion to its weight: w g - w Σ w g. " + _ROW,
        _ROW_MEND,
    ),
    Mistake(
        "softmax_sum_added",
        "",
        "The sum in the gradient of softmax is added, not subtracted",
        _ROW,
        _ROW_MEND,
    ),
    Mistake(
        "gradient_scale_missing",
        "M01",
        "The gradient does not pass the scale",
        "Forward you divide by √d_k; backward you do not. " + _BACK,
        _BACK_MEND,
    ),
    Mistake(
        "gradient_scale_twice",
        "M03",
        "The gradient passes the scale twice",
        _BACK + " Once.",
        _BACK_MEND,
    ),
    Mistake(
        "gradient_scale_multiplied",
        "M01",
        "The gradient is multiplied by √d_k, where division is meant",
        _BACK,
        _BACK_MEND,
    ),
    *(
        Mistake(
            f"gradient_scale_for_{one}_only",
            "M01",
            f"The gradient of {other} does not pass the scale",
            f"That of {one} does. Both come from the gradient of the raw scores.",
            "Divide once, before the two products.",
        )
        for one, other in (("q", "k"), ("k", "q"))
    ),
    Mistake(
        "grad_k_not_transposed",
        "M46",
        "The table is not turned over for the gradient of k",
        "Row i of it belongs to query i. A key answers for its *column*: it is met by "
        "all queries.",
        "grad_k has a row for each key. Which shape must the table have?",
    ),
    Mistake(
        "grad_v_not_transposed",
        "M46",
        "The weights are not turned over for the gradient of v",
        "out is weights @ v: value j is taken by every query, by column j.",
        "grad_v has a row for each key. Which shape must the weights have?",
    ),
    Mistake(
        "grad_v_unweighted",
        "",
        "The gradient of v forgets the weights",
        "A query that takes little of a value moves little with it.",
        "out is weights @ v. What stands beside v?",
    ),
    Mistake(
        "q_and_k_exchanged",
        "M46",
        "q and k are exchanged in the gradients",
        "A raw score is q·k: it answers to q by k, and to k by q.",
        "Which of the two stands beside q in the product?",
    ),
    Mistake(
        "gradient_negative",
        "",
        "The gradients have the wrong sign",
        "A gradient points uphill. Training goes against it, but that is the step, not "
        "the gradient.",
        "Raise one number of v a little, and see which way the loss goes.",
    ),
    Mistake(
        "grad_out_ignored",
        "",
        "grad_out is not used",
        "This is the gradient of out.sum(). The loss may answer to each number of out "
        "in its own way, and grad_out says how.",
        "Where does grad_out enter first?",
    ),
    Mistake(
        "gradient_of_the_mean",
        "",
        "The gradients are divided by the number of numbers in out",
        "If the loss is a mean, grad_out knows it already.",
        "Use grad_out as it is.",
    ),
    *(
        Mistake(
            key,
            "",
            "The three gradients are returned in another order",
            "All numbers are right; their order is not.",
            "The order is that of the arguments: q, k, v.",
        )
        for key in ("gradients_k_first", "gradients_v_first")
    ),
    Mistake(
        "look_inverted",
        "M07",
        "True means blocked, where SDPA takes True for may look",
        "This is a mask for nn.MultiheadAttention. SDPA, and this course, say the "
        "opposite.",
        "Turn the finished mask over.",
        "rasbt/LLMs-from-scratch#1061",
    ),
    Mistake(
        "is_causal_handed_over",
        "M19",
        "is_causal is handed over to SDPA as it is",
        "SDPA starts its triangle at the top left: with more keys than queries, the "
        "last query does not see the last key. Beside a mask it is refused, or not, "
        "as the path inside decides.",
        "Make one mask of the two rules, and leave is_causal out.",
        "pytorch/pytorch#108108",
    ),
    Mistake(
        "causal_as_dropout",
        "M34",
        "Where causal is True, all weights are dropped",
        "The fifth argument of SDPA, by position, is dropout_p: True counts as 1. SDPA "
        "always drops, whatever mode a model is in.",
        "Hand over what comes after v by name.",
    ),
    Mistake(
        "mask_dropped_beside_causal",
        "M16",
        "Where causal is True, the mask has no effect",
        _TWO_RULES,
        "Make one mask of the two.",
        "keras-team/keras#23038",
    ),
    Mistake(
        "causal_dropped_beside_mask",
        "M16",
        "Where a mask is given, causal has no effect",
        _TWO_RULES,
        "Make one mask of the two.",
        "keras-team/keras#21284",
    ),
    Mistake(
        "in_proj_not_transposed",
        "M47",
        "The blocks are not transposed",
        "nn.Linear computes x @ weight.T. This course computes x @ W.",
        "Turn each block over.",
    ),
    Mistake(
        "in_proj_every_third",
        "M22",
        "Every third row is taken, not blocks of rows",
        _FUSED + " A reshape to (d_model, 3 · d_model) mixes them as well.",
        _FUSED_MEND,
    ),
    Mistake(
        "in_proj_turned_and_reshaped",
        "M20",
        "The matrix is transposed and then reshaped",
        "After .T the blocks lie side by side, as columns. reshape keeps the order in "
        "which numbers are read, and cuts rows.",
        "Cut first, then turn each block over.",
    ),
    Mistake(
        "in_proj_one_for_all",
        "M46",
        "The same block is returned three times",
        _FUSED,
        _FUSED_MEND,
    ),
    *(
        Mistake(
            f"in_proj_order_{order}",
            "M46",
            "The blocks are returned in another order",
            _FUSED,
            "Return W_q, W_k and W_v in this order.",
        )
        for order in ("k_q_v", "v_k_q", "q_v_k", "k_v_q", "v_q_k")
    ),
)
