"""The std of the first weights for a wished entropy, with every mistake built in."""

from __future__ import annotations

import math

from attnlib.clinic.case import RIGHT, Family, Faults


def init_for_entropy(
    d_model: int, d_k: int, share: float, *, faults: Faults = RIGHT
) -> float:
    """The std of W_q and W_k that makes exp(entropy) this share of the keys."""
    drop = -math.log(share)  # ln n_k - entropy, which is half the variance of scores
    if "log_base_two" in faults:
        drop /= math.log(2)
    elif "log_base_ten" in faults:
        drop /= math.log(10)
    elif "share_without_log" in faults:
        drop = 1 - share
    if "spread_without_two" in faults:
        spread = math.sqrt(drop)
    elif "spread_halved" in faults:
        spread = math.sqrt(drop / 2)
    elif "spread_without_root" in faults:
        spread = 2 * drop
    elif "spread_is_drop" in faults:
        spread = drop
    elif "spread_is_share" in faults:
        spread = share
    elif "spread_is_one" in faults:
        spread = 1.0
    elif "rule_forwards" in faults:
        spread = math.exp(-(share**2) / 2)
    elif "log_sign_lost" in faults:
        spread = math.nan
    else:
        spread = math.sqrt(2 * drop)
    if "spread_returned" in faults:
        return spread
    std = _table_std(spread, d_model, d_k, faults)
    if "variance_for_std" in faults:
        return std**2
    return std * math.sqrt(3) if "bound_for_std" in faults else std


def _table_std(spread: float, d_model: int, d_k: int, faults: Faults) -> float:
    """From the std of the scores back to that of the tables."""
    if "width_outside_root" in faults:
        return math.sqrt(spread) / d_model
    if "width_of_head" in faults:
        return math.sqrt(spread / d_k)
    if "root_of_d_k_kept" in faults:
        return math.sqrt(spread / (d_model * math.sqrt(d_k)))
    if "root_of_d_k_twice" in faults:
        return math.sqrt(spread * math.sqrt(d_k) / d_model)
    if "width_upside_down" in faults:
        return math.sqrt(d_model / spread) if spread > 0 else math.nan
    if "width_multiplied" in faults:
        return math.sqrt(spread * d_model)
    if "width_missing" in faults:
        return math.sqrt(spread)
    if "width_and_head" in faults:
        return math.sqrt(spread / (d_model * d_k))
    if "width_of_512" in faults:
        return math.sqrt(spread / 512)
    if "width_without_root" in faults:
        return math.sqrt(spread / math.sqrt(d_model))
    return math.sqrt(spread / d_model)


INIT_FOR_ENTROPY = Family(
    "init_for_entropy",
    init_for_entropy,
    {
        "log": ("log_base_two", "log_base_ten", "share_without_log"),
        "spread": (
            "spread_without_two",
            "spread_halved",
            "spread_without_root",
            "spread_is_drop",
            "spread_is_share",
            "spread_is_one",
            "rule_forwards",
            "log_sign_lost",
        ),
        "tables": (
            "width_outside_root",
            "width_of_head",
            "root_of_d_k_kept",
            "root_of_d_k_twice",
            "width_upside_down",
            "width_multiplied",
            "width_of_512",
            "width_without_root",
            "width_missing",
            "width_and_head",
        ),
        "returned": ("variance_for_std", "bound_for_std", "spread_returned"),
    },
)
