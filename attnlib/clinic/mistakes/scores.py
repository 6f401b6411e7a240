"""Mistakes in scaling, in the roles of q, k and v, and in what is returned."""

from attnlib.clinic.catalogue import Mistake

_REASON = "The dot product adds d_k numbers, so √d_k is what keeps its spread at 1."
_ROLES = "The query asks, the key answers, the value is what is said."

MISTAKES = (
    Mistake(
        "scale_missing",
        "M01",
        "The scores are not scaled",
        _REASON,
        "Divide the scores before the softmax.",
        "delzac/cntkx#10",
    ),
    Mistake(
        "scale_multiplied",
        "M01",
        "Multiplied by √d_k, where division is meant",
        _REASON,
        "Scaling makes the scores smaller.",
    ),
    Mistake(
        "scale_after",
        "M01",
        "Scaled after the softmax",
        "The softmax has already seen the large scores; a division afterwards only "
        "makes its rows sum to less than 1.",
        "The order is: multiply, scale, softmax, mix.",
    ),
    Mistake(
        "scale_d_k",
        "M03",
        "Divided by d_k, or twice by √d_k",
        _REASON + " Dividing by d_k makes the scores too small and the weights flat.",
        "Scale once, by a root.",
        "huggingface/transformers#38290",
    ),
    Mistake(
        "scale_d_model",
        "M02",
        "Divided by √d_model, where √d_k is meant",
        _REASON + " d_model is √n_heads times too much: the weights come out flatter.",
        "How many numbers does one dot product add?",
        "lucidrains/vit-pytorch#65",
    ),
    Mistake(
        "scale_n_heads",
        "M02",
        "Divided by the root of the number of heads",
        _REASON,
        "How many numbers does one dot product add?",
    ),
    Mistake(
        "scale_d_v",
        "M02",
        "Divided by √d_v, where √d_k is meant",
        _REASON + " d_v is the size of a value, which takes no part in the scores.",
        "How many numbers does one dot product add?",
    ),
    Mistake(
        "scale_n_k",
        "M02",
        "Divided by the root of the number of keys",
        _REASON,
        "How many numbers does one dot product add?",
    ),
    Mistake(
        "scale_n_q",
        "M02",
        "Divided by the root of the number of queries",
        _REASON,
        "Which axis of q holds the numbers of one query?",
    ),
    Mistake(
        "scale_first_of_k",
        "M02",
        "Divided by the root of the first size of k",
        "len(k) and k.shape[0] are the number of keys, or the batch where one stands "
        "in front. " + _REASON,
        "The numbers of one key lie along the last axis: count from the end.",
    ),
    Mistake(
        "scale_first_of_q",
        "M02",
        "Divided by the root of the first size of q",
        "len(q) and q.shape[0] are the number of queries, or the batch where one "
        "stands in front. " + _REASON,
        "The numbers of one query lie along the last axis: count from the end.",
    ),
    Mistake(
        "scale_second_of_q",
        "M02",
        "The size of axis 1 is taken for d_k",
        "With a batch in front, axis 1 is no longer the last one. " + _REASON,
        "Count from the end: shape[-1] fits with a batch and without.",
    ),
    Mistake(
        "roles_swapped",
        "M46",
        "Query and key are exchanged",
        _ROLES + " With k @ qᵀ, row i belongs to key i.",
        "Each row of scores should belong to one query.",
    ),
    Mistake(
        "score_q_q",
        "M46",
        "The queries are compared with themselves",
        _ROLES + " The keys are not used.",
        "Who answers the query?",
    ),
    Mistake(
        "score_k_k",
        "M46",
        "The keys are compared with themselves",
        _ROLES + " The queries are not used.",
        "Who asks?",
    ),
    Mistake(
        "score_q_v",
        "M46",
        "The queries are compared with the values",
        _ROLES,
        "Who answers the query?",
    ),
    Mistake(
        "values_are_keys",
        "M46",
        "The keys are mixed, not the values",
        _ROLES,
        "What should the weights mix?",
    ),
    Mistake(
        "values_are_queries",
        "M46",
        "The queries are mixed, not the values",
        _ROLES,
        "What should the weights mix?",
    ),
    Mistake(
        "weights_transposed",
        "M46",
        "The weights are transposed before they mix the values",
        "Row i of the weights says what query i takes from each value. Transposed, "
        "its rows no longer sum to 1.",
        "Leave the weights as they are.",
    ),
    Mistake(
        "softmax_missing",
        "M47",
        "The softmax is missing",
        "Raw scores can be negative and do not sum to 1.",
        "Turn scores into weights before mixing.",
    ),
    Mistake(
        "softmax_on_out",
        "M47",
        "The softmax comes after mixing",
        "Softmax makes weights of scores. It has no business with the values.",
        "The order is: multiply, scale, softmax, mix.",
    ),
    Mistake(
        "returned_swapped",
        "",
        "The two results are returned in the other order",
        "All numbers are right; their order is not.",
        "First weights, then out.",
    ),
    Mistake(
        "returned_scores",
        "",
        "The scores are returned in place of the weights",
        "The output is right. What the caller wants to see are the weights, after the "
        "softmax.",
        "Return what the softmax gave.",
    ),
    Mistake(
        "scale_of_the_example",
        "M02",
        "Divided by √2 always",
        "2 was the d_k of the example. Here d_k differs from case to case.",
        "Read d_k off q or k: the last size.",
    ),
    Mistake(
        "scale_of_the_example_d_model",
        "M02",
        "Divided by 2 always",
        "The example had d_model = 4, and 2 is its root. But the dot product adds d_k "
        "numbers, and here d_k differs from case to case.",
        "Read d_k off q or k: the last size.",
    ),
    Mistake(
        "cosine",
        "",
        "Queries and keys are divided by their lengths",
        "That is the cosine of their angle. In the dot product a long key counts more,"
        " and the model uses that.",
        "Multiply q and k as they are.",
    ),
    Mistake(
        "key_reshaped",
        "",
        "k is reshaped, where it should be transposed",
        "reshape keeps the numbers in the order in which they lie in memory: the new "
        "columns are no keys.",
        "Exchange the last two axes.",
    ),
    Mistake(
        "causal_unasked",
        "",
        "A causal mask is built in",
        "Each query sees no later key. Nobody asked for that here; lesson 03 does.",
        "Every query may look at every key.",
    ),
    Mistake(
        "scores_mixed",
        "",
        "The scores mix the values, not the weights",
        "The weights are right, and out does not use them.",
        "What sums to one in each row?",
    ),
    Mistake(
        "out_scaled",
        "",
        "The output is divided by √d_k as well",
        "The root keeps the scores small. The output is a mean of the values, and as "
        "large as they are.",
        "Divide once, before the softmax.",
    ),
)
