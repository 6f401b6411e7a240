"""Kernels as people write them, under a cap of bytes, and what stops the wrong ones."""

import numpy as np
import pytest
from tiles_kernels import (
    all_keys_at_once,
    all_scores_kept,
    by_slices,
    keys_outside,
    one_query_at_a_time,
    query_by_query,
    through_hbm,
    tiled,
    whole_matrix,
)
from tiles_tools import qkv as batched

from attnlib.attention import scaled_dot_product
from attnlib.cost import flash_traffic
from attnlib.shapes import ShapeError
from attnlib.tiles import ChipFull, Run, over_the_cap, run_kernel


def qkv(n_q, n_k, d_k, d_v):
    return batched((), n_q, n_k, d_k, d_v)


N_Q, N_K, D, D_V = 45, 64, 8, 6
SRAM = 14_000
TILE = {"block_q": 16, "block_k": 16}


def cap():
    said = flash_traffic(N_Q, N_K, D, D_V, itemsize=8, **TILE)
    return said.forward


def run(kernel, sram=SRAM):
    return run_kernel(kernel, *qkv(N_Q, N_K, D, D_V), sram_bytes=sram, **TILE)


@pytest.mark.parametrize("kernel", [tiled, by_slices, query_by_query])
def test_right_kernels_pass_in_any_style(kernel):
    done = run(kernel)
    right = scaled_dot_product(*qkv(N_Q, N_K, D, D_V)).out
    np.testing.assert_allclose(done.out, right, atol=1e-12)
    assert over_the_cap(done, cap(), N_Q, N_K) is None
    assert done.peak <= SRAM


@pytest.mark.parametrize("kernel", [whole_matrix, all_keys_at_once, all_scores_kept])
def test_right_numbers_from_the_whole_matrix_do_not_fit(kernel):
    with pytest.raises(ChipFull):
        run(kernel)


@pytest.mark.parametrize("kernel", [whole_matrix, all_keys_at_once])
def test_without_an_end_to_the_sram_they_would_be_right(kernel):
    right = scaled_dot_product(*qkv(N_Q, N_K, D, D_V)).out
    np.testing.assert_allclose(run(kernel, None).out, right, atol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "why"),
    [
        (
            through_hbm,
            "25560 were written, room for all 45 x 64 scores, which need never leave "
            "the chip.",
        ),
        (one_query_at_a_time, "something is loaded more often than once a tile."),
        (keys_outside, "something is loaded more often than once a tile."),
    ],
)
def test_right_numbers_with_too_much_traffic_are_over_the_cap(kernel, why):
    done = run(kernel)
    right = scaled_dot_product(*qkv(N_Q, N_K, D, D_V)).out
    np.testing.assert_allclose(done.out, right, atol=1e-12)
    said = over_the_cap(done, cap(), N_Q, N_K)
    assert said.startswith(f"{done.traffic} bytes went between HBM and the chip, and ")
    assert said.endswith(why)


def test_a_cap_is_on_both_directions_together():
    run_of = {"out": np.zeros((4, 2)), "read": 60, "written": 50, "peak": 0, "flops": 0}
    assert over_the_cap(Run(**run_of), 110, 4, 4) is None
    assert over_the_cap(Run(**run_of), 109, 4, 4).startswith("110 bytes went between")


def test_a_kernel_gets_the_mask_and_room_for_the_log_sum_exp_if_asked():
    def kernel(chip, q, k, v, mask, out, log_sum_exp, block_q, block_k):
        seen = chip.load(mask).sum(axis=1)
        chip.store(log_sum_exp, None, np.log(seen))
        assert (len(out), block_q, block_k) == (3, 2, 2)

    mask = np.tri(3, 4) > 0
    done = run_kernel(
        kernel, *qkv(3, 4, 2, 2), mask, block_q=2, block_k=2, log_sum_exp=True
    )
    assert np.isnan(done.out).all()  # nothing was stored there, and that is seen
    np.testing.assert_allclose(done.log_sum_exp, np.log([1, 2, 3]))


def test_a_kernel_runs_for_one_head():
    with pytest.raises(
        ShapeError, match=r"^a kernel is run for one head: q \(n_q, d_k"
    ):
        run_kernel(tiled, *(np.ones((2, 3, 4)) for _ in range(3)), block_q=2, block_k=2)


def test_a_kernel_cannot_write_into_the_callers_arrays():
    def kernel(chip, q, k, v, out, block_q, block_k):
        chip.store(q, None, chip.new(q.shape, 7.0))

    q, k, v = qkv(3, 4, 2, 2)
    before = q.copy()
    run_kernel(kernel, q, k, v, block_q=2, block_k=2)
    np.testing.assert_array_equal(q, before)
