# mypy: allow-untyped-defs, allow-untyped-calls
"""Cases for gates of heads, for heads taken away, and for attention that is copied."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlib.attention import softmax
from attnlib.clinic.case import Case
from attnlib.clinic.probes import table


def gate_cases(rng):
    """For `causal_gate(x, mixed, W_g, b_g)`; the bias is no small one."""

    def case(what, batch, n, d_model, n_heads, d_v):
        bias = table(rng, n_heads) + np.where(rng.random(n_heads) < 0.5, -0.75, 0.75)
        args = (
            table(rng, batch, n, d_model),
            table(rng, batch, n_heads, n, d_v),
            table(rng, d_model, n_heads),
            bias,
        )
        return Case(f"{what} (n={n}, n_heads={n_heads}, d_model={d_model})", args)

    return (
        case("one text", 1, 2, 4, 3, 5),
        case("two texts", 2, 4, 5, 3, 2),
        case("as many tokens as heads", 2, 3, 6, 3, 4),
        case("one token", 3, 1, 4, 2, 5),
        case("more heads than tokens", 2, 3, 2, 5, 4),
    )


ONE_LIST = "loss_of wants one list of heads, such as [0, 3]"


@dataclass(frozen=True)
class LossOf:
    """The loss with some heads alone, looked up: losses[bits of the heads]."""

    losses: np.ndarray  # (2 ** n_heads,)
    n_heads: int

    def __call__(self, heads, *more):
        if more or isinstance(heads, str) or not np.iterable(heads):
            given = ", ".join(str(some) for some in (heads, *more))
            raise TypeError(f"{ONE_LIST}; it got {given}")
        heads = list(heads)
        if any(np.ndim(h) or np.asarray(h).dtype.kind not in "iuf" for h in heads):
            raise TypeError(f"{ONE_LIST}, of their numbers; it got {heads}")
        named = [float(head) for head in heads]
        if not set(named) <= set(range(self.n_heads)):
            raise ValueError(f"{heads} are not all heads from 0 to {self.n_heads - 1}")
        if len(set(named)) < len(named):
            raise ValueError(f"{heads} holds a head twice")
        return float(self.losses[sum(2 ** int(head) for head in named)])

    def __repr__(self):
        return "<function loss_of>"


def losses_of(rng, n_heads, jobs, luck=0.05):
    """Losses of all sets of heads: each job is done if one of its heads is there.

    jobs: heads, and what it costs if none of them is there. With luck on top, so that
    no two sets cost the same.
    """
    found = luck * rng.permutation(2**n_heads) / 2**n_heads  # never the same twice
    for bits in range(2**n_heads):
        for heads, price in jobs:
            if not any(bits >> head & 1 for head in heads):
                found[bits] += price
    return LossOf(np.round(found, 4), n_heads)


# In each of them one head does nothing, and goes first.
ONE_IDLE = tuple(
    losses_of(
        np.random.default_rng(idle),
        6,
        [((head,), 2.0) for head in range(6) if head != idle],
        1.0,
    )
    for idle in range(6)
)


def pruning_cases(rng):
    """For `prune_to_budget(loss_of, n_heads, budget)`: twins, rivals, and luck."""
    twins = losses_of(rng, 4, [((0, 3), 3.0), ((1,), 1.0), ((2,), 0.5)])
    # 0 does two jobs half-way alone; 1 with 2 does both better.
    rivals = losses_of(
        rng, 5, [((0, 1), 2.0), ((0, 2), 2.0), ((1,), 0.6), ((2,), 0.7), ((3, 4), 0.3)]
    )
    swapped = rng.permutation(6).tolist()
    a, b, c, d, e, f = swapped
    groups = losses_of(rng, 6, [((a, b, c), 2.0), ((d, e), 1.5), ((f,), 0.2)], 0.3)
    high = losses_of(rng, 6, [((), 2000.0)], 1.0)  # a job that nobody can do
    return (
        Case("twins: 0 and 3 of 4 heads do the same, budget 2", (twins, 4, 2)),
        Case("5 heads, budget 2", (rivals, 5, 2)),
        Case("5 heads, budget 3", (losses_of(rng, 5, [], 1.0), 5, 3)),
        Case("6 heads in groups, budget 2", (groups, 6, 2)),
        Case("6 heads, budget 1", (losses_of(rng, 6, [], 1.0), 6, 1)),
        Case("6 heads, budget 4", (losses_of(rng, 6, [], 1.0), 6, 4)),
        Case("6 heads, budget 3, high losses", (high, 6, 3)),
        Case("7 heads, budget 2", (losses_of(rng, 7, [], 1.0), 7, 2)),
        Case("7 heads, budget 3", (losses_of(rng, 7, [], 1.0), 7, 3)),
        Case("8 heads, budget 4", (losses_of(rng, 8, [], 1.0), 8, 4)),
        Case("nothing to remove", (losses_of(rng, 3, [], 1.0), 3, 3)),
    )


def looks_cases(rng):
    """For `distil_attention(scores, teacher_weights, counted)`."""

    def case(what, batch, n_heads, n_q, n_k, n_seen, n_counted):
        scores = table(rng, batch, n_heads, n_q, n_k, spread=1.5)
        theirs = table(rng, batch, n_heads, n_q, n_k, spread=2.0)
        seen = np.arange(n_k) < np.array(n_seen)[:, None, None, None]
        scores, theirs = (np.where(seen, t, -np.inf) for t in (scores, theirs))
        counted = np.arange(n_q) < np.array(n_counted)[:, None]
        sizes = f"{batch} texts, {n_heads} heads, {n_q} queries, {n_k} keys"
        return Case(f"{what} ({sizes})", (scores, softmax(theirs), counted))

    even = np.zeros((1, 2, 3, 5))
    chosen = np.eye(5)[rng.integers(5, size=(1, 2, 3))]
    one_hot = Case(
        "a one-hot teacher, and a student that looks evenly at 5 keys",
        (even, chosen, np.array([[True, True, False]])),
    )
    sure = table(rng, 3, 2, 4, 6) + 1000 * np.eye(6)[rng.integers(6, size=(3, 2, 4))]
    theirs = softmax(table(rng, 3, 2, 4, 6, spread=2.0))
    counted = np.arange(4) < np.array([3, 1, 2])[:, None]
    name = "a student that is sure, with scores near 1000"
    return (
        one_hot,
        case("nothing hidden", 2, 3, 4, 5, (5, 5), (4, 3)),
        case("hidden keys", 2, 3, 2, 6, (4, 3), (2, 1)),
        case("many fillers", 3, 2, 4, 3, (3, 3, 3), (4, 1, 2)),
        case("hidden keys and fillers", 2, 4, 3, 7, (5, 6), (1, 3)),
        Case(f"{name} (3 texts, 2 heads, 4 queries, 6 keys)", (sure, theirs, counted)),
    )
