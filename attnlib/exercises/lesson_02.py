# mypy: allow-untyped-defs, allow-untyped-calls
"""The exercises of lesson 02: why divide by the root of d_k?"""

from itertools import permutations

import numpy as np

from attnlib.clinic.case import Case
from attnlib.clinic.families.spread import ENTROPY, PREDICTED_STD
from attnlib.exercises.exercise import (
    Exercise,
    Law,
    Misconception,
    Part,
    ValueExercise,
)
from attnlib.exercises.laws import invariant
from attnlib.shapes import check_shapes


def predicted_std(d_k, std_q, std_k):
    """Predict the standard deviation of the raw scores q @ k.T.

    d_k: how many numbers a query and a key have
    std_q, std_k: the standard deviation of each number in q and in k
    returns: one number
    """
    return std_q * std_k * np.sqrt(d_k)


def entropy(weights):
    """Measure how widely each row of weights is spread, in nats.

    weights: (..., n_k), rows that sum to one; a weight of 0 counts 0
    returns: (...), one number for each row
    """
    logs = np.log(np.where(weights > 0, weights, 1))
    return -(weights * logs).sum(axis=-1)


# What a head divides by, from d_k, d_model and n_k. In the order of the answer.
DIVISORS = {
    "nothing": lambda d_k, d_model, n_k: 1.0,
    "√d_k": lambda d_k, d_model, n_k: d_k**0.5,
    "√d_model": lambda d_k, d_model, n_k: d_model**0.5,
    "d_k": lambda d_k, d_model, n_k: float(d_k),
    "√n_k": lambda d_k, d_model, n_k: n_k**0.5,
}
LETTERS = "BEACD"  # the head that divides by the first, the second, ...
SIZES = {"d_k": 16, "d_model": 96, "n_k": 50}  # at these all five differ


def score_with(head, x, y, W_q, W_k):
    """Let one of the five heads, "A" to "E", compute its scores.

    x: (n_q, d_model)   y: (n_k, d_model)   W_q, W_k: (d_model, d_k)
    returns: (n_q, n_k), the scores that go into softmax
    """
    if head not in set(LETTERS):
        raise ValueError(f"There are five heads, A to E, but you asked for {head!r}.")
    check_shapes(
        {
            "x": (x, "n_q d_model"),
            "y": (y, "n_k d_model"),
            "W_q": (W_q, "d_model d_k"),
            "W_k": (W_k, "d_model d_k"),
        }
    )
    divisor = list(DIVISORS.values())[LETTERS.index(head)]
    d_model, d_k = np.shape(W_q)
    return (x @ W_q) @ (y @ W_k).T / divisor(d_k, d_model, len(y))


def _std(name):
    return SIZES["d_k"] ** 0.5 / DIVISORS[name](**SIZES)


def _misread(answer):
    """What to say to an order of letters: the first place where it is wrong."""
    claims = zip(DIVISORS, LETTERS, answer, strict=True)
    claimed, letter = next((n, mine) for n, good, mine in claims if mine != good)
    really = list(DIVISORS)[LETTERS.index(letter)]
    sizes = ", ".join(f"{name}={size}" for name, size in SIZES.items())
    by = "by nothing" if claimed == "nothing" else f"by {claimed}"
    return (
        f"You say that {letter} divides {by}. With {sizes}, and q and k of variance 1, "
        f"such a head has scores of std {_std(claimed):.2f}; "
        f"those of {letter} have {_std(really):.2f}."
    )


def one_word(answer):
    """Five letters in a row, from "B E A", "b,e,a" or ["B", "E", "A"]."""
    if type(answer) in (list, tuple) and all(type(part) is str for part in answer):
        answer = "".join(answer)
    return "".join(c for c in answer if c.isalnum()) if type(answer) is str else answer


def std_cases(rng):
    """For `predicted_std(d_k, std_q, std_k)`."""
    widths = rng.permutation([3, 10, 24, 40])
    stds = np.round(rng.uniform(0.3, 3.0, size=(4, 2)), 2)
    named = [(16, 0.5, 3.0), *zip(widths.tolist(), *stds.T.tolist(), strict=True)]
    return tuple(Case(f"d_k={d}, std_q={q}, std_k={k}", (d, q, k)) for d, q, k in named)


def measured_std(call):
    """A law: the answer is computed from the three numbers, and not measured."""
    close = ""
    for args in ((16, 0.5, 3.0), (400, 2.0, 0.7)):
        first, second = call(*args), call(*args)
        if first is None or second is None or first[0].shape or second[0].shape:
            return None
        mine, again, good = float(first[0]), float(second[0]), predicted_std(*args)
        given = "d_k={}, std_q={}, std_k={}".format(*args)
        if mine != again:
            return (
                f"Called twice with {given}, yours gives {mine:.3f} and {again:.3f}. "
                "That is a measurement, to compare with; a formula is meant."
            )
        if not abs(mine - good) < 0.1 * good:
            return None
        if abs(mine - good) > 2e-4 * good:
            close = (
                f"With {given} yours gives {mine:.3f}, close to {good:.3f}. "
                "If you measured it: a formula is meant, and has no error."
            )
    return close or None


def small_weights(call):
    """A law: where no weight is small all is right, and a small one counts as well."""
    plain, tiny = np.array([0.5, 0.3, 0.2]), np.array([0.998, *[1e-5] * 200])
    results = call(plain), call(tiny)
    if None in results or any(r[0].shape for r in results):
        return None
    apart = [
        abs(float(r[0]) - entropy(w))
        for r, w in zip(results, (plain, tiny), strict=True)
    ]
    if apart[0] > 5e-4 or apart[1] <= 5e-4:
        return None
    return (
        f"For a weight of 0.998 and 200 of 0.00001 the entropy is {entropy(tiny):.4f}; "
        f"yours is {float(results[1][0]):.4f}. Only 0 needs help with its logarithm: a "
        "clip or a large addition changes small weights as well."
    )


def weight_cases(rng):
    """For `entropy(weights)`."""

    def weights(*shape):
        parts = rng.integers(1, 10, size=shape).astype(float)
        return parts / parts.sum(axis=-1, keepdims=True)

    zeros = weights(4, 5)
    zeros[0, 2:] = zeros[2, :3] = 0
    zeros = zeros / zeros.sum(axis=-1, keepdims=True)
    sharp = np.array([[0.999, 0.001, *[0.0] * 10], [0.0, 9e-5, *[1e-5] * 10]])
    sharp[1, 0] = 1 - sharp[1].sum()
    return (
        Case("one row of 3 weights", (weights(3),)),
        Case("2 rows of 4 weights", (weights(2, 4),)),
        Case("weights of 0", (zeros,)),
        Case("a batch of 2 with 3 rows of 5 weights", (weights(2, 3, 5),)),
        Case("two rows, saturated", (sharp,)),
        Case("all weight on one key", (np.eye(4)[[2, 0, 3]],)),
    )


_ROW = np.array([[0.5, 0.3, 0.2, 0.0], [0.1, 0.1, 0.7, 0.1]])

EXERCISES = (
    Exercise(
        name="predicted_std",
        lesson=2,
        minutes=5,
        solution=predicted_std,
        cases=std_cases,
        returns=(Part("std"),),
        family=PREDICTED_STD,
        laws=(Law("the answer is a formula", measured_std),),
        hints=(
            "Go through the four lines of the lesson again, and put std_q and std_k "
            "where it says 1.",
            "The variance of one product is the variance of q times that of k. "
            "Variances add, d_k of them. At the end you want a std, not a variance.",
            "The variance of the score is d_k times std_q squared times std_k squared. "
            "Take the root of each factor.",
        ),
        why=(
            "Now you can say before a run whether a start is healthy: std_q and std_k "
            "follow from how W_q and W_k are drawn, and a std of the scaled scores far "
            "from 1 means weights that are flat or saturated from the first step."
        ),
    ),
    ValueExercise(
        name="five_divisors",
        lesson=2,
        minutes=8,
        right=LETTERS,
        hints=(
            "With d_model = d_k = n_k three divisors are equal. Let all sizes differ, "
            "and keep q and k at variance 1: divide W_q and W_k by the root of "
            "d_model.",
            "Change one size at a time. A head whose std follows d_model divides by "
            "something with d_model in it; more rows in y change only one of the five.",
            "Take 50 rows in y, d_model = 96, d_k = 16. The raw scores have std 4. "
            "Divide 4 by each of the five candidates, and compare with what you "
            "measure.",
        ),
        why=(
            "The right divisor is the one that gives std 1 at every size. Nothing "
            "(M01), √d_model (M02) and d_k (M03) are among the commonest mistakes in "
            "public code, and all of them run."
        ),
        show=f'five_divisors = "{LETTERS}"',
        tidy=one_word,
        form='Five letters are wanted, each of A to E once, such as "ABCDE".',
        wrong=tuple(
            Misconception("".join(order), _misread(order))
            for order in permutations(LETTERS)
            if "".join(order) != LETTERS
        ),
    ),
    Exercise(
        name="entropy",
        lesson=2,
        minutes=5,
        solution=entropy,
        cases=weight_cases,
        returns=(Part("entropy", ""),),
        family=ENTROPY,
        laws=(
            Law("small weights count", small_weights),
            invariant(
                "order",
                (_ROW,),
                (_ROW[:, [2, 0, 3, 1]],),
                "The entropy of a row does not depend on the order of its weights.",
            ),
        ),
        hints=(
            "np.log is the natural logarithm. What is np.log(0), and what is 0 times "
            "that?",
            "Keep np.log away from the zeros: np.where can put another number in "
            "their place. Which number has the logarithm 0?",
            "Sum along the last axis, axis=-1, and do not forget the minus. "
            "np.where(weights > 0, weights, 1) is safe for np.log.",
        ),
        why=(
            "One number a query, and it tells more than a picture of the weights: "
            "ln n is a plain mean of n keys, 0 is a single one. When a large model "
            "falls ill in training, this is one of the first numbers to look at."
        ),
    ),
)
