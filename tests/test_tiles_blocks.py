"""How large tiles may be: what is picked fits, and what is larger does not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiles_tools import a_mask, qkv

from attnlib.attention import scaled_dot_product
from attnlib.tiles import (
    Chip,
    ChipFull,
    block_sizes,
    flash_backward,
    flash_forward,
    sram_needed,
    untiled_forward,
)


@settings(derandomize=True, deadline=None, max_examples=25)
@given(
    st.integers(1, 12),
    st.integers(1, 12),
    st.integers(300, 20_000),
    st.sampled_from([np.float32, np.float64]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_blocks_that_are_picked_fit_and_larger_ones_do_not(
    d_k, d_v, sram, dtype, masked, causal, backward
):
    kind = {"dtype": dtype, "masked": masked, "causal": causal, "backward": backward}
    try:
        block_q, block_k = block_sizes(sram, d_k, d_v, **kind)
    except ChipFull:
        assert sram_needed(1, 1, d_k, d_v, **kind) > sram
        return
    assert sram_needed(block_q, block_k, d_k, d_v, **kind) <= sram
    larger = (
        (min(block_k + 1, d_k), block_k + 1)
        if backward
        else (block_q + 1, min(block_q + 1, d_k))
    )
    assert sram_needed(*larger, d_k, d_v, **kind) > sram
    n_q, n_k = 2 * block_q + 1, 2 * block_k + 1  # ragged, and the promise holds
    q, k, v = (x.astype(dtype) for x in qkv((), n_q, n_k, d_k, d_v))
    mask = a_mask("full", (), n_q, n_k) if masked else None
    tile = {"causal": causal, "block_q": block_q, "block_k": block_k}
    if not backward:
        flash_forward(q, k, v, mask, chip=Chip(sram), **tile)
        return
    flash = flash_forward(q, k, v, mask, **tile)
    flash_backward(q, k, v, flash, flash.out, mask, chip=Chip(sram), **tile)


def test_a_chip_too_small_for_anything():
    with pytest.raises(ChipFull) as caught:
        block_sizes(100, 64)
    needed = sram_needed(1, 1, 64)
    assert str(caught.value) == (
        f"one query and one key of d_k=64 need {needed} bytes of SRAM, but the chip "
        "has 100."
    )


def test_a_chip_too_small_for_the_tiles_refuses_them():
    q, k, v = qkv((), 30, 30, 8, 8)
    needed = sram_needed(8, 8, 8, dtype=np.float64)
    tile = {"block_q": 8, "block_k": 8}
    flash_forward(q, k, v, chip=Chip(needed), **tile)
    with pytest.raises(ChipFull, match=r"bytes of SRAM \d+ are free\.$"):
        flash_forward(q, k, v, chip=Chip(needed - 1), **tile)


def test_untiled_attention_needs_room_for_a_row_and_flash_does_not():
    q, k, v = qkv((), 6, 500, 4, 3)
    tile = {"block_q": 2, "block_k": 2}
    with pytest.raises(ChipFull, match=r"shape \(1, 500\) in float64 takes 4000 bytes"):
        untiled_forward(q, k, v, chip=Chip(3000), **tile)
    plain = scaled_dot_product(q, k, v).out
    ours = flash_forward(q, k, v, chip=Chip(3000), **tile).out
    np.testing.assert_allclose(ours, plain, atol=1e-12)
    theirs = untiled_forward(q, k, v, chip=Chip(5000), **tile).out
    np.testing.assert_allclose(theirs, plain, atol=1e-12)
