"""Taking a fused matrix of three weights apart, with every mistake built in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults

Float = npt.NDArray[np.floating]
Three = tuple[Float, Float, Float]

ORDERS = {
    "in_proj_order_k_q_v": (1, 0, 2),
    "in_proj_order_v_k_q": (2, 1, 0),
    "in_proj_order_q_v_k": (0, 2, 1),
    "in_proj_order_k_v_q": (1, 2, 0),
    "in_proj_order_v_q_k": (2, 0, 1),
    "in_proj_one_for_all": (0, 0, 0),
}
LEFT = {  # which of the three blocks are not turned over
    "in_proj_not_transposed": "qkv",
    "in_proj_not_transposed_kv": "kv",
    "in_proj_not_transposed_qv": "qv",
    "in_proj_not_transposed_qk": "qk",
    "in_proj_not_transposed_q": "q",
    "in_proj_not_transposed_k": "k",
    "in_proj_not_transposed_v": "v",
}


def from_in_proj(in_proj_weight: Float, *, faults: Faults = RIGHT) -> Three:
    """(3 d_model, d_model), of nn.MultiheadAttention, into W_q, W_k and W_v."""
    d = in_proj_weight.shape[1]
    if "in_proj_every_third" in faults:
        parts = [in_proj_weight[i::3] for i in range(3)]
    elif "in_proj_turned_and_reshaped" in faults:
        parts = [part.T for part in in_proj_weight.T.reshape(3, d, d)]
    else:
        parts = [in_proj_weight[i * d : (i + 1) * d] for i in range(3)]
    order = next((ORDERS[key] for key in ORDERS if key in faults), (0, 1, 2))
    left = next((LEFT[key] for key in LEFT if key in faults), "")
    W_q, W_k, W_v = (
        parts[i] if name in left else parts[i].T
        for i, name in zip(order, "qkv", strict=True)
    )
    return W_q, W_k, W_v


FROM_IN_PROJ = Family(
    "from_in_proj",
    from_in_proj,
    {
        "turned": tuple(LEFT),
        "cut": (
            "in_proj_every_third",
            "in_proj_turned_and_reshaped",
        ),
        "order": tuple(ORDERS),
    },
)
