"""Mistakes in counting the bytes of a KV cache."""

from attnlib.clinic.catalogue import Mistake

_TOKEN = (
    "A token leaves a key and a value in every layer, for every key head: 2 n_layers "
    "n_kv_heads d_k numbers, of two bytes each."
)
_WINDOW = "With a window the last `window` tokens are kept, and fewer while there are."
_BYTES = (
    "Bytes are wanted. A KiB is 1024 of them, a kB 1000: say which, when you print."
)

MISTAKES = (
    Mistake(
        "cache_all_heads",
        "M33",
        "All query heads are counted",
        _TOKEN + " Queries are not kept: no later token asks for them.",
        "Which heads have keys?",
    ),
    Mistake(
        "cache_group_for_heads",
        "M33",
        "The size of a group is taken for the number of key heads",
        _TOKEN,
        "Use n_kv_heads as it is.",
    ),
    Mistake(
        "cache_one_head",
        "",
        "One key head is counted",
        _TOKEN + " One for all is MQA.",
        "Use n_kv_heads.",
    ),
    Mistake(
        "cache_heads_added",
        "",
        "The query heads are counted as well",
        _TOKEN + " Queries are not kept: no later token asks for them.",
        "Which heads have keys?",
    ),
    Mistake(
        "cache_heads_multiplied",
        "",
        "Query heads and key heads are multiplied",
        _TOKEN + " Query heads share keys; they do not copy them.",
        "Which heads have keys?",
    ),
    Mistake(
        "cache_split_over_heads",
        "",
        "The width is divided by the number of query heads",
        _TOKEN + " d_k is the width of one head already.",
        "Use d_k as it is.",
    ),
    Mistake(
        "cache_all_queries",
        "",
        "The queries of all heads are kept as well",
        _TOKEN + " A query is used once, by its own token.",
        "What does a later token ask for?",
    ),
    Mistake(
        "cache_of_scores",
        "",
        "That is the table of scores, not the cache",
        _TOKEN + " Scores are n x n. They are not kept: a token computes its own row, "
        "and is done.",
        "What does a later token ask for?",
    ),
    Mistake(
        "cache_half",
        "",
        "Half of it: a factor of 2 is missing",
        _TOKEN + " That is two factors of 2: a key and a value; two bytes a number.",
        "Count both.",
    ),
    Mistake(
        "cache_quarter",
        "",
        "A quarter of it: two factors of 2 are missing",
        _TOKEN + " That is two factors of 2: a key and a value; two bytes a number.",
        "Count both.",
    ),
    Mistake(
        "cache_double",
        "",
        "Twice as much: a number takes four bytes, or something is counted twice",
        _TOKEN,
        "float16 has 16 bits.",
    ),
    Mistake(
        "cache_itemsize_8",
        "",
        "Four times as much: a number takes eight bytes",
        _TOKEN + " Eight is NumPy's float64.",
        "float16 has 16 bits.",
    ),
    Mistake(
        "cache_bits",
        "",
        "Bits are counted, not bytes",
        _TOKEN,
        "A byte has eight bits.",
    ),
    Mistake(
        "cache_numbers_of_16",
        "",
        "16 times as much",
        _TOKEN + " The 16 of float16 counts bits.",
        "A byte has eight bits.",
    ),
    *(
        Mistake(
            f"cache_in_{unit.lower()}",
            "",
            f"The result is in {unit}",
            _BYTES,
            "Leave out the last division.",
        )
        for unit in ("kB", "KiB", "MB", "MiB", "GB", "GiB")
    ),
    Mistake(
        "cache_with_queries",
        "",
        "Queries are kept as well",
        _TOKEN + " A query is used once, by its own token.",
        "2, not 3.",
    ),
    Mistake(
        "cache_one_layer",
        "",
        "One layer is counted",
        _TOKEN + " Every layer has a cache of its own.",
        "Which argument did you not use?",
    ),
    Mistake(
        "cache_one_text",
        "",
        "One text is counted",
        "Texts of a batch have nothing in common, and each fills a cache of its own.",
        "Which argument did you not use?",
    ),
    Mistake(
        "cache_width_missing",
        "",
        "The width of a head is not counted",
        _TOKEN,
        "Which argument did you not use?",
    ),
    Mistake(
        "cache_per_token",
        "",
        "That is one token's share",
        _TOKEN + " The cache holds many tokens.",
        "Which argument did you not use?",
    ),
    Mistake(
        "cache_squared",
        "",
        "It grows with the square of the tokens",
        _TOKEN + " Scores are n x n. They are not kept: a token computes its own row, "
        "and is done.",
        "n once.",
    ),
    Mistake(
        "cache_squared_in_window",
        "",
        "It grows with the square of the tokens that are kept",
        _TOKEN + " Scores are n x n. They are not kept: a token computes its own row, "
        "and is done.",
        "The number of kept tokens, once.",
    ),
    Mistake(
        "cache_read_so_far",
        "",
        "That is what was read so far, not what is kept",
        _TOKEN + " Each new token reads all of it, and adds its own share only.",
        "The number of kept tokens, once.",
    ),
    Mistake(
        "window_none_is_zero",
        "",
        "Without a window nothing is kept",
        "None says that no token is dropped: all n are kept.",
        "What is `window` in that call?",
    ),
    Mistake(
        "window_not_used",
        "",
        "The window is not used",
        _WINDOW,
        "Which of n and window counts, where n is larger?",
    ),
    Mistake(
        "window_always_full",
        "",
        "A text shorter than the window counts as a full window",
        _WINDOW,
        "Which of n and window counts, where n is smaller?",
    ),
    Mistake(
        "window_larger",
        "",
        "The larger of n and window is taken",
        _WINDOW,
        "The smaller of the two.",
    ),
    Mistake(
        "window_subtracted",
        "",
        "What the window leaves out is counted",
        _WINDOW,
        "The smaller of n and window.",
    ),
    Mistake(
        "window_added",
        "",
        "n and window are added",
        _WINDOW,
        "The smaller of the two.",
    ),
    Mistake(
        "window_and_itself",
        "",
        "One token more than the window is kept",
        "The window counts the token itself.",
        "The smaller of n and window.",
    ),
    Mistake(
        "window_without_itself",
        "",
        "One token fewer than the window is kept",
        _WINDOW,
        "The smaller of n and window.",
    ),
    Mistake(
        "window_times",
        "",
        "n and window are multiplied",
        _WINDOW + " What you counted grows like the pairs of a window.",
        "The smaller of the two.",
    ),
    Mistake(
        "window_remainder",
        "",
        "Only what is over after full windows is counted",
        _WINDOW + " The remainder says where the newest one is written, not how many "
        "there are.",
        "The smaller of n and window.",
    ),
    Mistake(
        "window_for_all_texts",
        "",
        "The texts of the batch share one window",
        _WINDOW + " That holds for each text.",
        "First the smaller of n and window, then times batch.",
    ),
    Mistake(
        "window_times_layers",
        "",
        "The window is taken once for each layer",
        _WINDOW + " That holds in each layer. Through many layers a token learns of "
        "older ones, but their keys are gone.",
        "The smaller of n and window.",
    ),
)
