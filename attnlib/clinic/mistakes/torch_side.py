"""Mistakes on the way to PyTorch: its masks, its stored weights."""

from attnlib.clinic.catalogue import Mistake

_FUSED = (
    "in_proj_weight has the 3 · d_model rows of nn.Linear: first those of W_q, then of "
    "W_k, then of W_v."
)
_FUSED_MEND = "Which rows belong to W_q? Count in blocks of d_model."
_TWO_RULES = "Mask and causal are two rules, and a key must pass both."


def _not_turned(names: str) -> str:
    matrices = " and ".join(f"W_{name}" for name in names)
    return f"{matrices} {'is' if len(names) == 1 else 'are'} not transposed"


MISTAKES = (
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
        "look_inverted_throughout",
        "M07",
        "True means blocked, where SDPA takes True for may look",
        "This is a mask for nn.MultiheadAttention. SDPA, and this course, say the "
        "opposite. Where nothing is hidden, yours hides all: the output is zeros.",
        "Do not turn the finished mask over.",
        "rasbt/LLMs-from-scratch#1061",
    ),
    Mistake(
        "nothing_given_hides_all",
        "M07",
        "Without a mask, and without causal, everything is hidden",
        "Where no rule is given, every query may look at every key. A table that "
        "starts from False and is opened by | starts from the wrong side.",
        "Start from a table of True, and let each rule close keys, with &.",
    ),
    Mistake(
        "offset_one",
        "M19",
        "The triangle is moved by 1, whatever the sizes are",
        "1 is right for 2 queries and 3 keys, or 4 and 5: the example of the lesson. "
        "The last query stands at the last key, so it depends on n_q and n_k.",
        "How many keys more than queries are there? By so many it moves.",
        "pytorch/pytorch#108108",
    ),
    Mistake(
        "is_causal_without_mask",
        "M19",
        "is_causal is handed over to SDPA where there is no mask",
        "SDPA starts its triangle at the top left: with more keys than queries, the "
        "last query does not see the last key. With your own mask it is right.",
        "Use your own mask for causal in both cases, and leave is_causal out.",
        "pytorch/pytorch#108108",
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
    *(
        Mistake(
            f"in_proj_not_transposed_{names}",
            "M47",
            _not_turned(names),
            "nn.Linear computes x @ weight.T for each of the three. This course "
            "computes x @ W.",
            "Turn each block over.",
        )
        for names in ("kv", "qv", "qk", "q", "k", "v")
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
