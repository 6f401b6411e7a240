"""Mistakes that only an examination looks for: blocks, NaN, halves, chance."""

from attnlib.clinic.catalogue import Mistake

_RESCALE = (
    "An online softmax works through the keys in blocks. When a later block holds a "
    "larger score, what was summed so far must shrink by e^(old maximum - new maximum)."
)

MISTAKES = (
    Mistake(
        "heads_as_tokens",
        "M24",
        "The axes of heads and tokens are exchanged",
        "flash-attn takes (batch, n, n_heads, d), and PyTorch's "
        "scaled_dot_product_attention takes (batch, n_heads, n, d). Here each token "
        "attends over its own heads, and no token sees another.",
        "Swap axes 1 and 2 before the call, and swap them back behind it.",
        "Dao-AILab/flash-attention#739",
    ),
    Mistake(
        "online_wrong",
        "M36",
        "What was summed so far is rescaled the wrong way",
        _RESCALE + " Here it is multiplied by the inverse.",
        "The factor is never above 1.",
        "Dao-AILab/flash-attention#1930",
    ),
    Mistake(
        "online_mean",
        "M36",
        "The results of the blocks are averaged",
        "Each block of keys has a softmax of its own, so that a block of low scores "
        "counts as much as one of high scores.",
        "A block needs its maximum and its sum beside its output.",
    ),
    Mistake(
        "online_out",
        "M36",
        "The running output is not rescaled when the maximum grows",
        _RESCALE + " Here the output is left as it was.",
        "Multiply the running output by the same factor as the running sum.",
        "FluxML/NNkernels.jl#16",
    ),
    Mistake(
        "online_sum",
        "M36",
        "The running sum is not rescaled when the maximum grows",
        _RESCALE + " Here the sum is left as it was.",
        "Multiply the running sum by the same factor as the running output.",
        "FluxML/NNkernels.jl#16",
    ),
    Mistake(
        "online_both",
        "M36",
        "Nothing is rescaled when the maximum grows",
        _RESCALE + " Here neither the output nor the sum is.",
        "Multiply both by e^(old maximum - new maximum).",
        "FluxML/NNkernels.jl#16",
    ),
    Mistake(
        "online_finite_start",
        "M36",
        "The running maximum starts at a finite number",
        "Where all scores lie below it, all powers are rounded to 0 and nothing is "
        "left to divide.",
        "Start at minus infinity.",
        "flashinfer-ai/flashinfer#4401",
    ),
    Mistake(
        "dropout_always",
        "M34",
        "Dropout is applied at evaluation too",
        "Two calls with the same numbers differ. A function does not know about "
        "model.eval().",
        "Pass dropout_p=0.0 unless the module is training.",
        "pytorch/pytorch#124464",
    ),
    Mistake(
        "nan_through_mask",
        "M45",
        "A NaN in a hidden value reaches the output",
        "The weight is 0, and 0 times NaN is NaN. Most attentions do so, PyTorch's "
        "included.",
        "A mask is not a delete: clean the data.",
        "pytorch/pytorch#101967",
    ),
    Mistake(
        "nan_of_query_hidden",
        "M45",
        "A NaN in a query gives an output without NaN",
        "Something in the softmax turns NaN into 0, which then looks like a result.",
        "Guard empty rows by asking which are empty, not by asking which are NaN.",
    ),
    Mistake(
        "sum_in_half",
        "M35",
        "The softmax is summed in half precision",
        "float16 counts in whole numbers to 2048 and bfloat16 to 256: a running sum "
        "stands still there.",
        "Compute the softmax in float32.",
        "huggingface/transformers#17437",
    ),
    Mistake(
        "half_inside",
        "M35",
        "Something is computed in half precision inside",
        "The result agrees to two or three digits only, though what goes in has more.",
        "Look for .half(), autocast or a dtype of float16 or bfloat16 on the way.",
        "huggingface/transformers#17437",
    ),
    Mistake(
        "dropout_same",
        "M34",
        "Weights are dropped, the same ones each time",
        "Some weights are 0 and the others too large by one factor: dropout with a "
        "seed of its own, which evaluation does not switch off.",
        "Drop nothing at evaluation.",
    ),
)
