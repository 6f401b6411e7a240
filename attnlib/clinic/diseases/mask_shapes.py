"""M15 to M19, M32: masks that are built wrongly."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.diseases.disease import Disease, Shown
from attnlib.clinic.diseases.measured import drawn, xray_masked
from attnlib.clinic.families.attention import scaled_dot_product
from attnlib.clinic.families.masks import causal
from attnlib.clinic.families.padded import padding_and_causal
from attnlib.clinic.families.windows import window

Array = npt.NDArray[np.generic]


def _whole(mask: Array) -> Array:
    """1 = may look, 0 = may not: shorter than True and False."""
    return np.asarray(mask, int).reshape(mask.shape[-2:])


def _queries() -> Shown:
    q, k, v = drawn((2, 4, 3), (2, 4, 3), (2, 4, 2))
    real = np.arange(4) < 3
    fake = k.copy()
    fake[:, 3] += 1.0

    def moved(mask: npt.NDArray[np.bool_]) -> float:
        outs = [scaled_dot_product(q, keys, v, mask)[1] for keys in (k, fake)]
        return float(np.abs(outs[0] - outs[1])[:, :3].max())

    return Shown(
        "Four tokens, the last of them padding. The key of the padding is changed.",
        (
            (
                "mask",
                _whole(np.broadcast_to(real, (4, 4))),
                _whole(np.broadcast_to(real[:, None], (4, 4))),
            ),
            ("how far real tokens move", moved(real), moved(real[:, None])),
        ),
    )


def _combined() -> Shown:
    right, wrong = (
        padding_and_causal([3], 4, 5, faults=frozenset(keys))
        for keys in ((), ("combined_by_or",))
    )
    return Shown(
        "Four queries, five keys, of which three are real. 1 = may look.",
        (("mask", _whole(right), _whole(wrong)),),
    )


def _batch() -> Shown:
    right = xray_masked([4, 2])
    wrong = xray_masked([4, 2], frozenset(["mask_tiled_over_heads"]))
    return Shown(
        "Two sentences with 4 and 2 real tokens, three heads: what query 0 of the "
        "second gives to its padding.",
        (("head by head", right[1, :, 0, 2:].sum(-1), wrong[1, :, 0, 2:].sum(-1)),),
    )


def _diagonal() -> Shown:
    strict = causal(4, faults=frozenset(["diagonal_missing"]))
    ahead = causal(4, faults=frozenset(["diagonal_next"]))
    return Shown(
        "A causal mask of 4 tokens. 1 = may look.",
        (
            ("mask, diagonal left out", _whole(causal(4)), _whole(strict)),
            ("mask, one ahead", _whole(causal(4)), _whole(ahead)),
        ),
    )


def _aligned() -> Shown:
    wrong = causal(2, 5, faults=frozenset(["aligned_top_left"]))
    return Shown(
        "Two new queries, five keys, three of them from a cache. 1 = may look.",
        (("mask", _whole(causal(2, 5)), _whole(wrong)),),
    )


def _window() -> Shown:
    wider = frozenset(["window_one_more"])
    right, wrong = window(6, 6, 2), window(6, 6, 2, faults=wider)
    return Shown(
        "A window of 3 keys, 6 tokens.",
        (("keys that the last query sees", right[-1].sum(), wrong[-1].sum()),),
    )


DISEASES = (
    Disease(
        "M15",
        "The padding is masked on the axis of the queries",
        "part",
        "Real tokens read the padding, and the rows of the padding are NaN or uniform.",
        "The key of a padding token is changed. No real row should move. Here they do.",
        "A mask says who is read, so padding closes columns. What the rows of the "
        "padding hold is of no use to anyone.",
        (
            "Which axis of the scores counts those that are read?",
            "Print your mask. Are its columns closed, or its rows?",
            "The mask of the keys has the shape (batch, 1, 1, n_k).",
        ),
        _queries,
    ),
    Disease(
        "M16",
        "The causal mask and the padding are combined wrongly, or one is dropped",
        "part",
        "Training looks good and generation is bad, or short sentences are worse.",
        "The weight on the future and on the padding, each alone. Both should be 0.",
        "A key may be read if it is not in the future AND real. With OR, one yes is "
        "enough. Some functions drop one of the two masks without a word.",
        (
            "Which two conditions must a key meet?",
            "Does the second condition replace the first, or join it?",
            "allowed = causal & real.",
        ),
        _combined,
    ),
    Disease(
        "M17",
        "The mask of one item meets the heads of another",
        "module",
        "It works for one sentence, and for a batch of equal lengths.",
        "Items of different lengths. Each should be masked by its own length. Here the "
        "weight on padding is not 0.",
        "The mask (batch, n_q, n_k) was repeated or reshaped in another order than "
        "the heads, or laid over the axis of the heads. Sizes that happen to be equal "
        "hide it.",
        (
            "Does the output of an item change when the batch is reordered?",
            "In which order do items and heads stand in the scores, and in the mask?",
            "Give the mask an axis of 1 for the heads: mask[:, None].",
        ),
        _batch,
    ),
    Disease(
        "M18",
        "The diagonal is off by one",
        "part",
        "The first row is NaN, or the loss falls towards 0 within a few steps.",
        "The diagonal of the weights, and the one above it. A token may look at "
        "itself, and not at the next one.",
        "A language model is asked for the next token, so the targets are shifted. "
        "The mask is not.",
        (
            "May a token look at itself?",
            "What does your mask allow the first token?",
            "np.tri(n) has the diagonal. Its k shifts it.",
        ),
        _diagonal,
    ),
    Disease(
        "M19",
        "The causal mask starts at the top left where keys come from a cache",
        "part",
        "Generation with a cache is nonsense, while training is fine.",
        "One query and many keys. It should see all of them. Here it sees the first "
        "only, so the output is the first value.",
        "With a cache the queries are the last ones: query i stands at position "
        "n_k - n_q + i. The triangle belongs at the bottom right.",
        (
            "At which position does the first new query stand?",
            "What does your mask allow if n_q is 1?",
            "Shift the triangle by n_k - n_q: np.tri(n_q, n_k, n_k - n_q).",
        ),
        _aligned,
    ),
    Disease(
        "M32",
        "The sliding window is one key too wide or too narrow",
        "part",
        "Hardly anything, until outputs are compared with another library's.",
        "The count of keys that the last query sees. A window of w has w keys, the "
        "query's own among them.",
        "Some count the keys that are seen, others those further back. The second is "
        "one less: flash-attention's window_size=(w - 1, 0) sees w keys.",
        (
            "Does the window count the token itself?",
            "How many keys does the last query see?",
            "Keys i - w + 1 to i are w keys.",
        ),
        _window,
    ),
)
