# mypy: allow-untyped-defs, allow-untyped-calls
"""The exercises of lesson 07: how do words look at a picture?"""

import numpy as np

from attnlib import attention
from attnlib.clinic import probes
from attnlib.clinic.case import Case
from attnlib.clinic.families.crossing import CROSS_ATTENTION
from attnlib.clinic.families.pictures import PATCHES
from attnlib.exercises.exercise import Exercise, Misconception, Part, ValueExercise
from attnlib.exercises.laws import batch_independent, invariant, rows_sum_to_one
from attnlib.exercises.read import plain


def cross_attention(x, memory, W_q, W_k, W_v, mask=None):
    """Let the tokens of x look at a memory, and mix what is found there.

    x: (..., n_q, d_model)   memory: (..., n_k, d_memory)
    W_q: (d_model, d_k)   W_k: (d_memory, d_k)   W_v: (d_memory, d_v)
    mask: which parts of the memory are there, True = may look; broadcasts to
        the scores, (..., n_q, n_k); None hides nothing
    returns: weights (..., n_q, n_k), out (..., n_q, d_v); zeros for a query
        that may look at nothing
    """
    q, k, v = x @ W_q, memory @ W_k, memory @ W_v
    found = attention.scaled_dot_product(q, k, v, mask)
    return found.weights, found.out


def patches(image, size):
    """Cut a picture into square patches, one row of numbers for each.

    image: (height, width), both multiples of size; they may differ
    size: pixels along one side of a patch
    returns: (n_patches, size * size); patches as one reads them, left to
        right, then the next row of patches; the pixels of each likewise
    """
    height, width = image.shape
    cut = image.reshape(height // size, size, width // size, size)
    return np.swapaxes(cut, 1, 2).reshape(-1, size * size)


def as_pair(answer):
    """What np.argwhere or np.nonzero gives for one place is as good as a tuple."""
    nested = (tuple, list, np.ndarray)
    if type(answer) is tuple and not any(type(part) in nested for part in answer):
        return answer
    array = plain(answer)
    if isinstance(array, str) or array.size != 2 or array.dtype.kind == "b":
        return answer
    return tuple(array.ravel().tolist())


def crossing_cases(rng):
    """All sizes differ; then some agree, so that what would only raise runs."""

    def args(n_q, n_k, d_model, d_memory, d_k, d_v, *batch):
        return (
            probes.table(rng, *batch, n_q, d_model),
            probes.table(rng, *batch, n_k, d_memory),
            probes.table(rng, d_model, d_k, spread=0.5),
            probes.table(rng, d_memory, d_k, spread=0.5),
            probes.table(rng, d_memory, d_v, spread=0.5),
        )

    def case(name, *sizes, mask=None):
        names = ("n_q", "n_k", "d_model", "d_memory", "d_k", "d_v")
        told = ", ".join(f"{n}={s}" for n, s in zip(names, sizes, strict=False))
        given = () if mask is None else (np.array(mask),)
        return Case(f"{name} ({told})", (*args(*sizes), *given))

    two = np.array([[[True] * 4], [[True, True, False, False]]])
    three = np.array([[[True, False, True]], [[True, True, False]], [[True] * 3]])
    none = np.array([[[True, True, False]], [[False] * 3]])
    own = ~np.eye(3, 4, dtype=bool)
    scenes = np.arange(4) < np.array([[4, 2, 3], [1, 4, 2]])[..., None, None]
    # A constant of -40000 in every score: the weights stay, weak fills are above it.
    seen, eye = np.array([True, False, True, True]), np.eye(16)
    x, memory = probes.far_apart(rng, 2, 4, gap=1024)
    x[:, 0], memory[:, 0] = 200.0, -800.0
    far = (x, memory, eye, eye, probes.table(rng, 16, 3), seen)
    # A hidden key far above the others: a softmax before the mask leaves 0 / 0.
    above = (*args(2, 4, 5, 6, 7, 3), seen)
    above[0][:, 0], above[1][:, 0] = 64.0, [0.0, 80.0, 0.0, 0.0]
    above[2][0] = above[3][0] = above[3][:, 0] = 0.0
    above[2][0, 0] = above[3][0, 0] = 1.0  # the first number of q meets that of k
    return (
        case("2 words, 3 patches", 2, 3, 4, 5, 6, 7),
        case("as wide as each other", 3, 5, 4, 4, 2, 6),
        case("as many as each other", 4, 4, 5, 5, 3, 3),
        case("all widths equal", 2, 4, 3, 3, 3, 3),
        case("an absent patch", 2, 4, 5, 3, 6, 7, mask=[True, True, False, True]),
        case(
            "as many, the last one absent",
            *(3, 3, 5, 4, 2, 6),
            mask=[True, True, False],
        ),
        Case("two pictures, one half as large", (*args(3, 4, 5, 6, 2, 7, 2), two)),
        Case("three pictures, three words", (*args(3, 3, 5, 4, 2, 6, 3), three)),
        Case(
            "two pictures, one with nothing on it", (*args(2, 3, 4, 6, 5, 7, 2), none)
        ),
        Case("a mask for each word, two pictures", (*args(3, 4, 6, 2, 5, 7, 2), own)),
        case("nothing on the picture", 2, 3, 6, 4, 5, 7, mask=[False] * 3),
        Case("2 scenes of 3 pictures", (*args(5, 4, 2, 6, 7, 3, 2, 3), scenes)),
        Case("scores far below zero", far),
        Case("a hidden score far above the others", above),
    )


def patches_cases(rng):
    """No two pixels are equal, so that each can be followed, and none is whole."""

    def picture(height, width):
        numbers = rng.permutation(height * width) + 0.5
        return numbers.reshape(height, width)

    return (
        Case("4 x 6 pixels, size 2", (picture(4, 6), 2)),
        Case("6 x 4 pixels, size 2", (picture(6, 4), 2)),
        Case("6 x 9 pixels, size 3", (picture(6, 9), 3)),
        Case("8 x 8 pixels, size 4", (picture(8, 8), 4)),
        Case("9 x 6 pixels, size 3", (picture(9, 6), 3)),
        Case("3 x 3 pixels, size 3", (picture(3, 3), 3)),
        Case("3 x 4 pixels, size 1", (picture(3, 4), 1)),
    )


_rng = np.random.default_rng(70)
_X, _MEMORY = probes.table(_rng, 2, 3, 5), probes.table(_rng, 2, 4, 6)
_W = tuple(probes.table(_rng, *s, spread=0.5) for s in ((5, 2), (6, 2), (6, 7)))
_SEEN = np.array([[[True, True, False, True]], [[True, False, True, True]]])
_OTHER = np.where(np.swapaxes(_SEEN, 1, 2), _MEMORY, 3.0 - _MEMORY)
_ORDER = [2, 0, 3, 1]
_PICTURE = np.arange(24.0).reshape(4, 6)
# The heads with all ten words inside: before the pause is put in, and with it.
_TEN, _TEN_PAUSED = np.array([[1, 5], [2, 1], [3, 5]]), np.array([[2, 1], [3, 3]])

EXERCISES = (
    Exercise(
        "cross_attention",
        7,
        8,
        cross_attention,
        crossing_cases,
        (Part("weights", "... n_q n_k"), Part("out", "... n_q d_v")),
        CROSS_ATTENTION,
        (
            "Three products, then attention. For each table, ask which of the two "
            "sources is as wide as it is tall.",
            "The queries are made from x, the keys and the values from memory. The "
            "mask hides keys: it goes where the scores are, before the softmax.",
            "scaled_dot_product takes q, k, v and the mask, in this order, and has "
            "weights and out in its result.",
        ),
        "x decides the number of rows, memory the number of columns, and neither the "
        "numbers nor the widths have to agree. What is said comes from memory alone.",
        (
            rows_sum_to_one((_X, _MEMORY, *_W)),
            batch_independent((_X, _MEMORY, *_W), (0, 1)),
            invariant(
                "a part that is not there does not matter",
                (_X, _MEMORY, *_W, _SEEN),
                (_X, _OTHER, *_W, _SEEN),
                "The hidden parts of the memory were changed, and out should not move.",
                part=1,
            ),
            invariant(
                "the memory in another order gives the same",
                (_X, _MEMORY, *_W),
                (_X, _MEMORY[:, _ORDER], *_W),
                "The same patches in another order give another result.",
                part=1,
            ),
        ),
        "W_q is as tall as x is wide, W_k and W_v as memory is.",
    ),
    Exercise(
        "patches",
        7,
        8,
        patches,
        patches_cases,
        (Part("patches", "n_patches pixels"),),
        PATCHES,
        (
            "As with the heads of lesson 04: first cut each axis in two, then move an "
            "axis, then join.",
            "Cut to four axes: row of patches, row inside, column of patches, column "
            "inside. Both inner ones have to come last.",
            "reshape(height // size, size, width // size, size); then swap the two "
            "axes in the middle; then two axes are left, the last of size * size.",
        ),
        "Every model that reads pictures as tokens begins like this. A missing swap "
        "gives stripes of the right shape, and training only gets worse, silently.",
        (
            invariant(
                "a patch does not depend on the others",
                (_PICTURE, 2),
                (_PICTURE[:2, :2], 2),
                "Patch 0 of a picture is not patch 0 of its upper left corner.",
                lambda rows: rows[:1],
            ),
        ),
        "Height, width and size differ from case to case.",
    ),
    ValueExercise(
        name="best_aligned_head",
        lesson=7,
        minutes=6,
        right=(2, 1),
        hints=(
            "Use inside on best as you saw it, then on best_paused with the begins and "
            "ends of the paused sound. Both give a table of layers and heads.",
            "Words from number 4 on begin and end later by the pause. Word 3, just "
            "before it, ends where it ended.",
            "Add the two tables; np.argwhere(total == total.max()) gives layer and "
            "head of the largest.",
        ),
        why=(
            "20 of 20. Three heads reach 10 on the sound as it is, and the straight "
            "line 8; with a pause it drops to 3, and they lose a word or none."
        ),
        show=(
            "# The largest of inside(best, begins, ends) + inside(\n"
            "#     best_paused, begins_paused, ends_paused): 20 of 20.\n"
            "best_aligned_head = (2, 1)"
        ),
        tidy=as_pair,
        form="A layer and a head are wanted, both counted from 0, such as (0, 3).",
        wrong=(
            Misconception(
                (3, 3),
                "Head 3.3 comes nearest to the middle of the words, and has the most "
                "weight on the sound. But it misses one word of the 20: count words.",
            ),
            Misconception(
                (1, 5),
                "Head 1.5 has 10 words inside before the pause is put in, as two more "
                "have. The pause costs it a word.",
            ),
            Misconception(
                (3, 5),
                "Head 3.5 has 10 words inside before the pause is put in, as two more "
                "have. The pause costs it a word.",
            ),
            Misconception(
                (1, 2),
                "Is that (head, layer)? First the layer. (Head 1.2 itself looks at the "
                "word before: one word inside.)",
            ),
            Misconception(
                (0, 4),
                "Head 0.4 goes steadily from left to right, at the word before the one "
                "it writes: one word inside. Order is not alignment.",
            ),
            Misconception(
                13,
                "13 counts through all 24 heads. np.unravel_index(13, (4, 6)) makes a "
                "layer and a head of it.",
            ),
            Misconception(
                11,
                "11 counts through all 24 heads, and is the first of three with 10 "
                "words before the pause is put in. Add the words with the pause.",
            ),
            *(
                Misconception(
                    table,
                    "Three heads have 10 words inside before the pause is put in. Add "
                    "what each has with the pause: then one is left.",
                )
                for table in (_TEN, _TEN.T)
            ),
            *(
                Misconception(
                    table,
                    "Two heads have 10 words inside with the pause. Add what each has "
                    "without it: then one is left.",
                )
                for table in (_TEN_PAUSED, _TEN_PAUSED.T)
            ),
            Misconception(
                10,
                "10 is how many words it has inside in one recording. Wanted is which "
                "head it is.",
            ),
            Misconception(
                20, "20 is how many words it has inside. Wanted is which head it is."
            ),
            Misconception(
                (1, 4), "That is a head with no word inside: the smallest, not largest."
            ),
            Misconception((3, 2), "Counted from 1? Layers and heads count from 0."),
            Misconception(2.1, "Give layer and head as a tuple, not as one number."),
        ),
    ),
)
