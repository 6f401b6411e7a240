"""The gradients of flash attention, and of the untiled: those of autograd."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiles_tools import a_mask, batches, both, counts, kinds, normal, qkv, sizes
from torch_tools import one_thread  # noqa: F401

from attnlib.shapes import ShapeError
from attnlib.tiles import (
    Chip,
    flash_backward,
    flash_forward,
    untiled_backward,
    untiled_forward,
)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(batches, counts, counts, sizes, sizes, sizes, sizes, kinds, st.booleans())
def test_any_tiles_give_the_gradients_of_autograd(
    batch, n_q, n_k, d_k, d_v, block_q, block_k, kind, causal
):
    arrays = qkv(batch, n_q, n_k, d_k, d_v)
    mask = a_mask(kind, batch, n_q, n_k)
    grad = normal(*batch, n_q, d_v, seed=9)
    tensors = [torch.from_numpy(x).requires_grad_() for x in arrays]
    look = torch.from_numpy(both(mask, causal, n_q, n_k)).expand(*batch, n_q, n_k)
    q, k, v = tensors
    scores = (q @ k.mT * d_k**-0.5).masked_fill(~look, -torch.inf)
    empty = ~look.any(-1, keepdim=True)
    weights = scores.masked_fill(empty, 0).softmax(-1).masked_fill(empty, 0)
    wanted = torch.autograd.grad(weights @ v, tensors, torch.from_numpy(grad))

    tile = {"block_q": block_q, "block_k": block_k}
    chip = Chip()
    flash = flash_forward(*arrays, mask, causal=causal, block_q=3, block_k=2)
    ours = flash_backward(*arrays, flash, grad, mask, causal=causal, chip=chip, **tile)
    kept = untiled_forward(*arrays, mask, causal=causal, block_q=3, block_k=2)
    untiled = untiled_backward(*arrays, kept.weights, grad, **tile)
    for name, theirs in zip("qkv", wanted, strict=True):
        for found in (ours, untiled):
            np.testing.assert_allclose(
                getattr(found, name), theirs.numpy(), atol=1e-12, rtol=0
            )
    assert chip.in_use == 0


def test_gradients_of_broadcast_arguments_are_summed():
    q, k, v = normal(2, 1, 4, 3), normal(5, 6, 3, seed=1), normal(6, 2, seed=2)
    tensors = [torch.from_numpy(x).requires_grad_() for x in (q, k, v)]
    out = (tensors[0] @ tensors[1].mT / 3**0.5).softmax(-1) @ tensors[2]
    grad = normal(*out.shape, seed=9)
    wanted = torch.autograd.grad(out, tensors, torch.from_numpy(grad))
    flash = flash_forward(q, k, v, block_q=3, block_k=4)
    ours = flash_backward(q, k, v, flash, grad, block_q=2, block_k=5)
    for name, theirs in zip("qkv", wanted, strict=True):
        assert getattr(ours, name).shape == theirs.shape
        np.testing.assert_allclose(getattr(ours, name), theirs.numpy(), atol=1e-12)


def test_half_precision_gradients_are_summed_in_float32():
    arrays = [x.astype(np.float16) for x in qkv((), 40, 50, 8, 6)]
    grad = normal(40, 6, seed=9).astype(np.float16)
    flash = flash_forward(*arrays, block_q=4, block_k=4)
    ours = flash_backward(*arrays, flash, grad, block_q=4, block_k=4)
    wide = [x.astype(np.float64) for x in arrays]
    exact = flash_backward(
        *wide, flash_forward(*wide, block_q=40, block_k=50), grad, block_q=9, block_k=9
    )
    for name in "qkv":
        found, right = getattr(ours, name), getattr(exact, name)
        assert found.dtype == np.float16
        assert np.abs(found - right).max() < 2e-3 * np.abs(right).max()


def test_what_does_not_fit_backward_is_named():
    q, k, v = qkv((), 4, 5, 3, 2)
    flash = flash_forward(q, k, v, block_q=2, block_k=2)
    tile = {"block_q": 2, "block_k": 2}
    with pytest.raises(ShapeError) as caught:
        flash_backward(q, k, v, flash, np.ones((4, 3)), **tile)
    assert str(caught.value) == (
        "grad_out has shape (4, 3), but for these q, k and v it must be (4, 2)."
    )
    wrong = dataclasses.replace(flash, log_sum_exp=flash.log_sum_exp[:3])
    with pytest.raises(ShapeError, match=r"flash.log_sum_exp has shape \(3,\), but"):
        flash_backward(q, k, v, wrong, np.ones((4, 2)), **tile)
    with pytest.raises(ShapeError, match=r"weights has shape \(5, 4\), but for"):
        untiled_backward(q, k, v, np.ones((5, 4)), np.ones((4, 2)), **tile)
