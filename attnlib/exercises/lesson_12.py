# mypy: allow-untyped-defs, allow-untyped-calls
"""The exercises of lesson 12: flash attention."""

import numpy as np

from attnlib import tiles
from attnlib.clinic.families.tile_gradients import TILE_GRAD_Q
from attnlib.clinic.families.tiles import ONLINE_UPDATE, TILED_ATTENTION
from attnlib.clinic.probes_tiles import grad_cases, tiled_cases, update_cases
from attnlib.exercises import kernels
from attnlib.exercises.exercise import Exercise, Part


def online_softmax(m, total, mixed, scores, v):
    """Take one more block of keys into the state of the online softmax.

    m: (n_q,), the largest score so far; -inf if there was none
    total: (n_q,), the sum of exp(score - m) so far
    mixed: (n_q, d_v), the sum of exp(score - m) times value so far
    scores: (n_q, block_k), of the new keys, scaled; -inf where hidden
    v: (block_k, d_v), values of the new keys
    returns: the new m, total and mixed
    A row whose scores are all -inf changes nothing, even if m is still -inf.
    """
    new = np.maximum(m, scores.max(axis=-1))
    shift = np.where(new == -np.inf, 0, new)
    weights = np.exp(scores - shift[:, None])
    shrink = np.exp(m - shift)
    total = shrink * total + weights.sum(axis=-1)
    mixed = shrink[:, None] * mixed + weights @ v
    return new, total, mixed


def tiled_attention(chip, q, k, v, out, block_q, block_k):
    """Compute softmax(q k^T / sqrt(d_k)) v in tiles, and store it into out.

    chip: a tiles.Chip; chip.load, chip.store and chip.new are all you need
    q: (n_q, d_k)   k: (n_k, d_k)   v: (n_k, d_v)   out: (n_q, d_v), all in HBM
    block_q, block_k: queries and keys of a tile; the last may have fewer
    returns: nothing
    Nothing is hidden, and there is at least one key. With 120 queries and 170
    keys, d_k 8, d_v 6, tiles of 16 x 16, at most 20000 bytes may lie on the
    chip, and at most 166720 may go between it and HBM.
    """
    for rows in tiles.ranges(len(q), block_q):
        q_tile = chip.load(q, rows) / q.shape[1] ** 0.5
        m = chip.new(len(rows), -np.inf)
        total = chip.new(len(rows))
        mixed = chip.new((len(rows), v.shape[1]))
        for cols in tiles.ranges(len(k), block_k):
            scores = q_tile @ chip.load(k, cols).T
            new = np.maximum(m, scores.max(axis=-1))
            weights = np.exp(scores - new[:, None])
            shrink = np.exp(m - new)
            total = shrink * total + weights.sum(axis=-1)
            mixed = shrink[:, None] * mixed + weights @ chip.load(v, cols)
            m = new
        chip.store(out, rows, mixed / total[:, None])


def tile_grad_q(q, k, v, grad_out, log_sum_exp, delta):
    """Compute what one tile of keys brings to the gradient of q.

    q: (n_q, d_k)   k: (block_k, d_k)   v: (block_k, d_v), of one tile
    grad_out: (n_q, d_v), the gradient at out
    log_sum_exp: (n_q,), of the scaled scores of each query with all keys
    delta: (n_q,), grad_out times out, summed over d_v
    returns: (n_q, d_k); summed over all tiles of keys it is the gradient of q
    Scores are divided by the root of d_k, as always.
    """
    root = q.shape[-1] ** 0.5
    weights = np.exp(q @ k.T / root - log_sum_exp[:, None])
    grad_weights = grad_out @ v.T
    grad_scores = weights * (grad_weights - delta[:, None])
    return grad_scores @ k / root


# So many that neither all queries nor all keys find room; no tile divides them.
MEASURED = kernels.Sizes(n_q=120, n_k=170, d_k=8, d_v=6, block_q=16, block_k=16)
OTHERWISE = kernels.Sizes(n_q=100, n_k=130, d_k=4, d_v=6, block_q=24, block_k=8)
# And not in float32 either, where rows are this wide.
WIDE = kernels.Sizes(n_q=62, n_k=70, d_k=24, d_v=32, block_q=5, block_k=4)


EXERCISES = (
    Exercise(
        name="online_softmax",
        lesson=12,
        minutes=9,
        solution=online_softmax,
        cases=update_cases,
        returns=(Part("m", "n_q"), Part("total", "n_q"), Part("mixed", "n_q d_v")),
        family=ONLINE_UPDATE,
        hints=(
            "First the new maximum. Then everything is measured by it: what is new, "
            "and what was there.",
            "np.maximum(m, ...) takes the larger of two, place by place. What was "
            "there shrinks by one factor a query, the exponential of a difference. "
            "For -inf minus -inf the lesson has a stand-in.",
            "shift = np.where(new == -np.inf, 0, new). Exponentials of the block: "
            "np.exp(scores - shift[:, None]). Factor: np.exp(m - shift). Then sum and "
            "mixture: factor times old, plus new; return new itself, not shift.",
        ),
        why=(
            "Three things a query, however long the text. The step does not ask how "
            "many keys there were or in what order they came, so blocks can be of any "
            "size: that is all that tiles need."
        ),
    ),
    Exercise(
        name="tiled_attention",
        lesson=12,
        minutes=16,
        solution=tiled_attention,
        cases=tiled_cases,
        returns=(Part("out", "n_q d_v"),),
        family=TILED_ATTENTION,
        around=kernels.on_a_chip,
        laws=(
            kernels.within_caps(MEASURED, 20_000),
            kernels.within_caps(OTHERWISE, 16_500),
            kernels.within_caps(WIDE, 13_000),
        ),
        hints=(
            "Two loops: tiles of queries outside, tiles of keys inside. What is known "
            "of a query before its first key?",
            "Outside: load queries, start m, total and mixed with chip.new. Inside: "
            "load keys and values, make scores, take the step of Exercise 1, without "
            "its stand-in. After the inner loop: divide, and store.",
            "for rows in tiles.ranges(len(q), block_q), and the same with cols. m "
            "starts as chip.new(len(rows), -np.inf). The last line of the outer loop "
            "stores mixed / total[:, None] into out.",
        ),
        why=(
            "This is flash attention, forward. The numbers are those of lesson 01, and "
            "no score ever reached HBM: each was made, used, and forgotten on the chip."
        ),
    ),
    Exercise(
        name="tile_grad_q",
        lesson=12,
        minutes=8,
        solution=tile_grad_q,
        cases=grad_cases,
        returns=(Part("grad_q", "n_q d_k"),),
        family=TILE_GRAD_Q,
        hints=(
            "Four steps back: weights, their gradient, the gradient of the scores, "
            "that of q.",
            "The weights of the tile need no sum over keys: log_sum_exp has it. And "
            "the gradient of the scores needs none either: delta has it.",
            "grad_weights is grad_out @ v.T. The scores' gradient is weights times "
            "(grad_weights - delta[:, None]). One product with k is left, and one "
            "division.",
        ),
        why=(
            "Two numbers a query, log_sum_exp and delta, stand for everything that the "
            "other tiles know. So no weight has to be kept from the forward pass."
        ),
    ),
)
