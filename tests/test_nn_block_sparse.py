"""Block-sparse attention: SDPA's numbers and gradients with the expanded mask."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention as sdpa
from torch_tools import close, normal, one_thread  # noqa: F401

from attnlib import masks
from attnlib.nn import block_sparse_attention, scaled_dot_product, slabs
from attnlib.nn.block_sparse import Blocks
from attnlib.shapes import ShapeError

steady = settings(derandomize=True, deadline=None, max_examples=60)


def drawn(n_q, n_k, block, share=0.4, seed=5):
    shape = (-(-n_q // block), -(-n_k // block))
    return np.random.default_rng(seed).random(shape) < share


def dense(pattern, block, n_q, n_k, causal=False):
    mask = masks.blocks(pattern, block, n_q=n_q, n_k=n_k)
    return torch.from_numpy(mask & masks.causal(n_q, n_k) if causal else mask)


def inputs(*batch, n_q, n_k, d_k=3, d_v=2, n_kv=None, grad=True):
    of_k = batch if n_kv is None else (*batch[:-1], n_kv)
    shapes = ((*batch, n_q, d_k), (*of_k, n_k, d_k), (*of_k, n_k, d_v))
    return [normal(*shape, seed=seed, grad=grad) for seed, shape in enumerate(shapes)]


def same(ours, theirs, tensors):
    close(ours, theirs)
    upstream = normal(*ours.shape, seed=9)
    for one, other in zip(
        torch.autograd.grad(ours, tensors, upstream),
        torch.autograd.grad(theirs, tensors, upstream),
        strict=True,
    ):
        close(one, other)


@steady
@given(st.data(), st.integers(0, 14), st.integers(0, 14), st.integers(1, 5))
def test_it_is_the_expanded_mask(data, n_q, n_k, block):
    share = data.draw(st.sampled_from([0.0, 0.4, 1.0]))
    causal = data.draw(st.booleans())
    pattern = drawn(n_q, n_k, block, share)
    tensors = inputs(2, n_q=n_q, n_k=n_k)
    ours = block_sparse_attention(*tensors, pattern, block=block, causal=causal)
    mask = dense(pattern, block, n_q, n_k, causal)
    same(ours, scaled_dot_product(*tensors, mask).out, tensors)


@pytest.mark.parametrize("scores", [1, 60, 10**6])
@pytest.mark.parametrize("n_kv", [1, 2, 4])
def test_sdpa_says_the_same_with_shared_heads(monkeypatch, scores, n_kv):
    monkeypatch.setattr(slabs, "SCORES", scores)
    tensors = inputs(2, 4, n_q=22, n_k=25, n_kv=n_kv)
    pattern = drawn(22, 25, 4)
    ours = block_sparse_attention(*tensors, torch.from_numpy(pattern), block=4)
    mask = dense(pattern, 4, 22, 25)
    same(ours, sdpa(*tensors, attn_mask=mask, enable_gqa=True), tensors)


def test_gradcheck():
    tensors = inputs(2, n_q=7, n_k=8)
    pattern = drawn(7, 8, 3, 0.6)

    def blocks(*tensors):
        return block_sparse_attention(
            *tensors, pattern, block=3, causal=True, scale=0.8
        )

    assert torch.autograd.gradcheck(blocks, tensors)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_half_precision_is_as_near_as_rounding_lets_it(dtype):
    tensors = [x.to(dtype) for x in inputs(2, n_q=40, n_k=40, grad=False)]
    pattern = drawn(40, 40, 8)
    ours = block_sparse_attention(*tensors, pattern, block=8)
    exact = scaled_dot_product(
        *(x.double() for x in tensors), dense(pattern, 8, 40, 40)
    ).out
    assert ours.dtype == dtype
    error = (ours.double() - exact).norm() / exact.norm()
    assert error < (4 if dtype == torch.float32 else 0.3) * torch.finfo(dtype).eps


def test_only_the_allowed_blocks_are_computed():
    pattern = drawn(64, 64, 8)
    options = (pattern.tolist(), False, torch.float32, torch.device("cpu"))
    plan = Blocks(64, 64, 8, *options)
    assert sum(tile.n_scores for tile in plan()) == pattern.sum() * 64
    neighbours = [[True, True, False, True]]
    (tile,) = Blocks(2, 8, 2, neighbours, *options[1:])()
    assert tile.runs == (slice(0, 4), slice(6, 8))
    assert tile.bias is None


@pytest.mark.parametrize(
    ("pattern", "how", "kind", "text"),
    [
        (
            np.ones((3, 3), bool),
            {"block": 0},
            ShapeError,
            "block must be at least 1, but it is 0.",
        ),
        (
            np.ones((3, 3)),
            {"block": 3},
            TypeError,
            "blocks must be boolean (True = may look), but their dtype is float64.",
        ),
        (
            np.ones((3, 3), bool),
            {"block": 3},
            ShapeError,
            "n_q=8 and n_k=10 fill (3, 4) blocks of block=3, but blocks has shape "
            "(3, 3).",
        ),
        (
            np.ones((2, 3, 4), bool),
            {"block": 3},
            ShapeError,
            "n_q=8 and n_k=10 fill (3, 4) blocks of block=3, but blocks has shape "
            "(2, 3, 4).",
        ),
    ],
)
def test_a_pattern_that_does_not_fit_is_named(pattern, how, kind, text):
    with pytest.raises(kind) as error:
        block_sparse_attention(*inputs(2, n_q=8, n_k=10), pattern, **how)
    assert str(error.value) == text


def test_a_second_derivative_is_a_clear_error():
    q, k, v = inputs(n_q=4, n_k=4)
    out = block_sparse_attention(q, k, v, [[True]])
    (d_q,) = torch.autograd.grad(out.sum(), q, create_graph=True)
    with pytest.raises(NotImplementedError, match="block_sparse_attention has no sec"):
        torch.autograd.grad(d_q.sum(), q)
