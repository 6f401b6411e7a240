"""Sparse attention in NumPy: dense attention under the same mask, and less work."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib import cost, masks, sparse
from attnlib.attention import scaled_dot_product
from attnlib.shapes import ShapeError

steady = settings(derandomize=True, deadline=None, max_examples=60)
sizes = st.integers(0, 11)


def inputs(*batch, n_q, n_k, d_k=3, d_v=2, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(*batch, n, d)) for n, d in ((n_q, d_k), (n_k, d_k))] + [
        rng.normal(size=(*batch, n_k, d_v))
    ]


def near(ours, theirs):
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


# Windows


@steady
@given(st.data(), sizes, sizes, st.integers(1, 3))
def test_a_window_is_the_dense_mask(data, n_q, n_k, dilation):
    most = (max(n_q, n_k, 1) - 1) // dilation
    left, right = (data.draw(st.integers(0, most)) for _ in range(2))
    how = {"left": left, "right": right, "dilation": dilation}
    q, k, v = inputs(2, n_q=n_q, n_k=n_k)
    mask = masks.window(n_q, n_k, **how)
    ours = sparse.window(q, k, v, **how)
    theirs = scaled_dot_product(q, k, v, mask)
    near(ours.out, theirs.out)
    assert ours.n_pairs == mask.sum()
    assert ours.n_computed == n_q * (left + 1 + right)
    for i, c in np.argwhere(ours.keys >= 0):  # each column is the key it says
        j = ours.keys[i, c]
        near(ours.scores[:, i, c], theirs.scores[:, i, j])
        near(ours.weights[:, i, c], theirs.weights[:, i, j])
    assert (ours.weights[:, ours.keys < 0] == 0).all()


def test_broadcast_batches_a_scale_and_other_types():
    q, k, v = inputs(2, 3, n_q=6, n_k=7)
    mask = masks.window(6, 7, left=2)
    ours = sparse.window(q[:1], k[0], v, left=2, scale=0.3)
    near(ours.out, scaled_dot_product(q[:1], k[0], v, mask, scale=0.3).out)
    half = sparse.window(*(x.astype(np.float16) for x in (q, k, v)), left=2)
    assert half.out.dtype == half.scores.dtype == np.float16
    whole = sparse.window([[1, 0], [0, 1]], [[1, 0], [0, 1]], [[1], [2]], left=1)
    assert whole.out.dtype == np.float64


def test_the_pairs_of_a_window_are_those_of_the_cost_formula():
    q, k, v = inputs(n_q=37, n_k=40)
    result = sparse.window(q, k, v, left=5, right=2)
    assert result.n_pairs == cost.allowed_pairs(37, 40, left=5, right=2)


def megabytes(call):
    """The most memory that NumPy held during the call, besides what was there."""
    tracemalloc.start()
    call()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 1e6


def test_memory_of_a_window_grows_as_n():
    def window(n):
        q, k, v = inputs(n_q=n, n_k=n)
        return megabytes(lambda: sparse.window(q, k, v, left=7))

    small, large = window(2000), window(4000)
    assert large < 4.5  # the matrix alone would take 128 MB
    assert 1.8 < large / small < 2.2


# Global tokens


@steady
@given(st.data(), sizes, sizes, st.booleans())
def test_window_and_global_is_the_dense_mask(data, n_q, n_k, future):
    most = max(n_q, n_k, 1) - 1
    left = data.draw(st.integers(0, most))
    right = data.draw(st.integers(0, most)) if future else 0
    n_global = data.draw(st.integers(0, n_k))
    causal = data.draw(st.sampled_from([None, False] if right else [None, False, True]))
    q, k, v = inputs(2, n_q=n_q, n_k=n_k)
    mask = masks.window(n_q, n_k, left=left, right=right)
    mask |= masks.global_tokens(n_q, n_k, n_global=n_global)
    if causal or (causal is None and right == 0):
        mask &= masks.causal(n_q, n_k)
    ours = sparse.window_and_global(
        q, k, v, left=left, right=right, n_global=n_global, causal=causal
    )
    near(ours.out, scaled_dot_product(q, k, v, mask).out)
    assert ours.n_pairs == mask.sum()
    assert ours.n_pairs <= ours.n_computed


# Blocks


@steady
@given(st.data(), sizes, sizes, st.integers(1, 4), st.integers(1, 4))
def test_blocks_are_the_expanded_mask(data, n_q, n_k, block_q, block_k):
    shape = (math.ceil(n_q / block_q), math.ceil(n_k / block_k))
    share = data.draw(st.sampled_from([0.0, 0.5, 1.0]))
    pattern = np.random.default_rng(1).random(shape) < share
    q, k, v = inputs(2, n_q=n_q, n_k=n_k)
    mask = masks.blocks(pattern, block_q, block_k, n_q=n_q, n_k=n_k)
    ours = sparse.blocks(q, k, v, pattern, block_q, block_k)
    near(ours.out, scaled_dot_product(q, k, v, mask).out)
    assert ours.n_pairs == mask.sum()


def deepspeed(n_blocks, n_local, n_global, bidirectional):
    """The loops of FixedSparsityConfig (one pattern, no horizontal global rows)."""
    layout = np.zeros((n_blocks, n_blocks), bool)
    for i in range(0, n_blocks, n_local):
        end = min(i + n_local, n_blocks)
        for row in range(i, end):
            for col in range(i, end if bidirectional else row + 1):
                layout[row, col] = True
    first = n_local - n_global
    end = n_blocks - n_blocks % n_local
    for i in range(first, end, n_local):
        layout[0 if bidirectional else i :, i : i + n_global] = True
    if end < n_blocks:
        start = max(min(end + first, n_blocks - n_global), 0)
        layout[0 if bidirectional else start :, start : start + n_global] = True
    return layout


@pytest.mark.parametrize("n_blocks", [1, 4, 8, 13, 36])
@pytest.mark.parametrize(("n_local", "n_global"), [(4, 1), (5, 2), (3, 0)])
def test_the_fixed_pattern_is_deepspeeds(n_blocks, n_local, n_global):
    if n_blocks < n_global:
        return
    ours = sparse.fixed_blocks(n_blocks, n_local=n_local, n_global=n_global)
    np.testing.assert_array_equal(ours, deepspeed(n_blocks, n_local, n_global, True))
    causal = sparse.fixed_blocks(
        n_blocks, n_local=n_local, n_global=n_global, causal=True
    )
    theirs = np.tril(deepspeed(n_blocks, n_local, n_global, False))
    np.testing.assert_array_equal(causal, theirs)


def test_the_articles_configuration_is_still_quadratic():
    # 64 / 4 / 1: a quarter of all pairs stays, however long the sequence.
    shares = {n: sparse.fixed_blocks(n).mean() for n in (4, 36, 160, 1000)}
    for n_blocks, share in shares.items():
        assert share == pytest.approx(1 / 4 + 3 / n_blocks)
    assert shares[36] == pytest.approx(16 / 48)  # 48 GB to 16 GB, at 36 * 64 = 2304
    small, large = (sparse.fixed_blocks(n).sum() * 64**2 for n in (160, 1600))
    assert large / small == pytest.approx(100, rel=0.07)
    rng = np.random.default_rng(0)
    few, many = (sparse.bigbird_blocks(n, rng=rng).sum() for n in (160, 1600))
    assert many / few == pytest.approx(10, rel=0.02)


def test_bigbird_has_its_three_parts():
    pattern = sparse.bigbird_blocks(40, rng=np.random.default_rng(0))
    assert pattern[:2].all()
    assert pattern[:, :2].all()
    b = np.arange(40)
    assert pattern[np.abs(b[:, None] - b) <= 1].all()
    assert (pattern[4:-1].sum(axis=1) == 3 + 2 + 3).all()
    again = sparse.bigbird_blocks(40, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(pattern, again)
    assert sparse.bigbird_blocks(3, rng=np.random.default_rng(0)).all()


# Reach


@steady
@given(st.integers(0, 7), st.integers(0, 4), st.floats(0, 1), st.integers(0, 99))
def test_reach_is_the_power_of_the_pattern(n, n_layers, share, seed):
    mask = np.random.default_rng(seed).random((n, n)) < share
    step = (mask | np.eye(n, dtype=bool)).astype(int)
    seen = np.linalg.matrix_power(step, n_layers) > 0 if n else mask
    np.testing.assert_array_equal(sparse.reach(mask, n_layers), seen)


def test_reach_is_what_changes_an_output():
    rng, n = np.random.default_rng(0), 12
    mask = masks.window(n, left=1, dilation=2) | masks.window(n, left=1)

    def layers(x):
        for _ in range(3):
            x = x + scaled_dot_product(x, x, x, mask, scale=0.01).out
        return x

    x = rng.normal(size=(n, 3))
    before, seen = layers(x), sparse.reach(mask, 3)
    for j in range(n):
        changed = x.copy()
        changed[j] += 1
        differs = np.abs(layers(changed) - before).max(axis=1) > 1e-9
        np.testing.assert_array_equal(differs, seen[:, j])


def test_how_far_windows_and_global_tokens_see():
    n, left = 30, 3
    layers = sparse.layers_between(masks.window(n, left=left))
    i, j = np.tril_indices(n)
    np.testing.assert_array_equal(layers[i, j], -(-(i - j) // left))
    assert (layers[np.triu_indices(n, 1)] == -1).all()
    crossed = masks.window(n, left=1, right=1) | masks.global_tokens(n, n_global=1)
    assert sparse.layers_between(crossed).max() == 2
    # Causal, the first token sees nothing of what came later, and so passes nothing on.
    sinks = masks.window(n, left=left) | masks.global_tokens(n, n_global=1)
    layers = sparse.layers_between(sinks & masks.causal(n))
    assert layers[-1, 1] == -(-(n - 2) // left)
    assert layers[-1, 0] == 1
    dilated = sparse.reach(masks.window(n, left=left, dilation=2), 2)
    assert dilated[-1].sum() == 2 * left + 1  # as many, twice as far, only even steps


# Errors

Q, K, V = np.ones((2, 8, 3)), np.ones((2, 9, 3)), np.ones((2, 9, 2))


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: sparse.window(Q, K, V, left=9),
            ShapeError,
            "left=9 makes a window wider than the sequence, n_q=8 and n_k=9; left=8 "
            "reaches everything.",
        ),
        (
            lambda: sparse.window(Q, K, V, left=3, dilation=3),
            ShapeError,
            "left=3 steps of dilation=3 makes a window wider than the sequence, n_q=8 "
            "and n_k=9; left=2 reaches everything.",
        ),
        (
            lambda: sparse.window(Q, K[..., :2], V, left=1),
            ShapeError,
            "d_k is 3 in q with shape (2, 8, 3) but 2 in k with shape (2, 9, 2); q and "
            "k must agree in d_k.",
        ),
        (
            lambda: sparse.window(Q, np.ones((5, 9, 3)), V, left=1),
            ShapeError,
            "the batch axes of q (2,), k (5,) and v (2,) do not broadcast.",
        ),
        (
            lambda: sparse.window(Q, K, V, left=True),
            TypeError,
            "left must be a whole number, but it is True.",
        ),
        (
            lambda: sparse.window(Q, K, V, left=1, dilation=0),
            ShapeError,
            "dilation must be at least 1, but it is 0.",
        ),
        (
            lambda: sparse.window_and_global(Q, K, V, left=1, n_global=10),
            ShapeError,
            "n_global=10 is more than the n_k=9 keys.",
        ),
        (
            lambda: sparse.window_and_global(
                Q, K, V, left=1, right=2, n_global=1, causal=True
            ),
            ValueError,
            "causal hides what comes after a query, but right=2 shows it; take "
            "right=0, or causal=False.",
        ),
        (
            lambda: sparse.blocks(Q, K, V, np.ones((2, 2), bool), 0),
            ShapeError,
            "block_q must be at least 1, but it is 0.",
        ),
        (
            lambda: sparse.blocks(Q, K, V, np.ones((2, 2), bool), 4, 3),
            ShapeError,
            "n_q=8 and n_k=9 fill (2, 3) blocks of block_q=4 and block_k=3, but the "
            "pattern has shape (2, 2).",
        ),
        (
            lambda: sparse.blocks(Q, K, V, np.ones((2, 3)), 4, 3),
            TypeError,
            "pattern must be boolean, but its dtype is float64.",
        ),
        (
            lambda: sparse.fixed_blocks(8, n_local=2, n_global=3),
            ShapeError,
            "n_global=3 is larger than n_local=2.",
        ),
        (
            lambda: sparse.bigbird_blocks(8, n_local=2, rng=np.random.default_rng(0)),
            ShapeError,
            "n_local=2 must be odd: a block, and as many on each side.",
        ),
        (
            lambda: sparse.reach(np.ones((3, 4), bool), 1),
            ShapeError,
            "a pattern is followed through layers of one sequence, so the mask must be "
            "(n, n), but its shape is (3, 4).",
        ),
        (
            lambda: sparse.layers_between(np.ones((3, 3))),
            TypeError,
            "mask must be boolean, but its dtype is float64.",
        ),
        (
            lambda: sparse.reach(np.ones((3, 3), bool), -1),
            ShapeError,
            "n_layers must be at least 0, but it is -1.",
        ),
    ],
)
def test_errors_say_what_was_asked_and_what_was_found(call, kind, text):
    with pytest.raises(kind) as error:
        call()
    assert str(error.value) == text
