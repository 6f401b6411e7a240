"""M01 to M06: scores that are scaled wrongly, and a softmax that is wrong."""

from __future__ import annotations

import math

import numpy as np

from attnlib.clinic.case import RIGHT, Faults
from attnlib.clinic.diseases.disease import Disease, Shown
from attnlib.clinic.diseases.measured import drawn, entropy, slope, xray
from attnlib.clinic.families.attention import scaled_dot_product
from attnlib.clinic.families.softmax import softmax

SLOPE = "slope of log-weights against q·k / √d_k"


def _scaled(key: str) -> Shown:
    """One function, d_k = 16, with and without this mistake."""
    d_k = 16
    q, k, v = drawn((3, d_k), (5, d_k), (5, 2))

    def numbers(faults: Faults) -> tuple[float, float]:
        weights, _ = scaled_dot_product(q, k, v, faults=faults)
        return slope(weights, q @ k.T, d_k), float(entropy(weights).mean())

    right, wrong = numbers(RIGHT), numbers(frozenset([key]))
    return Shown(
        "A function with n_q = 3, n_k = 5, d_k = 16.",
        (
            (SLOPE, right[0], wrong[0]),
            ("mean entropy of a row, in nats", right[1], wrong[1]),
        ),
    )


def _missing() -> Shown:
    return _scaled("scale_missing")


def _twice() -> Shown:
    return _scaled("scale_d_k")


def _of_d_model() -> Shown:
    (right, raw), (wrong, _) = xray(), xray(frozenset(["scale_d_model"]))
    return Shown(
        "Three heads with d_model = 12 and d_k = 2, so √d_model is √6 times √d_k.",
        (
            (SLOPE, slope(right, raw, 2), slope(wrong, raw, 2)),
            ("√d_k / √d_model", "", math.sqrt(2 / 12)),
        ),
    )


def _axis() -> Shown:
    q, k, v = drawn((3, 4), (5, 4), (5, 2))
    right, _ = scaled_dot_product(q, k, v)
    wrong, _ = scaled_dot_product(q, k, v, faults=frozenset(["axis_second_last"]))
    return Shown(
        "A function with n_q = 3, n_k = 5: the softmax runs over the queries.",
        (
            ("sum of each row", right.sum(-1), wrong.sum(-1)),
            ("sum of each column", right.sum(-2), wrong.sum(-2)),
        ),
    )


def _heads() -> Shown:
    right, wrong = xray()[0], xray(frozenset(["softmax_over_heads"]))[0]
    return Shown(
        "Three heads: what query 0 gives away in each.",
        (
            ("head by head", right.sum(-1)[:, 0], wrong.sum(-1)[:, 0]),
            ("in all heads", right[:, 0].sum(), wrong[:, 0].sum()),
        ),
    )


def _stable() -> Shown:
    small, large = np.array([2.0, 1.0, 0.0]), np.array([1002.0, 1001.0, 1000.0])
    fault = frozenset(["not_stable"])
    with np.errstate(all="ignore"):
        wrong = softmax(large, faults=fault)
    return Shown(
        "The same three differences, near 0 and near 1000, in float64.",
        (
            ("softmax of 2, 1, 0", softmax(small), softmax(small, faults=fault)),
            ("softmax of 1002, 1001, 1000", softmax(large), wrong),
        ),
    )


DISEASES = (
    Disease(
        "M01",
        "The scores are not scaled",
        "function",
        "The weights are nearly one-hot, more so with wider heads, and little gradient "
        "passes the softmax.",
        "The slope of the log-weights against q·k / √d_k. It should be 1, and is √d_k. "
        "The entropy of the rows falls as d_k grows.",
        "A dot product adds d_k terms. If they are independent with variance 1, its "
        "standard deviation is √d_k, so the scores are divided by just that. Without "
        "it the softmax saturates, and its gradient vanishes.",
        (
            "How does the spread of the scores grow with d_k?",
            "Something should stand between the product of q and k and the softmax.",
            "Divide the scores by the root of d_k, the size of one head.",
        ),
        _missing,
    ),
    Disease(
        "M02",
        "Divided by √d_model, where √d_k is meant",
        "module",
        "It trains, but the heads stay vague. With a single head all is well.",
        "The slope of the log-weights against q·k / √d_k. It should be 1, and is "
        "1/√n_heads where d_model = n_heads · d_k.",
        "The dot product of one head adds d_k terms, not d_model. Dividing by more "
        "makes the weights flatter, never sharper.",
        (
            "How many numbers does the dot product of one head add up?",
            "Which size does your divisor take, that of all heads or that of one?",
            "Take the last size of q after the split into heads.",
        ),
        _of_d_model,
    ),
    Disease(
        "M03",
        "The scale is applied twice",
        "function",
        "The weights are nearly uniform, and the model averages more than it chooses.",
        "The slope of the log-weights against q·k / √d_k. It should be 1, and is "
        "1/√d_k. A q scaled in advance, or q and k by the fourth root each, has the "
        "slope 1 and is right.",
        "The scores are divided by d_k instead of its root. Often q is scaled in "
        "advance, and then a library function that scales by itself is called.",
        (
            "How often is the scale applied on the way from q to the weights?",
            "`scaled_dot_product_attention` of PyTorch already divides by √d_k.",
            "Scale q in advance and pass scale=1.0, or leave q as it is.",
        ),
        _twice,
    ),
    Disease(
        "M04",
        "The softmax runs over the wrong axis",
        "function",
        "The shapes fit and nothing fails. With a causal mask, what a token gets still "
        "depends on later tokens.",
        "The sums of the weights. Each row, a query, should sum to 1. Here the columns "
        "do, or the whole table, or every weight alone.",
        "Each query distributes 1 over the keys, and the keys are the last axis. A "
        "softmax over the queries lets them compete for each key.",
        (
            "Add up the weights of one query. What should come out?",
            "Which axis of the scores counts the keys?",
            "The axis is -1. Name it: a default depends on the number of axes.",
        ),
        _axis,
    ),
    Disease(
        "M05",
        "The softmax runs over all heads together",
        "module",
        "The output is small, about 1/n_heads of what it should be. One loud head "
        "silences the others.",
        "The sums of the weights. Each query should give 1 in every head. Here it "
        "gives 1 in all heads together.",
        "Heads look at different things at the same time, and do not compete. Each has "
        "a softmax of its own.",
        (
            "How much does one query give away in one head?",
            "Were the heads flattened into the axis of the keys before the softmax?",
            "Take the softmax over the last axis while the heads have their own.",
        ),
        _heads,
    ),
    Disease(
        "M06",
        "The softmax is not stable",
        "function",
        "All is well until one day a loss is NaN. Small tests never show it.",
        "Scores of the same differences, near 0 and near 1000. The weights should be "
        "the same. Here they are NaN for the large ones.",
        "exp overflows for large scores, and infinity / infinity is NaN. Subtracting "
        "the largest score of each row changes no weight, because numerator and "
        "denominator shrink by the same factor.",
        (
            "What is exp(1000) in float64?",
            "Which number may be subtracted from a whole row without any effect?",
            "Subtract the maximum of each row, with keepdims, before exp.",
        ),
        _stable,
    ),
)
