"""Flash attention in half precision, and with scores that are hard to represent."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa
from torch_tools import close, normal, one_thread  # noqa: F401

from attnlib.nn import flash_attention, scaled_dot_product

NAMES = ("out", "q", "k", "v")
SMALL = {"block_q": 3, "block_k": 2}


def inputs(*batch, n_q=9, n_k=9, d=8):
    return [normal(*batch, n, d, seed=i) for i, n in enumerate((n_q, n_k, n_k))]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
def test_half_precision_errs_less_than_sdpa(dtype, causal):
    q, k, v = (
        normal(2, 2, 100, 32, seed=s).to(dtype).requires_grad_() for s in range(3)
    )
    wide = [x.detach().double().requires_grad_() for x in (q, k, v)]
    upstream = normal(2, 2, 100, 32, seed=9).to(dtype)
    results = []
    for f, args in ((flash_attention, (q, k, v)), (sdpa, (q, k, v)), (sdpa, wide)):
        name = "causal" if f is flash_attention else "is_causal"
        out = f(*args, **{name: causal})
        grads = torch.autograd.grad(out, args, upstream.to(out.dtype))
        results.append([x.detach().double() for x in (out, *grads)])
        assert f is sdpa or {x.dtype for x in (out, *grads)} == {dtype}
    for name, ours, theirs, exact in zip(NAMES, *results, strict=True):
        error, limit = ((x - exact).norm() / exact.norm() for x in (ours, theirs))
        assert error <= limit, name
        assert error < (3e-4 if dtype == torch.float16 else 3e-3), name


def test_float16_scores_past_its_range_do_no_harm():
    q = torch.full((1, 64), 60.0, dtype=torch.float16)  # q k^T = 230400 > 65504
    k, v = torch.cat([q, q]), torch.tensor([[1.0], [3.0]], dtype=torch.float16)
    assert flash_attention(q, k, v).item() == 2


def test_large_scores_lose_nothing():
    q, k, v = inputs()
    q, k = 100 * q, 100 * k
    close(flash_attention(q, k, v, **SMALL), scaled_dot_product(q, k, v).out)
    out = flash_attention(q.float(), k.float(), v.float(), **SMALL)
    close(out.double(), scaled_dot_product(q, k, v).out, atol=1e-2)


def test_autocast_leaves_the_tiles_in_float32():
    q, k, v = (x.float() for x in inputs(2))
    right = flash_attention(q, k, v)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        close(flash_attention(q, k, v), right, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("of_bias", [torch.float32, None])
def test_a_bias_keeps_its_own_type_and_is_summed_in_float32(dtype, of_bias):
    q, k, v = (x.to(dtype) for x in inputs(2))
    bias = normal(9, seed=4).to(of_bias or dtype).requires_grad_()
    out = flash_attention(q, k, v, bias=bias, **SMALL)
    upstream = normal(*out.shape, seed=9).to(dtype)
    (ours,) = torch.autograd.grad(out, bias, upstream)
    wide = bias.detach().double().requires_grad_()
    exact = flash_attention(q.double(), k.double(), v.double(), bias=wide)
    (right,) = torch.autograd.grad(exact, wide, upstream.double())
    assert (out.dtype, ours.dtype) == (dtype, bias.dtype)
    close(ours.double(), right, atol=2e-2 if dtype == torch.bfloat16 else 2e-3)
