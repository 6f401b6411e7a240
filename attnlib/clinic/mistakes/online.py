"""Mistakes in softmax block by block."""

from attnlib.clinic.catalogue import Mistake

_RESCALE = (
    "When a block has a larger maximum, all that was summed before has to shrink by "
    "e^(m_old - m_new): the sum and the output. It shows only where the maximum rises."
)

MISTAKES = (
    Mistake(
        "online_starts_at_0",
        "M36",
        "The maximum starts at 0",
        "Where all scores lie far below 0, each e^(score - 0) is rounded to 0, and "
        "nothing is left to divide by.",
        "What is the maximum of nothing?",
    ),
    Mistake(
        "online_starts_at_10000",
        "M36",
        "The maximum starts at a number that real scores can lie below",
        "Scores of -60000 are real. Beside a maximum of -10000 they are all rounded "
        "to 0.",
        "What is the maximum of nothing?",
        "flashinfer-ai/flashinfer#4267",
    ),
    Mistake(
        "online_not_rescaled",
        "M36",
        "Nothing is rescaled when the maximum rises",
        _RESCALE,
        "Try scores in ascending order.",
    ),
    Mistake(
        "online_out_not_rescaled",
        "M36",
        "The output is not rescaled when the maximum rises",
        _RESCALE,
        "Three things belong to a maximum: m, the sum, and the output.",
    ),
    Mistake(
        "online_sum_not_rescaled",
        "M36",
        "The sum is not rescaled when the maximum rises",
        _RESCALE,
        "Three things belong to a maximum: m, the sum, and the output.",
    ),
    Mistake(
        "online_shrink_upside_down",
        "M36",
        "The factor is upside down: e^(m_new - m_old)",
        _RESCALE + " Upside down it makes the past larger.",
        "The factor is never above 1.",
    ),
    Mistake(
        "online_new_part_shrunk",
        "M36",
        "The new block is rescaled, where the old sum should be",
        _RESCALE,
        "The new block is measured by the new maximum already.",
    ),
    Mistake(
        "online_sum_replaced",
        "M36",
        "The sum holds the last block only",
        "What was summed before is shrunk and kept: sum = sum · factor + new.",
        "Is the old sum still in it?",
    ),
    Mistake(
        "online_max_of_block",
        "M36",
        "The maximum is that of the block, not of all blocks so far",
        "Where it falls, the factor e^(m_old - m_new) is above 1 and overflows.",
        "The maximum of two: the old one and that of the block.",
    ),
    Mistake(
        "online_max_kept",
        "M36",
        "The maximum of the first block is kept",
        "A later score that is far larger overflows.",
        "The maximum of two: the old one and that of the block.",
    ),
    Mistake(
        "online_block_normalised",
        "M36",
        "Each block is divided by its own sum",
        "A block's own softmax forgets how large the block is beside the others.",
        "Divide once, at the end.",
    ),
    Mistake(
        "online_old_sum_divides",
        "M36",
        "The output is divided in every step, and never multiplied back",
        "An output that is divided already has to be multiplied by the old sum before "
        "more is added.",
        "Divide once, at the end.",
    ),
    Mistake(
        "online_means_averaged",
        "M36",
        "The results of the blocks are averaged",
        "Blocks with high scores count for more.",
        "A block needs its maximum and its sum beside its output.",
    ),
    Mistake(
        "online_means_added",
        "M36",
        "The results of the blocks are added",
        "Each block hands out weights of 1 in all; together they are as many as there "
        "are blocks.",
        "A block needs its maximum and its sum beside its output.",
    ),
    Mistake(
        "online_not_stable",
        "M36",
        "No maximum is subtracted",
        "exp overflows above 709 in float64, and above 88 in float32.",
        "Keep a running maximum.",
    ),
    Mistake(
        "online_rest_dropped",
        "M36",
        "The keys behind the last full block are left out",
        "7 keys in blocks of 3 make three blocks, the last with one key.",
        "Round up.",
    ),
    Mistake(
        "online_last_only",
        "M36",
        "Only the last block counts",
        "The output of each block has to join those before it.",
        "Is the output overwritten in the loop? Is the new maximum stored at its end?",
    ),
    Mistake(
        "online_first_only",
        "M36",
        "Only the first block counts",
        "The loop ends too early: a `return` inside it ends it.",
        "How many blocks does it see?",
    ),
    Mistake(
        "online_empty_block",
        "M36",
        "A block that is hidden altogether makes NaN",
        "Its maximum is -inf. -inf minus -inf is NaN, and a NaN in the output stays.",
        "Subtract 0 where the maximum is -inf.",
        "flashinfer-ai/flashinfer#1178",
    ),
    Mistake(
        "online_not_divided",
        "M36",
        "The output is not divided by the sum at the end",
        "The sum is what makes weights of exponentials.",
        "One division, at the end.",
    ),
    Mistake(
        "online_epsilon",
        "M36",
        "1 is added to the sum",
        "Softmax off by one is another function: weights no longer sum to 1.",
        "Guard a sum of 0 only.",
    ),
)
