# mypy: allow-untyped-defs, allow-untyped-calls
"""The exercises of lesson 06: what happens inside a real model?"""

import re

import numpy as np

from attnlib import heads, masks, positions
from attnlib.attention import scaled_dot_product
from attnlib.clinic.families.head_scores import INDUCTION_SCORE, OFFSET_MASS
from attnlib.clinic.families.layers import LAYER_ATTENTION
from attnlib.clinic.probes_layers import induction_cases, layer_cases, offset_cases
from attnlib.exercises.exercise import Exercise, Misconception, Part, ValueExercise
from attnlib.exercises.laws import batch_independent
from attnlib.exercises.laws_heads import (
    a_quarter,
    first_hears_itself,
    nothing_of_the_future,
    scores_make_the_rest,
    sure_heads,
)
from attnlib.exercises.read import is_a, plain


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


def as_head(answer):
    """A head as people write it, "0.3", 0.3 or {"layer": 0, ...}, as (0, 3)."""
    if is_a(answer, str, float):  # np.float64 is one, too
        return written_head(str(answer)) or answer
    if type(answer) is dict and set(answer) == {"layer", "head"}:
        answer = (answer["layer"], answer["head"])
    if type(answer) in (tuple, list) and all(type(part) is str for part in answer):
        return written_head(", ".join(answer)) or answer
    nested = (tuple, list, np.ndarray)
    if type(answer) is tuple and not any(type(part) in nested for part in answer):
        return answer
    array = plain(answer)
    if isinstance(array, str) or array.size != 2 or array.dtype.kind == "b":
        return answer
    return tuple(array.ravel().tolist())


def written_head(text):
    """The two numbers of "0.3", "(0, 3)" or "layer 0, head 3"; None for another."""
    found = re.fullmatch(r"[( [a-z]*(\d)\D{1,8}(\d)[\])]?", text.strip().casefold())
    if found is None:
        return None
    numbers = [int(part) for part in found.groups()]
    named = [text.casefold().find(word) for word in ("layer", "head")]
    turned = 0 <= named[1] < named[0]  # "head 3, layer 0"
    return tuple(numbers[::-1] if turned else numbers)


# How much weight each head puts one place back, layer by layer; a test measures it.
ONE_BACK = (
    (0.02, 0.25, 0.62, 0.28, 0.01, 0.64),
    (0.03, 0.03, 0.03, 0.03, 0.02, 0.02),
    (0.36, 0.18, 0.24, 0.20, 0.11, 0.04),
)
RIGHT = (0, 5)


def weak_heads(told):
    """A sentence for each head that has none yet."""
    heads_ = [(layer, h) for layer in range(3) for h in range(6)]
    return tuple(
        Misconception(
            head,
            f"One place back, head {head[0]}.{head[1]} has "
            f"{ONE_BACK[head[0]][head[1]]:.2f} of its weight. Compare all 18.",
        )
        for head in heads_
        if head != RIGHT and head not in told
    )


_ITSELF = "That head looks at the token itself: its mass is large at offset 0. "
_TOLD = (
    Misconception(
        (0, 2),
        "Head 0.2 looks one place back, too, with 0.62 of its weight. One head "
        "has more: compare the numbers, to the second decimal.",
    ),
    Misconception((0, 4), _ITSELF + "Asked for is the token before, at offset 1."),
    Misconception((0, 0), _ITSELF + "Asked for is the token before, at offset 1."),
    Misconception((2, 2), _ITSELF + "Asked for is the token before, at offset 1."),
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
        "Head 0.3 has more of its weight on <start>, 0.43, than one place back, 0.28.",
    ),
    Misconception(
        5,
        "Is that the place in one row of 18? np.unravel_index turns it into a "
        "layer and a head.",
    ),
    *(
        Misconception(
            mass, "That is how much weight a head puts there. Which head is it?"
        )
        for mass in (0.6415, 0.6167)
    ),
    *(
        Misconception(both, "Both look one place back. Which of the two does it more?")
        for both in (((0, 5), (0, 2)), ((0, 2), (0, 5)))
    ),
)
_single = layer_cases(np.random.default_rng(60))[2].args
_batched = layer_cases(np.random.default_rng(60))[5].args
_maps = offset_cases(np.random.default_rng(61))[3].args
_repeated = induction_cases(np.random.default_rng(61))[3].args

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
        (
            nothing_of_the_future(_single),
            first_hears_itself(_single),
            batch_independent(_batched, (0,)),
            scores_make_the_rest(_single, layer_attention),
        ),
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
        (
            batch_independent(_maps, (0,)),
            sure_heads(2, 2, "2 places back", 2),
            a_quarter(2, 2, "2 places back", 2),
        ),
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
        (
            batch_independent(_repeated, (0,)),
            sure_heads(4, 3, "at the key after the last copy", 4),
            a_quarter(4, 3, "on the key after the last copy", 4),
        ),
    ),
    ValueExercise(
        name="previous_token_head",
        lesson=6,
        minutes=5,
        right=RIGHT,
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
        wrong=(*_TOLD, *weak_heads([told.value for told in _TOLD])),
    ),
)
