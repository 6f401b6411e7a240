"""The bytes that are moved: the formulas, the theorem, and kernels under a cap."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tiles_kernels import (
    keys_outside,
)

from attnlib.attention import scaled_dot_product
from attnlib.cost import flash_traffic, untiled_traffic
from attnlib.tiles import (
    Chip,
    block_sizes,
    flash_backward,
    flash_forward,
    run_kernel,
    untiled_backward,
    untiled_forward,
)

steady = settings(derandomize=True, deadline=None, max_examples=60)
sizes = st.integers(1, 9)
counts = st.integers(0, 9)


def qkv(n_q, n_k, d_k, d_v, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    shapes = ((n_q, d_k), (n_k, d_k), (n_k, d_v))
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def meters(chip):
    return chip.read, chip.written


# The formulas are the meters, to the byte.


@steady
@given(counts, counts, sizes, sizes, sizes, sizes, st.booleans())
@example(9, 2, 3, 2, 3, 2, True)  # tiles of queries that stand before every key
def test_flash_moves_what_the_formula_says(
    n_q, n_k, d_k, d_v, block_q, block_k, causal
):
    arrays = qkv(n_q, n_k, d_k, d_v, dtype=np.float32)
    tile = {"block_q": block_q, "block_k": block_k, "causal": causal}
    forward, backward = Chip(), Chip()
    flash = flash_forward(*arrays, chip=forward, **tile)
    flash_backward(*arrays, flash, flash.out, chip=backward, **tile)
    said = flash_traffic(n_q, n_k, d_k, d_v, **tile)
    assert meters(forward) == (said.forward_read, said.forward_written)
    assert meters(backward) == (said.backward_read, said.backward_written)
    assert forward.traffic + backward.traffic == said.total
    if not causal:
        pairs = n_q * n_k
        assert forward.flops == 2 * pairs * (d_k + d_v)
        assert backward.flops == 2 * pairs * (3 * d_k + 2 * d_v)


@steady
@given(counts, counts, sizes, sizes, sizes, sizes)
def test_untiled_attention_moves_what_the_formula_says(
    n_q, n_k, d_k, d_v, block_q, block_k
):
    arrays = qkv(n_q, n_k, d_k, d_v, dtype=np.float32)
    tile = {"block_q": block_q, "block_k": block_k}
    forward, backward = Chip(), Chip()
    kept = untiled_forward(*arrays, chip=forward, **tile)
    untiled_backward(*arrays, kept.weights, kept.out, chip=backward, **tile)
    said = untiled_traffic(n_q, n_k, d_k, d_v, **tile)
    assert meters(forward) == (said.forward_read, said.forward_written)
    assert meters(backward) == (said.backward_read, said.backward_written)
    assert backward.flops == 2 * forward.flops == 4 * n_q * n_k * (d_k + d_v)


@steady
@given(sizes, sizes, sizes, sizes)
def test_a_mask_costs_its_own_bytes_once_and_padding_those_of_one_row(
    n_q, n_k, block_q, block_k
):
    arrays = qkv(n_q, n_k, 3, 2)
    tile = {"block_q": block_q, "block_k": block_k}
    plain, full, padding = Chip(), Chip(), Chip()
    flash_forward(*arrays, chip=plain, **tile)
    flash_forward(*arrays, np.ones((n_q, n_k), bool), chip=full, **tile)
    flash_forward(*arrays, np.ones(n_k, bool), chip=padding, **tile)
    assert full.read - plain.read == n_q * n_k
    assert padding.read - plain.read == math.ceil(n_q / block_q) * n_k


def test_heads_add_up():
    arrays = [np.stack([x] * 3) for x in qkv(5, 6, 3, 2)]
    chip, tile = Chip(), {"block_q": 2, "block_k": 2}
    flash_forward(*arrays, chip=chip, **tile)
    assert chip.traffic == 3 * flash_traffic(5, 6, 3, 2, itemsize=8, **tile).forward


# Theorem 2 of the paper: n d + n^2 for the untiled, n^2 d^2 / M for flash.


@pytest.mark.parametrize("d", [16, 64])
@pytest.mark.parametrize("n", [256, 1024, 4096])
def test_flash_moves_n2_d2_over_m(n, d):
    """Over a range of M as wide as the theorem's, up to what the smallest tile needs.

    The constant is measured; that it stays the same is the theorem.
    """
    numbers = 16 * d
    constants = []
    while numbers <= n * d:  # M, in numbers of 4 bytes
        block_q, block_k = block_sizes(4 * numbers, d)
        said = flash_traffic(n, n, d, block_q=block_q, block_k=block_k)
        constants.append(said.forward / 4 / (n**2 * d**2 / numbers))
        numbers *= 2
    assert len(constants) >= 5
    assert 12.5 < min(constants) <= max(constants) < 19.5


def test_the_chip_itself_shows_it():
    """The same, run and not computed: twice the SRAM, half the traffic."""
    n, d = 160, 8
    q, k, v = qkv(n, n, d, d, dtype=np.float32)
    moved = []
    for sram in (1024, 2048, 4096):
        chip = Chip(sram)
        block_q, block_k = block_sizes(sram, d)
        flash_forward(q, k, v, block_q=block_q, block_k=block_k, chip=chip)
        assert chip.peak <= sram
        moved.append(chip.traffic * sram / 16 / (n**2 * d**2))
    assert 15 < min(moved) <= max(moved) < 21


@pytest.mark.parametrize("d", [16, 64])
def test_untiled_attention_moves_n2_whatever_the_sram(d):
    for n in (1024, 4096, 16384):
        for block in (d, 4 * d, 16 * d):
            said = untiled_traffic(n, n, d, block_q=block, block_k=d).forward / 4
            flash = flash_traffic(n, n, d, block_q=block, block_k=d).forward / 4
            assert said - flash == 4 * n**2 - n
            assert 4 < said / n**2 < 4 + 2 * d / block + 2.1 * d / n


def test_twice_the_length_is_four_times_the_traffic():
    tile = {"block_q": 64, "block_k": 64}
    for causal in (False, True):
        short, long = (
            flash_traffic(n, n, 32, causal=causal, **tile).total for n in (8192, 16384)
        )
        assert long / short == pytest.approx(4, rel=0.03)


def test_causal_tiles_that_are_hidden_cost_nothing():
    tile = {"block_q": 64, "block_k": 64}
    full, half = (
        flash_traffic(8192, 8192, 64, causal=causal, **tile) for causal in (False, True)
    )
    assert half.forward / full.forward == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("block_k", [4, 8])
def test_the_papers_own_order_moves_three_n_d_for_each_block_of_keys(block_k):
    """Algorithm 1, run on the chip: what `cost.flash_gpu_bytes` counts, and m, total.

    The paper's count leaves out the two numbers a query: read and written each time.
    """
    n, d = 32, 8
    q, k, v = qkv(n, n, d, d)
    run = run_kernel(keys_outside, q, k, v, block_q=4, block_k=block_k)
    np.testing.assert_allclose(run.out, scaled_dot_product(q, k, v).out, atol=1e-12)
    times = n // block_k
    assert run.traffic == 8 * ((3 * times + 1) * n * d + 4 * times * n)


# Block-sparse flash attention: the theorem once more, times the density.


@steady
@given(
    st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=5),
    st.booleans(),
)
def test_tiles_that_a_mask_hides_cost_nothing_but_the_mask(blocks, ragged):
    """Proposition 4 of the paper: n d + density n^2 d^2 / M."""
    kept = np.array(blocks)
    mask = np.kron(kept, np.ones((3, 2), bool))
    if ragged:
        mask = mask[:-1, :-1]
    n_q, n_k = mask.shape
    arrays, tile = qkv(n_q, n_k, 5, 4), {"block_q": 3, "block_k": 2}
    chip, backward = Chip(), Chip()
    flash = flash_forward(*arrays, mask, chip=chip, **tile)
    flash_backward(*arrays, flash, flash.out, mask, chip=backward, **tile)
    plain = scaled_dot_product(*arrays, mask)
    np.testing.assert_allclose(flash.out, plain.out, atol=1e-12)
    keys = np.array([len(range(n_k)[i : i + 2]) for i in range(0, n_k, 2)])
    passing = (kept * keys).sum()
    assert chip.read == 8 * (n_q * 5 + passing * (5 + 4)) + mask.size
    pairs = mask.sum()
    assert chip.flops == 2 * pairs * (5 + 4)
    assert backward.flops == 2 * pairs * (3 * 5 + 2 * 4)
