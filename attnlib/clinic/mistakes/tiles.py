"""Mistakes in one step of the online softmax, in tiles, and in a tile's gradient."""

from attnlib.clinic.catalogue import Mistake

_STATE = (
    "The state goes from step to step: m, the sum, and the output that is not divided "
    "yet. All three are measured by the same m."
)
_TILE = (
    "A tile of keys is not the whole row: its weights are shares of *all* keys, and "
    "log_sum_exp is what remembers the others."
)
_DELTA = (
    "delta is the mean of grad_weights under *all* weights of a row, Σ wⱼ gⱼ. What one "
    "key gains the others pay, and most of the others lie in other tiles."
)

MISTAKES = (
    Mistake(
        "online_max_of_all",
        "M36",
        "One maximum stands for all queries",
        "Each query has scores of its own, and so a maximum of its own. A query whose "
        "scores all lie far below that of another loses everything to rounding.",
        "Over which axis is the maximum taken?",
    ),
    Mistake(
        "online_sum_of_all",
        "M36",
        "One sum stands for all queries",
        "Each query's weights are to sum to 1, so each has a sum of its own.",
        "Over which axis is the sum taken?",
    ),
    Mistake(
        "online_sum_is_mean",
        "M36",
        "A mean over the block stands where a sum should",
        "The last block may have fewer keys than the others, and a mean forgets how "
        "many there were.",
        "The sum of the exponentials of the block.",
    ),
    Mistake(
        "online_shrink_by_block",
        "M36",
        "The old state is rescaled to the maximum of the block, not to the new one",
        "Where the block's maximum is the smaller one, m stays, and the factor is 1. "
        "e^(m_old - m_block) is above 1 there.",
        "Which two maxima does the factor lie between?",
    ),
    Mistake(
        "online_shrink_no_exp",
        "M36",
        "The factor for the old state is a difference, with no exponential",
        "e^(s - m_old) becomes e^(s - m_new) by the factor e^(m_old - m_new).",
        "Which function was applied to the scores?",
    ),
    Mistake(
        "online_mixed_replaced",
        "M36",
        "The output holds the last block only",
        "What was mixed before is shrunk and kept: mixed = mixed · factor + new.",
        "Is the old output still in it?",
    ),
    Mistake(
        "online_own_maximum",
        "M36",
        "The block is measured by its own maximum, and not brought to the new one",
        "Where an earlier key scored higher, this block's exponentials are too large "
        "by e^(m_new - m_block).",
        "Subtract the new maximum of both, from the start.",
    ),
    *(
        Mistake(
            key,
            "M36",
            "The block is measured by the old maximum",
            "The sum of the block and that of the keys before it are added, so both "
            "have to be measured by the new one. At the start the old one is -inf.",
            "Find the new maximum first, then take exponentials.",
        )
        for key in ("online_old_maximum", "online_old_maximum_guarded")
    ),
    Mistake(
        "online_first_paper",
        "M36",
        "The output is divided already, in a state that is not to be",
        "The first FlashAttention paper keeps a divided output, and multiplies the old "
        "sum back in each step. Here `mixed` is not divided. " + _STATE,
        "Divide once, at the end.",
    ),
    Mistake(
        "online_divided_early",
        "M36",
        "The output is divided before the last block",
        _STATE + " The next step would add to a quotient.",
        "One division, after the last block, and not in the step.",
    ),
    Mistake(
        "online_state_exchanged",
        "",
        "The sum is returned where the maximum belongs, and the reverse",
        "All numbers are right; their order is not.",
        "The order is that of the arguments: m, total, mixed.",
    ),
    Mistake(
        "online_m_not_stored",
        "M36",
        "The old maximum is returned",
        _STATE + " The next step would shrink them a second time.",
        "Which maximum do the new sums belong to?",
    ),
    Mistake(
        "online_top_stored",
        "M36",
        "The maximum of the block is returned, not that of all keys so far",
        _STATE,
        "Which maximum do the new sums belong to?",
    ),
    Mistake(
        "online_guard_stored",
        "M36",
        "A row that has seen nothing yet gets the maximum 0",
        "0 stands in for -inf so that it can be subtracted. Returned, it becomes a "
        "maximum that real scores can lie below.",
        "Use the stand-in for subtracting only, and return the maximum itself.",
    ),
    Mistake(
        "scale_block_k",
        "M03",
        "The scores are divided by the root of the block size",
        "What makes scores large is how many products are summed, d_k. Tiles may be "
        "of any size, and the result is the same.",
        "Which size of q is d_k?",
    ),
    Mistake(
        "tile_state_kept",
        "M36",
        "The state of one tile of queries is carried into the next",
        "Other queries begin with nothing seen. And the last tile may have fewer.",
        "Inside which of the two loops does a state begin?",
    ),
    Mistake(
        "tile_rest_dropped",
        "M36",
        "The queries behind the last full tile are left out",
        "5 queries in tiles of 2 make three tiles, the last with one query. Nothing "
        "was stored for it.",
        "Round up; tiles.ranges does.",
    ),
    Mistake(
        "tile_softmax",
        "M36",
        "A softmax is taken inside the tile",
        _TILE,
        "e^score, divided by the sum over all keys: what is that with a logarithm?",
    ),
    Mistake(
        "tile_without_sum",
        "M36",
        "The exponentials of the tile are not divided by anything",
        _TILE,
        "What belongs beside the score in the exponent?",
    ),
    Mistake(
        "tile_by_own_maximum",
        "M36",
        "The exponentials of the tile are measured by its own maximum",
        _TILE,
        "log_sum_exp holds the maximum and the sum, both.",
    ),
    Mistake(
        "tile_divided_by_log",
        "M36",
        "The exponentials are divided by the log-sum-exp",
        "They are divided by the sum itself, which is e^log_sum_exp. Subtracted in the "
        "exponent, it cannot overflow either.",
        "How is a division written inside an exponential?",
    ),
    Mistake(
        "tile_log_added",
        "M36",
        "The log-sum-exp is added to the scores",
        "Weights are exponentials divided by their sum: subtract its logarithm.",
        "Is a weight ever above 1?",
    ),
    Mistake(
        "tile_not_exponential",
        "M36",
        "The exponential is missing in the weights",
        "score - log_sum_exp is the logarithm of the weight.",
        "Is a weight ever below 0?",
    ),
    Mistake(
        "tile_log_scaled",
        "M03",
        "log_sum_exp is divided by the root of d_k, too",
        "It was taken of the scaled scores, so it is scaled already.",
        "Divide the products first, then subtract.",
    ),
    Mistake(
        "delta_not_scaled",
        "M03",
        "The gradient of the weights is divided by the root of d_k, and delta is not",
        "Both belong to the weights, where nothing was divided. The root comes in with "
        "the scores, one step further back.",
        "Divide the difference, or the result.",
    ),
    Mistake(
        "delta_of_the_tile",
        "M36",
        "What is subtracted is summed over this tile alone",
        _DELTA,
        "Which argument has it for the whole row?",
    ),
    Mistake(
        "delta_multiplied",
        "",
        "delta is multiplied, not subtracted",
        _DELTA,
        "A key pulls up if it brings more than the mix has. More by how much?",
    ),
    Mistake(
        "delta_of_the_mean",
        "",
        "delta is divided by the number of keys",
        _DELTA + " It is a mean already, for the weights sum to 1.",
        "Use delta as it is.",
    ),
)
