"""M46, M47: who plays which part, and steps that are missing or done twice."""

from __future__ import annotations

import math

from attnlib.clinic.diseases.disease import Disease, Shown
from attnlib.clinic.diseases.measured import drawn, slope
from attnlib.clinic.families.attention import scaled_dot_product
from attnlib.clinic.families.heads import multi_head


def _roles() -> Shown:
    q, k, v = drawn((4, 3), (4, 3), (4, 3))
    weights, out = scaled_dot_product(q, k, v)
    swapped, _ = scaled_dot_product(q, k, v, faults=frozenset(["roles_swapped"]))
    turned = weights.T
    _, keys = scaled_dot_product(q, k, v, faults=frozenset(["values_are_keys"]))
    raw = q @ k.T
    return Shown(
        "Four tokens, d_k = d_v = 3: three ways to exchange the parts.",
        (
            (
                "slope against q·k / √d_k, query and key exchanged",
                slope(weights, raw, 3),
                slope(swapped, raw, 3),
            ),
            ("row sums, weights transposed", weights.sum(-1), turned.sum(-1)),
            ("first output, keys mixed in place of values", out[0], keys[0]),
        ),
    )


def _steps() -> Shown:
    n_k = 5
    q, k, v = drawn((3, 4), (n_k, 4), (n_k, 2))
    once, _ = scaled_dot_product(3 * q, k, v)
    twice, _ = scaled_dot_product(3 * q, k, v, faults=frozenset(["softmax_twice"]))
    x, W_q, W_k, W_v, W_o = drawn((2, 4), (4, 4), (4, 4), (4, 4), (4, 4))
    right = multi_head(x, W_q, W_k, W_v, W_o, 2)
    missing = frozenset(["W_o_missing"])
    bare = multi_head(x, W_q, W_k, W_v, W_o, 2, faults=missing)
    return Shown(
        "A softmax that is applied twice, n_k = 5; and two heads without their W_o.",
        (
            ("smallest weight", once.min(), twice.min()),
            ("1 / (e n_k)", "", 1 / (math.e * n_k)),
            ("first output of two heads", right[0], bare[0]),
            ("the same, times W_o", right[0], (bare @ W_o)[0]),
        ),
    )


DISEASES = (
    Disease(
        "M46",
        "Query, key and value have exchanged their parts",
        "function",
        "The shapes fit in self-attention, where all three have as many rows, and it "
        "even trains.",
        "Which of q, k and v the weights and the output follow. The slope of the "
        "log-weights against q·k / √d_k is 1 if the parts are right.",
        "The query asks, the key answers, and the value is what is said. Row i of the "
        "weights belongs to query i, and mixes the rows of v.",
        (
            "To whom does row i of the weights belong?",
            "Try n_q = 3 and n_k = 5: which sizes come out?",
            "scores = q @ k.T, and out = weights @ v.",
        ),
        _roles,
    ),
    Disease(
        "M47",
        "A step is missing, done twice, or its table is transposed",
        "module",
        "Weights that never come near 0 or 1, or outputs that no other library gives.",
        "The smallest weight: after two softmaxes it is at least 1 / (e n_k). And "
        "whether one more product with W_o makes the output right.",
        "Projections, scale, mask, softmax, mix, merge, W_o: each once. nn.Linear "
        "holds its table transposed, (out, in), and computes x @ W.T.",
        (
            "Name the steps in their order. Which of them stands in your code?",
            "Does a function that you call take the softmax already?",
            "Copy nn.Linear's weight with .T if you multiply as x @ W.",
        ),
        _steps,
    ),
)
