"""Bytes: what is kept, what is moved, and whether they set the time."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib import cost

steady = settings(derandomize=True, deadline=None, max_examples=60)


# Activations.


def test_one_matrix_of_scores():
    assert cost.score_bytes(4096) == 32 * 2**20
    assert cost.score_bytes(4096, n_heads=32) == 2**30
    assert cost.score_bytes(131_072) == 32 * 2**30
    assert cost.score_bytes(10_000) / 2**20 == pytest.approx(190.7, abs=0.05)


def test_what_a_fused_kernel_keeps_does_not_grow_with_n2():
    short, long = (
        cost.saved_activations(n, 512, 8, fused=True).total for n in (1024, 2048)
    )
    assert long == 2 * short
    usual = cost.saved_activations(2048, 512, 8)
    assert usual.weights == cost.score_bytes(2048, n_heads=8, itemsize=4)
    assert usual.linear < usual.weights


@steady
@given(st.integers(1, 120), st.integers(1, 90), st.integers(1, 9))
def test_checkpointing_is_what_it_says(n_layers, layer, x):
    best = cost.best_segment(n_layers, layer, x)
    peaks = [math.ceil(n_layers / s) * x + s * layer for s in range(1, n_layers + 1)]
    found = cost.checkpointing(n_layers, layer, x, segment=best)
    assert found.peak == min(peaks)
    assert found.plain == n_layers * layer
    assert found.flops_ratio == 4 / 3


def test_the_best_segment_grows_with_the_root():
    """With as much kept in a layer as goes into it: sqrt(n), as Chen et al. say."""
    for n_layers in (16, 100, 400):
        root = math.isqrt(n_layers)
        assert cost.best_segment(n_layers, 20, 20) == root
        assert cost.checkpointing(n_layers, 20, 20, segment=root).peak == 40 * root


# The roofline.


def test_a_roofline_has_a_slope_and_a_ceiling():
    machine = {"flops_per_second": 100.0, "bytes_per_second": 10.0}
    slope = cost.roofline(50, 10, **machine)
    assert (slope.intensity, slope.ridge, slope.seconds, slope.share) == (5, 10, 1, 0.5)
    assert slope.bound == "memory"
    ceiling = cost.roofline(400, 10, **machine)
    assert (ceiling.seconds, ceiling.share, ceiling.bound) == (4, 1, "compute")
    assert cost.roofline(100, 10, **machine).bound == "compute"  # at the ridge


def test_decoding_is_bound_by_memory_and_prefill_by_arithmetic():
    """Llama-2-7B's attention on an A100: one query against a cache of 4096 tokens."""
    a100 = {"flops_per_second": 312e12, "bytes_per_second": 1.555e12}
    decode = 32 * cost.attention_flops(1, 4096, 32, n_k=4096).core
    read = cost.cache_bytes(524_288, 4096)
    found = cost.roofline(decode, read, **a100)
    assert found.intensity == 1  # one FLOP a byte, whatever the length
    assert found.bound == "memory"
    assert found.share < 0.006
    groups = cost.roofline(decode, read / 8, **a100)
    assert groups.intensity == 8
    tiles = cost.flash_traffic(4096, 4096, 128, block_q=128, block_k=64, itemsize=2)
    prefill = cost.attention_flops(4096, 128, 1).core
    assert cost.roofline(prefill, tiles.forward, **a100).share > 0.6


def test_flash_attention_is_what_gets_over_the_ridge():
    """GPT-2 medium on an A100 with 312 TFLOP/s and 1.555 TB/s: 201 FLOPs a byte."""
    a100 = {"flops_per_second": 312e12, "bytes_per_second": 1.555e12}
    rows = {row.quantity: row.ours * 1e9 for row in cost.flash_figure_2()}
    usual, flash = (
        cost.roofline(rows[f"{way}, GFLOPs"], rows[f"{way}, GB"], **a100)
        for way in ("standard", "flash")
    )
    assert (usual.bound, round(usual.intensity)) == ("memory", 20)
    assert (flash.bound, round(flash.intensity)) == ("compute", 217)
    # The least times; the paper measured 41.7 and 7.3 ms.
    assert [round(1000 * r.seconds, 1) for r in (usual, flash)] == [25.9, 3.1]


# The FlashAttention paper's figure 2.


def test_the_papers_traffic_is_reached_and_its_gflops_are_not():
    rows = {row.quantity: row for row in cost.flash_figure_2()}
    assert rows["standard, GB"].ours == pytest.approx(40.27, abs=0.005)
    assert rows["flash, GB"].ours == pytest.approx(4.43, abs=0.005)
    assert [name for name, row in rows.items() if not row.fits] == [
        "standard, GFLOPs",
        "flash, GFLOPs",
    ]
    assert rows["standard, GFLOPs"].ours == pytest.approx(824.6, abs=0.05)
    assert rows["flash, GFLOPs"].ours == pytest.approx(962.1, abs=0.05)
    assert rows["GFLOPs, flash less standard"].ratio == pytest.approx(1, abs=0.01)
    assert rows["GB, standard over flash"].ratio == pytest.approx(1, abs=0.01)


def test_without_mask_and_dropout_the_count_is_too_small():
    shape = (64, 16, 1024, 64)
    bare, dropped = (
        cost.standard_gpu_bytes(*shape, dropout=dropout) / 1e9
        for dropout in (False, True)
    )
    assert (bare, dropped) == (
        pytest.approx(25.2, abs=0.05),
        pytest.approx(36.0, abs=0.05),
    )
    assert cost.flash_gpu_bytes(*shape, block_k=128) / 1e9 == pytest.approx(
        8.2, abs=0.05
    )


def test_the_passes_add_up():
    forward, backward = (
        sum(p.bytes for p in cost.PASSES if p.phase == phase) / 2
        for phase in ("forward", "backward")
    )
    assert (forward, backward) == (8.5, 9.5)
    one_pass = 2 * 64 * 16 * 1024**2 / 1e9
    assert one_pass == pytest.approx(2.147, abs=5e-4)


def test_the_plain_flops_of_the_shape_are_no_66_gflops():
    forward = 64 * cost.attention_flops(1024, 1024, 16).core / 1e9
    assert forward == pytest.approx(274.9, abs=0.05)
