# mypy: allow-untyped-defs, allow-untyped-calls
"""The exercises of lesson 10: what is wrong with this model?"""

import numpy as np

from attnlib import diagnostics
from attnlib.clinic.families.monitors import HEAD_LOUDNESS, KEYS_USED
from attnlib.clinic.families.moves import MOVES_EARLIER
from attnlib.clinic.probes_monitors import leak_cases, mixed_cases, weight_cases
from attnlib.exercises import laws_monitors as laws
from attnlib.exercises.exercise import (
    Exercise,
    Misconception,
    Part,
    ValueExercise,
)


def head_loudness(mixed):
    """Measure how loud each head is.

    mixed: (batch, n_heads, n_q, d_v), what the heads mix, not merged yet
    returns: (n_heads,), the root mean square of all numbers of a head
    """
    return np.sqrt((mixed**2).mean(axis=(0, 2, 3)))


def keys_used(weights):
    """Say how many keys the queries of each head use.

    weights: (batch, n_heads, n_q, n_k); empty rows are zeros throughout
    returns: (n_heads,), e to the mean entropy in nats of all rows of all texts
        that are not empty
    """
    filled = weights.any(axis=-1)
    totals = diagnostics.entropy(weights).sum(axis=(0, 2))
    return np.exp(totals / filled.sum(axis=(0, 2)))


def moves_earlier(attend, x):
    """Measure how far outputs move when a later token changes.

    attend: a function from x to out, (n, d_out)   x: (n, d_model)
    returns: one number. Change each token in turn, to its negative, and
        compare the outputs that stand before it with what they were. The
        largest move of any of their numbers, up or down, is the result.
    """
    before, most = attend(x), 0.0
    for j in range(1, len(x)):
        other = x.copy()
        other[j] = -x[j]
        moved = np.abs(attend(other) - before)[:j]
        most = max(most, moved.max())
    return most


NAMES = ("healthy", "leak", "NaN", "one-hot", "dead head", "diluted")
RIGHT = {
    "P": "healthy",
    "Q": "leak",
    "R": "one-hot",
    "S": "dead head",
    "T": "diluted",
    "U": "NaN",
}
FORM = (
    'Six letters with six names are wanted, such as {"P": "leak", "Q": "NaN", ...}; '
    "the names are " + ", ".join(NAMES) + "."
)
# What people mistake for what, and the number that tells them apart.
_TOLD = (
    (
        {"P": "one-hot"},
        "P begins with few keys, and with a low loss: it was trained before. A head "
        "that has learned where to look is no patient.",
    ),
    (
        {"P": "one-hot", "R": "healthy"},
        "P and R both begin with few keys. One of them has a low loss and goes on "
        "falling, so it knows why it looks there.",
    ),
    (
        {"P": "leak"},
        "P has a low loss, but never one below the least honest loss, the dotted line.",
    ),
    (
        {"P": "leak", "Q": "healthy"},
        "P has a low loss at once, Q a lower one in the end. Which of them pays less "
        "than anyone honestly can?",
    ),
    (
        {"Q": "diluted", "T": "leak"},
        "Q and T both use more keys than even weights would. Which of them ends below "
        "the least honest loss?",
    ),
    (
        {"Q": "diluted"},
        "Q does use too many keys at first. But fillers do not tell it the answer, and "
        "it ends below the least honest loss.",
    ),
    (
        {"T": "leak"},
        "T uses more keys than even weights would, so it looks where it must not. But "
        "its loss stays above the least honest one: what it sees is not the answer.",
    ),
    (
        {"T": "healthy"},
        "T has a good loss. But at step 0 it uses more keys than even weights over all "
        "that it may look at.",
    ),
    (
        {"S": "healthy"},
        "S learns nearly as well as a healthy one. Look at the loudness of its heads.",
    ),
    (
        {"U": "healthy"},
        "U begins well. How does it end?",
    ),
)


def tidy_names(answer):
    """Names in other spellings: with a hyphen or not, short forms, a NaN itself."""
    if type(answer) is not dict:
        return answer
    short = {
        "nan": "NaN",
        "onehot": "one-hot",
        "dead": "dead head",
        "deadhead": "dead head",
        "silenthead": "dead head",
        "dilution": "diluted",
        "leaky": "leak",
    }

    def one(name):
        if isinstance(name, float) and name != name:
            return "NaN"
        if type(name) not in (str, np.str_):
            return name
        bare = name.casefold().strip().removeprefix("a ").removeprefix("an ")
        key = "".join(c for c in bare if c.isalpha())
        return short.get(key, key)

    def letter(key):
        return key.upper().removeprefix("PATIENT").strip() if type(key) is str else key

    return {letter(key): one(name) for key, name in answer.items()}


EXERCISES = (
    ValueExercise(
        name="diagnoses",
        lesson=10,
        minutes=10,
        right=RIGHT,
        hints=(
            "Begin with what cannot be two things: a loss below the dotted line, a "
            "loudness of 0, NaN. Each illness comes once.",
            "Compare the keys at step 0 with the dotted line, and with 1. Above the "
            "line: it looks where it must not, and the end of its loss says whether "
            "it saw the answer.",
            "Two begin with few keys. The one that has learned where to look has a "
            "low loss from the first step.",
        ),
        why=(
            "Only P was hard: few keys, many rows above 0.99, and healthy, for it had "
            "learned to look so before its chart began. R has the same keys and has "
            "learned nothing. U shows what a rare text does: nothing was wrong until "
            "the first one with fillers came, at step 39."
        ),
        show=(
            'diagnoses = {"P": "healthy", "Q": "leak", "R": "one-hot",\n'
            '             "S": "dead head", "T": "diluted", "U": "NaN"}'
        ),
        tidy=tidy_names,
        form=FORM,
        names=NAMES,
        wrong=tuple(Misconception(RIGHT | swap, said) for swap, said in _TOLD)
        + tuple(
            Misconception(
                RIGHT | {a: RIGHT[b], b: RIGHT[a]},
                f"Two of the six are exchanged, {a} and {b}. Look at them once more, "
                "at step 0 and at step 90.",
            )
            for i, a in enumerate(RIGHT)
            for b in list(RIGHT)[i + 1 :]
            if (a, b) not in (("P", "Q"), ("P", "R"), ("Q", "T"))
        ),
    ),
    Exercise(
        name="head_loudness",
        lesson=10,
        minutes=5,
        solution=head_loudness,
        cases=mixed_cases,
        returns=(Part("loudness", "n_heads"),),
        family=HEAD_LOUDNESS,
        laws=(laws.twice_as_loud(), laws.same_twice()),
        hints=(
            "Read the name backwards: square, then mean, then root.",
            "The mean is taken over texts, tokens and features; the heads stay. axis= "
            "takes several numbers at once, in brackets.",
            "(mixed ** 2).mean(axis=(0, 2, 3)), and the root of that.",
        ),
        why=(
            "The article's monitor reads output[:, i] after the merge, and that is "
            "token i: four numbers that look like heads, and a dead head in none of "
            "them. Yours reads the axis of the heads, and does not grow with the batch."
        ),
    ),
    Exercise(
        name="keys_used",
        lesson=10,
        minutes=7,
        solution=keys_used,
        cases=weight_cases,
        returns=(Part("keys", "n_heads"),),
        family=KEYS_USED,
        laws=(laws.an_empty_text_changes_nothing(),),
        hints=(
            "Three steps: the entropy of each row; their mean, for each head; e to it.",
            "diagnostics.entropy gives (batch, n_heads, n_q), with 0 for empty rows. "
            "Sum them up for each head, and divide by the number of rows that are not "
            "empty.",
            "filled = weights.any(axis=-1) is True for rows with any weight. Sum both, "
            "the entropies and filled, over axis=(0, 2).",
        ),
        why=(
            "Measured first, averaged after: a one-hot head stays a one-hot head. And "
            "fillers no longer make every head look sick, the more of them there are "
            "in a batch."
        ),
    ),
    Exercise(
        name="moves_earlier",
        lesson=10,
        minutes=8,
        solution=moves_earlier,
        cases=leak_cases,
        returns=(Part("move"),),
        family=MOVES_EARLIER,
        laws=(laws.causal_is_zero(),),
        hints=(
            "The test of patient D, for each token in turn.",
            "Ask once for the outputs as they are. Then for each j: a copy of x with "
            "row j turned, its outputs, and the change of those before j.",
            "np.abs(attend(other) - before)[:j].max() for j from 1 on, and the largest "
            "of these numbers.",
        ),
        why=(
            "It needs no source code, no mask and no weights, so it works on anything "
            "that maps tokens to outputs. A number above rounding is a leak; a loss "
            "that is too good is only a suspicion."
        ),
    ),
)
