# mypy: allow-untyped-defs, allow-untyped-calls
"""The exercises of lesson 05: what changes when NumPy becomes PyTorch?"""

import numpy as np

from attnlib import attention
from attnlib.clinic import probes
from attnlib.clinic.families.gradients import ATTENTION_GRADIENT
from attnlib.clinic.families.in_proj import FROM_IN_PROJ
from attnlib.clinic.families.sdpa import MATCH_SDPA
from attnlib.clinic.probes_torch import gradient_cases, in_proj_cases, sdpa_cases
from attnlib.clinic.tensors import F, torch
from attnlib.exercises.exercise import (
    Exercise,
    Law,
    Misconception,
    Part,
    ValueExercise,
)
from attnlib.exercises.laws import batch_independent, finite, invariant


def attention_gradient(q, k, v, grad_out):
    """Carry a gradient from out back to q, k and v, in NumPy.

    q: (..., n_q, d_k)   k: (..., n_k, d_k)   v: (..., n_k, d_v)
    grad_out: (..., n_q, d_v), how the loss answers to each number of out
    returns: grad_q, grad_k, grad_v, in the shapes of q, k and v
    """
    weights = attention.scaled_dot_product(q, k, v).weights
    grad_v = np.swapaxes(weights, -1, -2) @ grad_out
    grad_weights = grad_out @ np.swapaxes(v, -1, -2)
    share = (weights * grad_weights).sum(axis=-1, keepdims=True)
    grad_raw = weights * (grad_weights - share) / np.sqrt(q.shape[-1])
    return grad_raw @ k, np.swapaxes(grad_raw, -1, -2) @ q, grad_v


def match_sdpa(q, k, v, mask=None, causal=False):
    """Call SDPA so that it means what this course means.

    q: (..., n_q, d_k)   k: (..., n_k, d_k)   v: (..., n_k, d_v), all tensors
    mask: None, or boolean, True = may look, (n_q, n_k) or (batch, 1, n_q, n_k)
    causal: if True, hide the future; the last query stands at the last key
    returns: out, (..., n_q, d_v), zeros for a query that may look at nothing
    """
    n_q, n_k = q.shape[-2], k.shape[-2]
    look = torch.ones(n_q, n_k, dtype=torch.bool)
    if causal:
        look = look.tril(n_k - n_q)
    if mask is not None:
        look = look & mask
    return F.scaled_dot_product_attention(q, k, v, attn_mask=look)


def from_in_proj(in_proj_weight):
    """Take the weights of nn.MultiheadAttention apart, for x @ W.

    in_proj_weight: (3 * d_model, d_model), a tensor
    returns: W_q, W_k, W_v, each (d_model, d_model)
    """
    W_q, W_k, W_v = in_proj_weight.chunk(3)
    return W_q.T, W_k.T, W_v.T


def as_array(answer):
    """A list of numbers is as good as an array of them."""
    if type(answer) in (list, tuple) and not any(type(a) is str for a in answer):
        try:
            return np.array([float(number) for number in answer])
        except (TypeError, ValueError):
            return answer
    return answer


def keys_together(q, k, v, grad_out):
    """The same vector added to all keys changes nothing: their gradients sum to 0."""

    def broken(call):
        found = call(q, k, v, grad_out)
        if found is None or len(found) != 3 or found[1].shape != k.shape:
            return None
        sums = np.asarray(found[1], float).sum(axis=-2)
        largest = float(np.abs(sums).max())
        if largest <= 2e-4:
            return None
        return f"Yours sum to as much as {largest:.3f}."

    return Law("the gradients of the keys sum to 0", broken)


_rng = np.random.default_rng(50)
_Q, _K, _V, _G = (
    probes.table(_rng, 2, *shape) for shape in ((3, 4), (5, 4), (5, 2), (3, 2))
)
_hidden = np.ones((3, 5), bool)
_hidden[:, 1] = False
_other = np.array([1.0, -9.0, 1.0, 1.0, 1.0])[:, None]

EXERCISES = (
    Exercise(
        "attention_gradient",
        5,
        10,
        attention_gradient,
        gradient_cases,
        (
            Part("grad_q", "... n_q d_k"),
            Part("grad_k", "... n_k d_k"),
            Part("grad_v", "... n_k d_v"),
        ),
        ATTENTION_GRADIENT,
        (
            "Go back as you came: from out to the weights and v, from the weights to "
            "the scores, from those to q and k. Write the shape beside each step.",
            "The lesson did it for one row. For the whole table each sum of products "
            "becomes a product of tables, and the sum over keys keeps its axis.",
            "grad_weights is grad_out times v turned over. In each row subtract the "
            "sum of weights times grad_weights, then multiply by the weights, and "
            "divide by √d_k. Times k it is grad_q; turned over, times q, grad_k.",
        ),
        "These five lines are what every training step of every transformer runs. "
        "Lesson 12 computes them without ever holding the table of weights.",
        (
            keys_together(_Q, _K, _V, _G),
            batch_independent((_Q, _K, _V, _G), (0, 1, 2, 3)),
            finite((_Q * 100, _K * 100, _V, _G), "scores of some thousands"),
        ),
        "grad_q, grad_k and grad_v have the shapes of q, k and v. With a batch in "
        "front, turn over the last two axes only: np.swapaxes(a, -1, -2).",
    ),
    Exercise(
        "match_sdpa",
        5,
        9,
        match_sdpa,
        sdpa_cases,
        (Part("out", "... n_q d_v"),),
        MATCH_SDPA,
        (
            "Do not use is_causal: which corner does it start from? And what if it "
            "meets a mask?",
            "Make one boolean mask of the two rules, True = may look, and hand it over "
            "as attn_mask. A key must pass both.",
            "Start from a table of True, (n_q, n_k). .tril(n_k - n_q) cuts the future "
            "away from the bottom right; & adds the mask that was given.",
        ),
        "One boolean mask says it all, and says it the same way everywhere. A model "
        "that reads its own cache (lesson 11) meets n_q = 1 at every step, where "
        "is_causal shows the new token nothing but the first.",
        (
            invariant(
                "a key that nobody may look at does not matter",
                (_Q[0], _K[0], _V[0], _hidden),
                (_Q[0], _K[0] * _other, _V[0] * _other, _hidden),
                "Its key and value were changed, and the outputs should not move.",
            ),
            invariant(
                "the newest queries get the same alone as in the whole text",
                (_K[0], _K[0], _V[0], None, True),
                (_K[0][-2:], _K[0], _V[0], None, True),
                "For 2 queries and 5 keys, causal, the rows are not the last 2 of 5.",
                lambda out: out[-2:],
            ),
        ),
        tensors=True,
    ),
    Exercise(
        "from_in_proj",
        5,
        4,
        from_in_proj,
        in_proj_cases,
        (
            Part("W_q", "d_model d_model"),
            Part("W_k", "d_model d_model"),
            Part("W_v", "d_model d_model"),
        ),
        FROM_IN_PROJ,
        (
            "The lesson put three tables into one. Undo it, step by step, in the other "
            "order.",
            "Cut into three blocks of rows. Which way round does nn.Linear keep a "
            "table?",
            "chunk(3) cuts the rows. Each block then has to be turned over.",
        ),
        "Models are handed on as files of weights. Whoever reads one has to know what "
        "is fused, in which order, and which way round.",
        (),
        "in_proj_weight is 3 · d_model high and d_model wide: cut it along axis 0.",
        tensors=True,
    ),
    ValueExercise(
        name="after_dropout",
        lesson=5,
        minutes=4,
        right=np.array([0.8, 0.0, 0.1 / 0.75]),
        hints=(
            "What is dropped becomes 0. What becomes of the two that are kept?",
            "Dropout makes up for what is lost: kept weights are divided by the share "
            "that is kept on average.",
            "0.25 is dropped, so 0.75 is kept: divide by it.",
        ),
        why=(
            "The row sums to 0.933 now, and to 1 only on average over many draws. So "
            "returned weights that do not sum to 1 are the first sign of a module "
            "that was left in training mode."
        ),
        show="after_dropout = [0.6 / 0.75, 0.0, 0.1 / 0.75]",
        tidy=as_array,
        form="Three numbers are wanted, such as [0.6, 0.3, 0.1].",
        wrong=(
            Misconception(
                np.array([0.6, 0.0, 0.1]),
                "The dropped weight is 0, that is right. But the others grow, so that "
                "the mean over many draws stays what it was.",
            ),
            Misconception(
                np.array([0.6 / 0.7, 0.0, 0.1 / 0.7]),
                "You made the row sum to 1 again. Dropout does not: it divides by the "
                "share that is kept on average, whatever was dropped this time.",
            ),
            Misconception(
                np.array([0.45, 0.0, 0.075]),
                "The kept weights are divided by 0.75, not multiplied: they have to "
                "make up for the dropped one.",
            ),
            Misconception(
                np.array([0.75, 0.0, 0.125]),
                "You made them a quarter larger. Then the mean over many draws is "
                "0.75 · 1.25 = 0.94 of what it was: divide by 0.75.",
            ),
            Misconception(
                np.array([1.2, 0.0, 0.2]),
                "You doubled them, as in the lesson. There half was dropped; here a "
                "quarter is.",
            ),
            Misconception(
                np.array([0.75, 0.0, 0.25]),
                "You handed the lost 0.3 to the two others in equal parts. Dropout "
                "multiplies both by the same number, and does not look at what was "
                "lost this time.",
            ),
            Misconception(
                np.array([0.15, 0.0, 0.025]),
                "You multiplied by 0.25, the share that is dropped. The kept weights "
                "grow.",
            ),
            Misconception(
                np.array([0.45, 0.225, 0.075]),
                "You multiplied all three by 0.75: that is their mean without making "
                "up for it. This time the second is 0, and the others grow.",
            ),
            Misconception(
                np.array([0.8, 0.3, 0.1 / 0.75]),
                "The two others are right. The second weight is dropped: it is 0.",
            ),
            *(
                Misconception(
                    np.array(row),
                    "The factor is right. But it is the *second* weight that is "
                    "dropped.",
                )
                for row in ([0.0, 0.4, 0.1 / 0.75], [0.8, 0.4, 0.0])
            ),
            Misconception(
                np.array([2.4, 0.0, 0.4]),
                "You divided by 0.25, the share that is dropped. Which share is kept?",
            ),
            Misconception(
                np.array([0.6, 0.3, 0.1]),
                "That is the row before dropout, and what model.eval() gives.",
            ),
            Misconception(
                np.array([0.8, 0.4, 0.1 / 0.75]),
                "The second weight is dropped: it is 0.",
            ),
        ),
    ),
)
