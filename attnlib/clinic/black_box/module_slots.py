"""Which mistakes of a module exclude each other, beside those of its attention."""

from __future__ import annotations

from attnlib.clinic.black_box.slots import Slots, function_slots
from attnlib.clinic.black_box.traits import Traits

HEADS: Slots = {
    "split": (
        "split_no_transpose",
        "split_interleaved",
        "heads_interleaved",
        "split_of_v_alone",
        "split_of_q_and_k_alone",
        "split_of_q_alone",
        "split_of_k_alone",
        "split_of_fused",
        "one_head",
    ),
    "merge": ("merge_no_transpose", "merge_interleaved", "merge_mean_repeated"),
    "tables": (
        "tables_q_k_swapped",
        "tables_k_v_swapped",
        "tables_q_v_swapped",
        "values_by_key_table",
        "keys_by_query_table",
        "values_by_key_table_own_bias",
        "keys_by_query_table_own_bias",
    ),
    "bias": (
        "biases_missing",
        "bias_q_missing",
        "bias_v_missing",
        "bias_o_missing",
        "bias_q_and_v_missing",
    ),
    "batch": ("batch_as_sequence",),
    "residual": ("residual_added",),
}
SQUARE: Slots = {
    "W": (
        "weights_W_transposed",
        "W_q_transposed",
        "W_k_transposed",
        "W_v_transposed",
        "queries_not_projected",
        "keys_not_projected",
        "values_not_projected",
    ),
}
OUT: Slots = {"W_o": ("W_o_missing", "W_o_transposed")}
MEMORY: Slots = {
    "memory": ("self_attention", "memory_asks", "keys_from_x", "values_from_x"),
    "values": ("values_from_keys", "keys_from_values"),
}


def module_slots(
    traits: Traits,
    *,
    mask: bool,
    causal: bool,
    memory: bool,
    grouped: bool,
    square: bool,
    projected: bool,
) -> Slots:
    """All slots of a module with such weights that takes these things."""
    slots = function_slots(traits, mask=mask, causal=causal, grouped=grouped) | HEADS
    if square:
        slots |= SQUARE
    if projected:
        slots |= OUT
    if memory:
        slots |= MEMORY
    return slots
