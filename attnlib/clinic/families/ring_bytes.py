"""What a rank of a ring sends, with every mistake built in."""

from __future__ import annotations

from attnlib.clinic.case import RIGHT, Family, Faults


def ring_bytes(
    n: int,
    n_ranks: int,
    n_heads: int,
    n_kv_heads: int,
    d_k: int,
    itemsize: int,
    *,
    faults: Faults = RIGHT,
) -> tuple[float, float]:
    """What one rank sends, forward and backward: whole blocks of keys and values."""
    tokens: float = n if "ring_whole_text" in faults else n / n_ranks
    heads: float = 2 * n_kv_heads
    if "ring_keys_only" in faults:
        heads = n_kv_heads
    elif "ring_all_heads" in faults:
        heads = 2 * n_heads
    elif "ring_queries_too" in faults:
        heads = n_heads + 2 * n_kv_heads
    elif "ring_heads_missing" in faults:
        heads = 2
    elif "ring_heads_per_group" in faults:
        heads = 2 * n_heads / n_kv_heads
    width: float = d_k
    if "ring_width_missing" in faults:
        width = 1
    elif "ring_width_divided" in faults:
        width = d_k / n_heads
    size: float = itemsize
    if "ring_numbers" in faults:
        size = 1
    elif "ring_two_bytes" in faults:
        size = 2
    elif "ring_bits" in faults:
        size = 8 * itemsize
    block = tokens * heads * width * size
    if "ring_received_too" in faults:
        block = 2 * block
    others = n_ranks - 1
    keys, grads = others, n_ranks
    if "ring_all_hops" in faults:
        others = keys = n_ranks
    elif "ring_forward_home" in faults:
        others = n_ranks
    elif "ring_one_hop" in faults:
        others = keys = grads = 1
    elif "ring_two_ranks" in faults:
        others, keys, grads = 1, 1, 2
    elif "ring_two_hops_less" in faults:
        others, keys, grads = others - 1, keys - 1, grads - 1
    if "ring_gradients_not_home" in faults:
        grads = n_ranks - 1
    elif "ring_gradients_missing" in faults:
        grads = 0
    elif "ring_keys_not_again" in faults:
        keys = 0
    elif "ring_keys_home" in faults:
        keys = n_ranks
    of_grads = block
    if "ring_gradients_wide" in faults:
        of_grads = block * max(itemsize, 4) / itemsize
    elif "ring_gradients_of_queries" in faults:
        of_grads = block * (n_heads + 2 * n_kv_heads) / (2 * n_kv_heads)
    forward, backward = others * block, keys * block + grads * of_grads
    if "ring_backward_is_all" in faults:
        backward = forward + backward
    if "ring_exchanged" in faults:
        return backward, forward
    return forward, backward


RING_BYTES = Family(
    "ring_bytes",
    ring_bytes,
    {
        "tokens": ("ring_whole_text",),
        "heads": (
            "ring_keys_only",
            "ring_all_heads",
            "ring_queries_too",
            "ring_heads_missing",
            "ring_heads_per_group",
        ),
        "width": ("ring_width_missing", "ring_width_divided"),
        "size": ("ring_numbers", "ring_two_bytes", "ring_bits"),
        "both": ("ring_received_too",),
        "hops": (
            "ring_all_hops",
            "ring_forward_home",
            "ring_one_hop",
            "ring_two_ranks",
            "ring_two_hops_less",
        ),
        "backward": (
            "ring_gradients_not_home",
            "ring_gradients_missing",
            "ring_keys_not_again",
            "ring_keys_home",
            "ring_gradients_wide",
            "ring_gradients_of_queries",
        ),
        "returned": (
            "ring_backward_is_all",
            "ring_exchanged",
        ),
    },
)
