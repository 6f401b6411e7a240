"""Mistakes of rotary positions inside an attention."""

from attnlib.clinic.catalogue import Mistake

_LAYOUT = (
    "There are two conventions, features 2i and 2i + 1 or features i and i + d/2 as a "
    "pair. Queries and keys must follow the same one, and the weights decide which."
)
_PLACE = (
    "A score must depend on how far apart two tokens stand, and on nothing else of "
    "their places. Both are turned by the position of their own token."
)
_MEND = "Turn queries and keys by their own positions, once."

MISTAKES = (
    Mistake(
        "rope_other_layout",
        "M26",
        "RoPE turns the pairs of the other convention",
        _LAYOUT,
        "Reorder the weights, or take the other layout.",
        "huggingface/transformers#25199",
    ),
    Mistake(
        "rope_other_layout_in_k",
        "M26",
        "RoPE turns the keys by the other convention than the queries",
        _LAYOUT,
        "Take one layout for both.",
        "huggingface/transformers#25199",
    ),
    Mistake(
        "rope_other_layout_in_q",
        "M26",
        "RoPE turns the queries by the other convention than the keys",
        _LAYOUT,
        "Take one layout for both.",
        "huggingface/transformers#25199",
    ),
    Mistake(
        "rope_angles_of_other_layout",
        "M26",
        "RoPE pairs features by one convention and lays its angles out by the other",
        "rotate_half pairs feature i with i + d/2, so both need the same angle: the "
        "angles come as 0 1 2 0 1 2. Pairs 2i and 2i + 1 take them as 0 0 1 1 2 2.",
        "cat([angles, angles]) with rotate_half, repeat_interleave(angles, 2) with "
        "neighbours.",
        "huggingface/transformers#25199",
    ),
    *(
        Mistake(key, "M27", name, _PLACE, _MEND, report)
        for key, name, report in (
            ("rope_q_one_on", "RoPE takes queries one place further than keys", ""),
            ("rope_k_one_on", "RoPE takes keys one place further than queries", ""),
            (
                "rope_q_from_zero",
                "RoPE counts queries from 0 though earlier keys are cached",
                "RobertCsordas/moeut#6",
            ),
            (
                "rope_q_alone_from_zero",
                "Only the queries are turned, and counted from 0",
                "",
            ),
            (
                "rope_chunk_from_zero",
                "RoPE counts from 0 again though earlier keys are cached",
                "RobertCsordas/moeut#6",
            ),
            (
                "rope_cache_turned_twice",
                "RoPE turns cached keys once more",
                "NeuraLegion/shainet#110",
            ),
            ("rope_last_position", "RoPE turns all tokens by the last position", ""),
            (
                "rope_k_turned_twice",
                "RoPE turns the keys twice",
                "NeuraLegion/shainet#110",
            ),
            ("rope_k_turned_backwards", "RoPE turns keys backwards", ""),
            ("rope_q_turned_backwards", "RoPE turns queries backwards", ""),
            ("rope_by_head", "RoPE takes the head's number for the position", ""),
            ("rope_by_item", "RoPE takes the item's number for the position", ""),
        )
    ),
)
