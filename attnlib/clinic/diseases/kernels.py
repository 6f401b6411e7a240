"""M25, M36 to M38, M45: fast kernels, caps and norms of scores, values that are NaN."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Faults
from attnlib.clinic.diseases.disease import Disease, Shown
from attnlib.clinic.diseases.measured import drawn, entropy
from attnlib.clinic.families.attention import scaled_dot_product
from attnlib.clinic.families.grouped import qk_norm
from attnlib.clinic.families.half import capped_scores
from attnlib.clinic.families.online import online_softmax
from attnlib.clinic.families.softmax import softmax

Float = npt.NDArray[np.floating]


def _no_mask() -> Shown:
    q, k, v = drawn((5, 4), (5, 4), (5, 2))
    real = np.arange(5) < 3
    _, alone = scaled_dot_product(q[:3], k[:3], v[:3])
    _, masked = scaled_dot_product(q, k, v, real)
    _, bare = scaled_dot_product(q, k, v)
    return Shown(
        "A sentence of three tokens in a batch padded to five.",
        (
            (
                "how far it is from the sentence alone",
                np.abs(masked[:3] - alone).max(),
                np.abs(bare[:3] - alone).max(),
            ),
        ),
    )


def _online() -> Shown:
    scores = np.array([[-1.0, 0.0, 1.0, 2.0]])
    _, v = drawn((1,), (4, 2))
    hidden = np.where(np.arange(4) < 2, -np.inf, scores)

    def both(scores: Float, v: Float, key: str) -> tuple[Float, Float]:
        wrong = online_softmax(scores, v, 2, faults=frozenset([key]))
        return online_softmax(scores, v, 2)[0], wrong[0]

    return Shown(
        "One query, four keys in blocks of two. Wrong: without a guard for -inf; then "
        "twice without rescaling what was mixed before.",
        (
            ("first block hidden", *both(hidden, v, "online_empty_block")),
            ("scores rising", *both(scores, v, "online_not_rescaled")),
            (
                "scores falling",
                *both(scores[:, ::-1], v[::-1], "online_not_rescaled"),
            ),
        ),
    )


def _capped() -> Shown:
    (scores,) = drawn((4, 4))
    mask = np.tri(4, dtype=bool)

    def future(cap: float, faults: Faults) -> float:
        weights = softmax(capped_scores(5 * scores, mask, cap, faults=faults))
        return float(weights[0, 1:].sum())

    late = frozenset(["cap_after_mask"])
    return Shown(
        "A causal mask, 4 tokens: what query 0 gives to the future.",
        (
            ("cap 1", future(1.0, RIGHT), future(1.0, late)),
            ("cap 50", future(50.0, RIGHT), future(50.0, late)),
        ),
    )


def _normed() -> Shown:
    x, W_q, W_k, v = drawn((4, 6), (6, 3), (6, 3), (4, 2))

    def vague(factor: float, faults: Faults) -> float:
        q, k = (qk_norm((x @ W)[None], faults=faults)[0] for W in (factor * W_q, W_k))
        weights, _ = scaled_dot_product(q, k, v)
        return float(entropy(weights).mean())

    missing = frozenset(["norm_missing"])
    return Shown(
        "Queries and keys with a norm, and with one that is never called: mean entropy "
        "of a row, in nats.",
        (
            ("as it is", vague(1, RIGHT), vague(1, missing)),
            ("W_q times 10", vague(10, RIGHT), vague(10, missing)),
        ),
    )


def _hidden_nan() -> Shown:
    q, k, v = drawn((3, 4), (3, 4), (3, 2))
    mask = np.tri(3, dtype=bool)
    v[2] = np.nan
    _, wrong = scaled_dot_product(q, k, v, mask)
    real = ~np.isnan(v).any(axis=-1, keepdims=True)
    _, right = scaled_dot_product(q, k, np.where(real, v, 0), mask & real.T)
    return Shown(
        "The value of token 2 is NaN. Causal: only query 2 may look at it. Right: "
        "broken tokens are replaced by 0 and hidden, before the weights meet them.",
        (("output", right, wrong),),
    )


DISEASES = (
    Disease(
        "M25",
        "Padding goes into a fast kernel that takes no mask",
        "library",
        "Shorter sentences of a batch get other outputs than alone.",
        "A short sentence alone and in a padded batch. Its rows should be the same.",
        "flash-attn has no argument for a mask. Without one the padding is read like "
        "any token. The padding has to be taken out, and the lengths handed over "
        "(cu_seqlens), or a kernel with a mask must be used.",
        (
            "How does the kernel learn which keys are real?",
            "Is an item of the batch what it is alone?",
            "Unpad and hand over cu_seqlens, or use a kernel that takes a mask.",
        ),
        _no_mask,
    ),
    Disease(
        "M36",
        "The online softmax starts or rescales wrongly",
        "function",
        "NaN where a whole block is hidden, or errors that depend on the order of the "
        "keys.",
        "A first block that is hidden throughout, and scores that rise and fall. "
        "Without rescaling the rising ones go wrong, the falling ones do not.",
        "The running maximum starts at -inf, and (-inf) - (-inf) is NaN. When the "
        "maximum grows, all that was added before must shrink by exp(old - new), the "
        "sum and the mixed values.",
        (
            "What is the running maximum after a block without an allowed key?",
            "Sort the keys so that the scores rise. Is it still right?",
            "Rescale sum and output alike, and subtract 0 where the maximum is -inf.",
        ),
        _online,
    ),
    Disease(
        "M37",
        "The cap on the scores comes after the mask, or is missing",
        "function",
        "With a cap of 50 nothing. With a small cap the future shows.",
        "The weight on hidden keys. It should be 0. Here a hidden score is -cap, so "
        "the smaller the cap, the larger the weight.",
        "cap · tanh(-inf / cap) is -cap, which is a finite score. So the cap comes "
        "first, and then the mask.",
        (
            "What is tanh(-inf)?",
            "In which order do cap and mask stand?",
            "Cap the scores first, then fill in -inf.",
        ),
        _capped,
    ),
    Disease(
        "M38",
        "The norm of queries and keys has no effect, or runs over the wrong axis",
        "module",
        "Scores grow during training, although there is a norm against it.",
        "W_q times 10. With a norm the weights should not move. Here they become "
        "sharper.",
        "The norm may be built and never called, or taken over all heads together, or "
        "before a step that undoes it. It belongs to each head, after the split.",
        (
            "Does the forward pass call the norm?",
            "Does anything change if W_q is multiplied by 10?",
            "Norm q and k over their last axis, head by head, then the scores.",
        ),
        _normed,
    ),
    Disease(
        "M45",
        "A NaN behind the mask reaches the output",
        "function",
        "One broken token makes the whole batch NaN, although it is hidden.",
        "NaN is planted in a hidden value. The rows that may not look at it are NaN "
        "all the same.",
        "A weight of 0 times NaN is NaN: a mask is not a delete. PyTorch's own "
        "attention does the same, so this is a thing to know, and no one's slip.",
        (
            "What is 0 times NaN?",
            "Does the mask change the values, or only the weights?",
            "Replace broken values, with where, before they are mixed.",
        ),
        _hidden_nan,
    ),
)
