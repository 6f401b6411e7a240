"""Which mistakes exclude each other: one slot holds what only one line can do.

Earlier slots and names win where two readings fit. `WAYS` of writing are no mistakes:
they are tried so that a mistake beside them is seen.
"""

from __future__ import annotations

from attnlib.clinic.black_box.traits import Traits
from attnlib.clinic.case import Faults
from attnlib.clinic.families.slopes import ALIBI_SLOPES

Slots = dict[str, tuple[str, ...]]

WAYS: tuple[Faults, ...] = (
    frozenset(),
    frozenset({"guarded"}),
    frozenset({"fill_lowest_finite"}),
    frozenset({"fill_lowest_finite", "masked_again"}),
    frozenset({"masked_again"}),
    frozenset({"mask_after_divided_safely"}),
    frozenset({"hidden_lowered"}),
    frozenset({"causal_apart"}),
    frozenset({"causal_apart", "guarded"}),
    frozenset({"hidden_twice", "guarded"}),
    frozenset({"empty_zeroed"}),
    frozenset({"empty_zeroed", "guarded"}),
    frozenset({"empty_zeroed", "hidden_twice"}),
)
NAN_ZEROED: Faults = frozenset({"nan_zeroed"})  # of modules, and rare
HARMLESS: Faults = NAN_ZEROED.union(*WAYS)

SCORES: Slots = {
    "scale": (
        "scale_missing",
        "scale_d_model",
        "scale_d_k",
        "scale_twice",
        "scale_multiplied",
        "scale_n_heads",
        "scale_n_k",
        "scale_n_q",
        "scale_d_v",
        "scale_batch",
        "scale_d_model_whole",
        "scale_on_one_side",
        "scale_square",
        "scale_of_half",
        "scale_base_2",
        "scale_base_e_twice",
        "scale_after",
    ),
    "roles": (
        "roles_swapped",
        "score_q_q",
        "score_k_k",
        "score_q_v",
        "score_k_v",
        "key_reshaped",
    ),
    "cosine": ("cosine",),
}
WEIGHTS: Slots = {
    "axis": (
        "axis_second_last",
        "axis_heads",
        "softmax_over_heads",
        "axis_zero",
        "axis_table",
        "axis_heads_and_table",
        "axis_batch_and_heads",
        "axis_everything",
    ),
    "softmax": (
        "softmax_twice",
        "softmax_missing",
        "not_normalised",
        "sign_flipped",
        "sigmoid",
        "log_softmax",
        "softmax_on_out",
        "divides_by_mean",
        "exp_missing",
    ),
    "mix": (
        "values_are_keys",
        "values_are_queries",
        "weights_transposed",
        "scores_mixed",
        "out_scaled",
        "weights_averaged",
    ),
}
MASK: Slots = {
    "mask": (
        "mask_inverted",
        "look_inverted",
        "mask_ignored",
        "mask_added",
        "mask_fill_zero",
        "mask_after",
        "mask_fill_10",
        "mask_fill_100",
        "mask_before_scale",
        "mask_subtracted",
        "mask_fill_one",
        "mask_times_infinity",
        "mask_replaced_by_causal",
        "mask_replaced_by_top_left",
    ),
    "mask axes": (
        "mask_transposed",
        "padding_on_queries",
        "padding_on_both",
        "padding_missing",
        "mask_tiled_over_heads",
        "mask_repeated_over_items",
        "head_axis_missing",
        "batch_first",
        "batch_reversed",
        "batch_one_on",
        "batch_one_back",
    ),
}
# Blocks that show in short questions; longer ones are asked apart.
BLOCKS = (1, 2, 3, 4)
LAYOUT: Slots = {"layout": ("heads_as_tokens",)}
ONLINE: Slots = {
    "online": tuple(
        f"online_{kind}_{size}"
        for kind in ("out", "sum", "both", "wrong", "mean")
        for size in BLOCKS
    ),
}
CAUSAL: Slots = {
    "causal": (
        "causal_missing",
        "diagonal_missing",
        "diagonal_next",
        "aligned_top_left",
        "triu",
        "triu_shifted",
    ),
}
BOTH: Slots = {
    "combined": (
        "combined_by_or",
        "mask_dropped_beside_causal",
        "causal_dropped_beside_mask",
        "causal_of_padding",
        "causal_or_padding",
        "padding_dropped_beside_causal",
        "combined_by_xor",
    ),
}
WINDOW: Slots = {
    "window": (
        "window_one_more",
        "window_one_less",
        "window_missing",
        "window_halved",
        "window_top_left",
    ),
}
CAP: Slots = {
    "cap": (
        "cap_missing",
        "cap_after_mask",
        "cap_before_scale",
        "cap_on_raw",
        "cap_inside_only",
        "cap_outside_only",
        "cap_clipped",
    ),
}
NORM: Slots = {
    "norm": (
        "norm_missing",
        "norm_over_tokens",
        "norm_over_heads",
        "norm_over_all_features",
        "norm_on_q_missing",
        "norm_on_k_missing",
    ),
}
ROPE: Slots = {
    "rope": (
        "rope_forgotten",
        "rope_other_layout",
        "rope_other_layout_in_k",
        "rope_other_layout_in_q",
        "rope_angles_of_other_layout",
        "rope_on_q_only",
        "rope_q_alone_from_zero",
        "rope_on_k_only",
        "rope_q_one_on",
        "rope_k_one_on",
        "rope_q_from_zero",
        "rope_last_position",
        "rope_places_doubled",
        "rope_k_turned_twice",
        "turned_backwards",
        "rope_k_turned_backwards",
        "rope_q_turned_backwards",
        "rope_by_head",
        "rope_by_item",
    ),
    "rope values": ("rope_on_v",),
}
APART = ("key_heads_tiled", "value_heads_tiled")  # one tiled, the other repeated
GROUPS: Slots = {
    "kv": ("kv_heads_tiled", "kv_head_first_only", "kv_heads_reversed", *APART),
}


def scores_slots(traits: Traits) -> Slots:
    """What can go wrong before the mask, for a right attention of this kind."""
    slots = dict(SCORES)
    if traits.softcap is not None:
        slots |= CAP
    if traits.qk_norm:
        slots |= NORM
    if traits.rope:
        slots |= ROPE
    if traits.alibi:
        rules = {f"slopes: {s}": keys for s, keys in ALIBI_SLOPES.slots.items()}
        slots |= rules | {
            "alibi": (
                "alibi_missing",
                "alibi_rising",
                "alibi_signed",
                "alibi_from_zero",
            )
        }
    return slots


def function_slots(traits: Traits, *, mask: bool, causal: bool, grouped: bool) -> Slots:
    """All slots of a function that takes these things."""
    slots = scores_slots(traits) | WEIGHTS | LAYOUT | ONLINE
    if grouped:
        slots |= GROUPS
    if mask or causal or traits.causal or traits.window is not None:
        slots["mask"] = MASK["mask"]
    if mask:
        slots |= MASK
    if causal or traits.causal:
        slots |= CAUSAL
    elif mask:
        slots |= {"causal": ("causal_unasked",)}
    if mask and (causal or traits.causal):
        slots |= BOTH
    if traits.window is not None:
        slots |= WINDOW
    return slots
