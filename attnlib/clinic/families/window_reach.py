"""The oldest token that still counts after several layers, with its mistakes."""

from __future__ import annotations

from attnlib.clinic.case import RIGHT, Family, Faults


def oldest_token(
    position: int, n_layers: int, width: int, *, faults: Faults = RIGHT
) -> float:
    """max(0, position - n_layers (width - 1)): a layer goes width - 1 tokens back."""
    step: float = width - 1
    layers = n_layers
    if "reach_width_counted" in faults:
        step = width
    elif "reach_width_two_less" in faults:
        step = width - 2
    elif "reach_half_window" in faults:
        step = (width - 1) // 2
    elif "reach_half_width" in faults:
        step = width // 2
    elif "reach_both_sides" in faults:
        step = 2 * (width - 1)
    if "reach_one_layer" in faults:
        layers = 1
    elif "reach_layer_too_few" in faults:
        layers = n_layers - 1
    elif "reach_layer_too_many" in faults:
        layers = n_layers + 1
    back = layers * step
    if "reach_width_less_one_once" in faults:
        back = n_layers * width - 1
    elif "reach_power" in faults:
        back = step**n_layers
    elif "reach_power_of_width" in faults:
        back = width**n_layers
    elif "reach_added" in faults:
        back = n_layers + width - 1
    if "reach_is_distance" in faults:
        return back
    if "reach_is_distance_cut" in faults:
        return min(position, back)
    if "reach_is_count" in faults:
        return min(position, back) + 1
    if "reach_not_cut" in faults:
        return position - back
    if "reach_cut_at_one" in faults:
        return max(1, position - back)
    if "reach_first_outside" in faults:
        return max(0, position - back - 1)
    if "reach_one_late" in faults:
        return max(0, position - back + 1)
    if "reach_smaller" in faults:
        return min(0, position - back)
    return max(0, position - back)


OLDEST_TOKEN = Family(
    "oldest_token",
    oldest_token,
    {
        "step": (
            "reach_width_counted",
            "reach_width_two_less",
            "reach_half_window",
            "reach_half_width",
            "reach_both_sides",
        ),
        "layers": ("reach_one_layer", "reach_layer_too_few", "reach_layer_too_many"),
        "back": (
            "reach_width_less_one_once",
            "reach_power",
            "reach_power_of_width",
            "reach_added",
        ),
        "returned": (
            "reach_is_distance",
            "reach_is_distance_cut",
            "reach_is_count",
            "reach_not_cut",
            "reach_cut_at_one",
            "reach_first_outside",
            "reach_one_late",
            "reach_smaller",
        ),
    },
)
