# mypy: allow-untyped-defs, allow-untyped-calls
"""The exercises of lesson 01: softmax, attention, and a table that cannot exist."""

import numpy as np

from attnlib.clinic import probes
from attnlib.clinic.families.attention import SCALED_DOT_PRODUCT, SOFTMAX
from attnlib.clinic.families.steps import CAN_EXIST
from attnlib.exercises import laws
from attnlib.exercises.exercise import Case, Exercise, Part


def softmax(x, axis=-1):
    """Turn scores into weights that sum to one along an axis.

    x: (...), any shape   returns: the same shape
    Scores of 1000 must not overflow. A row of -inf throughout becomes zeros.
    """
    largest = np.max(x, axis=axis, keepdims=True)
    largest = np.where(np.isneginf(largest), 0, largest)
    e = np.exp(x - largest)
    total = np.sum(e, axis=axis, keepdims=True)
    return e / np.where(total == 0, 1, total)


def scaled_dot_product(q, k, v):
    """Let every query look at every key, and mix the values accordingly.

    q: (..., n_q, d_k)   k: (..., n_k, d_k)   v: (..., n_k, d_v)
    returns: weights (..., n_q, n_k), out (..., n_q, d_v)
    """
    d_k = q.shape[-1]
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(d_k)
    e = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    weights = e / np.sum(e, axis=-1, keepdims=True)
    return weights, weights @ v


def can_exist(scores, X):
    """Say whether some W_q and W_k give exactly these scores.

    scores: (n, n), before scaling   X: (n, d_model)   returns: True or False
    scores = (X @ W_q) @ (X @ W_k).T, where d_k may be as large as you like.
    """
    onto = X @ np.linalg.pinv(X)
    return np.allclose(onto @ scores @ onto, scores)


def can_exist_cases(rng):
    """Tables that X can make, and tables that fail by rank, rows or columns."""
    article_X = np.array(
        [[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8], [0.9, 1.0, 1.1, 1.2]]
    )
    article = np.array([[1.2, 0.8, 0.5], [0.7, 1.5, 0.9], [0.3, 0.6, 1.8]])
    full = probes.table(rng, 3, 5) + 2 * np.eye(3, 5)
    small = probes.table(rng, 4, 2)
    inside = small @ probes.table(rng, 2, 2, spread=2.0) @ small.T
    # `left` has columns that X can make and rows that it cannot.
    left = small @ probes.table(rng, 2, 4)
    outside = np.outer(probes.table(rng, 4) + 0.05, probes.table(rng, 4) + 0.05)
    middle = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    return (
        Case("the table of the article", (article, article_X)),
        Case("X @ X.T of the article's X", (article_X @ article_X.T, article_X)),
        Case("a table of X of full rank", (probes.table(rng, 3, 3), full)),
        Case("a table made from an X of rank 2", (inside, small)),
        Case("rank 1, in a direction that X does not have", (outside, small)),
        Case("rank 2, columns as in X, other rows", (left, small)),
        Case("rank 2, rows as in X, other columns", (left.T, small)),
        Case("a table of zeros", (np.zeros((4, 4)), small)),
        Case("a table of full rank, X of rank 2", (np.eye(3), middle)),
    )


_RNG = np.random.default_rng(1)
_TABLE = probes.table(_RNG, 4, 5)
_Q, _K, _V = (probes.table(_RNG, *s) for s in ((3, 2), (5, 2), (5, 4)))
_BATCH = tuple(probes.table(_RNG, 2, *s) for s in ((3, 4), (5, 4), (5, 2)))
_TURN = np.array([3, 0, 4, 1, 2])

EXERCISES = (
    Exercise(
        name="softmax",
        lesson=1,
        minutes=10,
        solution=softmax,
        cases=probes.scores_cases,
        returns=(Part("the weights"),),
        family=SOFTMAX,
        laws=(
            laws.rows_sum_to_one((_TABLE,)),
            laws.never_negative((_TABLE,)),
            laws.invariant(
                "a constant added to a row changes nothing",
                (_TABLE,),
                (_TABLE + 7.5,),
                "Every score was raised by 7.5.",
            ),
            laws.finite((_TABLE * 1e4,), "scores of 10000"),
        ),
        hints=(
            "Two steps: exp makes every score positive, a division makes each row sum "
            "to 1. Which axis does the sum run over?",
            "Subtract the largest score of each row before exp: nothing overflows, and "
            "nothing changes. keepdims=True keeps the axis, so that shapes fit.",
            "For a row of -inf the largest is -inf and the total is 0. Where that is "
            "so, subtract 0 and divide by 1: np.where(total == 0, 1, total).",
        ),
        why="Softmax is the only place in attention where keys compete: what one "
        "gains, the others lose.",
    ),
    Exercise(
        name="scaled_dot_product",
        lesson=1,
        minutes=10,
        solution=scaled_dot_product,
        cases=probes.attention_cases,
        returns=(Part("weights", "n_q n_k"), Part("out", "n_q d_v")),
        family=SCALED_DOT_PRODUCT,
        laws=(
            laws.rows_sum_to_one((_Q, _K, _V)),
            laws.never_negative((_Q, _K, _V)),
            laws.invariant(
                "the order of the keys does not matter",
                (_Q, _K, _V),
                (_Q, _K[_TURN], _V[_TURN]),
                "Keys and values were put in another order, together.",
                part=1,
            ),
            laws.batch_independent(_BATCH, (0, 1, 2)),
        ),
        hints=(
            "Four steps: scores, scaling, softmax, mixing. Write the shape behind "
            "each: (n_q, n_k), twice the same, and at last (n_q, d_v).",
            "The scores are q @ k with the last two axes of k exchanged: "
            "np.swapaxes(k, -1, -2) also works for batches. They are divided by the "
            "root of q.shape[-1].",
            "After scaling, use your softmax over the last axis. What it gives are the "
            "weights; mix v with them by @. Return both, weights first.",
        ),
        why="These few lines are the core of every transformer. Masks, heads and "
        "caches are built around them.",
    ),
    Exercise(
        name="can_exist",
        lesson=1,
        minutes=15,
        solution=can_exist,
        cases=can_exist_cases,
        returns=(Part("the verdict", kind="flag"),),
        family=CAN_EXIST,
        hints=(
            "scores = X @ M @ X.T with M = W_q @ W_k.T, and M may be any square "
            "matrix. So each column of scores is a mixture of the columns of X.",
            "P = X @ np.linalg.pinv(X) leaves what X can make as it is, and changes "
            "everything else. What must P do to the columns of scores? And to its "
            "rows?",
            "Apply P from the left and from the right. The table can exist if that "
            "changes nothing, up to rounding: np.allclose.",
        ),
        why="The article's embeddings have rank 2 and its table has rank 3: no weights "
        "in the world give it. A look at the rank finds printed numbers that nobody "
        "computed.",
    ),
)
