"""M07 to M12, M14: masks that are read or applied wrongly."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT
from attnlib.clinic.diseases.disease import Disease, Shown
from attnlib.clinic.diseases.measured import drawn
from attnlib.clinic.families.attention import scaled_dot_product

Float = npt.NDArray[np.floating]
CAUSAL = np.tri(4, dtype=bool)


def _pair(key: str, *, silent: bool = False) -> tuple[Float, Float]:
    """The causal weights of 4 tokens; `silent`: all queries are 0, so all scores."""
    q, k, v = drawn((4, 3), (4, 3), (4, 2))
    q = 0 * q if silent else q
    right, _ = scaled_dot_product(q, k, v, CAUSAL)
    with np.errstate(all="ignore"):
        wrong, _ = scaled_dot_product(q, k, v, CAUSAL, faults=frozenset([key]))
    return right, wrong


def _inverted() -> Shown:
    return Shown(
        "A causal mask, 4 tokens: query 0 may look at key 0 only.",
        (("weights", *_pair("mask_inverted")),),
    )


def _added() -> Shown:
    right, wrong = _pair("mask_added", silent=True)
    return Shown(
        "A causal mask, 4 tokens, all queries 0: only the mask makes a difference.",
        (
            ("weights", right, wrong),
            (
                "log of allowed / hidden weight",
                np.inf,
                math.log(wrong[0, 0] / wrong[0, 1]),
            ),
        ),
    )


def _zero() -> Shown:
    return Shown(
        "A causal mask, 4 tokens, all queries 0, so all scores are 0.",
        (("weights", *_pair("mask_fill_zero", silent=True)),),
    )


def _after() -> Shown:
    right, wrong = _pair("mask_after")
    return Shown(
        "A causal mask, 4 tokens.",
        (("sum of each row", right.sum(-1), wrong.sum(-1)),),
    )


def _weak() -> Shown:
    q, k, v = drawn((4, 3), (4, 3), (4, 2))
    # One more feature, 1 in q and -2e4 √d_k in k: every score is lowered by 2e4.
    low_q = np.concatenate([q, np.ones((4, 1))], axis=-1)
    low_k = np.concatenate([k, np.full((4, 1), -2e4 * 2)], axis=-1)

    def hidden(q: Float, k: Float, faults: frozenset[str]) -> float:
        weights, _ = scaled_dot_product(q, k, v, CAUSAL, faults=faults)
        return float(weights[0, 1:].sum())

    weak = frozenset(["mask_fill_10000"])
    return Shown(
        "A causal mask, 4 tokens: what query 0 gives to the hidden keys.",
        (
            ("as it is", hidden(q, k, RIGHT), hidden(q, k, weak)),
            (
                "all scores lowered by 20000",
                hidden(low_q, low_k, RIGHT),
                hidden(low_q, low_k, weak),
            ),
        ),
    )


def _early() -> Shown:
    d_k = 64
    q, k, v = drawn((4, d_k), (4, d_k), (4, 2))
    right, _ = scaled_dot_product(q, k, v, CAUSAL)
    early = frozenset(["mask_before_scale"])
    wrong, _ = scaled_dot_product(q, k, v, CAUSAL, faults=early)
    hidden = ~CAUSAL
    return Shown(
        "A causal mask, 4 tokens, d_k = 64, a fill of -10 that is then divided by 8.",
        (("largest weight of a hidden key", right[hidden].max(), wrong[hidden].max()),),
    )


def _empty() -> Shown:
    q, k, v = drawn((3, 4), (3, 4), (3, 2))
    mask = np.tri(3, k=-1, dtype=bool)
    right, _ = scaled_dot_product(q, k, v, mask)
    with np.errstate(all="ignore"):
        nan, _ = scaled_dot_product(q, k, v, mask, faults=frozenset(["empty_row_nan"]))
    leak = frozenset(["empty_row_uniform"])
    leaking, _ = scaled_dot_product(q, k, v, mask, faults=leak)
    return Shown(
        "Query 0 may look at nothing. Wrong in two ways: filled with -inf, and with "
        "a large negative number.",
        (
            ("weights, filled with -inf", right, nan),
            ("weights, filled with -1e9", right, leaking),
        ),
    )


DISEASES = (
    Disease(
        "M07",
        "The mask is read the wrong way round",
        "function",
        "The loss of a language model falls far too low, or rows are NaN.",
        "The weights of the hidden keys. They should be 0. Here all the weight lies on "
        "them.",
        "Two habits exist. `scaled_dot_product_attention` reads True as: may take "
        "part. `nn.MultiheadAttention` reads True as: is blocked. The course has "
        "True = may look.",
        (
            "What does True mean in your mask? Say it aloud for one pair.",
            "Does the function that you hand it to read True in the same way?",
            "Turn it over once, with ~mask, at the border between the two habits.",
        ),
        _inverted,
    ),
    Disease(
        "M08",
        "A mask of True and False is added to the scores",
        "function",
        "The model sees the future, if a little less of it, and nothing fails.",
        "All queries 0. A hidden key should get 0. Here an allowed one gets just e "
        "times as much as a hidden one.",
        "Adding True adds 1 to a score, and adding False adds 0. A mask to be added "
        "holds 0 and -inf.",
        (
            "What is 2.5 + True?",
            "Which number, added to a score, makes its weight 0?",
            "Choose with where or masked_fill: the score where allowed, else -inf.",
        ),
        _added,
    ),
    Disease(
        "M09",
        "Hidden scores become 0",
        "function",
        "Padding and future still get weight, most where the real scores are low.",
        "All queries 0. Hidden keys should get 0. Here every key gets the same.",
        "A score of 0 is a perfectly good score: exp(0) is 1. Multiplying the scores "
        "by a mask of 0 and 1, or filling in 1e-9, hides nothing.",
        (
            "What is exp(0)?",
            "Which score gives a weight of exactly 0?",
            "Fill hidden scores with -inf before the softmax.",
        ),
        _zero,
    ),
    Disease(
        "M10",
        "The mask is applied after the softmax, and the rows are left too small",
        "function",
        "Outputs of early tokens are too small. Nothing is NaN.",
        "The sums of the rows. They should be 1. Here each is what the allowed keys "
        "had before.",
        "The softmax has already shared 1 among all keys, the hidden ones too. "
        "Setting those to 0 throws their share away. Dividing each row by its sum "
        "afterwards would be right.",
        (
            "Add up a row of your weights.",
            "Who took part in the softmax, although it is hidden?",
            "Mask the scores before the softmax.",
        ),
        _after,
    ),
    Disease(
        "M11",
        "The fill is not low enough",
        "function",
        "All is well in tests. With scores far below 0 the hidden keys win.",
        "A constant of -20000 is added to all scores, which changes no right weight. "
        "Here all the weight moves to hidden keys.",
        "A large negative number is large only beside the other scores. -inf is below "
        "every score.",
        (
            "Is your fill below every score that can occur?",
            "A softmax does not change when all its scores are lowered. Does yours?",
            "Use -inf, or the lowest number of the type.",
        ),
        _weak,
    ),
    Disease(
        "M12",
        "The mask is filled in before the scaling",
        "function",
        "Hidden keys get a little weight, and more in wider heads.",
        "The weight of hidden keys. It should be 0. Here the fill was divided by √d_k "
        "too.",
        "The fill shrinks with the scores, so it is not as low as it was written. "
        "With -inf the order makes no difference; with a finite fill it does.",
        (
            "What happens to the fill after it was written?",
            "In which order do scale, mask and softmax stand?",
            "Scale first, then mask, then softmax. And fill with -inf.",
        ),
        _early,
    ),
    Disease(
        "M14",
        "A query that may look at nothing gives NaN, or looks at everything",
        "function",
        "NaN in the first batch with an empty sentence, or with padding on the left.",
        "A row of the mask that is all False. The course's rule gives zeros. Here the "
        "row is NaN, or spread over hidden keys. If your masks always leave each query "
        "a key, say empty_rows=False (--no-empty-rows), and it is not asked.",
        "A row of -inf has nothing to divide by. With -1e9 all its scores are equal, "
        "so the hidden keys share the weight. Zeros must be put in before the softmax "
        "divides: NaN that is covered afterwards is still NaN in the gradient.",
        (
            "Which rows of your mask are False throughout?",
            "What is exp(-inf) / (exp(-inf) + exp(-inf))?",
            "Where a row has no allowed key, divide by 1 instead of by 0.",
        ),
        _empty,
    ),
)
