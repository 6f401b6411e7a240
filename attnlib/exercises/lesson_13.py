# mypy: allow-untyped-defs, allow-untyped-calls
"""The exercises of lesson 13: cheaper patterns."""

import numpy as np

from attnlib import attention, cost
from attnlib.clinic.families.banded import WINDOW_ATTENTION
from attnlib.clinic.families.two_levels import TWO_LEVELS
from attnlib.clinic.families.window_reach import OLDEST_TOKEN
from attnlib.clinic.probes_patterns import (
    oldest_token_cases,
    two_levels_cases,
    window_attention_cases,
)
from attnlib.exercises import growth
from attnlib.exercises.exercise import Exercise, Misconception, Part, ValueExercise


def oldest_token(position, n_layers, width):
    """Find the oldest token that can change the output at a position.

    position: where the output stands, counted from 0
    n_layers: how many layers of attention there are
    width: how many keys a query sees in a layer: its own, and width - 1 before
    returns: the position of the oldest token, a whole number, 0 or more
    """
    return max(0, position - n_layers * (width - 1))


def window_attention(q, k, v, width):
    """Attend in a causal window, and compute nothing outside of it.

    q, k: (n, d_k)   v: (n, d_v)
    width: how many keys a query sees: its own, and the width - 1 before it,
        as far as there are; from 1 to n
    returns: (n, d_v)
    Scores are divided by the root of d_k. Twice the tokens may take twice the
    room and the work, no more: no table of n x n, nor its rows one by one.
    """
    near = np.arange(len(q))[:, None] - np.arange(width)
    scores = (q[:, None] * k[near]).sum(axis=-1) / q.shape[1] ** 0.5
    weights = attention.softmax(np.where(near >= 0, scores, -np.inf))
    return (weights[:, :, None] * v[near]).sum(axis=1)


def two_levels(x, width):
    """Attend inside pieces, then from every token to the means of the pieces.

    x: (n, d), queries, keys and values at once: nothing is projected
    width: how many tokens a piece holds; the last piece may hold fewer
    returns: local + far, (n, d)
        local: each piece attends to itself
        means: of each piece of local, one row
        far: local attends to the means, which are keys and values
    Scores are divided by the root of d, on both levels. Nothing is hidden.
    """
    local = np.zeros(x.shape)
    rows = []
    for start in range(0, len(x), width):
        piece = x[start : start + width]
        found = attention.scaled_dot_product(piece, piece, piece).out
        local[start : start + width] = found
        rows.append(found.mean(axis=0))
    means = np.stack(rows)
    return local + attention.scaled_dot_product(local, means, means).out


_N, _SIDE, _BLOCK = 10_000, 128, 64
_WINDOW = cost.allowed_pairs(_N, left=_SIDE, right=_SIDE)  # 2 553 488
_GLOBAL = _WINDOW + 2 * (_N - _SIDE - 1)  # 2 573 230
_PAIRS = {
    "full": _N * _N,
    "window": _WINDOW,
    "window and global": _GLOBAL,
    "pooled": _N * (_N // 8),
    "linear": 0,
}
_RIGHT = {
    "contracts": "full",
    "log": "window",
    "search": "window and global",
    "sensor": "linear",
}
_REASONS = {
    ("contracts", "window"): "In {c} the answers must stay as they are. A window is "
    "another function, and this model was not trained with it.",
    ("contracts", "window and global"): "In {c} the answers must stay as they are. "
    "Leaving out pairs makes another function.",
    ("contracts", "pooled"): "In {c} the answers must stay as they are. A mean of 8 "
    "keys is no key of this model.",
    ("contracts", "linear"): "In {c} the answers must stay as they are. Linear "
    "attention has no softmax, and needs a training of its own.",
    ("log", "full"): "{c} may take 3 million pairs, and all are 100 million.",
    ("log", "window and global"): "It would do, but {c} asks for the fewest pairs. 40 "
    "layers of 128 reach 5120 tokens back: is more needed?",
    ("log", "pooled"): "{c} may take 3 million pairs. Pooling by 8 leaves 12.5 "
    "million: an eighth of n squared is still n squared.",
    ("log", "linear"): "{c} has to tell near tokens apart one by one. Sums over all "
    "keys blur many of them.",
    ("search", "full"): "{c} may take 3 million pairs, and all are 100 million.",
    ("search", "window"): "In {c} there are 2 layers. Two windows reach 256 tokens, "
    "and the needle may lie 9999 away.",
    ("search", "pooled"): "{c} may take 3 million pairs. Pooling by 8 leaves 12.5 "
    "million.",
    ("search", "linear"): "{c} has to tell near tokens apart one by one. Sums over "
    "all keys blur many of them.",
    ("sensor", "full"): "{c} must keep no more for a longer text. All keys are more "
    "with each token.",
    ("sensor", "window"): "A window keeps a fixed number of keys, but {c} wants all of "
    "the past to count, and one layer sees 128 tokens of it.",
    ("sensor", "window and global"): "{c} is causal, reads on, and has one layer. A "
    "global token at the start cannot see what comes later.",
    ("sensor", "pooled"): "{c} must keep no more for a longer text. The means are more "
    "with each 8 tokens.",
}
_COUNTS = {  # counts that come of a slip, for the right choice
    "contracts": (
        (_N * (_N + 1) // 2, "Contracts are read in both directions: all n² pairs."),
        (0, "In tiles no score is kept, but each one is computed (lesson 12)."),
    ),
    "log": (
        (_N * 257, "For the log, the ends are missing: the first token has no left."),
        (_N * 256, "A window of 128 on each side has 257 keys, and fewer at the ends."),
        (
            cost.allowed_pairs(_N, left=_SIDE, right=0),
            "The log's window is open to both sides.",
        ),
        (
            cost.allowed_pairs(_N, left=256, right=0),
            "The log's window is open to both sides, 128 each.",
        ),
    ),
    "search": (
        (_WINDOW, "In the search, the pairs of the global token are missing."),
        (
            _WINDOW + _N - _SIDE - 1,
            "The global token of the search sees all, and is seen by all: a row and a "
            "column.",
        ),
        (
            _WINDOW + 2 * _N,
            "In the search, pairs that the window has already are counted twice.",
        ),
        (
            _WINDOW + 2 * _N - 1,
            "In the search, pairs that the window has already are counted twice.",
        ),
    ),
    "sensor": (
        (_N * _N, "The sensor's linear attention makes no pairs at all."),
        (_N, "The sensor's linear attention makes no pairs at all."),
    ),
}


def _answer(**changed):
    """The right answer, with some customers' entries changed."""
    return {c: (way, _PAIRS[way]) for c, way in _RIGHT.items()} | changed


_WRONG = (
    *(
        Misconception(_answer(**{c: (way, _PAIRS[way])}), said.format(c=c))
        for (c, way), said in _REASONS.items()
    ),
    *(
        Misconception(_answer(**{c: (_RIGHT[c], pairs)}), said)
        for c, slips in _COUNTS.items()
        for pairs, said in slips
    ),
)

EXERCISES = (
    Exercise(
        "oldest_token",
        13,
        4,
        oldest_token,
        oldest_token_cases,
        (Part("position"),),
        OLDEST_TOKEN,
        (
            "How far back does one layer see, in tokens? Try a width of 1 first.",
            "Each layer goes as far back again. Start at position and subtract.",
            "One layer goes width - 1 back. Multiply by the layers, and where it falls "
            "below 0, max makes it 0.",
        ),
        "A model of 32 layers with windows of 4096 can reach 131 040 tokens back, and "
        "not 131 072. Whether it learns to is another question.",
    ),
    Exercise(
        "window_attention",
        13,
        10,
        window_attention,
        window_attention_cases,
        (Part("out", "n d_v"),),
        WINDOW_ATTENTION,
        (
            "Which keys does query i see? Make a table of their places, n rows and "
            "width columns, and look at its first row.",
            "near = np.arange(n)[:, None] - np.arange(width). k[near] has a row of "
            "keys for each query. Negative places do not exist: their scores become "
            "-inf.",
            "Scores: multiply q[:, None] by k[near], and sum over the last axis. "
            "Softmax over the columns. Mix v[near] the same way: weights[:, :, None] "
            "times it, summed over axis 1.",
        ),
        "n stands once in what it costs, and width once. This is exact for a model "
        "that was trained with a window, and another function for all others.",
        (growth.ROOM, growth.WORK, growth.PLACE_ENOUGH),
        "near is (n, width); k[near] is (n, width, d_k).",
        around=growth.metered,
    ),
    Exercise(
        "two_levels",
        13,
        8,
        two_levels,
        two_levels_cases,
        (Part("out", "n d"),),
        TWO_LEVELS,
        (
            "Two steps. First every piece by itself, then every token with the means.",
            "range(0, len(x), width) gives the starts; a slice past the end is shorter "
            "and does no harm. Keep what each piece found, and its mean over axis 0.",
            "attention.scaled_dot_product(piece, piece, piece).out is one piece of "
            "local. np.stack makes a table of the means. Second level: local asks, the "
            "means are keys and values.",
        ),
        "Every token has its result, near tokens count one by one, and nothing is "
        "lost at the end. lowrank.hierarchical is this with padding and a causal mask.",
        (),
        "local is (n, d), the means are (pieces, d).",
    ),
    ValueExercise(
        "ten_thousand",
        13,
        6,
        _answer(),
        (
            "Strike out, customer by customer, what breaks a demand. Begin with what "
            "must not change at all.",
            "Reach is layers times 128. Pairs: cost.allowed_pairs for the window; the "
            "global token adds a row and a column, less what the window has of them.",
            "Two ways make another function of a trained model, and more; one way has "
            "a state of fixed size; 40 layers of 128 are 5120. Token 0 has 129 keys in "
            "its window.",
        ),
        "None of the four is best. Each is right where its weakness does no harm, and "
        "you have said so in numbers.",
        "pairs = cost.allowed_pairs(10_000, left=128, right=128)\n"
        "ten_thousand = {\n"
        '    "contracts": ("full", 10_000**2),\n'
        '    "log": ("window", pairs),\n'
        '    "search": ("window and global", pairs + 2 * (10_000 - 129)),\n'
        '    "sensor": ("linear", 0),\n'
        "}",
        _WRONG,
        tolerance=0.5,
        form="A dict from each customer to a pair: a way in quotes, and its pairs.",
    ),
)
