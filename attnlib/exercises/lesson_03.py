# mypy: allow-untyped-defs, allow-untyped-calls
"""The exercises of lesson 03: who may look at whom?"""

import numpy as np

from attnlib.attention import softmax
from attnlib.clinic.case import Case
from attnlib.clinic.families.attention import MASKED_ATTENTION
from attnlib.clinic.families.masks import CAUSAL, DOCUMENT
from attnlib.clinic.families.padded import CREATE_MASK, PADDING_AND_CAUSAL
from attnlib.clinic.probes import masked_cases
from attnlib.exercises.exercise import Exercise, Part
from attnlib.exercises.laws import invariant, rows_sum_to_one


def causal(n_q, n_k=None):
    """Let each query look at itself and at what came before.

    n_q: how many queries   n_k: how many keys; n_q if left out
    returns: boolean, True = may look, (n_q, n_k)
    The last query stands beside the last key.
    """
    n_k = n_q if n_k is None else n_k
    return np.tril(np.ones((n_q, n_k), dtype=bool), k=n_k - n_q)


def padding_and_causal(lengths, n_q, n_k):
    """Hide fillers and the future, for a batch.

    lengths: array (batch,), how many real keys each sentence has
    returns: boolean, True = may look, (batch, 1, n_q, n_k)
    The last query stands beside the last key.
    """
    real = np.arange(n_k) < lengths[:, None, None, None]
    past = np.tril(np.ones((n_q, n_k), dtype=bool), k=n_k - n_q)
    return real & past


def document_mask(ids):
    """Let the tokens of one document see one another, and no others.

    ids: array (n,), the number of the document each token belongs to
    returns: boolean, True = may look, (n, n)
    The same number is the same document, also further on.
    """
    return ids[:, None] == ids[None, :]


def create_mask(n_q, n_k, lengths=None, is_causal=False):
    """Hide fillers if lengths are given, and the future if is_causal.

    lengths: None, or array (batch,), how many real keys each sentence has
    returns: boolean, True = may look, (batch, 1, n_q, n_k), all axes in full;
        batch is 1 where lengths is None
    The last query stands beside the last key.
    """
    mask = np.ones((1, 1, n_q, n_k), dtype=bool)
    if is_causal:
        mask = np.tril(mask, k=n_k - n_q)
    if lengths is not None:
        mask = mask & (np.arange(n_k) < lengths[:, None, None, None])
    return mask


def masked_attention(q, k, v, mask):
    """Mix the values by attention, looking only where the mask is True.

    q: (n_q, d_k)   k: (n_k, d_k)   v: (n_k, d_v)   mask: boolean, (n_q, n_k)
    returns: weights (n_q, n_k) and out (n_q, d_v)
    A query that may look at nothing gets zeros.
    """
    scores = q @ k.T / np.sqrt(q.shape[-1])
    weights = softmax(np.where(mask, scores, -np.inf))
    return weights, weights @ v


def causal_cases(rng):
    """For `causal(n_q, n_k=None)`."""
    return (
        Case("3 tokens", (3,)),
        Case("2 queries and 4 keys", (2, 4)),
        Case("1 query and 7 keys", (1, 7)),
        Case("5 queries and 5 keys", (5, 5)),
        Case("3 queries and 6 keys", (3, 6)),
        Case("6 tokens", (6,)),  # the second without n_k, for whom writes it down
    )


def padded_cases(rng):
    """For `padding_and_causal(lengths, n_q, n_k)`."""

    def case(n_q, n_k, *lengths):
        sizes = f"n_q={n_q}, n_k={n_k}, lengths {', '.join(map(str, lengths))}"
        return Case(sizes, (np.array(lengths), n_q, n_k))

    some = rng.integers(1, 7, size=5)
    some[:2] = 6, 2  # one full sentence; never all equal
    return (
        case(4, 4, 2, 4, 3),
        case(3, 5, 4, 2),
        case(1, 6, 6, 3, 1, 4),
        case(6, 6, *some.tolist()),
        case(2, 4, 3, 0),  # a sentence of no words: nobody may look at anything
    )


def document_cases(rng):
    """For `document_mask(ids)`."""
    many = rng.integers(0, 3, size=7)
    many[:4] = 1, 0, 2, 1
    return (
        Case("ids 7, 7, 4", (np.array([7, 7, 4]),)),
        Case("ids 5, 5, 5, 8, 8, 2", (np.array([5, 5, 5, 8, 8, 2]),)),
        Case("ids that come again", (many,)),
    )


def create_cases(rng):
    """For `create_mask(n_q, n_k, lengths=None, is_causal=False)`."""
    some = rng.integers(1, 6, size=4)
    some[:2] = 5, 2
    return (
        Case("causal, 3 queries, 3 keys", (3, 3, None, True)),
        Case("lengths 2 and 4, not causal", (4, 4, np.array([2, 4]), False)),
        Case("lengths 2, 4, 3, causal", (4, 4, np.array([2, 4, 3]), True)),
        Case("neither: 2 queries, 3 keys", (2, 3)),
        Case("causal, 2 queries, 5 keys", (2, 5, None, True)),
        Case("both, 3 queries, 5 keys", (3, 5, some, True)),
    )


def first_alone(batch, alone):
    """The mask of a sentence does not depend on the other sentences."""
    return invariant(
        "the sentences of a batch do not see each other",
        batch,
        alone,
        "The first of three sentences gets another mask when it is alone.",
        lambda mask: mask[:1],
    )


_THREE = np.array([5, 2, 4])  # lengths

# Three queries, four keys; key 1 is hidden from all. In the law it is changed.
_Q, _K, _V = np.eye(3, 2), np.eye(4, 2, -1) + 0.5, np.arange(20.0).reshape(4, 5)
_SEEN = np.array([[True, False, False, True]] * 2 + [[True, False, True, True]])
_HIDDEN = np.array([[1.0], [-7.0], [1.0], [1.0]])

EXERCISES = (
    Exercise(
        "causal",
        3,
        5,
        causal,
        causal_cases,
        (Part("mask", "n_q n_k", "truth"),),
        CAUSAL,
        (
            "Draw the table for 2 queries and 4 keys. The last query is the newest "
            "token. Which keys lie in its past?",
            "It is a triangle, shifted. Query i stands at position n_k - n_q + i and "
            "sees the keys up to there.",
            "np.tril of a table of True does it, if its k says by how many places the "
            "diagonal is shifted to the right.",
        ),
        "The corner is what a square test cannot see: aligned at the top left, one new "
        "query with 7 cached keys would read key 0 alone, and its output be v[0].",
        (
            invariant(
                "a step with a cache sees what the whole pass sees",
                (9,),
                (4, 9),
                "For 4 queries and 9 keys, the rows are not the last 4 of 9 and 9.",
                lambda mask: mask[-4:],
            ),
        ),
    ),
    Exercise(
        "padding_and_causal",
        3,
        6,
        padding_and_causal,
        padded_cases,
        (Part("mask", "batch 1 n_q n_k", "truth"),),
        PADDING_AND_CAUSAL,
        (
            "Make two masks, each simple, and let NumPy spread them over the axes. "
            "Who must agree before a query may look at a key?",
            "Which keys are real depends on the sentence and the key: (batch, 1, 1, "
            "n_k). What lies in the past depends on query and key: (n_q, n_k).",
            "np.arange(n_k) < lengths, where lengths has got three axes of size 1 at "
            "its end; then & with the triangle.",
        ),
        "Real batches need both. With | instead of &, a sentence without fillers would "
        "have no causal mask at all.",
        (first_alone((_THREE, 3, 7), (_THREE[:1], 3, 7)),),
    ),
    Exercise(
        "document_mask",
        3,
        4,
        document_mask,
        document_cases,
        (Part("mask", "n n", "truth"),),
        DOCUMENT,
        (
            "For each pair of tokens there is one question to ask of their numbers.",
            "Put the numbers once in a column, (n, 1), and once in a row, (1, n). "
            "NumPy then compares every one with every other.",
            "ids[:, None] makes the column. Equal, not larger or smaller.",
        ),
        "Packing fills every place of a batch with text. Without this mask the second "
        "text reads the first, and nothing complains.",
        (
            invariant(
                "what the documents are called does not matter",
                (np.array([3, 3, 0, 1, 1, 0]),),
                (np.array([1, 1, 8, 5, 5, 8]),),
                "The same documents under other numbers give another mask.",
            ),
        ),
    ),
    Exercise(
        "create_mask",
        3,
        7,
        create_mask,
        create_cases,
        (Part("mask", "batch 1 n_q n_k", "truth"),),
        CREATE_MASK,
        (
            "Do not mend the article's lines one by one. Start from a mask that allows "
            "everything, with four axes, and take away twice.",
            "The triangle must be cut from a table that has all its rows. The article "
            "cuts it from a single row of keys, and column 0 is left.",
            "First np.ones((1, 1, n_q, n_k), dtype=bool); np.tril works on the last "
            "two axes and takes k; then & with the real keys, (batch, 1, 1, n_k).",
        ),
        "The article's version raised an error, then read only key 0, then mixed up "
        "heads and sentences. Three mistakes in eight lines, and a test without a "
        "padding mask sees only the first.",
        (
            invariant(
                "full sentences need no padding mask",
                (4, 6, None, True),
                (4, 6, np.array([6]), True),
                "With a length of 6 and 6 keys, only the future is to be hidden.",
            ),
            first_alone((3, 7, _THREE, True), (3, 7, _THREE[:1], True)),
        ),
    ),
    Exercise(
        "masked_attention",
        3,
        8,
        masked_attention,
        masked_cases,
        (Part("weights", "n_q n_k"), Part("out", "n_q d_v")),
        MASKED_ATTENTION,
        (
            "Five steps: multiply, scale, mask, softmax, mix. Which value hides a "
            "score whatever the others are?",
            "np.where(mask, scores, ...) chooses between the score and the fill. Only "
            "minus infinity is below every real score.",
            "A row of minus infinities must come out as zeros. The softmax of attnlib "
            "does that; your own needs a guard before it subtracts and divides.",
        ),
        "What is hidden gets no weight at all: not at scores of -20 000, not beside a "
        "hidden score 1000 above, not in an empty row. Weaker versions fail in one of "
        "these, and say nothing.",
        (
            invariant(
                "a key that nobody may look at does not matter",
                (_Q, _K, _V, _SEEN),
                (_Q, _K * _HIDDEN, _V * _HIDDEN, _SEEN),
                "Its key and value were changed, and the outputs should not move.",
                part=1,
            ),
            rows_sum_to_one((_Q, _K, _V, _SEEN)),
        ),
    ),
)
