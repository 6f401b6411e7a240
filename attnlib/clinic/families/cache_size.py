"""Bytes of a KV cache, with every mistake built in."""

from __future__ import annotations

from attnlib.clinic.case import RIGHT, Family, Faults


def kv_bytes(
    n_layers: int,
    n_heads: int,
    n_kv_heads: int,
    d_k: int,
    n: int,
    batch: int,
    window: int | None,
    *,
    faults: Faults = RIGHT,
) -> float:
    """2 n_layers n_kv_heads d_k min(n, window) batch numbers, of two bytes each."""
    heads: float = n_kv_heads
    if "cache_all_heads" in faults:
        heads = n_heads
    elif "cache_group_for_heads" in faults:
        heads = n_heads // n_kv_heads
    elif "cache_one_head" in faults:
        heads = 1
    elif "cache_heads_added" in faults:
        heads = n_heads + n_kv_heads
    elif "cache_heads_multiplied" in faults:
        heads = n_heads * n_kv_heads
    elif "cache_split_over_heads" in faults:
        heads = n_kv_heads / n_heads
    elif "cache_all_queries" in faults:  # 2 n_kv_heads + n_heads
        heads = n_kv_heads + n_heads / 2
    elif "cache_of_scores" in faults:  # n_heads n numbers for each token
        heads = n_heads * n / (2 * d_k)
    tokens = _tokens(n, window, n_layers, batch, faults)
    layers = 1 if "cache_one_layer" in faults else n_layers
    texts = 1 if "cache_one_text" in faults else batch
    width = 1 if "cache_width_missing" in faults else d_k
    of_token = 2 * layers * heads * width * 2
    for key, factor in _FACTORS.items():
        if key in faults:
            of_token *= factor
    return of_token * tokens * texts


_FACTORS = {
    "cache_half": 1 / 2,
    "cache_quarter": 1 / 4,
    "cache_double": 2.0,
    "cache_itemsize_8": 4.0,
    "cache_bits": 8.0,
    "cache_numbers_of_16": 16.0,
    "cache_in_kb": 1 / 1000,
    "cache_in_kib": 1 / 1024,
    "cache_in_mb": 1e-6,
    "cache_in_mib": 1 / 1024**2,
    "cache_in_gb": 1e-9,
    "cache_in_gib": 1 / 1024**3,
    "cache_with_queries": 3 / 2,
}


def _tokens(
    n: int, window: int | None, n_layers: int, batch: int, faults: Faults
) -> float:
    kept = n if window is None else min(n, window)
    if "cache_per_token" in faults:
        return 1
    if "cache_squared" in faults:
        return n * n
    if "cache_squared_in_window" in faults:
        return kept * kept
    if "cache_read_so_far" in faults:
        return kept * (kept + 1) / 2
    if window is None:
        return 0 if "window_none_is_zero" in faults else n
    if "window_not_used" in faults:
        return n
    if "window_always_full" in faults:
        return window
    if "window_larger" in faults:
        return max(n, window)
    if "window_subtracted" in faults:
        return n - window
    if "window_added" in faults:
        return n + window
    if "window_and_itself" in faults:
        return min(n, window + 1)
    if "window_without_itself" in faults:
        return min(n, window - 1)
    if "window_times" in faults:
        return n * window
    if "window_remainder" in faults:
        return n % window
    if "window_for_all_texts" in faults:
        return min(n * batch, window) / batch
    if "window_times_layers" in faults:
        return min(n, window * n_layers)
    return kept


KV_BYTES = Family(
    "kv_bytes",
    kv_bytes,
    {
        "heads": (
            "cache_all_heads",
            "cache_group_for_heads",
            "cache_one_head",
            "cache_heads_added",
            "cache_heads_multiplied",
            "cache_split_over_heads",
            "cache_all_queries",
            "cache_of_scores",
        ),
        "factor": tuple(_FACTORS),
        "layers": ("cache_one_layer",),
        "texts": ("cache_one_text",),
        "width": ("cache_width_missing",),
        "tokens": (
            "cache_per_token",
            "cache_squared",
            "cache_squared_in_window",
            "cache_read_so_far",
            "window_none_is_zero",
            "window_not_used",
            "window_always_full",
            "window_larger",
            "window_subtracted",
            "window_added",
            "window_and_itself",
            "window_without_itself",
            "window_times",
            "window_remainder",
            "window_for_all_texts",
            "window_times_layers",
        ),
    },
)
