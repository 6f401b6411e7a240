"""Mistakes that only an examination from outside looks for: scores and softmax."""

from attnlib.clinic.catalogue import Mistake

_REASON = "The dot product adds d_k numbers, so √d_k is what keeps its spread at 1."
_ROLES = "The query asks, the key answers, the value is what is said."

MISTAKES = (
    Mistake(
        "score_k_v",
        "M46",
        "The keys are compared with the values",
        _ROLES,
        "Who asks, and who answers?",
    ),
    Mistake(
        "scale_twice",
        "M03",
        "The scores are scaled twice",
        _REASON + " Scaled twice, the weights come out too flat.",
        "Scale once: SDPA already does it.",
        "huggingface/transformers#38290",
    ),
    Mistake(
        "scale_square",
        "M03",
        "The scores are divided by d_k squared",
        _REASON,
        "Scale once, by a root.",
    ),
    Mistake(
        "scale_d_model_whole",
        "M02",
        "Divided by d_model, where √d_k is meant",
        _REASON,
        "How many numbers does one dot product add? And the root is missing.",
    ),
    Mistake(
        "scale_batch",
        "M02",
        "Divided by the root of the batch size",
        _REASON,
        "Count axes from the end: d_k is shape[-1].",
    ),
    Mistake(
        "scale_of_half",
        "M02",
        "Divided by the root of half of d_k",
        _REASON,
        "How many numbers does one dot product add?",
    ),
    Mistake(
        "scale_on_one_side",
        "M01",
        "Half of the scale is missing",
        "d_k^(-1/4) on the queries and on the keys makes 1/√d_k. On one of them alone "
        "it is only half of it.",
        "Scale both sides by d_k^(-1/4), or one by 1/√d_k.",
    ),
    Mistake(
        "scale_base_2",
        "M01",
        "The softmax takes powers of 2",
        "2^x is e^(x log 2): the scores are too small by a factor of 0.693.",
        "Multiply by log2(e) where exp2 stands for exp.",
    ),
    Mistake(
        "scale_base_e_twice",
        "M01",
        "log2(e) is multiplied, though the softmax takes powers of e",
        "That factor of 1.443 belongs to exp2.",
        "Either exp2 with log2(e), or exp without it.",
    ),
    Mistake(
        "axis_table",
        "M04",
        "One softmax runs over queries and keys together",
        "All weights of a head sum to 1, where each query should have 1 to give.",
        "Softmax along the last axis alone.",
    ),
    Mistake(
        "axis_batch_and_heads",
        "M04",
        "The softmax runs over items and heads, not over keys",
        "Items and heads were put into one axis, and the softmax took that one.",
        "Softmax along the last axis.",
    ),
    Mistake(
        "axis_heads_and_table",
        "M05",
        "One softmax runs over heads, queries and keys together",
        "All weights of an item sum to 1: heads and queries compete.",
        "Softmax along the last axis alone.",
        "facebookresearch/detr#247",
    ),
    Mistake(
        "scale_other",
        "M02",
        "Divided by a fixed number, whatever d_k is",
        _REASON,
        "Read d_k off q or k: the last size.",
    ),
    Mistake(
        "axis_everything",
        "M05",
        "One softmax runs over all axes",
        "All weights of the whole batch sum to 1.",
        "Softmax along the last axis alone.",
    ),
)
