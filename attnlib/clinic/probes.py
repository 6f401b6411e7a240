"""Cases that make mistakes visible.

All sizes differ, nothing is square where it need not be, nothing is saturated. The
smallest case comes first: it is the one a learner is shown. Each function takes the
random numbers it may use, so that a grader can ask with numbers nobody has seen.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import Case

Float = npt.NDArray[np.float64]


def table(rng: np.random.Generator, *shape: int, spread: float = 1.0) -> Float:
    """Random eighths: short to read, and exact in float32 as in float64."""
    return np.asarray(np.round(rng.normal(size=shape) * spread * 8) / 8 + 0.0)


def fine(rng: np.random.Generator, *shape: int) -> Float:
    """Eighths, and a little more than float16 can hold beside them."""
    return np.asarray(table(rng, *shape) + rng.integers(-5, 6, size=shape) / 4096)


def scores_cases(rng: np.random.Generator) -> tuple[Case, ...]:
    """For `softmax(x, axis=-1)`."""
    huge = table(rng, 2, 3) + np.array([[900.0], [-900.0]])
    empty = table(rng, 3, 4)
    empty[0, 2] = empty[1] = -np.inf
    cases = (
        Case("a table of 2 rows and 3 scores", (table(rng, 2, 3),)),
        Case("a square table, 3 rows and 3 scores", (table(rng, 3, 3),)),
        Case("one row of 4 scores", (table(rng, 4),)),
        Case("a stack of 2 tables of 3 rows and 5 scores", (table(rng, 2, 3, 5),)),
        Case("the same along axis=0", (table(rng, 4, 3), 0)),
        Case("the same along axis=1 of three", (table(rng, 2, 4, 3), 1)),
        Case("scores around 900 and around -900", (huge,)),
        Case("a row in which all scores are -inf", (empty,)),
    )
    # Overflow if the mean is subtracted; only if the smallest is. In any float type.
    far = table(rng, 2, 14)
    far[0] += np.where(np.arange(14) == 0, 1000.0, -1000.0)
    far[1, 5] = -800.0
    return (*cases, Case("scores far apart in one row", (far,)))


def attention_cases(rng: np.random.Generator) -> tuple[Case, ...]:
    """For `scaled_dot_product(q, k, v)`."""

    def qkv(n_q: int, n_k: int, d_k: int, d_v: int, *batch: int) -> tuple[Float, ...]:
        return (
            table(rng, *batch, n_q, d_k),
            table(rng, *batch, n_k, d_k),
            table(rng, *batch, n_k, d_v),
        )

    def named(what: str, n_q: int, n_k: int, d_k: int, d_v: int, *batch: int) -> Case:
        sizes = f"n_q={n_q}, n_k={n_k}, d_k={d_k}, d_v={d_v}"
        return Case(f"{what} ({sizes})", qkv(n_q, n_k, d_k, d_v, *batch))

    q, k = far_apart(rng, 3, 5, gap=1024)
    q[1] = -q[1]  # its largest score lies thousands below that of the others
    huge = Case("scores of some thousands", (q, k, table(rng, 5, 2)))
    return (
        named("a small one", 3, 4, 2, 5),
        named("as many queries as keys", 4, 4, 3, 5),
        named("all sizes equal", 3, 3, 3, 3),
        Case(
            "more keys than queries (n_q=3, n_k=6, d_k=5, d_v=2)",
            (fine(rng, 3, 5), fine(rng, 6, 5), fine(rng, 6, 2)),
        ),
        named("a batch of 2 and 3 heads", 4, 5, 6, 3, 2, 3),
        huge,
    )


def far_apart(
    rng: np.random.Generator, n_q: int, n_k: int, gap: float
) -> tuple[Float, Float]:
    """Queries and keys whose scaled scores lie at least `gap` apart.

    The weights are then 0 or 1 for any scale, so that rounding does not show. d_k = 16
    makes its root and its fourth root exact: float32 is exact as well.
    """
    q, k = np.zeros((n_q, 16)), np.zeros((n_k, 16))
    for i in range(n_q):
        q[i, i + 1] = 64.0
        k[:, i + 1] = gap / 16 * rng.permutation(n_k)
    return q, k


def masked_cases(rng: np.random.Generator) -> tuple[Case, ...]:
    """For `scaled_dot_product(q, k, v, mask)`: causal, padding, empty rows, a leak."""

    def with_mask(name: str, d_k: int, d_v: int, mask: npt.NDArray[np.bool_]) -> Case:
        n_q, n_k = mask.shape
        arrays = (table(rng, n_q, d_k), table(rng, n_k, d_k), table(rng, n_k, d_v))
        return Case(name, (*arrays, mask))

    causal = np.tri(4, dtype=bool)
    longer = np.tri(3, 5, 2, dtype=bool)
    some = rng.random((4, 6)) < 0.6
    some[:, 0], some[:, 1] = True, False
    empty = np.tri(4, dtype=bool)
    empty[1] = False
    # A constant of -40000 in every score: weights do not change, weak fills win.
    q, k = far_apart(rng, 3, 5, gap=1024)
    q[:, 0], k[:, 0] = 200.0, -800.0
    far = Case("scores below -20000", (q, k, table(rng, 5, 2), longer))
    # A hidden key so far above the others that they are rounded to 0 beside it: a
    # softmax taken before the mask leaves 0 / 0.
    q, k, v = table(rng, 3, 4), table(rng, 4, 4), table(rng, 4, 2)
    q[:, 0], k[:, 0] = 64.0, [0.0, 0.0, 0.0, 32.0]
    above = Case("a hidden score 1000 above the others", (q, k, v, np.tri(3, 4) > 0))
    q, k, v = table(rng, 4, 3), table(rng, 4, 3), table(rng, 4, 2)
    v[3, 0] = np.nan
    planted = Case("a NaN in the last value", (q, k, v, causal))
    return (
        with_mask("a causal mask", 2, 3, np.tri(3, dtype=bool)),
        with_mask("a causal mask on 4 tokens", 3, 5, causal),
        with_mask("a causal mask with 2 keys from the cache", 6, 2, longer),
        with_mask("a mask with holes", 5, 3, some),
        with_mask("a row that may look at nothing", 3, 2, empty),
        far,
        above,
        planted,
    )


def split_cases(rng: np.random.Generator) -> tuple[Case, ...]:
    """For `split_heads(x, n_heads)`."""
    return (
        Case("3 tokens, d_model=4, 2 heads", (table(rng, 3, 4), 2)),
        Case("5 tokens, d_model=12, 3 heads", (table(rng, 5, 12), 3)),
        Case("4 tokens, d_model=6, 1 head", (table(rng, 4, 6), 1)),
        Case("a batch of 2, 5 tokens, d_model=12, 4 heads", (table(rng, 2, 5, 12), 4)),
    )


def merge_cases(rng: np.random.Generator) -> tuple[Case, ...]:
    """For `merge_heads(x)`."""
    return (
        Case("2 heads, 3 tokens, 2 numbers each", (table(rng, 2, 3, 2),)),
        Case("3 heads, 5 tokens, 4 numbers each", (table(rng, 3, 5, 4),)),
        Case("1 head, 4 tokens, 3 numbers each", (table(rng, 1, 4, 3),)),
        Case("a batch of 2, 4 heads, 5 tokens, 3 each", (table(rng, 2, 4, 5, 3),)),
    )


def multi_head_cases(rng: np.random.Generator) -> tuple[Case, ...]:
    """For `multi_head(x, W_q, W_k, W_v, W_o, n_heads)`; the second is an x-ray."""

    def weights(d_model: int, n_heads: int, d_k: int, d_v: int) -> tuple[Float, ...]:
        wide, values = n_heads * d_k, n_heads * d_v
        shapes = ((d_model, wide), (d_model, wide), (d_model, values))
        inward = [table(rng, *shape, spread=0.5) for shape in shapes]
        return (*inward, table(rng, values, d_model, spread=0.5))

    def case(name: str, n: int, n_heads: int, d_k: int, d_v: int, d_model: int) -> Case:
        sizes = f"n={n}, d_model={d_model}, n_heads={n_heads}, d_k={d_k}, d_v={d_v}"
        x = table(rng, n, d_model)
        matrices = weights(d_model, n_heads, d_k, d_v)
        return Case(f"{name} ({sizes})", (x, *matrices, n_heads))

    batch = case("a batch of 2", 4, 3, 2, 5, 7)
    stacked = Case(batch.name, (table(rng, 2, 4, 7), *batch.args[1:]))
    huge = case("very large scores", 3, 2, 4, 3, 5)
    large = Case(huge.name, (table(rng, 3, 5) * 600, *huge.args[1:]))
    return (
        case("a small one", 3, 2, 2, 3, 4),
        xray(rng),
        case("d_k = d_v", 5, 3, 2, 2, 6),
        case("one head", 4, 1, 3, 5, 6),
        stacked,
        large,
    )


def grouped_cases(rng: np.random.Generator) -> tuple[Case, ...]:
    """For `multi_head(..., n_heads, mask, n_kv_heads)`: masks, and shared keys."""
    first, *_ = multi_head_cases(rng)
    eye = xray(rng)
    n, n_heads, n_kv_heads, d_k, d_v, d_model = 4, 6, 2, 3, 2, 5
    x = table(rng, 2, n, d_model)
    wide, narrow, values = n_heads * d_k, n_kv_heads * d_k, n_kv_heads * d_v
    shapes = ((d_model, wide), (d_model, narrow), (d_model, values))
    inward = [table(rng, *shape, spread=0.5) for shape in shapes]
    outward = table(rng, n_heads * d_v, d_model, spread=0.5)
    lengths = np.array([n, n - 2])
    real = np.broadcast_to(np.arange(n) < lengths[:, None, None], (2, n, n))
    past = np.tri(n, dtype=bool)
    return (
        Case(f"causal, {first.name}", (*first.args, np.tri(3, dtype=bool))),
        Case(f"causal, {eye.name}", (*eye.args, past)),
        Case(
            "two sentences of different length, 6 heads on 2 key heads",
            (x, *inward, outward, n_heads, real & past, n_kv_heads),
        ),
        *multi_head_cases(rng)[2:],
    )


def xray(rng: np.random.Generator) -> Case:
    """A call of multi-head attention whose output is its weights, head after head."""
    n, n_heads, d_k = 4, 3, 2
    d_model = n * n_heads
    x = np.concatenate([table(rng, n, d_model - n), np.eye(n)], axis=-1)
    W_q, W_k = (table(rng, d_model, n_heads * d_k, spread=0.5) for _ in range(2))
    copies = np.concatenate([np.zeros((d_model - n, n)), np.eye(n)])
    W_v = np.tile(copies, (1, n_heads))
    sizes = f"n={n}, d_model={d_model}, n_heads={n_heads}, d_k={d_k}"
    return Case(
        f"an x-ray: out is the weights ({sizes})",
        (x, W_q, W_k, W_v, np.eye(d_model), n_heads),
    )
