"""Mistakes of many query heads over few key heads."""

from attnlib.clinic.catalogue import Mistake

_SHARED = (
    "Neighbouring query heads share a key head: with 6 and 2, heads 0 1 2 look at key "
    "head 0, heads 3 4 5 at key head 1."
)
_FOLD = (
    "Queries (n_heads, n_q, d_k), cut into (n_kv_heads, group n_q, d_k), are the rows "
    "of one head of the group after those of another. The result is cut back the same "
    "way."
)

MISTAKES = (
    Mistake(
        "kv_groups_of_two",
        "M33",
        "Always two query heads share a key head",
        _SHARED,
        "How large a group is follows from n_heads and n_kv_heads.",
    ),
    Mistake(
        "kv_group_is_count",
        "M33",
        "The number of key heads is taken for the size of a group",
        _SHARED + " A group has n_heads / n_kv_heads of them.",
        "Divide n_heads by n_kv_heads.",
    ),
    Mistake(
        "kv_keys_tiled",
        "M33",
        "The keys are tiled, and the values repeated",
        _SHARED + " The values go with the keys.",
        "Treat k and v alike: 0 0 0 1 1 1.",
    ),
    Mistake(
        "kv_values_tiled",
        "M33",
        "The values are tiled, and the keys repeated",
        _SHARED + " The values go with the keys.",
        "Treat k and v alike: 0 0 0 1 1 1.",
    ),
    Mistake(
        "kv_head_last_only",
        "M33",
        "All query heads use the last key head",
        _SHARED,
        "Which key head belongs to query head 0?",
    ),
    Mistake(
        "kv_keys_first_only",
        "M33",
        "All query heads use the keys of the first key head",
        _SHARED + " The values go with the keys.",
        "Treat k and v alike.",
    ),
    Mistake(
        "kv_values_first_only",
        "M33",
        "All query heads use the values of the first key head",
        _SHARED + " The values go with the keys.",
        "Treat k and v alike.",
    ),
    Mistake(
        "kv_heads_joined",
        "M33",
        "The keys of all heads stand in one table, and every query sees them all",
        _SHARED,
        "The queries are folded. k and v stay as they are.",
    ),
    Mistake(
        "group_mean_alone",
        "M33",
        "The query heads of a group are averaged, and one result a group comes back",
        _SHARED + " They share keys and values. Each asks its own question.",
        "The queries stay n_heads, and so do the results.",
    ),
    Mistake(
        "group_queries_dropped",
        "M33",
        "Only as many query heads are used as there are key heads",
        _SHARED + " The other query heads ask, too.",
        "n_heads results are wanted.",
    ),
    Mistake(
        "group_queries_mean",
        "M33",
        "The query heads of a group are averaged",
        _SHARED + " They share keys and values. Each asks its own question.",
        "The queries stay n_heads.",
    ),
    Mistake(
        "group_queries_regrouped",
        "M33",
        "Heads and tokens of the queries are mixed",
        _FOLD,
        "Which two axes does your reshape of q join? No swap is needed.",
    ),
    Mistake(
        "group_folded_by_stride",
        "M33",
        "The queries are folded in another order than the result is cut back",
        _FOLD + " Heads 0 2 4 and 1 3 5 are no neighbours.",
        "A plain reshape of q, without a swap.",
    ),
    Mistake(
        "group_tokens_first",
        "M33",
        "The queries are folded token by token, not head by head",
        _FOLD,
        "A plain reshape of q, without a swap.",
    ),
    Mistake(
        "group_unfolded_wrongly",
        "M33",
        "The result is cut back at the wrong axes: heads and tokens are mixed",
        _FOLD,
        "First the head within the group, then the token.",
    ),
    Mistake(
        "group_unfolded_tokens_first",
        "M33",
        "The result is cut into tokens first, and then into heads",
        _FOLD,
        "A plain reshape to (..., n_heads, n_q, d_v), without a swap.",
    ),
    Mistake(
        "axis_folded_rows",
        "M04",
        "The softmax runs over the folded queries, not the keys",
        "Each query hands out 1 over its keys. Here each key hands out 1 over all "
        "queries of its group.",
        "Sum along the rows: the last axis.",
    ),
    Mistake(
        "causal_unasked_top_left",
        "",
        "A causal mask is built in",
        "Each query sees the first keys only, as with is_causal=True. Nobody asked for "
        "that here.",
        "Every query may look at every key.",
    ),
    Mistake(
        "group_heads_permuted",
        "M33",
        "The heads come out in another order",
        _SHARED + " Head h of the result belongs to head h of the queries.",
        "In your reshape, does n_kv_heads stand before the group?",
    ),
    Mistake(
        "group_still_folded",
        "",
        "The result is still folded",
        _FOLD,
        "The last step: a reshape to (..., n_heads, n_q, d_v).",
    ),
    Mistake(
        "group_axis_kept",
        "",
        "The axes of key heads and of the group are not joined again",
        "The result is (..., n_heads, n_q, d_v); yours has one axis more.",
        "The last step: a reshape to (..., n_heads, n_q, d_v).",
    ),
    Mistake(
        "group_out_mean",
        "M33",
        "The results of a group are averaged",
        _SHARED + " They share keys and values, not results.",
        "n_heads results are wanted.",
    ),
    Mistake(
        "group_out_first",
        "M33",
        "Only the first head of each group comes back",
        _SHARED + " They share keys and values, not results.",
        "n_heads results are wanted.",
    ),
    Mistake(
        "group_heads_dropped",
        "M33",
        "Only as many heads come back as there are key heads",
        _SHARED + " They share keys and values, not results.",
        "n_heads results are wanted.",
    ),
    Mistake(
        "heads_merged_too",
        "",
        "The heads are merged already",
        "The result is (..., n_heads, n_q, d_v): what comes before W_o and its merge.",
        "Leave the last reshape out.",
    ),
)
