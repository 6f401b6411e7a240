# mypy: allow-untyped-defs, allow-untyped-calls
"""The exercises of lesson 00: make one check pass, read one diagnosis."""

import numpy as np

from attnlib.clinic.families.steps import WEIGHTED_MEAN
from attnlib.exercises.exercise import (
    Case,
    Exercise,
    Misconception,
    Part,
    ValueExercise,
)


def weighted_mean(weights, values):
    """Mix values by weights that sum to one.

    weights: (n,)   values: (n,)   returns: one number
    """
    return np.sum(weights * values)


def weighted_mean_cases(rng):
    """Weights that differ, so that no two of them can be exchanged unseen."""

    def case(weights, scale):
        values = np.round(np.abs(rng.normal(size=len(weights))) * scale + scale, 1)
        values[-1] = -1.5  # a mean may mix values of both signs
        name = f"{len(weights)} values"
        return Case(name, (np.array(weights), values))

    return (
        Case("2 values", (np.array([0.75, 0.25]), np.array([4.0, 8.0]))),
        case([0.5, 0.2, 0.3], 3.0),
        case([0.1, 0.4, 0.2, 0.05, 0.25], 5.0),
        Case("1 value", (np.array([1.0]), np.array([6.5]))),
    )


_ROWS = (
    "These are what its two rows sum to, each alone. Asked are: all of them together, "
    "and what a single row should sum to."
)

EXERCISES = (
    Exercise(
        name="weighted_mean",
        lesson=0,
        minutes=3,
        solution=weighted_mean,
        cases=weighted_mean_cases,
        returns=(Part("the mean"),),
        family=WEIGHTED_MEAN,
        hints=(
            "With weights 0.75 and 0.25, three quarters of the result come from the "
            "first value. Work it out on paper for the values 4 and 8.",
            "NumPy multiplies two arrays of one shape number by number: * does it.",
            "One line: multiply the two arrays, and let np.sum add the products up.",
        ),
        why="This is all that attention does with its values: it mixes them by "
        "weights. The rest of the course is about where the weights come from.",
    ),
    ValueExercise(
        name="read_the_diagnosis",
        lesson=0,
        minutes=3,
        right=(1.0, 1.0),
        hints=(
            "Both numbers stand in the line that begins with: What gave it away.",
            "First number: what all weights sum to together. Second: what each row "
            "should sum to.",
            "All the weights share a single 1. Each row should have had such a sum of "
            "its own.",
        ),
        why="A check gives you a name for the mistake and a number to see it by. The "
        "number is yours to measure again after the repair.",
        wrong=(
            Misconception(
                (1.0, 2.0), "The table has 2 rows, but each has a sum of its own."
            ),
            Misconception(
                (2.0, 1.0),
                "That is how it should be: the right weights sum to 2 over 2 rows. "
                "What do those of sick_softmax sum to?",
            ),
            *(Misconception(rows, _ROWS) for rows in ((0.46, 0.54), (0.54, 0.46))),
            *(
                Misconception(
                    (1.0, row),
                    "The first number is right. The second is what a row of "
                    "sick_softmax sums to; asked is what it should sum to.",
                )
                for row in (0.46, 0.54)
            ),
        ),
        show="read_the_diagnosis = (1.0, 1.0)",
    ),
)
