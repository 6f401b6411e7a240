"""Flash attention in tiles: the numbers of plain attention, whatever the tiles."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiles_tools import a_mask, batches, both, counts, kinds, normal, qkv, sizes
from torch_tools import one_thread  # noqa: F401

from attnlib import masks
from attnlib.attention import scaled_dot_product, softmax
from attnlib.shapes import ShapeError
from attnlib.tiles import (
    Chip,
    Flash,
    flash_backward,
    flash_forward,
    flash_trace,
    online_attention,
    online_start,
    online_step,
    ranges,
    untiled_forward,
)

steady = settings(derandomize=True, deadline=None, max_examples=60)


def log_sum_exp(scores):  # in float64, from PyTorch
    return torch.logsumexp(torch.from_numpy(scores), -1).numpy()


# The online softmax.


@steady
@given(sizes, counts, sizes, sizes, st.integers(0, 9))
def test_online_softmax_is_softmax(n_q, n_k, d_v, block, seed):
    scores = normal(n_q, n_k, seed=seed, scale=30.0)
    scores[np.random.default_rng(seed).random((n_q, n_k)) < 0.3] = -np.inf
    v = normal(n_k, d_v, seed=seed + 1)
    states = online_attention(scores, v, block)
    assert len(states) == 1 + -(-n_k // block)
    np.testing.assert_allclose(states[-1].out, softmax(scores) @ v, atol=1e-12)
    np.testing.assert_allclose(states[-1].log_sum_exp, log_sum_exp(scores), atol=1e-12)
    for i, state in enumerate(states):  # each state is right for the keys so far
        seen = slice(0, i * block)
        np.testing.assert_allclose(
            state.out, softmax(scores[:, seen]) @ v[seen], atol=1e-12
        )


@pytest.mark.parametrize("order", [1, -1])
def test_the_order_of_the_keys_does_not_matter(order):
    scores, v = np.array([[1.0, 40.0, 800.0, 1e4]])[:, ::order], np.eye(4)[::order]
    out = online_attention(scores, v, 1)[-1].out
    np.testing.assert_array_equal(out, [[0, 0, 0, 1]])


def test_a_step_leaves_the_old_state_alone():
    state = online_step(online_start(2, 3), normal(2, 4), normal(4, 3, seed=1))
    kept = [array.copy() for array in (state.m, state.total, state.mixed)]
    scores, v = normal(2, 4, seed=2, scale=9), normal(4, 3, seed=3)
    before = scores.copy()
    online_step(state, scores, v)
    for array, was in zip((state.m, state.total, state.mixed), kept, strict=True):
        np.testing.assert_array_equal(array, was)
    np.testing.assert_array_equal(scores, before)


def test_online_attention_says_what_does_not_fit():
    with pytest.raises(ShapeError, match="scores and v must agree in n_k"):
        online_attention(np.ones((2, 3)), np.ones((4, 5)), 2)
    with pytest.raises(ShapeError, match="block must be at least 1, but it is 0"):
        online_attention(np.ones((2, 3)), np.ones((3, 5)), 0)


# Forward.


@steady
@given(batches, counts, counts, sizes, sizes, sizes, sizes, kinds, st.booleans())
def test_any_tiles_give_plain_attention(
    batch, n_q, n_k, d_k, d_v, block_q, block_k, kind, causal
):
    q, k, v = qkv(batch, n_q, n_k, d_k, d_v)
    mask = a_mask(kind, batch, n_q, n_k)
    chip = Chip()
    flash = flash_forward(
        q, k, v, mask, causal=causal, block_q=block_q, block_k=block_k, chip=chip
    )
    plain = scaled_dot_product(q, k, v, both(mask, causal, n_q, n_k))
    np.testing.assert_allclose(flash.out, plain.out, atol=1e-12, rtol=0)
    np.testing.assert_allclose(
        flash.log_sum_exp, log_sum_exp(plain.scores), atol=1e-12, rtol=0
    )
    untiled = untiled_forward(
        q, k, v, mask, causal=causal, block_q=block_q, block_k=block_k
    )
    for stage in ("scores", "weights", "out"):
        ours, theirs = getattr(untiled, stage), getattr(plain, stage)
        np.testing.assert_allclose(ours, theirs, atol=1e-12, rtol=0)
    assert chip.in_use == 0  # everything was given back


def test_batch_axes_broadcast_and_a_scale_is_taken():
    q, k, v = normal(2, 1, 4, 3), normal(5, 6, 3, seed=1), normal(1, 6, 2, seed=2)
    flash = flash_forward(q, k, v, scale=0.3, block_q=3, block_k=4)
    plain = scaled_dot_product(q, k, v, scale=0.3)
    assert flash.out.shape == plain.out.shape == (2, 5, 4, 2)
    np.testing.assert_allclose(flash.out, plain.out, atol=1e-12)


def test_huge_scores_and_empty_rows():
    q, k, v = qkv((), 5, 6, 4, 3)
    mask = masks.causal(5, 6)
    mask[2] = False
    flash = flash_forward(100 * q, 100 * k, v, mask, block_q=2, block_k=2)
    plain = scaled_dot_product(100 * q, 100 * k, v, mask)
    np.testing.assert_allclose(flash.out, plain.out, atol=1e-12)
    assert (flash.out[2] == 0).all()
    assert np.isneginf(flash.log_sum_exp[2])


@pytest.mark.parametrize(
    ("dtype", "error"), [(np.float64, 1e-14), (np.float32, 5e-7), (np.float16, 1e-3)]
)
def test_every_float_type_comes_back_as_itself(dtype, error):
    q, k, v = (x.astype(dtype) for x in qkv((), 40, 50, 8, 6))
    flash = flash_forward(q, k, v, block_q=16, block_k=16)
    exact = scaled_dot_product(*(x.astype(np.float64) for x in (q, k, v))).out
    assert flash.out.dtype == dtype
    assert flash.log_sum_exp.dtype == np.promote_types(dtype, np.float32)
    assert np.abs(flash.out - exact).max() < error


def test_whole_numbers_and_lists_are_numbers():
    flash = flash_forward([[1, 0]], [[0, 1], [2, 2]], [[3], [5]], block_q=1, block_k=1)
    plain = scaled_dot_product([[1, 0]], [[0, 1], [2, 2]], [[3], [5]])
    np.testing.assert_allclose(flash.out, plain.out)


def test_arguments_are_left_alone():
    q, k, v = qkv((2,), 4, 5, 3, 2)
    before = [x.copy() for x in (q, k, v)]
    flash = flash_forward(q, k, v, causal=True, block_q=2, block_k=2)
    grad = normal(2, 4, 2, seed=9)
    flash_backward(q, k, v, flash, grad, causal=True, block_q=2, block_k=2)
    for x, was in zip((q, k, v), before, strict=True):
        np.testing.assert_array_equal(x, was)


# What is refused.


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"k": np.ones((5, 4))}, ShapeError, "d_k is 3 in q with shape (4, 3) but 4"),
        ({"v": np.ones((6, 2))}, ShapeError, "n_k is 5 in k with shape (5, 3) but 6"),
        ({"q": "three"}, TypeError, "q must be an array of numbers, but it is a str."),
        (
            {"mask": np.ones((4, 5))},
            TypeError,
            "mask must be boolean (True = may look), but its dtype is float64.",
        ),
        (
            {"mask": np.ones((5, 4), bool)},
            ShapeError,
            "mask with shape (5, 4) does not broadcast to the scores' shape (4, 5), "
            "which ends in (n_q, n_k).",
        ),
        (
            {"q": np.ones((2, 4, 3)), "k": np.ones((3, 5, 3))},
            ShapeError,
            "the batch axes of q (2,), k (3,) and v () do not broadcast.",
        ),
        ({"block_q": 0}, ShapeError, "block must be at least 1, but it is 0."),
        ({"block_k": 0}, ShapeError, "block must be at least 1, but it is 0."),
        ({"block_k": 2.0}, TypeError, "block must be a whole number, but it is 2.0."),
    ],
)
@pytest.mark.parametrize("forward", [flash_forward, untiled_forward])
def test_arguments_that_do_not_fit_are_named(forward, change, error, text):
    q, k, v = qkv((), 4, 5, 3, 2)
    arguments = {"q": q, "k": k, "v": v, "block_q": 2, "block_k": 2} | change
    with pytest.raises(error) as caught:
        forward(**arguments)
    assert str(caught.value).startswith(text)


# The trace.


def test_a_trace_shows_every_tile_and_ends_in_the_result():
    q, k, v = qkv((), 5, 7, 3, 2)
    chip, again = Chip(), Chip()
    tile = {"block_q": 2, "block_k": 3, "causal": True}
    steps = flash_trace(q, k, v, chip=chip, **tile)
    flash = flash_forward(q, k, v, chip=again, **tile)
    scores = scaled_dot_product(q, k, v, masks.causal(5, 7)).scores
    at = [(s.rows.start, s.cols.start) for s in steps]
    assert at == [(0, 0), (0, 3), (2, 0), (2, 3), (4, 0), (4, 3), (4, 6)]
    for step in steps:
        rows = slice(step.rows.start, step.rows.stop)
        seen = scores[rows, : step.cols.stop]
        np.testing.assert_allclose(step.m, seen.max(-1))
        np.testing.assert_allclose(
            step.total, np.exp(seen - seen.max(-1, keepdims=True)).sum(-1)
        )
        np.testing.assert_allclose(step.out, softmax(seen) @ v[: step.cols.stop])
        np.testing.assert_allclose(step.mixed, step.out * step.total[:, None])
    for step in (steps[1], steps[3], steps[6]):
        rows = slice(step.rows.start, step.rows.stop)
        np.testing.assert_allclose(step.out, flash.out[rows])
    reads = [s.read for s in steps]
    assert reads == sorted(set(reads))
    assert (steps[-1].read, steps[-1].peak) == (again.read, again.peak)
    assert steps[-1].written < chip.written == again.written
    assert [s.written for s in steps[:3]] == [0, 0, 2 * 3 * 8]  # after a row of tiles


def test_a_trace_follows_one_head():
    with pytest.raises(ShapeError, match=r"a trace follows one head: q \(n_q, d_k\)"):
        flash_trace(*qkv((2,), 3, 4, 2, 2), block_q=2, block_k=2)


def test_ranges_cover_every_row_once():
    assert [list(r) for r in ranges(7, 3)] == [[0, 1, 2], [3, 4, 5], [6]]
    assert ranges(0, 3) == []
    assert isinstance(flash_forward(*qkv((), 2, 2, 2, 2), block_q=9, block_k=9), Flash)
