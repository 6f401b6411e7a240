# mypy: allow-untyped-defs, allow-untyped-calls
"""The exercises of lesson 01: softmax, attention, and a table that cannot be."""

import numpy as np

from attnlib.clinic import probes
from attnlib.clinic.families.attention import SCALED_DOT_PRODUCT
from attnlib.clinic.families.softmax import SOFTMAX
from attnlib.clinic.families.steps import DISTANCE_TO_POSSIBLE
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


def distance_to_possible(scores, X):
    """Measure how far a table is from the nearest one that X can make.

    scores: (n, n), before scaling   X: (n, d_model)   returns: one number
    X makes tables (X @ W_q) @ (X @ W_k).T, with any W_q and W_k of any width.
    The distance is the root of the sum of the squared differences.
    """
    onto = X @ np.linalg.pinv(X)
    nearest = onto @ scores @ onto
    return np.sqrt(np.sum((scores - nearest) ** 2))


ARTICLE_X = np.array([[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8], [0.9, 1.0, 1.1, 1.2]])
ARTICLE_SCORES = np.array([[1.2, 0.8, 0.5], [0.7, 1.5, 0.9], [0.3, 0.6, 1.8]])


def distance_cases(rng):
    """Tables that X can make, nearly, in part, or not at all."""
    full = probes.table(rng, 3, 5) + 2 * np.eye(3, 5)
    small = probes.table(rng, 4, 2)
    inside = small @ probes.table(rng, 2, 2, spread=2.0) @ small.T
    # `left` has columns that X can make and rows that it cannot.
    left = small @ probes.table(rng, 2, 4)
    return (
        Case("the table of the article", (ARTICLE_SCORES, ARTICLE_X)),
        Case("X @ X.T of the article's X", (ARTICLE_X @ ARTICLE_X.T, ARTICLE_X)),
        Case("any table, X of full rank", (probes.table(rng, 3, 3), full)),
        Case("a table made from an X of rank 2", (inside, small)),
        Case("any table, X of rank 2", (probes.table(rng, 4, 4), small)),
        Case("columns as X makes them, other rows", (left, small)),
        Case("rows as X makes them, other columns", (left.T, small)),
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
        name="distance_to_possible",
        lesson=1,
        minutes=10,
        solution=distance_to_possible,
        cases=distance_cases,
        returns=(Part("the distance"),),
        family=DISTANCE_TO_POSSIBLE,
        hints=(
            "onto = X @ np.linalg.pinv(X), from the lesson, moves each *column* of "
            "what stands to its right. First move the columns of scores.",
            "The rows of a possible table are mixes of the columns of X as well. A "
            "product from the right moves rows: (...) @ onto.",
            "Now you have the nearest table. Subtract it from scores, square, np.sum, "
            "np.sqrt.",
        ),
        why="The article's table lies 0.730 away from anything its embeddings can "
        "make, and rounding accounts for 0.15 at most: no weights in the world gave "
        "it. The same function tests any table you find printed.",
    ),
)
