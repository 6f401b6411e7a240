# mypy: allow-untyped-defs, allow-untyped-calls
"""The exercises of lesson 04: what do many heads buy?"""

from dataclasses import replace

import numpy as np

from attnlib import heads
from attnlib.attention import scaled_dot_product
from attnlib.clinic import probes
from attnlib.clinic.case import Case
from attnlib.clinic.families.heads import MULTI_HEAD
from attnlib.clinic.families.splits import MERGE_HEADS, SPLIT_HEADS
from attnlib.clinic.families.strays import STRAYS
from attnlib.exercises.exercise import Exercise, Part
from attnlib.exercises.laws import batch_independent, finite, invariant


def split_heads(x, n_heads):
    """Cut the features of every token into heads.

    x: (..., n, n_heads * d)
    returns: (..., n_heads, n, d)
    """
    d = x.shape[-1] // n_heads
    cut = x.reshape(*x.shape[:-1], n_heads, d)
    return np.swapaxes(cut, -3, -2)


def merge_heads(x):
    """Join the heads of every token again.

    x: (..., n_heads, n, d)
    returns: (..., n, n_heads * d)
    """
    n_heads, n, d = x.shape[-3:]
    by_token = np.swapaxes(x, -3, -2)
    return by_token.reshape(*x.shape[:-3], n, n_heads * d)


def multi_head(x, W_q, W_k, W_v, W_o, n_heads):
    """Attend with several heads, and mix their results with W_o.

    x: (..., n, d_model)   W_q, W_k: (d_model, n_heads * d_k)
    W_v: (d_model, n_heads * d_v)   W_o: (n_heads * d_v, d_model)
    returns: out, (..., n, d_model)
    """
    q, k, v = (heads.split_heads(x @ W, n_heads) for W in (W_q, W_k, W_v))
    mixed = scaled_dot_product(q, k, v).out
    return heads.merge_heads(mixed) @ W_o


def strays(x, split):
    """Count the numbers that stand in the row of another token.

    x: tokens, (n, d_model), no number twice
    split: what some function made of x, (n_heads, n, d_k); row i of each head
        should hold numbers of token i, in whatever order
    returns: one whole number
    """
    return sum(np.sum(~np.isin(head[i], x[i])) for head in split for i in range(len(x)))


def strays_cases(rng):
    """For `strays(x, split)`: right cuts, wrong ones, and one with two numbers lost."""

    def tokens(n, d_model):
        return (rng.permutation(n * d_model) + 1.0).reshape(n, d_model)

    def right(x, n_heads):
        return np.swapaxes(x.reshape(len(x), n_heads, -1), 0, 1)

    small, other, third, fourth, last = (
        tokens(n, d) for n, d in ((3, 4), (3, 8), (4, 6), (5, 12), (4, 10))
    )
    lost = right(last, 2).copy()
    lost[1, [0, 2], 3] = lost[1, [2, 0], 3]
    second = np.moveaxis(third.reshape(4, 2, 3), -1, 0)
    return (
        Case("3 tokens reshaped at once to 2 heads", (small, small.reshape(2, 3, 2))),
        Case("3 tokens, 2 heads, split as it should be", (other, right(other, 2))),
        Case("4 tokens, 3 heads, every third column", (third, second)),
        Case("5 tokens reshaped at once to 3 heads", (fourth, fourth.reshape(3, 5, 4))),
        Case("4 tokens, 2 heads, two numbers exchanged", (last, lost)),
        Case("4 tokens reshaped at once to 1 head", (third, third[None])),
    )


def multi_head_cases(rng):
    """The usual ones, and one in which heads that were not moved meet no error."""
    n, d_k, d_v, d_model = 3, 2, 4, 5
    x = probes.table(rng, n, d_model)
    shapes = ((d_model, n * d_k), (d_model, n * d_k), (d_model, n * d_v))
    inward = [probes.table(rng, *shape, spread=0.5) for shape in shapes]
    outward = probes.table(rng, n * d_v, d_model, spread=0.5)
    sizes = f"n={n}, d_model={d_model}, n_heads={n}, d_k={d_k}, d_v={d_v}"
    square = Case(f"as many heads as tokens ({sizes})", (x, *inward, outward, n))
    return (*probes.multi_head_cases(rng), square)


# The function of the lesson takes no mask and no groups: those mistakes cannot show.
_WITHOUT_MASK = replace(
    MULTI_HEAD,
    slots={k: v for k, v in MULTI_HEAD.slots.items() if k not in ("mask", "kv")},
)
_rng = np.random.default_rng(40)
_batch = probes.table(_rng, 2, 5, 12)
_heads = probes.table(_rng, 2, 3, 5, 4)
_x = probes.table(_rng, 2, 4, 7)
_W = (
    *(probes.table(_rng, 7, 6, spread=0.5) for _ in range(2)),
    probes.table(_rng, 7, 15, spread=0.5),
    probes.table(_rng, 15, 7, spread=0.5),
)
_order = [2, 0, 3, 1]

EXERCISES = (
    Exercise(
        "split_heads",
        4,
        6,
        split_heads,
        probes.split_cases,
        (Part("split", "... n_heads n d"),),
        SPLIT_HEADS,
        (
            "Two steps, as with the tags above: first cut each row, then move an axis.",
            "Cutting keeps all axes in front and turns the last one into two, "
            "(n_heads, d). Then the axis of the heads has to go before that of the "
            "tokens.",
            "Reshape to (*x.shape[:-1], n_heads, d). Count axes from the end, -3 and "
            "-2, so that batches come along.",
        ),
        "Each row is one token in one head. reshape alone has the same shape, and puts "
        "a part of a neighbour into a token's row.",
        (batch_independent((_batch, 3), (0,)),),
    ),
    Exercise(
        "merge_heads",
        4,
        5,
        merge_heads,
        probes.merge_cases,
        (Part("merged", "... n features"),),
        MERGE_HEADS,
        (
            "It undoes split_heads: the same two steps, in the other order.",
            "First bring the pieces of one token together, by moving an axis. Only "
            "then can reshape join them.",
            "After np.swapaxes(x, -3, -2) the last two axes are (n_heads, d) of one "
            "token. They become one.",
        ),
        "Only when the pieces of a token lie side by side does reshape join the right "
        "ones. Without the move, weights are right and outputs are not.",
        (batch_independent((_heads,), (0,)),),
    ),
    Exercise(
        "multi_head",
        4,
        9,
        multi_head,
        multi_head_cases,
        (Part("out", "... n d_model"),),
        _WITHOUT_MASK,
        (
            "A loop over heads or one batch of heads: both are right. Which columns of "
            "W_q, W_k and W_v belong to head h?",
            "Make q, k and v; split each; attend; merge; multiply by W_o. d_k and d_v "
            "may differ, so take no width from d_model. There is no mask here.",
            "scaled_dot_product(q, k, v).out takes heads as a batch axis and divides "
            "by the root of their own d_k.",
        ),
        "A sum over heads, each with its own weights and its own rows of W_o: that is "
        "all of multi-head attention.",
        (
            batch_independent((_x, *_W, 3), (0,)),
            invariant(
                "tokens in another order give results in that order",
                (_x, *_W, 3),
                (_x[:, _order], *_W, 3),
                "Without positions, the order of the tokens is not seen.",
                lambda out: out[:, _order],
            ),
            finite((_x * 1000, *_W, 3), "tokens a thousand times larger"),
        ),
        "W_q holds all heads side by side: head h has its columns h * d_k to "
        "(h + 1) * d_k. Each of W_q, W_k and W_v meets the whole of x, and d_v may "
        "differ from d_k. W_o meets all heads, joined: n_heads * d_v numbers a token.",
    ),
    Exercise(
        "strays",
        4,
        6,
        strays,
        strays_cases,
        (Part("strays"),),
        STRAYS,
        (
            "split[h, i] is the row of token i in head h. Which numbers may stand in "
            "it?",
            "For each head and each token, ask for every number of the row whether it "
            "is one of x[i]. Count those that are not.",
            "np.isin(row, x[i]) gives a True for each number that is at home.",
        ),
        "A shape cannot show a missing transpose; this number can. It is 0 for every "
        "cut that keeps tokens whole, whichever columns it gives to a head.",
    ),
)
