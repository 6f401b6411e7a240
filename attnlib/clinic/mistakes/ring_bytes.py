"""Mistakes in counting what a rank of a ring sends."""

from attnlib.clinic.catalogue import Mistake

_HOPS = (
    "Forward a rank sends n_ranks - 1 blocks of keys and values: its own, and what it "
    "received, but for the last."
)
_BACK = (
    "Backward keys and values go round again, n_ranks - 1 hops, and each block's "
    "gradients follow it and go home, n_ranks hops."
)
_BLOCK = (
    "A block holds the keys and values of n / n_ranks tokens: n_kv_heads heads of d_k "
    "numbers, twice, itemsize bytes each."
)

MISTAKES = (
    Mistake(
        "ring_whole_text",
        "",
        "n_ranks times as much: the whole text travels, or all ranks are counted",
        _BLOCK + " What one rank sends is wanted.",
        "How many tokens does a block have?",
    ),
    Mistake(
        "ring_keys_only",
        "",
        "Half of it: a key and a value travel",
        _BLOCK,
        "Count both.",
    ),
    Mistake(
        "ring_all_heads",
        "",
        "All query heads are counted",
        _BLOCK + " Queries stay at home.",
        "Which heads have keys?",
    ),
    Mistake(
        "ring_queries_too",
        "",
        "Queries are counted as well",
        _BLOCK + " Queries stay at home.",
        "What goes round?",
    ),
    Mistake(
        "ring_heads_missing",
        "",
        "One head is counted",
        _BLOCK,
        "Which argument did you not use?",
    ),
    Mistake(
        "ring_heads_per_group",
        "",
        "The size of a group is taken for the number of key heads",
        _BLOCK,
        "Use n_kv_heads as it is.",
    ),
    Mistake(
        "ring_width_missing",
        "",
        "The width of a head is not counted",
        _BLOCK,
        "Which argument did you not use?",
    ),
    Mistake(
        "ring_width_divided",
        "",
        "The width is divided by the number of heads",
        _BLOCK + " d_k is the width of one head already.",
        "Use d_k as it is.",
    ),
    Mistake(
        "ring_numbers",
        "",
        "Numbers are counted, not bytes",
        _BLOCK,
        "Which argument did you not use?",
    ),
    Mistake(
        "ring_two_bytes",
        "",
        "2 bytes are counted for each number, whatever itemsize is",
        _BLOCK,
        "Which argument did you not use?",
    ),
    Mistake(
        "ring_bits",
        "",
        "Bits are counted, not bytes",
        _BLOCK,
        "itemsize is in bytes already.",
    ),
    Mistake(
        "ring_received_too",
        "",
        "Twice as much: a 2 too many, or what is received is counted as well",
        _BLOCK + " What one rank sends is wanted; it receives as much.",
        "Where does the 2 for keys and values stand? Is there another one?",
    ),
    Mistake(
        "ring_all_hops",
        "",
        "Keys and values make one hop too many",
        _HOPS + " After n_ranks hops a block would be at home again, unused.",
        "Two ranks: how often is a block sent?",
    ),
    Mistake(
        "ring_forward_home",
        "",
        "Forward each block is sent home",
        _HOPS + " After n_ranks hops a block would be at home again, unused.",
        "Two ranks: how often is a block sent?",
    ),
    Mistake(
        "ring_one_hop",
        "",
        "One hop is counted",
        _HOPS,
        "Four ranks: how many blocks does each have to see?",
    ),
    Mistake(
        "ring_two_ranks",
        "",
        "Hops are counted as if there were 2 ranks",
        _HOPS + " " + _BACK,
        "Which argument did you not use?",
    ),
    Mistake(
        "ring_two_hops_less",
        "",
        "One hop too few is counted, of everything",
        _HOPS + " " + _BACK,
        "Two ranks: how often is a block sent?",
    ),
    Mistake(
        "ring_gradients_not_home",
        "",
        "Backward is twice forward, and the gradients do not arrive at home",
        _BACK + " That is 2 n_ranks - 1 blocks, one more than twice n_ranks - 1.",
        "Where is a block after its last step, and where is its owner?",
    ),
    Mistake(
        "ring_gradients_missing",
        "",
        "The gradients of keys and values are not counted",
        _BACK,
        "Who adds up the gradient of a key?",
    ),
    Mistake(
        "ring_keys_not_again",
        "",
        "Keys and values do not go round again",
        _BACK + " No rank has kept the blocks of the others.",
        "What does a tile need in its backward pass?",
    ),
    Mistake(
        "ring_keys_home",
        "",
        "Backward keys and values are sent home",
        _BACK + " At home nobody needs them. Their gradients are needed there.",
        "Which of the two must arrive at home?",
    ),
    Mistake(
        "ring_gradients_wide",
        "",
        "Gradients are counted with 4 bytes, where numbers have 2",
        "Here a gradient has itemsize bytes as well. `cost.ring_traffic` takes 4 bytes "
        "for it, or more, unless it is told grad_itemsize.",
        "How many bytes has a gradient, by the docstring?",
    ),
    Mistake(
        "ring_gradients_of_queries",
        "",
        "The gradients of the queries are sent as well",
        _BACK + " Queries stay at home, and so do their gradients.",
        "Whose gradients get something from every rank?",
    ),
    Mistake(
        "ring_backward_is_all",
        "",
        "The second number is that of both passes",
        _BACK,
        "Leave out what was sent forward.",
    ),
    Mistake(
        "ring_exchanged",
        "",
        "Forward and backward are exchanged",
        _BACK + " Backward is the larger one.",
        "Forward comes first.",
    ),
)
