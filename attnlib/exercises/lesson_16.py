# mypy: allow-untyped-defs, allow-untyped-calls
"""The exercises of lesson 16: beyond one machine."""

import numpy as np

from attnlib.clinic.families.ring import MAY_SEE, RING_STEP
from attnlib.clinic.families.ring_bytes import RING_BYTES
from attnlib.clinic.probes_ring import (
    may_see_cases,
    ring_bytes_cases,
    ring_step_cases,
)
from attnlib.exercises.exercise import Exercise, Part
from attnlib.exercises.laws_ring import (
    a_query_is_joined_by_itself,
    all_logs_moved,
    an_empty_part_changes_nothing,
    blocks_by_ranks,
    joined_to_itself,
    one_of_two_sees_the_other,
    ones_stay_ones,
    twice_as_much,
    which_side_comes_first,
)


def ring_step(out, log_sum_exp, part_out, part_log):
    """Join one more part to what the queries of a rank have found so far.

    out: (n_q, d_v), found so far; zeros where nothing was seen
    log_sum_exp: (n_q,), of the scores so far; -inf where nothing was seen
    part_out, part_log: the same of the block that has just come
    returns: out and log_sum_exp over the keys of both, (n_q, d_v) and (n_q,)
    A query that has seen nothing on either side stays at zeros and -inf. The
    logs may be 800, and e^800 is infinity.
    """
    log = np.logaddexp(log_sum_exp, part_log)
    base = np.where(log == -np.inf, 0, log)
    mine, theirs = np.exp(log_sum_exp - base), np.exp(part_log - base)
    return mine[:, None] * out + theirs[:, None] * part_out, log


def may_see(rank, other, n_ranks, n_local):
    """Make the causal mask between two ranks of a text that lies in stripes.

    rank: holds the queries   other: holds the keys
    n_ranks: rank r holds tokens r, r + n_ranks, r + 2 n_ranks, and so on
    n_local: how many tokens each of them holds
    returns: (n_local, n_local), boolean: row i is the i-th query of rank,
        column j the j-th key of other; True = may look
    A query may see its own token, and those before it in the text.
    """
    mine = rank + n_ranks * np.arange(n_local)
    theirs = other + n_ranks * np.arange(n_local)
    return theirs <= mine[:, None]


def ring_bytes(n, n_ranks, n_heads, n_kv_heads, d_k, itemsize):
    """Count the bytes that one rank sends to the next one.

    n: tokens of the text, a multiple of n_ranks
    n_ranks: 2 or more
    n_heads, n_kv_heads: of queries, and of keys and values
    d_k: numbers in a key of one head, and in a value
    itemsize: bytes of a number, of a gradient as well
    returns: two counts: of the forward pass, and of the backward pass
    """
    block = n // n_ranks * 2 * n_kv_heads * d_k * itemsize
    return (n_ranks - 1) * block, (2 * n_ranks - 1) * block


EXERCISES = (
    Exercise(
        "ring_step",
        16,
        7,
        ring_step,
        ring_step_cases,
        (Part("out", "n_q d_v"), Part("log_sum_exp", "n_q")),
        RING_STEP,
        (
            "First the joined log. Then each side counts by its share of the whole.",
            "np.logaddexp joins the logs. A share is e^(its log - joined log). Where "
            "the joined log is -inf, subtract 0 in its place, as in lesson 12.",
            "base = np.where(log == -np.inf, 0, log). The share of the old side is "
            "np.exp(log_sum_exp - base), one number a query: [:, None] makes it fit "
            "its out. Return log, not base.",
        ),
        "That is all that a rank has to do with a block, apart from attention itself. "
        "It does not ask in what order blocks come, so a ring will do.",
        (
            ones_stay_ones(),
            an_empty_part_changes_nothing(),
            a_query_is_joined_by_itself(),
            which_side_comes_first(),
            joined_to_itself(),
            all_logs_moved(),
        ),
        advice="A share is one number a query: share[:, None] makes it fit out.",
    ),
    Exercise(
        "may_see",
        16,
        5,
        may_see,
        may_see_cases,
        (Part("mask", "n_q n_k", "truth"),),
        MAY_SEE,
        (
            "Which tokens of the text does each of the two ranks hold? Compare those.",
            "np.arange(n_local) counts the tokens of a rank. n_ranks times that, plus "
            "the rank, is where they stand in the text.",
            "mine = rank + n_ranks * np.arange(n_local), and theirs likewise with "
            "other. Compare theirs, as columns, with mine[:, None], as rows.",
        ),
        "It is a triangle in either case: with its diagonal if the other rank comes "
        "first in every stripe, and without if not. So every rank has nearly the same "
        "work at every step.",
        (one_of_two_sees_the_other(),),
    ),
    Exercise(
        "ring_bytes",
        16,
        5,
        ring_bytes,
        ring_bytes_cases,
        (Part("forward"), Part("backward")),
        RING_BYTES,
        (
            "How large is a block? How many blocks does a rank send, there and back?",
            "A block: n / n_ranks tokens, a key and a value of n_kv_heads heads. "
            "Forward it makes n_ranks - 1 hops.",
            "Backward keys and values make the same hops again, and their gradients "
            "one more: together 2 n_ranks - 1 blocks.",
        ),
        "Nearly the whole of keys and values passes through every rank, however many "
        "there are: (n_ranks - 1) / n_ranks of it. Only n_kv_heads makes it less.",
        (twice_as_much(), blocks_by_ranks()),
    ),
)
