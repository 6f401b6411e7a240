"""Mistakes that only an examination from outside looks for: caps, norms, ALiBi."""

from attnlib.clinic.catalogue import Mistake

MISTAKES = (
    Mistake(
        "cap_before_scale",
        "M37",
        "The softcap comes before the scale",
        "The cap limits the scores as the softmax meets them: after the scale.",
        "The order is: scale, cap, mask, softmax.",
    ),
    Mistake(
        "cap_on_raw",
        "M37",
        "The softcap replaces the scale",
        "Scores are capped but not divided by √d_k.",
        "The order is: scale, cap, mask, softmax.",
    ),
    Mistake(
        "cap_inside_only",
        "M37",
        "The softcap divides, and does not multiply back",
        "tanh(s / cap) lies between -1 and 1: nearly all scores become equal.",
        "cap * tanh(scores / cap).",
    ),
    Mistake(
        "cap_outside_only",
        "M37",
        "The softcap multiplies, and does not divide before",
        "tanh(s) is 1 or -1 for most scores.",
        "cap * tanh(scores / cap).",
    ),
    Mistake(
        "cap_clipped",
        "M37",
        "The scores are cut off where they should be capped smoothly",
        "A clip has no gradient outside its bounds; tanh has one everywhere.",
        "cap * tanh(scores / cap).",
    ),
    Mistake(
        "norm_on_q_missing",
        "M38",
        "QK-norm is applied to the keys only",
        "Queries ten times as large still give scores ten times as large.",
        "Norm both sides.",
    ),
    Mistake(
        "norm_on_k_missing",
        "M38",
        "QK-norm is applied to the queries only",
        "Keys ten times as large still give scores ten times as large.",
        "Norm both sides.",
    ),
    Mistake(
        "norm_over_all_features",
        "M38",
        "QK-norm runs over all heads together",
        "A loud head makes the others quiet.",
        "Norm the last axis of each head, after the split.",
    ),
    Mistake(
        "cap_other",
        "M37",
        "The softcap has another value than is meant",
        "The largest score that the softmax can meet is another one.",
        "Compare the cap with the model's configuration.",
    ),
    Mistake(
        "slopes_other",
        "M31",
        "ALiBi's slopes are others",
        "With n_heads a power of two they are 2^(-8 h / n_heads); otherwise those of "
        "the power below, and then every other one of twice as many.",
        "Compare your list with the reference's for 8 and for 12 heads.",
        "ml-explore/mlx#3071",
    ),
    Mistake(
        "alibi_missing",
        "M31",
        "ALiBi's bias is not added",
        "Without it nothing tells near keys from far ones.",
        "Add minus slope times distance to the scores.",
    ),
    Mistake(
        "alibi_rising",
        "M31",
        "ALiBi's bias grows with the distance",
        "Far keys are favoured.",
        "The bias is minus slope times distance.",
    ),
    Mistake(
        "alibi_signed",
        "M31",
        "ALiBi's distance changes its sign at the query",
        "Later keys would be favoured over the query's own.",
        "Take the absolute distance.",
    ),
    Mistake(
        "alibi_from_zero",
        "M31",
        "ALiBi counts queries from 0 though earlier keys are cached",
        "Query i stands at position n_k - n_q + i.",
        "Count positions from the end.",
    ),
)
