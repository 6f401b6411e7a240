# mypy: allow-untyped-defs, allow-untyped-calls
"""The exercises of lesson 06: what happens inside a real model?"""

import numpy as np

from attnlib import heads, masks, positions
from attnlib.attention import scaled_dot_product
from attnlib.clinic import probes
from attnlib.clinic.case import Case
from attnlib.clinic.families.head_scores import INDUCTION_SCORE, OFFSET_MASS
from attnlib.clinic.families.layers import LAYER_ATTENTION
from attnlib.exercises.exercise import Exercise, Misconception, Part, ValueExercise
from attnlib.exercises.laws import batch_independent
from attnlib.exercises.read import plain


def layer_attention(normed, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
    """Attend as a layer of the model does: causal, with RoPE, heads in groups.

    normed: what the layer's attention reads, (..., n, d_model)
    W_q: (d_model, n_heads * d_k)   W_k: (d_model, n_kv_heads * d_k)
    W_v: (d_model, n_kv_heads * d_v)   W_o: (n_heads * d_v, d_model)
    returns: out, (..., n, d_model)
    """
    n = normed.shape[-2]
    q = heads.split_heads(normed @ W_q, n_heads)
    k = heads.split_heads(normed @ W_k, n_kv_heads)
    v = heads.split_heads(normed @ W_v, n_kv_heads)
    q, k = (positions.rope(a, np.arange(n)) for a in (q, k))
    k, v = (heads.repeat_heads(a, n_heads) for a in (k, v))
    mixed = scaled_dot_product(q, k, v, masks.causal(n)).out
    return heads.merge_heads(mixed) @ W_o


def offset_mass(weights, offset):
    """Measure how much weight a head puts on the key so many places back.

    weights: (..., n, n), for one head or for many
    offset: how many places before the query the key stands, from 0 to n - 1
    returns: (...), for each head the mean over the rows that have such a key
    """
    rows = np.arange(offset, weights.shape[-1])
    return weights[..., rows, rows - offset].mean(axis=-1)


def induction_score(weights, period):
    """Measure how well a head finds what came after its token the last time.

    weights: (..., n, n), on a text that says the same tokens again and again
    period: how many tokens there are before they come again, less than n
    returns: (...), for each head the mean over all rows whose token was there
        before
    """
    rows = np.arange(period, weights.shape[-1])
    return weights[..., rows, rows - period + 1].mean(axis=-1)


def layer_cases(rng):
    """For `layer_attention`; the second is an x-ray: its output is its weights."""

    def case(name, n, d_model, n_heads, n_kv_heads, d_k, d_v, *batch):
        wide, narrow, values = n_heads * d_k, n_kv_heads * d_k, n_kv_heads * d_v
        shapes = ((d_model, wide), (d_model, narrow), (d_model, values))
        inward = [probes.table(rng, *shape, spread=0.5) for shape in shapes]
        outward = probes.table(rng, n_heads * d_v, d_model, spread=0.5)
        x = probes.table(rng, *batch, n, d_model)
        told = f"n={n}, d_model={d_model}, d_k={d_k}, d_v={d_v}"
        counts = f"{n_heads} heads on {n_kv_heads}"
        return Case(
            f"{name} ({counts}, {told})", (x, *inward, outward, n_heads, n_kv_heads)
        )

    return (
        case("a small one", 3, 5, 4, 2, 2, 3),
        layer_xray(rng),
        case("keys as wide as values", 5, 8, 6, 2, 4, 4),
        case("a key head for each head", 4, 7, 3, 3, 6, 2),
        case("one key head for all", 3, 6, 3, 1, 4, 5),
        case("a batch of 2", 4, 10, 4, 2, 6, 3, 2),
        case("a single token", 1, 5, 4, 2, 2, 3),
    )


def layer_xray(rng):
    """The last n features of a token are its number, and all that W_v hands on."""
    n, n_heads, n_kv_heads, d_k = 3, 4, 2, 6
    d_model = n * n_heads
    x = np.concatenate([probes.table(rng, n, d_model - n), np.eye(n)], axis=-1)
    W_q = probes.table(rng, d_model, n_heads * d_k, spread=0.5)
    W_k = probes.table(rng, d_model, n_kv_heads * d_k, spread=0.5)
    copies = np.concatenate([np.zeros((d_model - n, n)), np.eye(n)])
    return Case(
        f"an x-ray: out is the weights ({n_heads} heads on {n_kv_heads}, n={n}, "
        f"d_model={d_model}, d_k={d_k})",
        (
            x,
            W_q,
            W_k,
            np.tile(copies, (1, n_kv_heads)),
            np.eye(d_model),
            n_heads,
            n_kv_heads,
        ),
    )


def some_weights(rng, *shape, causal=True):
    """Rows that sum to 1, in 64ths at the least."""
    raw = rng.integers(1, 9, size=shape).astype(float)
    if causal:
        raw = np.tril(raw)
    return raw / raw.sum(axis=-1, keepdims=True)


def offset_cases(rng):
    """For `offset_mass(weights, offset)`: causal and not, one head and many."""

    def case(name, n, offset, *batch, causal=True):
        weights = some_weights(rng, *batch, n, n, causal=causal)
        return Case(f"{name}, n={n}, offset={offset}", (weights, offset))

    return (
        case("one head", 4, 1),
        case("3 heads", 5, 2, 3),
        case("one head", 6, 0),
        case("2 layers of 3 heads", 7, 1, 2, 3),
        case("4 heads without a causal mask", 6, 3, 4, causal=False),
        case("5 heads, the last two rows alone", 5, 3, 5),
    )


def induction_cases(rng):
    """For `induction_score(weights, period)`: two copies, more, and half a one."""

    def case(name, n, period, *batch, causal=True):
        weights = some_weights(rng, *batch, n, n, causal=causal)
        return Case(f"{name}, n={n}, period={period}", (weights, period))

    return (
        case("one head", 6, 3),
        case("3 heads, three copies", 12, 4, 3),
        case("4 heads, two copies and a half", 10, 4, 4),
        case("2 layers of 3 heads", 8, 3, 2, 3),
        case("3 heads without a causal mask", 9, 3, 3, causal=False),
    )


def as_head(answer):
    """A head as it is written, "0.3" or 0.3, or as np.argwhere gives it: (0, 3)."""
    if type(answer) in (str, float):
        parts = str(answer).strip().split(".")
        both = len(parts) == 2 and all(part.isdigit() for part in parts)
        return tuple(int(part) for part in parts) if both else answer
    nested = (tuple, list, np.ndarray)
    if type(answer) is tuple and not any(type(part) in nested for part in answer):
        return answer
    array = plain(answer)
    if isinstance(array, str) or array.size != 2 or array.dtype.kind == "b":
        return answer
    return tuple(array.ravel().tolist())


_ITSELF = "That head looks at the token itself: its mass is large at offset 0. "
_batched = layer_cases(np.random.default_rng(60))[5].args

EXERCISES = (
    Exercise(
        "layer_attention",
        6,
        12,
        layer_attention,
        layer_cases,
        (Part("out", "n d_model"),),
        LAYER_ATTENTION,
        (
            "Five steps: make q, k and v and cut them into heads; turn q and k; hand "
            "each key head to its group; attend; join and multiply by W_o.",
            "q has n_heads heads, k and v have n_kv_heads. positions.rope(q, "
            "np.arange(n)) turns each head, so it comes after the split. "
            "heads.repeat_heads(k, n_heads) shares the key heads out.",
            "scaled_dot_product(q, k, v, masks.causal(n)).out holds all heads, (..., "
            "n_heads, n, d_v). Two steps are left: heads.merge_heads, and W_o.",
        ),
        "It computes what the model computes, in any layer. Llama, Mistral and Qwen "
        "are built of this layer, with other sizes and weights of their own.",
        (batch_independent(_batched, (0,)),),
        "After the split q is (..., n_heads, n, d_k), and k is (..., n_kv_heads, n, "
        "d_k) until it is repeated.",
    ),
    Exercise(
        "offset_mass",
        6,
        6,
        offset_mass,
        offset_cases,
        (Part("mass"),),
        OFFSET_MASS,
        (
            "Which rows have a key so many places back? And which key is it?",
            "Rows offset, offset + 1, ... n - 1; the key of row i is i - offset. "
            "Pick one weight from each of these rows.",
            "weights[..., rows, keys], with rows and keys two lists of the same "
            "length, picks one weight a row. Then a mean along the last axis.",
        ),
        "Any offset, any number of heads: a map of weights has become a number that "
        "can be compared.",
    ),
    Exercise(
        "induction_score",
        6,
        8,
        induction_score,
        induction_cases,
        (Part("score"),),
        INDUCTION_SCORE,
        (
            "Take 2 copies of A B C. For the second B, which key is the one after the "
            "first B? Number the six places, and find the rule.",
            "The token of row i stood at i - period. What came after it stands one "
            "further. The first row that has been there before is row period.",
            "rows = np.arange(period, n), and one key for each row. Pick the weights "
            "as in offset_mass, and take the mean along the last axis.",
        ),
        "With it you can search any model for the heads that carry repetition, as "
        "Olsson et al. did.",
    ),
    ValueExercise(
        name="previous_token_head",
        lesson=6,
        minutes=5,
        right=(0, 5),
        hints=(
            "offset_mass(weights, 1) has a number for each head, (3, 6). Layers are "
            "rows, heads are columns.",
            "The largest of the 18 numbers: argmax gives its place as if the table "
            "were one long row of 18.",
            "np.unravel_index(mass.argmax(), mass.shape) turns that place into a layer "
            "and a head. Give these two.",
        ),
        why=(
            "0.64 of its weight lies one place back, and an even head has 0.04 there. "
            "Head 0.2 is close behind, with 0.62. Try without(0, [2, 5]): with both "
            "gone, the second copy costs 5.7."
        ),
        show="previous_token_head = (0, 5)  # the largest of offset_mass(weights, 1)",
        tidy=as_head,
        form="A layer and a head are wanted, both counted from 0, such as (1, 3).",
        wrong=(
            Misconception(
                (0, 2),
                "Head 0.2 looks one place back, too, with 0.62 of its weight. One head "
                "has more: compare the numbers, to the second decimal.",
            ),
            Misconception(
                (0, 4), _ITSELF + "Asked for is the token before, at offset 1."
            ),
            Misconception(
                (0, 0), _ITSELF + "Asked for is the token before, at offset 1."
            ),
            Misconception(
                (2, 2), _ITSELF + "Asked for is the token before, at offset 1."
            ),
            Misconception(
                (5, 0), "That is the right head, the wrong way round: first the layer."
            ),
            Misconception(
                (1, 6),
                "Counted from 1, perhaps? Layers and heads are counted from 0 here.",
            ),
            Misconception(
                (2, 0),
                "That is the largest of layer 2, with 0.36. Look at all three layers.",
            ),
            Misconception(
                (1, 5),
                "That is an induction head: it looks where its token stood before, and "
                "one on. One place back it has 0.02.",
            ),
            Misconception(
                (0, 3),
                "Head 0.3 has more of its weight on <start>, 0.43, than one place "
                "back, 0.28.",
            ),
            Misconception(
                5,
                "Is that the place in one row of 18? np.unravel_index turns it into a "
                "layer and a head.",
            ),
        ),
    ),
)
