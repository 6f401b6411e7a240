"""Mistakes in the gradient of attention by hand."""

from attnlib.clinic.catalogue import Mistake

_ROW = (
    "What one key gains the others pay: a row of weights sums to 1, so a row of "
    "gradients of scores sums to 0."
)
_ROW_MEND = "Write the rule for one row with numbers, and sum it."
_BACK = "Scores are raw scores divided by √d_k, so the gradient is divided by it, too."
_BACK_MEND = "On the way back, where does the gradient pass the division?"
_QUERIES = "Every query reaches it, and all parts add up: it collects from every query."

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
        for key in (
            "gradients_k_first",
            "gradients_v_first",
            "gradients_reversed",
            "gradients_v_before_k",
            "gradients_q_last",
        )
    ),
    Mistake(
        "softmax_own_term_twice",
        "",
        "The own term is subtracted twice in the gradient of softmax",
        "w(1 - w) g has it already, so the sum beside it runs over the *other* keys. "
        "Taken together it is w (g - Σ w g). " + _ROW,
        "Use one of the two forms of the rule, not half of each.",
    ),
    Mistake(
        "softmax_mean_of_products",
        "",
        "A mean over the keys stands where a sum should, in the gradient of softmax",
        "Σ wⱼ gⱼ is a mean already, for the weights sum to 1; it is not divided by the "
        "number of keys. " + _ROW,
        _ROW_MEND,
    ),
    Mistake(
        "softmax_sum_over_first",
        "M04",
        "The sum in the gradient of softmax runs over axis 0",
        "Without a batch that is over the queries, with one over the batch. Each "
        "query's row has a softmax of its own. " + _ROW,
        "Sum over the keys, axis=-1, and keep the axis.",
    ),
    Mistake(
        "softmax_sides_exchanged",
        "",
        "In the gradient of softmax the two sides of the minus are exchanged",
        "A key pulls up if it brings *more* than the mix has: g - Σ w g, not the "
        "reverse. The gradient of v does not pass the softmax, and is right.",
        "Whose score should grow, to make the output larger?",
    ),
    Mistake(
        "gradient_scale_twice_for_k",
        "M03",
        "The gradient of k passes the scale twice",
        "A q that was divided by √d_k beforehand has the scale in it. Times q it is in "
        "grad_k then, but not in grad_q.",
        "Divide the scores instead of q, and once on the way back.",
    ),
    Mistake(
        "gradient_scale_twice_for_q",
        "M03",
        "The gradient of q passes the scale twice",
        "A k that was divided by √d_k beforehand has the scale in it. Times k it is in "
        "grad_q then, but not in grad_k.",
        "Divide the scores instead of k, and once on the way back.",
    ),
    Mistake(
        "gradient_scale_for_v_too",
        "M01",
        "The gradient of v passes the scale, which v never met",
        "out is weights @ v. The division by √d_k lies on the way to q and k only.",
        "Which steps lie between out and v?",
    ),
    Mistake(
        "gradient_scale_only_back",
        "M01",
        "The scores are not scaled, but their gradient is",
        "You walk back through a division that was not made: the weights are those of "
        "the raw scores.",
        "Divide the scores before the softmax.",
    ),
    Mistake(
        "gradient_scale_of_the_example",
        "M01",
        "On the way back stands √2, whatever d_k is",
        "In the lesson d_k is 2. " + _BACK,
        "Which size of q is d_k?",
    ),
    Mistake(
        "grad_k_of_the_last_query",
        "",
        "The gradient of k has the last query alone",
        _QUERIES + " In a loop that is +=, not =.",
        "Start from zeros, and add the part of each query.",
    ),
    Mistake(
        "grad_v_of_the_last_query",
        "",
        "The gradient of v has the last query alone",
        _QUERIES + " In a loop that is +=, not =.",
        "Start from zeros, and add the part of each query.",
    ),
    Mistake(
        "grad_v_without_grad_out",
        "",
        "The gradient of v does not use grad_out",
        "It is the sum of each key's weights, right for out.sum() only.",
        "A value collects from each query: its weight there, times what?",
    ),
    Mistake(
        "grad_out_for_v_only",
        "",
        "grad_out is not used on the way to q and k",
        "That is the gradient of out.sum(): a weight brings the sum of its value. It "
        "should bring the dot product of its value with the query's row of grad_out.",
        "What does a weight bring, for one number of out, and for all?",
    ),
)
