# mypy: allow-untyped-defs, allow-untyped-calls
"""The exercises of lesson 17: checks that catch bugs they have not seen."""

import numpy as np

from attnlib.attention import scaled_dot_product
from attnlib.clinic import arena
from attnlib.exercises.exercise import HuntExercise, WitnessExercise


def mask_check(attention):
    """Find what is wrong with how an attention uses its mask.

    attention: (q, k, v, mask=None) -> out, (..., n_q, d_v)
    returns: True if it has a fault, False if it is right
    """
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(2, *size)) for size in ((4, 3), (7, 3), (7, 5)))
    mask = rng.random((2, 4, 7)) < 0.5
    mask[0, 1] = False
    right = scaled_dot_product(q, k, v, mask).out
    return not np.allclose(attention(q, k, v, mask), right, rtol=0, atol=1e-4)


def bug_bash(attention):
    """Find whatever is wrong with an attention.

    attention: (q, k, v, mask=None) -> out, (..., n_q, d_v)
    returns: True if it has a fault, False if it is right
    """
    rng = np.random.default_rng(0)
    sizes = [(4, 7, 3, 1), (13, 23, 9, 1), (1, 8, 2, 99), (6, 6, 5, 1)]
    for n_q, n_k, d_k, size in sizes:
        for shift in (0, 0, -30_000):
            q = rng.normal(size=(2, 3, n_q, d_k))
            k = rng.normal(size=(2, 3, n_k, d_k)) * size
            v = rng.normal(size=(2, 3, n_k, 11))
            q[..., 0], k[..., 0] = 1, k[..., 0] + shift
            some = rng.random((2, 1, n_q, n_k)) < 0.5
            some[0, :, -1] = some[1, :, :, :6] = False
            for mask in (None, some):
                before = q.copy(), k.copy(), v.copy()
                right = scaled_dot_product(q, k, v, mask)
                off = np.abs(attention(q, k, v, mask) - right.out).max()
                near = off < 1e-5 + 1e-6 * np.abs(right.raw_scores).max()
                if not near or not all(map(np.array_equal, before, (q, k, v))):
                    return True
    return False


EXERCISES = (
    HuntExercise(
        "mask_check",
        17,
        12,
        mask_check,
        lambda seed: arena.MASK_BUGS,
        (*arena.RIGHT, *arena.RIGHT_HIDDEN),
        1.0,
        (
            "One input can show all of them, if its mask is not simple: no triangle, "
            "no two rows alike, no two items alike.",
            "Draw the mask at random, for a batch of two, and close one row of it "
            "altogether. Let n_q and n_k differ.",
            "Compare with scaled_dot_product(q, k, v, mask).out by np.allclose, with "
            "rtol=0 and a small atol; True where they are not close.",
        ),
        "A random mask asks every question at once. A triangle, the usual test, is the "
        "same for all items, has no empty row, and hides keys in order.",
    ),
    WitnessExercise(
        "smallest_input",
        17,
        8,
        next(bug for bug in arena.SHOWN if bug.name == "one maximum for all rows"),
        4,
        (
            "With one query the bug cannot show: the largest of the row is the largest "
            "of all. What has to differ between two rows?",
            "One row must lie so far below the other that exp of the difference is "
            "rounded to 0. That happens beyond 745.",
            "One key and d_k = d_v = 1 are enough. Then a score is q times k, and the "
            "right output is v in both rows.",
        ),
        "Four numbers, and two of them matter: one row far below the other. A test "
        "with scores of one size, however many, never sees it.",
        "smallest_input = (np.array([[0.0], [-800.0]]), np.ones((1, 1)), "
        "np.ones((1, 1)))",
    ),
    HuntExercise(
        "bug_bash",
        17,
        25,
        bug_bash,
        arena.held_back,
        (*arena.RIGHT, *arena.RIGHT_HIDDEN),
        0.9,
        (
            "Begin with a list of inputs and one comparison with scaled_dot_product. "
            "Then ask of each law of the lesson which input it would add to the list.",
            "Inputs that matter: two batch axes with a mask for each item, one query "
            "alone, as many queries as keys, twenty keys and more, scores of -20 000, "
            "empty rows, a second call of the same shape with another mask.",
            "Loop over sizes, shifts and masks; draw all anew each time; compare with "
            "a tolerance that grows with the scores, about 1e-6 of the largest raw "
            "one; and look whether q, k and v are as they were.",
        ),
        "What catches bugs nobody has thought of is not one more law for each: it is "
        "many inputs that differ from each other in every way that attention allows.",
    ),
)
