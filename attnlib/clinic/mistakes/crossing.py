"""Mistakes in attention from one source to another: who asks, and who is looked at."""

from attnlib.clinic.catalogue import Mistake

_WHO = "x asks, memory is looked at: keys and values come from the same tokens."
_TABLE = "W_q reads x, W_k and W_v read memory; each table makes one of the three."
_SCALE = "The dot product adds d_k numbers, whatever q and k were made from."

MISTAKES = (
    Mistake(
        "self_attention",
        "M46",
        "The memory is never looked at",
        "Keys and values are made from x, so the tokens look at one another. " + _WHO,
        "What do W_k and W_v multiply?",
    ),
    Mistake(
        "self_attention_of_memory",
        "M46",
        "The memory looks at itself",
        "All three are made from memory, and x is never used. " + _WHO,
        "What does W_q multiply?",
    ),
    Mistake(
        "keys_from_x",
        "M46",
        "The keys are made from x",
        "Then the weights say which token of x fits, and mix values of memory. " + _WHO,
        "What does W_k multiply?",
    ),
    Mistake(
        "values_from_x",
        "M46",
        "The values are made from x",
        "The weights are right, and what they mix is not what was looked at. " + _WHO,
        "What does W_v multiply?",
    ),
    Mistake(
        "memory_asks",
        "M46",
        "x and memory are exchanged",
        "Your memory asks and x is looked at: there is a row for each token of memory. "
        + _WHO,
        "How many rows should the weights have?",
    ),
    Mistake(
        "memory_asks_with_its_table",
        "M46",
        "q and k are exchanged, and what is mixed is made from x",
        "Your memory asks and x is looked at: there is a row for each token of memory. "
        + _WHO,
        "scaled_dot_product wants the three in the order of its name: q, k, v.",
    ),
    Mistake(
        "queries_for_all",
        "M46",
        "The queries serve as keys and values as well",
        "So the tokens of x look at one another, and nothing comes from memory. "
        + _WHO,
        "What do W_k and W_v multiply?",
    ),
    Mistake(
        "tables_k_v_swapped",
        "M46",
        "W_k and W_v are exchanged",
        _TABLE,
        "Which of the two makes what is found, and which what is said?",
    ),
    Mistake(
        "tables_q_k_swapped",
        "M46",
        "W_q and W_k are exchanged",
        _TABLE,
        "Which table belongs to the one that asks?",
    ),
    Mistake(
        "keys_not_projected",
        "M47",
        "The memory itself serves as keys",
        _TABLE,
        "W_k has not been used.",
    ),
    Mistake(
        "queries_not_projected",
        "M47",
        "x itself serves as queries",
        _TABLE,
        "W_q has not been used.",
    ),
    Mistake(
        "values_not_projected",
        "M47",
        "The memory itself is mixed",
        _TABLE + " Without W_v the result has d_memory numbers, not d_v.",
        "W_v has not been used.",
    ),
    Mistake(
        "scale_d_memory",
        "M02",
        "Divided by √d_memory, where √d_k is meant",
        _SCALE,
        "How many numbers does one dot product add?",
    ),
    Mistake(
        "mask_on_queries",
        "M15",
        "The mask lies along the queries, not along the keys",
        "It says which parts of the memory are there, so it hides columns of the "
        "scores. Along the queries it silences words, and the absent parts are still "
        "looked at.",
        "The last axis of the scores is that of the keys.",
        "hyunwoongko/transformer#40",
    ),
    Mistake(
        "mask_without_axis",
        "M17",
        "The mask of one item is laid over another's",
        "Without its axis of 1 for the queries, a mask of (batch, n_k) is spread over "
        "the queries: query i gets the mask of item i.",
        "Leave the axes of the mask as they are; NumPy spreads them.",
    ),
    Mistake(
        "memory_zeroed",
        "M09",
        "The absent parts are set to 0, and still looked at",
        "A key of zeros has the score 0, and 0 is a score like any other: exp(0) = 1.",
        "The mask hides scores, before the softmax.",
    ),
    Mistake(
        "returned_raw_scores",
        "",
        "The raw scores are returned in place of the weights",
        "The output is right. What the caller wants to see are the weights: the scores "
        "scaled, masked, and after the softmax.",
        "Return what the softmax gave.",
    ),
    Mistake(
        "out_added_to_x",
        "",
        "x is added to the result",
        "A model does that around the attention; here the mix alone is wanted.",
        "Return what the values were mixed to.",
    ),
)
