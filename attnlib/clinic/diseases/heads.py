"""M20 to M22, M33, M42: heads that are split, merged, shared or averaged wrongly."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Faults
from attnlib.clinic.diseases.disease import Disease, Shown
from attnlib.clinic.diseases.measured import entropy, unseeded
from attnlib.clinic.families.heads import multi_head
from attnlib.clinic.families.splits import merge_heads, split_heads

# Three tokens, two heads of two features: 21 is feature 1 of token 2.
TOKENS = np.array([[10, 11, 12, 13], [20, 21, 22, 23], [30, 31, 32, 33]])
TAGGED = "Three tokens, two heads: 21 is feature 1 of token 2."


def _split(key: str) -> Shown:
    right = split_heads(TOKENS, 2)
    wrong = split_heads(TOKENS, 2, faults=frozenset([key]))
    return Shown(
        TAGGED,
        (
            ("head 0, a row a token", right[0], wrong[0]),
            ("head 1, a row a token", right[1], wrong[1]),
        ),
    )


def _no_transpose() -> Shown:
    return _split("split_no_transpose")


def _interleaved() -> Shown:
    return _split("split_interleaved")


def _merged() -> Shown:
    heads = split_heads(TOKENS, 2)
    wrong = merge_heads(heads, faults=frozenset(["merge_no_transpose"]))
    return Shown(TAGGED, (("merged, a row a token", merge_heads(heads), wrong),))


def _tiled() -> Shown:
    # One token, so that out is the values; key head h has the value h.
    one, n_heads, n_kv_heads = np.ones((1, 1)), 8, 2

    def heads(faults: Faults) -> npt.NDArray[np.floating]:
        W_q, W_k = np.ones((1, n_heads)), np.ones((1, n_kv_heads))
        W_v, W_o = np.arange(2.0)[None], np.eye(n_heads)
        return np.asarray(
            multi_head(
                one, W_q, W_k, W_v, W_o, n_heads, None, n_kv_heads, faults=faults
            )[0]
        )

    tiled = frozenset(["kv_heads_tiled"])
    return Shown(
        "Eight query heads on two key heads.",
        (("the key head that each query head reads", heads(RIGHT), heads(tiled)),),
    )


def _averaged() -> Shown:
    import torch

    with unseeded(), torch.no_grad():
        heads = torch.nn.MultiheadAttention(6, 3, batch_first=True)
        x = torch.zeros(2, 4, 6)
        each = heads(x, x, x, average_attn_weights=False)[1]
        mean = heads(x, x, x)[1]
    sharp = np.eye(4)[[0, 2, 3]]  # three heads, each of which looks at one key
    return Shown(
        "nn.MultiheadAttention with 3 heads on 2 sentences of 4 tokens; and three "
        "heads of which each looks at a single key.",
        (
            ("shape of the weights", str(tuple(each.shape)), str(tuple(mean.shape))),
            (
                "entropy in nats: of each head, of their mean",
                entropy(sharp),
                entropy(sharp.mean(axis=0)),
            ),
        ),
    )


DISEASES = (
    Disease(
        "M20",
        "The heads are split without a transpose",
        "module",
        "Nothing fails. With one head, or with one token, all is well.",
        "Numbers that name their token. Each head should hold one token a row. Here a "
        "row holds features of other heads, and a head holds only some of the tokens.",
        "reshape or view reads the same memory with other sizes: it moves nothing. "
        "(n, n_heads · d) must become (n, n_heads, d), and then the two axes change "
        "places.",
        (
            "Which token does row 1 of head 0 come from?",
            "Does a reshape move a number?",
            "Reshape to (n, n_heads, d) first, then swap the first two of these axes.",
        ),
        _no_transpose,
    ),
    Disease(
        "M21",
        "The heads are merged without a transpose",
        "module",
        "The weights are right and the output is wrong.",
        "Numbers that name their token. A row of the output should hold one token. "
        "Here it holds several, so another token moves it.",
        "(n_heads, n, d) must first become (n, n_heads, d). A reshape alone strings "
        "the tokens of one head together.",
        (
            "From which tokens does row 0 of the merged table come?",
            "Which axis must stand beside d before the two are joined?",
            "Swap the axes of heads and tokens back, then reshape.",
        ),
        _merged,
    ),
    Disease(
        "M22",
        "The features are dealt out to the heads in turn",
        "module",
        "Trained from scratch, nothing. With weights from elsewhere, nonsense.",
        "Numbers that name their feature. Head 0 should hold the first features. Here "
        "it holds every n_heads-th one.",
        "Head h owns neighbouring features. Dealing them out in turn is the same up to "
        "a permutation of the weights, so it is wrong as soon as weights come from a "
        "model that does it the usual way.",
        (
            "Which features belong to head 0?",
            "In your reshape, which stands first, n_heads or d?",
            "Reshape to (..., n_heads, d), not to (..., d, n_heads).",
        ),
        _interleaved,
    ),
    Disease(
        "M33",
        "Shared key heads are tiled, where neighbours should share",
        "module",
        "Weights of a real model give nonsense, though the shapes fit.",
        "Key heads that hold their own number. Of eight query heads on two, the first "
        "four should read 0. Here they read 0 and 1 in turn.",
        "Query heads that stand side by side share a key head, so each key head is "
        "repeated in place. Tiling lays the whole list down again. With one key head, "
        "or as many as query heads, it makes no difference.",
        (
            "Which query heads share key head 0?",
            "What is the difference between np.repeat and np.tile?",
            "np.repeat or repeat_interleave on the axis of the heads.",
        ),
        _tiled,
    ),
    Disease(
        "M42",
        "The weights are averaged over the heads before anyone looks",
        "library",
        "All heads look vague and alike, and pictures of the weights show little.",
        "The shape of the weights. For each head it has an axis of heads. Here that "
        "axis is gone.",
        "`nn.MultiheadAttention` returns the mean over its heads unless it is asked "
        "not to. A mean of sharp heads is not sharp.",
        (
            "How many axes do your weights have?",
            "What does the mean of two one-hot rows look like?",
            "Pass average_attn_weights=False.",
        ),
        _averaged,
    ),
)
