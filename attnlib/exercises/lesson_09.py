# mypy: allow-untyped-defs, allow-untyped-calls
"""The exercises of lesson 09: how does a model start, and stay stable?"""

import re
from itertools import permutations

import numpy as np

from attnlib.clinic.families.half import CAPPED_SCORES, HALF_SCORES
from attnlib.clinic.families.initial import INIT_FOR_ENTROPY
from attnlib.clinic.families.stages import FIRST_BAD
from attnlib.clinic.probes_stability import (
    capped_cases,
    half_cases,
    init_cases,
    stage_cases,
)
from attnlib.exercises import laws_stability as laws
from attnlib.exercises.exercise import (
    Exercise,
    Misconception,
    Part,
    ValueExercise,
)


def init_for_entropy(d_model, d_k, share):
    """Choose the std of W_q and W_k so that a query uses a share of its keys.

    d_model: numbers in a token, of variance 1   d_k: numbers in a query
    share: wanted, exp(entropy) / n_k, between 0.6 and 1
    returns: the std of the entries of W_q and W_k, one number
    Scores are divided by the root of d_k, as always.
    """
    spread = np.sqrt(-2 * np.log(share))  # the std of the scores
    return np.sqrt(spread / d_model)


def half_scores(q, k, mask):
    """Compute masked scores that never leave float16.

    q: (n_q, d_k)   k: (n_k, d_k)   both float16
    mask: boolean, (n_q, n_k), True = may look
    returns: (n_q, n_k), float16: q @ k.T over the root of d_k; -inf if hidden
    No score that is seen may be infinite. An empty row is -inf throughout.
    """
    scores = (q / q.shape[-1] ** 0.5) @ k.T
    return np.where(mask, scores, -np.inf)


def capped_scores(scores, mask, cap):
    """Bend scores into the range from -cap to cap, and hide what is hidden.

    scores: (n_q, n_k), scaled   mask: boolean, (n_q, n_k), True = may look
    cap: one number above 0
    returns: (n_q, n_k), -inf where hidden
    """
    return np.where(mask, cap * np.tanh(scores / cap), -np.inf)


def first_bad(stages):
    """Find where NaN or infinity first appears.

    stages: dict, name -> array, in the order of the formula
    returns: the number of the first bad stage, from 0 on; -1 if all are well
    NaN and infinities are bad, but -inf in "scores" is not: a mask writes it.
    """
    for i, (name, stage) in enumerate(stages.items()):
        bad = ~np.isfinite(stage)
        if name == "scores":
            bad = bad & (stage != -np.inf)
        if bad.any():
            return i
    return -1


# The five calls of a step with a scaler, as the lesson letters them.
CALLS = {
    "A": "scaler.update()",
    "B": "clip_grad_norm_",
    "C": "scaler.scale(loss).backward()",
    "D": "scaler.step(optimizer)",
    "E": "scaler.unscale_(optimizer)",
}
ORDER = "CEBDA"
FORM = 'Five letters are wanted, each of A to E once, such as "ABCDE".'


def _misordered(answer):
    """What goes wrong first, if the calls run in this order."""
    at = {letter: place for place, letter in enumerate(answer)}
    if at["C"] > 0:
        return (
            f"Yours begins with {CALLS[answer[0]]}. At that moment the gradients of "
            "this step do not exist: backward makes them."
        )
    if at["D"] < at["B"]:
        return (
            "Yours clips after the step. The tables have moved already, by the "
            "gradient as it was."
        )
    if at["B"] < at["E"]:
        return (
            "Yours clips before unscale_ (M40). The norm it sees is 65536 times too "
            "large, so the clip shrinks every step, and most of it to nothing."
        )
    if at["E"] > at["D"]:
        return "Yours unscales after the step, when there is nothing left to do."
    return (
        "Yours calls update too early. It chooses the factor for the next step, from "
        "what this step has met; step still needs this one."
    )


def _incomplete(answer):
    """Which call is not there, if one of the five letters is missing."""
    (missing,) = set(ORDER) - set(answer)
    why = ""
    if missing == "E":
        why = (
            " Without it the clip sees a norm that is 65536 times too large (M40), and "
            "the tables hardly move."
        )
    return f"{missing} is missing, {CALLS[missing]}.{why} {FORM}"


def one_word(answer):
    """Five letters in a row, from "C E B", "c,e,b", "C, then E" or ["C", "E", "B"]."""
    if type(answer) is np.ndarray and answer.dtype.kind == "U" and answer.ndim == 1:
        answer = [str(part) for part in answer]
    if type(answer) is np.str_:
        answer = str(answer)
    if type(answer) in (list, tuple) and all(type(part) is str for part in answer):
        answer = " ".join(answer)
    if type(answer) is not str:
        return answer
    alone = re.findall(r"(?<![A-Za-z_])[A-Ea-e](?![A-Za-z_])", answer)
    if len(alone) >= 4:  # letters among numbers and words
        return "".join(alone)
    return "".join(c for c in answer if c.isalnum())


# What the laws ask: two rows with something to see, and one without.
MASK = np.array([[True, False, True], [False, False, False], [True, True, False]])
KEYS = (np.arange(48).reshape(3, 16) % 5 - 2).astype(np.float16)
SCORES = np.array([[3.0, -1.0, 7.0], [2.0, -9.0, 0.5], [-4.0, 1.0, 5.0]])


EXERCISES = (
    Exercise(
        name="init_for_entropy",
        lesson=9,
        minutes=7,
        solution=init_for_entropy,
        cases=init_cases,
        returns=(Part("std"),),
        family=INIT_FOR_ENTROPY,
        laws=(laws.share_is_used(), laws.wish_comes_true()),
        hints=(
            "Two steps back. From the share to the std of the scores, and from there "
            "to the std of the tables.",
            "The first step: share = e^(-std²/2). Take the logarithm of both sides. "
            "The second: the std of the scores is d_model times the square of the std "
            "of the tables.",
            "spread = np.sqrt(-2 * np.log(share)). Then solve d_model * std ** 2 = "
            "spread for std. You need d_k nowhere.",
        ),
        why=(
            "Every named scheme is one point on this line, and most of them choose it "
            "without saying so. d_k does not matter: the root has taken it out."
        ),
    ),
    Exercise(
        name="half_scores",
        lesson=9,
        minutes=7,
        solution=half_scores,
        cases=half_cases,
        returns=(Part("scores", "n_q n_k"),),
        family=HALF_SCORES,
        laws=(
            laws.hidden_is_minus_infinity(
                (np.eye(3, 16, dtype=np.float16), KEYS, MASK), at=2
            ),
            laws.divided_by_the_root(),
            laws.stays_half(),
        ),
        hints=(
            "Which number is the largest on the way, and can it be made smaller before "
            "it is stored?",
            "Divide q by the root of d_k before the product. For what is hidden there "
            "is one value that every float type has.",
            "q / q.shape[-1] ** 0.5 stays float16, which q / np.sqrt(...) does not. "
            "Then the product, then np.where with -np.inf.",
        ),
        why=(
            "Scale first, hide by -inf, and let the softmax deal with empty rows: "
            "nothing in it depends on the float type. A fill of -1e9 (M13) is an error "
            "in PyTorch's float16, and the lowest number of a type (M14) reads hidden "
            "keys wherever a row is empty."
        ),
    ),
    Exercise(
        name="capped_scores",
        lesson=9,
        minutes=4,
        solution=capped_scores,
        cases=capped_cases,
        returns=(Part("scores", "n_q n_k"),),
        family=CAPPED_SCORES,
        laws=(
            laws.hidden_is_minus_infinity((SCORES, MASK, 6.0), at=1),
            laws.within_the_cap(),
            laws.small_ones_stay(),
            laws.bent_like_tanh(),
        ),
        hints=(
            "Two steps, in the right order. What becomes of -inf in a tanh?",
            "First bend all scores, then write over those that are hidden.",
            "The formula stands under softcap; NumPy's tanh is np.tanh. np.where goes "
            "around it, so that it has the last word.",
        ),
        why=(
            "Capped after the mask, hidden keys come back with a score of -cap: with a "
            "cap of 50 nobody notices, with a small one the future leaks (M37)."
        ),
    ),
    ValueExercise(
        name="amp_order",
        lesson=9,
        minutes=4,
        right=ORDER,
        hints=(
            "Who makes the gradients, who changes them, who uses them?",
            "The clip compares the norm with 1. The gradients must have their true "
            "size by then.",
            "backward is first and update is last. Of the three between, the step "
            "comes after both others.",
        ),
        why=(
            "backward, unscale, clip, step, update. The article's two pieces of advice "
            "are right one by one; put together without unscale_ they all but stop the "
            "training (M40)."
        ),
        show=f'amp_order = "{ORDER}"',
        tidy=one_word,
        form=FORM,
        wrong=(
            *(
                Misconception("".join(order), _misordered(order))
                for order in permutations(ORDER)
                if "".join(order) != ORDER
            ),
            *(
                Misconception("".join(order), _incomplete(order))
                for order in permutations(ORDER, 4)
            ),
        ),
    ),
    Exercise(
        name="first_bad",
        lesson=9,
        minutes=6,
        solution=first_bad,
        cases=stage_cases,
        returns=(Part("number"),),
        family=FIRST_BAD,
        hints=(
            "np.isfinite is True for every number that is well. Go through the stages "
            "in order, and stop at the first that has one that is not.",
            "for i, (name, stage) in enumerate(stages.items()) gives number, name and "
            "array. In one stage, -inf is allowed: compare its name.",
            "~np.isfinite(stage) is what is broken; in the stage named scores, only "
            "what is not -np.inf either. The first stage with any such number is the "
            "answer, and its number comes from enumerate.",
        ),
        why=(
            "The output says that something is wrong, this says where. q, k or v: look "
            "at what came in. raw_scores: an overflow. scores: the mask. weights: an "
            "empty row. The article's advice, to look for weights near 0 or 1, tells "
            "nothing about any of them."
        ),
    ),
)
